from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.baselines.pretrained import MODELS, GivenEncoder, Reading, load_given
from engine import Index
from engine.encoders.mean import MeanEncoder
from engine.errors import EncoderError
from engine.search.request import Request
from engine.text.document import Document
from indexer import build
from tests.fakes import make_document

LONG = make_document(
    "long",
    [
        ("Introduction", "The quick brown fox jumps over the lazy dog. We search long documents. " * 6),
        ("Model", "A model finds the vector of every chunk, one two three four five. Old river bank! " * 4),
    ],
)
SHORT = make_document("short", "Young dog by the old river.")


def given(folder: Path, reading: str) -> GivenEncoder:
    encoder = load_given(f"{folder}:{reading}", device="cpu", dtype=torch.float32)
    assert isinstance(encoder, GivenEncoder)
    return encoder


def hidden_by_hand(folder: Path, document: Document, n_tokens: int) -> torch.Tensor:
    """(L, D) last hidden states of [CLS], the first tokens and [SEP]."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    ids = tokenizer(document.text, truncation=True, max_length=n_tokens, return_tensors="pt")
    with torch.inference_mode():
        states = model(**ids)
    hidden: torch.Tensor = states.last_hidden_state[0]
    return hidden


def unit(vector: torch.Tensor) -> torch.Tensor:
    return vector / vector.norm()


@pytest.mark.slow
@pytest.mark.parametrize("document", [LONG, SHORT], ids=["cut", "whole"])
@pytest.mark.parametrize("kind", ["simcse", "contriever", "ct", "sbert"])
def test_the_first_tokens_are_pooled_as_published(bert_folder: Path, kind: str, document: Document) -> None:
    hidden = hidden_by_hand(bert_folder, document, 48)  # all that the tiny model can read
    expected = hidden[0] if kind == "simcse" else hidden.mean(0)
    (encoded,) = given(bert_folder, f"{kind}-first").encode([document])
    np.testing.assert_allclose(encoded.document, unit(expected).numpy(), atol=1e-5)
    np.testing.assert_allclose(encoded.chunks[0], encoded.document, atol=1e-6)


def test_the_coverage_counts_tokens_that_are_cut_off(bert_folder: Path) -> None:
    (encoded,) = given(bert_folder, "contriever-first").encode([LONG])
    (chunk,) = encoded.chunk_spans
    assert (encoded.coverage.tokens_read, chunk.n_tokens, chunk.section, chunk.start) == (46, 46, 0, 0)
    assert encoded.coverage.tokens_total > 46
    assert LONG.text[: chunk.stop].split()[-1] in LONG.text[chunk.start : chunk.stop + 1]
    assert not encoded.sections[1:].any()


def test_five_hundred_and_twelve_tokens_are_read_where_the_model_can(tmp_path: Path) -> None:
    from benchmarks.synthetic import save_tiny_bert

    folder = save_tiny_bert(tmp_path / "roomy", ["dog", "fox"], max_tokens=600)
    encoder = given(folder, "simcse-first")
    assert encoder.encode([make_document("d", "dog fox " * 400)])[0].coverage.tokens_read == 510
    assert {kind: given(folder, f"{kind}-chunks").chunk_tokens for kind in ("simcse", "contriever")} == {
        "simcse": 126,
        "contriever": 254,
    }


def test_chunks_are_those_of_our_mean_encoder(bert_folder: Path) -> None:
    from engine.encoders.backbone.backbone import Backbone

    ours = MeanEncoder(Backbone(bert_folder, device="cpu", dtype=torch.float32), window_tokens=46)
    for own, theirs in zip(
        ours.encode([LONG, SHORT]), given(bert_folder, "sbert-chunks").encode([LONG, SHORT]), strict=True
    ):
        assert own.chunk_spans == theirs.chunk_spans
        assert own.coverage == theirs.coverage
        for name in ("document", "sections", "chunks"):
            np.testing.assert_allclose(getattr(theirs, name), getattr(own, name), atol=1e-5)


def test_an_index_is_built_and_searched_with_a_given_encoder(bert_folder: Path, tmp_path: Path) -> None:
    encoder = given(bert_folder, "simcse-first")
    assert encoder.name == f"{bert_folder}:simcse-first"
    build(tmp_path / "d.lm", [LONG, SHORT], encoder=encoder)
    with Index.open(tmp_path / "d.lm", encoder=given(bert_folder, "simcse-first")) as index:
        assert (index.n_documents, index.n_chunks) == (2, 2)
        assert [hit.doc_id for hit in index.search("long", Request(k=1)).hits] == ["short"]
        assert index.search(SHORT, Request(k=1, with_itself=True)).hits[0].doc_id == "short"


def test_fingerprints_differ_by_weights_pooling_and_reading(bert_folder: Path, other_bert_folder: Path) -> None:
    def fingerprint(folder: Path, name: str) -> str:
        return given(folder, name).fingerprint

    names = [f"{kind}-{reading}" for kind in ("simcse", "ct") for reading in Reading]
    prints = [fingerprint(folder, name) for folder in (bert_folder, other_bert_folder) for name in names]
    assert len(set(prints)) == len(prints)
    assert fingerprint(bert_folder, "ct-first") == fingerprint(bert_folder, "ct-first")


def test_a_copy_gives_the_same_vectors(bert_folder: Path, tmp_path: Path) -> None:
    encoder = given(bert_folder, "simcse-first")
    encoder.save_pretrained(tmp_path / "copy")
    copy = given(tmp_path / "copy", "simcse-first")
    assert copy.fingerprint == encoder.fingerprint
    np.testing.assert_array_equal(copy.encode([LONG])[0].document, encoder.encode([LONG])[0].document)


@pytest.mark.parametrize("asked", ["simcs-first", "simcse", "simcse-last", ""])
def test_another_model_or_reading_is_refused(bert_folder: Path, asked: str) -> None:
    with pytest.raises(EncoderError, match=f"asks for '{asked}' behind the colon, not for one of {', '.join(MODELS)}"):
        load_given(f"{bert_folder}:{asked}")


def test_weights_in_another_format_are_refused(bert_folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(bert_folder, tmp_path / "pickled"))
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(EncoderError, match=r"holds no \*\.safetensors; other weight formats are not read: convert"):
        load_given(f"{folder}:contriever-first")
