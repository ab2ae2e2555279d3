from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.measuring.isolation import rss_mib, run_forked
from benchmarks.speed.vectors.collection import Collection, Truth, exact
from benchmarks.speed.vectors.index_types import Candidate, Library
from benchmarks.speed.vectors.measuring import (
    RESCORED,
    CollectionIndex,
    answer,
    chunk_recall,
    document_recall,
    nearest,
    ranked,
    search_all,
    takes_documents,
    time_searches,
)
from engine.encoders.encoder import Vectors
from engine.search.candidates import FIRST_DEPTH
from engine.store.ann import Ids
from tests.benchmarks.speed.vectors.scan import Hungry, Scan
from tests.benchmarks.telling import tell_blas_threshold, write_hungry_build


def built(index: Scan, collection: Collection) -> Scan:
    index.build(collection.rows)
    return index


def test_rescored_similarities_are_exact_and_best_first(collection: Collection) -> None:
    rescored = built(Scan(digits=1, is_rescored=True), collection)
    rows, similarities = nearest(rescored, collection, collection.queries, 10)
    by_hand = np.einsum("qd,qkd->qk", collection.queries, collection.rows[rows].astype(np.float32))
    np.testing.assert_allclose(similarities, by_hand, atol=1e-6)
    assert (np.diff(similarities) <= 0).all()


def test_where_all_is_rescored_rounded_similarities_rank_exactly(collection: Collection) -> None:
    """The thresholds too are those of exact similarities then."""
    searched = CollectionIndex(built(Scan(digits=1, is_rescored=True), collection), collection)
    found = [ranked(searched, queries, 10).tolist() for queries in collection.query_documents()]
    assert collection.n_documents <= RESCORED
    assert found == exact(collection, 10).documents


def with_large_document(collection: Collection) -> Collection:
    """The collection behind a document of 300 chunks that are all nearest to the first query chunk."""
    copies = np.repeat(collection.queries[:1], 300, axis=0).astype(np.float16)
    rows = np.concatenate([copies, collection.rows])
    owners = np.concatenate([np.zeros(300, int), collection.owners + 1])
    return Collection(rows, owners, collection.queries[:1], np.zeros(1, np.int64))


def test_longer_lists_are_requested_where_one_document_fills_them(collection: Collection) -> None:
    one = with_large_document(collection)
    answers = answer(built(Scan(), one), one, 5)
    assert (answers.documents, answers.deepest) == (exact(one, 5).documents, 512)
    assert answer(built(Scan(), collection), collection, 5).deepest == FIRST_DEPTH == 128


def test_a_graph_that_is_set_to_a_narrow_search_is_not_searched_with_documents(collection: Collection) -> None:
    narrow, wide = built(Scan(search_width=64), collection), built(Scan(search_width=128), collection)
    assert not takes_documents(narrow) and takes_documents(wide) and takes_documents(Scan())
    answers = answer(narrow, collection, 5)
    assert (answers.documents, answers.deepest, answers.chunks.shape) == (None, 0, (24, 5))


def test_lists_that_could_not_be_filled_end_in_minus_one(collection: Collection) -> None:
    few = built(Scan(slice(0, 357)), collection)  # of 360
    assert (answer(few, collection, 5).chunks == -1).sum(axis=1).tolist() == [2] * 24


def recalls(index: Scan, collection: Collection, truth: Truth) -> tuple[float, float]:
    index.build(collection.rows)
    answers = answer(index, collection, 10)
    assert answers.documents is not None
    return chunk_recall(answers.chunks, collection, truth), document_recall(answers.documents, truth)


def test_lost_rows_lower_the_recall_of_chunks_and_of_documents(collection: Collection) -> None:
    truth = exact(collection, 10)
    assert recalls(Scan(), collection, truth) == (1.0, 1.0)
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


def test_rows_that_were_not_found_are_no_neighbours(collection: Collection) -> None:
    truth = exact(collection, 10)
    found = np.full((len(collection.queries), 10), -1)
    found[:, 0] = np.argmax(collection.queries @ collection.rows.T, axis=1)
    assert chunk_recall(found, collection, truth) == pytest.approx(0.1)


def test_a_query_document_without_an_answer_does_not_count() -> None:
    truth = Truth(np.zeros(0, np.float32), [[1, 2], []])
    assert document_recall([[2, 5], [7]], truth) == 0.5
    assert document_recall([], Truth(np.zeros(0, np.float32), [])) == 1.0


class Watched(Scan):
    """A scan that records the number of query chunks of each search."""

    def build(self, rows: Vectors) -> None:
        super().build(rows)
        self.n_queries: list[int] = []

    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        self.n_queries.append(len(queries))
        return super().search(queries, k)


def test_times_are_of_single_chunks_and_of_documents_where_they_are_searched_with(collection: Collection) -> None:
    index = Watched(search_width=64)
    index.build(collection.rows)
    timed = time_searches(index, collection, 10)
    assert timed.chunk.p50_ms > 0 and timed.document is None
    assert index.n_queries == [1] * (10 + 24)  # warm-up, and every query chunk
    index.search_width = 512
    both = time_searches(index, collection, 10)
    assert both.document is not None and both.document.p50_ms > 0 and max(index.n_queries) == 40


def with_long_queries(collection: Collection, times: int) -> Collection:
    """The collection, with each query document so many times as long."""
    queries = np.concatenate([np.tile(chunks, (times, 1)) for chunks in collection.query_documents()])
    return replace(collection, queries=queries, query_starts=collection.query_starts * times)


@pytest.mark.slow
def test_memory_of_a_search_does_not_depend_on_the_documents_it_is_judged_with(collection: Collection) -> None:
    index = Hungry()
    index.build(collection.rows)
    peaks = []
    for times in (1, 25):  # documents of 6 and of 150 chunks: 300 MiB
        before = rss_mib()
        flat = Candidate(Library.FAISS, "Flat", ("",))
        peak, settings = search_all(index, flat, with_long_queries(collection, times), 10)
        peaks.append(peak - before)
        assert np.array(settings[0]["chunks"]).shape == (24 * times, 10)
        assert len(settings[0]["documents"]) == 4
    assert peaks[1] == pytest.approx(peaks[0], abs=30)


@pytest.mark.slow
def test_memory_of_building_is_its_peak_beyond_the_rows(collection: Collection, tmp_path: Path) -> None:
    """In a fresh process: in this one, memory of earlier tests could be freed meanwhile and hide the peak."""
    collection.save(tmp_path)
    seconds, size_bytes, peak = run_forked(
        write_hungry_build, tmp_path, name="Hungry", place=tmp_path / "x", advice="look there"
    )
    assert (seconds > 0, size_bytes) == (True, len(b"index"))
    assert 50 < peak < 100
    assert not (tmp_path / "hungry").exists()


def test_faiss_multiplies_by_blas_in_the_process_that_it_is_measured_in(collection: Collection, tmp_path: Path) -> None:
    collection.save(tmp_path)
    threshold = run_forked(tell_blas_threshold, tmp_path, name="FAISS", place=tmp_path / "blas", advice="look there")
    assert threshold == 3 * 16
