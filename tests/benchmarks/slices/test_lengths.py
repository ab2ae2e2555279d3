from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.datasets import Dataset, DatasetError
from benchmarks.records import BuildCost, RetrievalRecord
from benchmarks.significance import bootstrap_interval
from benchmarks.slices.lengths import buckets, length_record, read_lengths
from engine.document import Document
from indexer.training.origin import Origin


@pytest.fixture
def record(origin: Origin) -> RetrievalRecord:
    return RetrievalRecord(
        task="pets",
        dataset="pets@0",
        system="evidence",
        encoder="mean@0f",
        settings={},
        split="test",
        k=100,
        n_queries=4,
        metrics={"nDCG@10": 0.5},
        build=BuildCost(1.0),
        search_seconds=1.0,
        query_ids=["a", "b", "c", "d"],
        per_query={"nDCG@10": [1.0, 0.5, 0.25, 0.25]},
        origin=origin,
    )


def words(document: Document) -> int:
    return len(document.text.split())


def test_buckets_hold_as_many_each_from_short_to_long() -> None:
    lengths = np.array([50.0, 10, 40, 20, 30, 60])
    assert [places.tolist() for places in buckets(lengths, 3)] == [[1, 3], [2, 4], [0, 5]]


def test_equal_lengths_stay_together_and_no_bucket_is_empty() -> None:
    assert [places.tolist() for places in buckets(np.array([7.0, 7, 7, 7, 9]), 4)] == [[0, 1, 2, 3], [4]]
    assert [places.tolist() for places in buckets(np.array([3.0]), 4)] == [[0]]


@pytest.mark.parametrize("n_buckets", [1, 2, 5, 200])
def test_every_query_is_in_one_bucket_and_buckets_do_not_overlap(n_buckets: int) -> None:
    lengths = np.random.default_rng(0).integers(1, 40, size=100).astype(np.float64)
    cut = buckets(lengths, n_buckets)
    assert sorted(np.concatenate(cut).tolist()) == list(range(100))
    assert all(lengths[a].max() < lengths[b].min() for a, b in pairwise(cut))


def test_lengths_are_of_queries_and_of_the_middle_of_their_relevant_targets(dataset: Dataset) -> None:
    lengths = read_lengths(dataset, {"dog": {"cat": 1}, "cat": {"kitten": 2, "dog": 1, "rocket": 0}}, words)
    # Title and heading are words of the text.
    assert lengths["query"].tolist() == [12.0, 12.0]
    assert lengths["targets"].tolist() == [12.0, (11 + 12) / 2]


def test_targets_that_are_absent_have_no_length(dataset: Dataset) -> None:
    assert read_lengths(dataset, {"cat": {"kitten": 1, "lion": 1}}, words)["targets"].tolist() == [11.0]
    lengths = read_lengths(dataset, {"cat": {"lion": 1, "kitten": 0}, "dog": {"cat": 1}}, words)
    np.testing.assert_array_equal(lengths["targets"], [np.nan, 12.0])
    assert lengths["query"].tolist() == [12.0, 12.0]
    with pytest.raises(DatasetError, match=r"no relevant target of 1 queries is in corpus.jsonl.gz; name the corpus"):
        read_lengths(dataset, {"cat": {"lion": 1, "kitten": 0}}, words)


def test_queries_without_a_length_are_left_out_and_counted(record: RetrievalRecord, origin: Origin) -> None:
    lengths = np.array([30.0, np.nan, 20, np.nan])
    sliced = length_record([record], lengths, by="targets", unit="words", n_buckets=2, origin=origin)
    assert (sliced.mean, sliced.n_queries, sliced.n_left_out) == ([[0.25, 1.0]], [1, 1], 2)
    every = length_record([record], np.arange(4.0), by="query", unit="words", n_buckets=2, origin=origin)
    assert every.n_left_out == 0


def test_a_bucket_has_the_mean_of_its_queries_and_an_interval(record: RetrievalRecord, origin: Origin) -> None:
    other = replace(record, system="bm25", encoder="", per_query={"nDCG@10": [0.0, 0.0, 0.0, 1.0]})
    lengths = np.array([30.0, 10, 20, 40])
    sliced = length_record([record, other], lengths, by="query", unit="words", n_buckets=2, origin=origin)
    assert (sliced.shortest, sliced.median, sliced.longest) == ([10.0, 30.0], [15.0, 35.0], [20.0, 40.0])
    assert (sliced.systems, sliced.n_queries) == (["evidence, mean", "bm25"], [2, 2])
    assert sliced.mean == [[0.375, 0.625], [0.0, 0.5]]
    assert (sliced.low[0][1], sliced.high[0][1]) == bootstrap_interval([1.0, 0.25], seed=0)
    assert sliced.name == "lengths-pets-query-words-test"
