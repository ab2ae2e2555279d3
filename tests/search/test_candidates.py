"""Lists from an approximate index: filters cost no recall, and exhausted lists are not searched again."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import engine.search.candidates as neighbours_module
from engine.encoders.encoder import Vectors, unit
from engine.index import Index
from engine.result import Status
from engine.search.candidates import (
    SPARE_DOCUMENTS,
    CandidateLists,
    RankedLists,
    best_by_document,
    document_lists,
    first_places,
    with_rows,
)
from engine.search.query import Query, as_stored
from engine.search.request import Request
from engine.store.ann import AnnIndex
from engine.store.snapshot import IndexSnapshot
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
    coded_folder: Path, exact_hits: dict[str | None, dict[str, set[str]]], nprobe: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours_module, "SCAN_BELOW_CHUNKS", 0)
    monkeypatch.setattr(neighbours_module, "SCAN_BELOW_SHARE", 0.0)
    with Index.open(coded_folder, encoder=FakeEncoder()) as index:
        index.snapshot.generation.ann.nprobe = nprobe
        without_filter = found_share(index, None, exact_hits[None])
        assert without_filter > 0.8
        for where in RARE:
            assert found_share(index, where, exact_hits[where]) >= without_filter


class CountingIndex(AnnIndex):
    """An index that records depth and nprobe of each search."""

    def __init__(self, of: AnnIndex, nprobe: int) -> None:
        super().__init__(of.inner, nprobe)
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
    with IndexSnapshot(coded_folder) as snapshot:
        counting = CountingIndex(snapshot.generation.ann, nprobe)
        generation = replace(snapshot.generation, ann=counting)
        query = Query(QUERY, as_stored(FakeEncoder().encode([QUERY])[0]))
        CandidateLists(snapshot, generation).lists(query.vectors.chunks[:1], np.ones(400, bool), 300)
    assert counting.depths == depths


@pytest.mark.parametrize(("n_chunks", "nprobe"), [(1, 32), (4, 20), (7, 11), (40, 2), (55, 2)])
def test_a_query_of_few_chunks_looks_into_more_lists_for_each(coded_folder: Path, n_chunks: int, nprobe: int) -> None:
    with IndexSnapshot(coded_folder) as snapshot:
        counting = CountingIndex(snapshot.generation.ann, 2)
        lists = CandidateLists(snapshot, replace(snapshot.generation, ann=counting))
        queries = snapshot.chunk_vectors(np.arange(snapshot.n_documents))[0][:n_chunks]
        lists.lists(queries, np.ones(snapshot.n_documents, bool), 10)
    assert set(counting.nprobes) == {nprobe}


class Chunks:
    """Multiplies with all chunks; codes are rounded products, and some chunks are never found."""

    def __init__(self, vectors: Vectors, owners: NDArray[np.int64], *, depth: int = 4) -> None:
        self.first_depth, self.last_depth = depth, len(vectors)
        self.is_coded, self.is_bounded = False, False
        self.n_found = len(vectors)
        self.hidden = np.zeros(owners.max() + 1, bool)  # documents that may not be found
        self.searches: list[tuple[int, int]] = []  # numbers of query chunks, and depths
        self._vectors, self._owners = vectors, owners

    @property
    def n_documents(self) -> int:
        return int(np.count_nonzero(~self.hidden))

    def search(self, queries: Vectors, depth: int) -> tuple[NDArray[np.int64], Vectors]:
        self.searches.append((len(queries), depth))
        products = queries @ self._vectors.T
        seen = np.round(products, 1) if self.is_coded else products
        ids = np.argsort(-seen, axis=1, kind="stable")[:, :depth]
        similarities = np.take_along_axis(seen, ids, axis=1)
        return np.where(np.arange(ids.shape[1]) < self.n_found, ids, -1), similarities

    def documents(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        owners = self._owners[ids]
        return np.where((ids >= 0) & ~self.hidden[owners], owners, -1)

    def vectors(self, ids: NDArray[np.int64], documents: NDArray[np.int64]) -> Vectors:
        assert np.array_equal(self._owners[ids], documents)
        return self._vectors[ids]


def drawn(n_chunks: int, width: int = 8) -> Vectors:
    return unit(np.random.default_rng(n_chunks).standard_normal((n_chunks, width)).astype(np.float32))


QUERIES = drawn(5)


def by_hand(vectors: Vectors, owners: NDArray[np.int64], documents: list[int], length: int) -> list[list[int]]:
    """The documents of the best chunks, one query chunk and one document at a time."""
    lists = []
    for query in QUERIES:
        best = {one: max(float(query @ vector) for vector in vectors[owners == one]) for one in documents}
        lists.append(sorted(best, key=lambda one: -best[one])[:length])
    return lists


@pytest.mark.parametrize(
    ("n_each", "depth", "hidden", "is_coded"),
    [(6, 1, 0, False), (6, 4, 0, False), (6, 300, 0, False), (6, 4, 20, False), (1, 200, 0, True)],
    ids=["depth 1", "depth 4", "depth 300", "hidden documents", "codes, which are replaced by exact similarities"],
)
def test_lists_equal_a_loop_over_all_chunks(n_each: int, depth: int, hidden: int, is_coded: bool) -> None:
    n_documents = 240 // n_each
    vectors, owners = drawn(240), np.repeat(np.arange(n_documents), n_each)
    index = Chunks(vectors, owners, depth=depth)
    index.hidden[:hidden], index.is_coded = True, is_coded
    found = document_lists(index, QUERIES, 11)
    assert found.documents.tolist() == by_hand(vectors, owners, list(range(hidden, n_documents)), 11)
    for query, documents, similarities in zip(QUERIES, found.documents, found.similarities, strict=True):
        expected = [max(float(query @ vector) for vector in vectors[owners == one]) for one in documents]
        np.testing.assert_allclose(similarities, expected, atol=1e-6)


def test_fewer_documents_than_a_list_is_long_leave_it_unfilled() -> None:
    vectors, owners = drawn(240), np.repeat(np.arange(3), 80)
    found = document_lists(Chunks(vectors, owners), QUERIES, 5)
    assert found.documents[:, :3].tolist() == by_hand(vectors, owners, [0, 1, 2], 3)
    assert (found.documents[:, 3:] == -1).all() and np.isneginf(found.similarities[:, 3:]).all()


def test_of_codes_only_a_few_documents_more_than_wanted_are_read() -> None:
    index = Chunks(drawn(400), np.arange(400), depth=200)
    index.is_coded = True
    read: list[int] = []
    vectors = index.vectors

    def counted(ids: NDArray[np.int64], documents: NDArray[np.int64]) -> Vectors:
        read.append(len(ids))
        return vectors(ids, documents)

    index.vectors = counted  # type: ignore[method-assign]
    document_lists(index, QUERIES, 11)
    assert read == [len(QUERIES) * (11 + SPARE_DOCUMENTS)]


def test_only_query_chunks_that_found_too_few_documents_are_searched_again() -> None:
    copies = np.repeat(QUERIES[:1], 60, axis=0)  # one document fills the first list of the first query chunk
    vectors, owners = np.concatenate([copies, drawn(40)]), np.concatenate([np.zeros(60, int), np.arange(1, 41)])
    index = Chunks(vectors, owners, depth=16)
    found = document_lists(index, QUERIES, 3)
    assert found.documents.tolist() == by_hand(vectors, owners, list(range(41)), 3)
    assert index.searches[0] == (5, 16) and index.searches[-1] == (1, 64)


def test_an_exhausted_index_is_not_searched_again_and_others_deeper_until_the_last_depth() -> None:
    index = Chunks(drawn(240), np.repeat(np.arange(40), 6), depth=16)
    index.n_found, index.is_bounded = 9, True
    found = document_lists(index, QUERIES, 11)
    assert index.searches == [(5, 16)]
    assert (found.documents[:, 9:] == -1).all()
    index = Chunks(drawn(240), np.zeros(240, int), depth=4)
    index.last_depth, index.hidden = 60, np.zeros(40, bool)  # documents of which all but one have no chunk
    document_lists(index, QUERIES, 11)
    assert [depth for _, depth in index.searches] == [4, 16, 64]


def rows(lists: RankedLists) -> list[list[tuple[int, float]]]:
    return [
        [(int(document), float(similarity)) for document, similarity in zip(*row, strict=True) if document >= 0]
        for row in zip(lists.documents, lists.similarities, strict=True)
    ]


def table(seed: int, *shape: int) -> Vectors:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def best_by_hand(positions: NDArray[np.int64], similarities: Vectors, length: int) -> list[list[tuple[int, float]]]:
    answer = []
    for at, row in enumerate(positions):
        best: dict[int, float] = {}
        for position, similarity in zip(row.tolist(), similarities[at].tolist(), strict=True):
            if position >= 0:
                best[position] = max(similarity, best.get(position, -np.inf))
        answer.append(sorted(best.items(), key=lambda pair: -pair[1])[:length])
    return answer


@given(st.integers(0, 10_000), st.integers(0, 20), st.integers(1, 8))
def test_best_by_document_equals_a_loop(seed: int, n_results: int, length: int) -> None:
    positions = np.random.default_rng(seed).integers(-1, 5, (3, n_results))
    similarities = table(seed, 3, n_results)
    found = best_by_document(positions, similarities, length)
    assert rows(found) == best_by_hand(positions, similarities, length)
    assert found.documents.shape == (3, length)


@given(st.integers(0, 10_000), st.integers(0, 40), st.integers(1, 8))
def test_first_places_equal_a_loop(seed: int, n_results: int, length: int) -> None:
    documents = np.random.default_rng(seed).integers(-1, 9, (3, n_results))
    by_hand = np.zeros(documents.shape, bool)
    for row, column in np.ndindex(*documents.shape):
        before = {one for one in documents[row, :column].tolist() if one >= 0}
        one = int(documents[row, column])
        by_hand[row, column] = one >= 0 and one not in before and len(before) < length
    assert first_places(documents, length).tolist() == by_hand.tolist()


@pytest.mark.parametrize(("width", "other_width"), [(3, 3), (3, 2), (2, 3), (0, 2), (2, 0)])
def test_some_rows_are_taken_from_other_lists(width: int, other_width: int) -> None:
    rng = np.random.default_rng(width)
    lists = RankedLists(rng.integers(0, 9, (4, width)), rng.random((4, width), np.float32))
    others = RankedLists(rng.integers(10, 19, (2, other_width)), rng.random((2, other_width), np.float32))
    found = with_rows(lists, np.array([False, True, False, True]), others)
    longest = max(width, other_width)
    for row, (of, at) in enumerate([(lists, 0), (others, 0), (lists, 2), (others, 1)]):
        missing = longest - of.documents.shape[1]
        assert found.documents[row].tolist() == [*of.documents[at].tolist(), *[-1] * missing]
        assert found.similarities[row].tolist() == [*of.similarities[at].tolist(), *[-np.inf] * missing]
