"""Model folders that cannot be loaded: links that lead nowhere, impossible sizes, parts of two models."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from engine.encoders.files import CONFIG_FILE
from engine.errors import EncoderError
from tests.encoders.tampering import Take, assert_same_vectors, load, tamper
from tests.encoders.tiny import KINDS

FILES = ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"]


@pytest.mark.parametrize("file", [*FILES, CONFIG_FILE])
@pytest.mark.parametrize("target", ["itself", "nowhere", "/dev/zero", "/", "pipe"])
def test_a_link_that_leads_to_no_file_is_refused(take: Take, file: str, target: str) -> None:
    folder = take("mean")
    (folder / file).unlink()
    if target == "pipe":
        os.mkfifo(folder / file)
    else:
        (folder / file).symlink_to(file if target == "itself" else target)
    with pytest.raises(EncoderError) as raised:
        load(folder)
    assert str(raised.value) == (
        f"{folder / file} is no file, as every *{(folder / file).suffix} of an encoder must be; restore the folder"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_links_to_files_elsewhere_are_followed_as_in_the_cache_of_the_hub(
    saved: dict[str, Path], kind: str, tmp_path: Path
) -> None:
    for file in saved[kind].iterdir():
        (tmp_path / file.name).symlink_to(file)
    assert_same_vectors(tmp_path, saved[kind])


@pytest.mark.parametrize(
    "entry",
    [
        "hidden_size",
        "num_hidden_layers",
        "intermediate_size",
        "vocab_size",
        "max_position_embeddings",
        "type_vocab_size",
    ],
)
@pytest.mark.parametrize("value", [10**5, 10**9, 10**30, -1, "many", None])
def test_a_backbone_of_impossible_size_is_refused(take: Take, entry: str, value: object) -> None:
    folder = take("backbone")
    tamper(folder / "config.json", **{entry: value})
    with pytest.raises(EncoderError, match=f"^{folder} cannot be loaded as an encoder backbone: "):
        load(folder)


SIZES = {
    "smith": ["width", "sentence_layers", "document_layers", "sentence_ffn", "document_ffn", "sentence_positions"],
    "colde": ["lstm_width", "projection_width", "heads"],
    "tde": ["n_topics", "topic_width", "topic_hidden_width"],
}


@pytest.mark.parametrize(("kind", "entry"), [(kind, entry) for kind, entries in SIZES.items() for entry in entries])
@pytest.mark.parametrize("value", [1_000_000, 10**30, -1, "many", None, [], 1e300])
def test_an_encoder_of_impossible_size_is_refused(take: Take, kind: str, entry: str, value: object) -> None:
    folder = take(kind)
    tamper(folder / CONFIG_FILE, **{entry: value})
    with pytest.raises(EncoderError):
        load(folder)


@pytest.mark.parametrize("value", [0, -1, 2, "x", [], float("nan"), float("inf")])
def test_a_tokenizer_without_room_for_a_text_is_refused(take: Take, value: object) -> None:
    folder = take("backbone")
    tamper(folder / "tokenizer_config.json", model_max_length=value)
    with pytest.raises(EncoderError, match=str(folder)):
        load(folder)


@pytest.mark.parametrize("kind", ["backbone", "smith"])
def test_a_token_that_the_model_does_not_know_is_refused(take: Take, kind: str) -> None:
    folder = take(kind)
    content = json.loads((folder / "tokenizer.json").read_text())
    content["post_processor"]["cls"][1] = 1_000_000
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(EncoderError, match=r"puts token 1000000 around a text, its model knows \d+; take"):
        load(folder)


@pytest.mark.parametrize("layers", [1, 3])
def test_layers_that_are_not_in_both_configuration_and_weights_are_refused(take: Take, layers: int) -> None:
    folder = take("backbone")
    tamper(folder / "config.json", num_hidden_layers=layers)
    with pytest.raises(EncoderError, match=str(folder)):
        load(folder)


def test_missing_weights_are_refused_instead_of_drawn_at_random(take: Take) -> None:
    folder = take("backbone")
    weights = load_file(folder / "model.safetensors")
    lacking = "encoder.layer.1.output.dense.bias"
    spare = {"other": weights.pop(lacking), **weights}
    save_file(spare, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(EncoderError, match=f"{lacking} is either in its config.json or in its weights, not in both"):
        load(folder)
