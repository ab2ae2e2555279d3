from __future__ import annotations

import numpy as np
import pytest

from benchmarks import packages
from benchmarks.formats.mteb_encoder import MtebEncoder
from engine.errors import MissingExtra
from engine.text.document import Document
from tests.fakes import FakeEncoder

TEXTS = ["the cat sat on the mat", "rocket engines burn kerosene", "the cat sat on a mat"]


def test_texts_become_document_vectors_in_their_order() -> None:
    encoder = FakeEncoder()
    rows = MtebEncoder(encoder, batch_size=2).encode(TEXTS)
    expected = [encoder.encode([Document.from_text(text)])[0].document for text in TEXTS]
    np.testing.assert_array_equal(rows, np.stack(expected))
    assert [len(batch) for batch in encoder.batches[:2]] == [2, 1]

    batches = [{"text": TEXTS[:2], "title": ["", ""]}, {"text": TEXTS[2:]}]
    np.testing.assert_array_equal(MtebEncoder(encoder).encode(batches, prompt_type="query"), rows)


def test_a_text_without_a_token_is_a_row_of_zeros() -> None:
    rows = MtebEncoder(FakeEncoder()).encode(["", TEXTS[0], "  "])
    assert np.linalg.norm(rows, axis=1).round(6).tolist() == [0.0, 1.0, 0.0]
    assert MtebEncoder(FakeEncoder(width=8)).encode([]).shape == (0, 8)


def test_similarities_are_cosines() -> None:
    encoder = MtebEncoder(FakeEncoder())
    rows = encoder.encode(TEXTS)
    whole = encoder.similarity(rows, rows[:2])
    assert whole.shape == (3, 2)
    np.testing.assert_allclose(encoder.similarity_pairwise(rows[:2], rows[:2]), [1.0, 1.0], atol=1e-6)
    assert whole[2, 0] > whole[2, 1]


def test_the_description_for_mteb_needs_mteb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"evaluation by mteb needs mteb; .*pip install 'mteb"):
        _ = MtebEncoder(FakeEncoder()).mteb_model_meta
