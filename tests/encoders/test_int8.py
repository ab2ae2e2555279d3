"""Vectors in int8 are near those in float32, and their ranges are made once for each set of parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from engine.encoders.backbone.int8 import RANGES_FILE
from engine.encoders.files import BUNDLED_NAME
from engine.encoders.loading import load_encoder
from engine.errors import EncoderError
from engine.text.document import Document
from tests.encoders.tampering import Take

TEXT = Document.from_text(
    "A parser reads a grammar and a sentence.\n\nThe cell copies its genes before it divides.\n\nThe court dismissed "
    "the appeal, because the notice had been sent after the term of thirty days."
)


def test_the_bundled_encoder_in_int8_is_near_float32_under_a_name_of_its_own() -> None:
    short, exact = load_encoder(BUNDLED_NAME, dtype="int8"), load_encoder(BUNDLED_NAME, dtype="float32")
    again = load_encoder(short.name)
    assert (short.name, exact.name) == (f"{BUNDLED_NAME}:int8", BUNDLED_NAME)
    assert short.fingerprint == again.fingerprint != exact.fingerprint
    ((one,), (other,), (repeated,)) = (encoder.encode([TEXT]) for encoder in (short, exact, again))
    cosines = (one.chunks * other.chunks).sum(axis=1)
    assert 0.98 < cosines.min() < 0.99999
    assert np.array_equal(one.chunks, repeated.chunks)


@pytest.mark.parametrize("damage", [None, "", "garbage", "of other parameters"])
def test_ranges_are_made_at_first_use_and_kept_beside_the_model(
    take: Take, damage: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    folder = take("backbone")
    vectors = load_encoder(f"{folder}:int8").encode([TEXT])[0].chunks
    assert f"kept in {folder / RANGES_FILE}" in caplog.text
    content = (folder / RANGES_FILE).read_bytes()
    caplog.clear()
    if damage == "of other parameters":
        save_file(load_file(folder / RANGES_FILE), folder / RANGES_FILE, {"weights": "0" * 64})
    elif damage is not None:
        (folder / RANGES_FILE).write_text(damage)
    assert np.array_equal(load_encoder(f"{folder}:int8").encode([TEXT])[0].chunks, vectors)
    assert bool(caplog.text) == (damage is not None)
    assert (folder / RANGES_FILE).read_bytes() == content


def test_a_folder_that_takes_no_files_still_encodes(
    take: Take, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr("engine.encoders.backbone.int8.NamedTemporaryFile", refuse)
    folder = take("backbone")
    assert np.isfinite(load_encoder(f"{folder}:int8").encode([TEXT])[0].chunks).all()
    assert "is not writable" in caplog.text and not (folder / RANGES_FILE).exists()


def test_int8_is_refused_where_torch_encodes(saved: dict[str, Path]) -> None:
    with pytest.raises(EncoderError, match="int8 is for mean encoders over a BERT or a RoBERTa"):
        load_encoder(f"{saved['smith']}:int8")
