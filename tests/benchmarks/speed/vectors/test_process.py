"""Time and memory of building and of searching, in this process where no other one is needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.measuring.isolation import rss_mib, run_forked
from benchmarks.speed.vectors.collection import Collection
from benchmarks.speed.vectors.index_types import Candidate, Library
from benchmarks.speed.vectors.process import search_all
from tests.benchmarks.speed.vectors.scan import Hungry
from tests.benchmarks.telling import tell_blas_threshold, write_hungry_build

FLAT = Candidate(Library.FAISS, "Flat", ("",))


def with_long_queries(collection: Collection, times: int) -> Collection:
    """The collection, with each query document so many times as long."""
    queries = np.concatenate([np.tile(chunks, (times, 1)) for chunks in collection.query_documents()])
    return replace(collection, queries=queries, query_starts=collection.query_starts * times)


@pytest.mark.slow
def test_memory_of_a_search_does_not_depend_on_the_documents_it_is_judged_with(
    collection: Collection, tmp_path: Path
) -> None:
    index = Hungry()
    index.build(collection.rows)
    peaks = []
    for times in (1, 25):  # documents of 6 and of 150 chunks: 300 MiB
        before = rss_mib()
        peak, settings = search_all(index, FLAT, with_long_queries(collection, times), 10, tmp_path / "x")
        peaks.append(peak - before)
        assert np.load(tmp_path / "x-.npy").shape == (24 * times, 10)
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
