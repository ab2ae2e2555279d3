from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.vectors.asking import answer
from benchmarks.vectors.collection import Collection
from benchmarks.vectors.judging import chunk_recall, document_recall
from benchmarks.vectors.truth import Truth, exact
from tests.benchmarks.vectors.scan import Scan


def recalls(index: Scan, collection: Collection, truth: Truth) -> tuple[float, float]:
    index.build(collection.rows)
    answers = answer(index, collection, 10)
    assert answers.documents is not None
    return chunk_recall(answers.chunks, collection, truth), document_recall(answers.documents, truth)


def test_a_scan_finds_everything(collection: Collection) -> None:
    assert recalls(Scan(), collection, exact(collection, 10)) == (1.0, 1.0)


def test_what_is_lost_is_missed_at_both_levels(collection: Collection) -> None:
    truth = exact(collection, 10)
    chunks, documents = recalls(Scan(slice(0, 180)), collection, truth)  # documents 0 to 29
    exact_rows = np.argsort(-(collection.queries @ collection.rows.T), axis=1)[:, :10]
    assert chunks == pytest.approx((exact_rows >= 180).mean())
    shares = [np.mean([number >= 30 for number in best]) for best in truth.documents]
    assert np.mean(shares) - 1e-9 <= documents < 1


def test_copies_of_a_chunk_stand_for_each_other(collection: Collection) -> None:
    rows = np.concatenate([collection.rows, collection.rows])
    twice = replace(collection, rows=rows, owners=np.concatenate([collection.owners, collection.owners + 60]))
    truth = exact(twice, 10)
    # The first ten are five and their copies; ten others follow them at a distance.
    assert recalls(Scan(), twice, truth)[0] == 1.0
    assert recalls(Scan(slice(0, 360)), twice, truth)[0] == pytest.approx(0.5)


def test_rescoring_mends_rounded_similarities(collection: Collection) -> None:
    truth = exact(collection, 10)
    coarse = recalls(Scan(digits=1), collection, truth)
    mended = recalls(Scan(digits=1, is_rescored=True), collection, truth)
    assert coarse[0] < mended[0] and coarse[1] < mended[1]


def test_rows_that_were_not_found_are_no_neighbours(collection: Collection) -> None:
    truth = exact(collection, 10)
    found = np.full((len(collection.queries), 10), -1)
    found[:, 0] = np.argmax(collection.queries @ collection.rows.T, axis=1)
    assert chunk_recall(found, collection, truth) == pytest.approx(0.1)


def test_a_query_document_without_an_answer_does_not_count() -> None:
    truth = Truth(np.zeros(0, np.float32), [[1, 2], []])
    assert document_recall([[2, 5], [7]], truth) == 0.5
    assert document_recall([], Truth(np.zeros(0, np.float32), [])) == 1.0
