from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.prepare import Prepared
from benchmarks.probing.probes import AnyVectors, encoder_vectors, tfidf_vectors
from benchmarks.systems import BuildCost
from engine.index import Index
from tests.fakes import FakeEncoder

TEXTS = {"one": "zebra zebra lion", "two": "zebra tiger", "three": "the lion tiger", "four": "zebra wolf whale"}
TRAIN = ["one", "two", "three"]


def tfidf_by_hand(text: str) -> dict[str, float]:
    """(1 + ln tf)(1 + ln((1 + n) / (1 + df))), unit length; a word of one training text alone has no place."""
    documents = [TEXTS[doc_id].split() for doc_id in TRAIN]
    weights = {}
    for word in set(text.split()) - {"the"}:
        df = sum(word in document for document in documents)
        if df > 1:
            weights[word] = (1 + math.log(text.split().count(word))) * (1 + math.log((1 + len(TRAIN)) / (1 + df)))
    norm = math.sqrt(sum(weight**2 for weight in weights.values()))
    return {word: weight / norm for word, weight in weights.items()}


def dense(vectors: AnyVectors) -> NDArray[np.float32]:
    return vectors if isinstance(vectors, np.ndarray) else vectors.toarray()


def test_tfidf_equals_the_equation() -> None:
    pytest.importorskip("sklearn")
    vectors = tfidf_vectors(TEXTS, TRAIN)
    words = ["lion", "tiger", "zebra"]  # scikit-learn's columns are sorted
    for doc_id, row in vectors.rows.items():
        expected = tfidf_by_hand(TEXTS[doc_id])
        found = dense(vectors.vectors)[row]
        assert dict(zip(words, found, strict=True)) == pytest.approx({word: expected.get(word, 0.0) for word in words})


def test_rows_come_in_the_order_asked_for_and_may_come_again() -> None:
    pytest.importorskip("sklearn")
    vectors = tfidf_vectors(TEXTS, TRAIN)
    rows = {doc_id: dense(vectors.of([doc_id]))[0] for doc_id in TEXTS}
    asked = ["three", "one", "three"]
    np.testing.assert_array_equal(dense(vectors.of(asked)), [rows[doc_id] for doc_id in asked])


def test_an_encoders_vectors_are_those_of_its_index(built_folder: Path) -> None:
    with Index.open(built_folder, encoder=FakeEncoder()) as index:
        vectors = encoder_vectors(Prepared(index, "fake@0", BuildCost(1.0)))
        doc_ids, rows = index.document_vectors()
        expected = rows[::-1].copy()
    assert (vectors.system, vectors.encoder) == ("document", "fake@0")
    np.testing.assert_array_equal(vectors.of(doc_ids[::-1]), expected)
