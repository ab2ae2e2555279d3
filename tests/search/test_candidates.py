"""Lists from an approximate index: filters cost no recall, and exhausted lists are not searched again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import engine.search.candidates as neighbours_module
from engine.encoders.encoder import Vectors
from engine.index import Index
from engine.result import Status
from engine.search.candidates import CandidateLists
from engine.search.query import Query, as_stored
from engine.search.request import Request
from engine.store.ann import AnnIndex
from engine.store.snapshot import Snapshot
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus, make_document

QUERY = make_document("query", [("mine", "topic3word1 topic3word2 common7 topic3word9 topic4word5 common1 " * 9)])


@pytest.fixture(scope="module")
def coded_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four hundred documents in an index of coarse codes in lists, of which few are probed."""
    folder = tmp_path_factory.mktemp("coded") / "x.lm"
    build(folder, make_corpus(400), encoder=FakeEncoder(), factory="IVF32,PQ16x4fs", recall_floor=0.5)
    return folder


RARE = ["family = 'even'", "topic = 3", "year = 2007", "topic in (1, 6) and year < 2005", "year = 2007 and topic = 7"]


@pytest.fixture(scope="module")
def exact_hits(coded_folder: Path) -> dict[str | None, dict[str, set[str]]]:
    """The hits of exact searches by filter and query; every 18th document is a query."""
    with Index.open(coded_folder, encoder=FakeEncoder()) as index:
        names = index.snapshot.doc_ids()[::18]

        def hits(name: str, where: str | None) -> set[str]:
            return {hit.doc_id for hit in index.search(name, Request(where=where, exact=True)).hits}

        return {where: {name: hits(name, where) for name in names} for where in (None, *RARE)}


def found_share(index: Index, where: str | None, exact: dict[str, set[str]]) -> float:
    """Share of the hits of exact searches that are found."""
    shares = []
    for name, hits in exact.items():
        found = index.search(name, Request(where=where))
        assert found.status is Status.ESTIMATED
        shares.append(len(hits & {hit.doc_id for hit in found.hits}) / len(hits))
    return float(np.mean(shares))


@pytest.mark.slow
@pytest.mark.parametrize("nprobe", [4, 16])
def test_a_filter_costs_no_recall(
    coded_folder: Path,
    exact_hits: dict[str | None, dict[str, set[str]]],
    nprobe: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(neighbours_module, "SCAN_BELOW_CHUNKS", 0)
    monkeypatch.setattr(neighbours_module, "SCAN_BELOW_SHARE", 0.0)
    with Index.open(coded_folder, encoder=FakeEncoder()) as index:
        assert index.snapshot.generation is not None
        index.snapshot.generation.ann.nprobe = nprobe
        without_filter = found_share(index, None, exact_hits[None])
        assert without_filter > 0.8
        for where in RARE:
            assert found_share(index, where, exact_hits[where]) >= without_filter


class CountingIndex(AnnIndex):
    """An index that records depth and nprobe of each search."""

    def __init__(self, of: AnnIndex, nprobe: int) -> None:
        super().__init__(of._index, nprobe)
        self.depths: list[int] = []
        self.nprobes: list[int | None] = []

    def search(
        self, queries: Vectors, k: int, *, allowed: NDArray[np.bool_] | None = None, nprobe: int | None = None
    ) -> tuple[NDArray[np.int64], Vectors]:
        self.depths.append(k)
        self.nprobes.append(nprobe)
        return super().search(queries, k, allowed=allowed, nprobe=nprobe)


@pytest.mark.parametrize(("nprobe", "depths"), [(1, [128]), (32, [128, 512])])
def test_lists_that_are_exhausted_are_not_searched_again(
    coded_folder: Path, nprobe: int, depths: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list holds some 120 chunks."""
    monkeypatch.setattr(neighbours_module, "FULL_QUERY_CHUNKS", 1)
    with Snapshot(coded_folder) as snapshot:
        assert snapshot.generation is not None
        counting = CountingIndex(snapshot.generation.ann, nprobe)
        generation = replace(snapshot.generation, ann=counting)
        query = Query(QUERY, as_stored(FakeEncoder().encode([QUERY])[0]))
        CandidateLists(snapshot, generation).lists(query.vectors.chunks[:1], np.ones(400, bool), 300)
    assert counting.depths == depths


@pytest.mark.parametrize(("n_chunks", "nprobe"), [(1, 32), (4, 20), (7, 11), (40, 2), (55, 2)])
def test_a_query_of_few_chunks_looks_into_more_lists_for_each(coded_folder: Path, n_chunks: int, nprobe: int) -> None:
    with Snapshot(coded_folder) as snapshot:
        assert snapshot.generation is not None
        counting = CountingIndex(snapshot.generation.ann, 2)
        lists = CandidateLists(snapshot, replace(snapshot.generation, ann=counting))
        queries = snapshot.chunk_vectors(np.arange(snapshot.n_documents))[0][:n_chunks]
        lists.lists(queries, np.ones(snapshot.n_documents, bool), 10)
    assert set(counting.nprobes) == {nprobe}
