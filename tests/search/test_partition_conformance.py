"""Every `Partition` ranks and shows its documents like the index that holds them, scored one by one."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from engine.encoders.encoder import EncodedDocument
from engine.errors import QueryError
from engine.scoring.breakdown import Prepared
from engine.scoring.evidence import COMPONENTS, CONTAINMENT, Scoring
from engine.search.partition import LocalPartition, Partition, Ranks, Selection
from engine.search.query import Query, as_stored, prepare
from engine.store.snapshot import IndexSnapshot
from engine.text.document import Document
from indexer.building.builder import build
from tests.fakes import FakeEncoder, few_first_vectors, make_corpus, make_document, with_copies
from tests.ray_cluster import ray_cluster

N = 30
EXACT = Selection(exact=True)
SIMILAR = Scoring()
LICENCE = "permission is hereby granted to any person who obtains a copy of this text"
CONTENTS = ["words", "vectors", "some vectors"]


def documents() -> list[Document]:
    """Topics, a licence in all, and every fifth document twice more under another name; texts that are not ASCII."""
    odd = make_document("naïve/π.txt", [("Überschrift", "topic3word1 topic3word2 naïve 𝜋 common1")], title="Größe 🙂")
    return [*with_copies(make_corpus(N, boilerplate=LICENCE), 5), odd]


@dataclass(frozen=True)
class Case:
    """A partition, and the same documents as an index that scores each of them."""

    partition: Partition
    snapshot: IndexSnapshot
    scoring: Scoring

    def prepared(self, query: Document | str) -> Prepared:
        """A query with or without vectors, as the index has them."""
        if isinstance(query, str):
            (query,) = (one for one in documents() if one.doc_id == query)
        has_vectors = self.snapshot.width > 0
        vectors = as_stored(FakeEncoder().encode([query])[0]) if has_vectors else EncodedDocument.unencoded(0)
        return prepare(Query(query, vectors), self.snapshot, self.scoring)

    def expected(self, prepared: Prepared, selection: Selection, n_most: int) -> Ranks:
        return LocalPartition(self.snapshot, self.scoring).rank(prepared, selection, n_most)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An index for each of `CONTENTS`."""
    home = tmp_path_factory.mktemp("conformance")
    found = {content: home / content.replace(" ", "-") for content in CONTENTS}
    build(found["words"], documents(), encode="none")
    build(found["vectors"], documents(), encoder=FakeEncoder(), encode="all", factory="Flat")
    with pytest.MonkeyPatch.context() as patched:
        few_first_vectors(patched)
        build(found["some vectors"], documents(), encoder=FakeEncoder(), encode="later")
    return found


# A kind opens a `Partition` of the documents of a folder, whose positions may be others than those of the index.
OpenPartition = Callable[[Path, Scoring], AbstractContextManager[Partition]]


@contextmanager
def local(folder: Path, scoring: Scoring) -> Iterator[Partition]:
    with IndexSnapshot(folder) as snapshot:
        yield LocalPartition(snapshot, scoring)


@contextmanager
def on_ray(folder: Path, scoring: Scoring) -> Iterator[Partition]:
    ray_cluster()
    from indexer.cluster.job import PartitionActors

    with closing(PartitionActors([folder])) as actors, IndexSnapshot(folder) as snapshot:
        yield actors.partitions([snapshot], scoring)[0]


KINDS = [pytest.param(local, id="local"), pytest.param(on_ray, id="ray", marks=pytest.mark.ray)]


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> OpenPartition:
    found: OpenPartition = request.param
    return found


@pytest.fixture(scope="module", params=CONTENTS)
def case(kind: OpenPartition, request: pytest.FixtureRequest, folders: dict[str, Path]) -> Iterator[Case]:
    with ExitStack() as opened:
        folder = folders[request.param]
        yield Case(opened.enter_context(kind(folder, SIMILAR)), opened.enter_context(IndexSnapshot(folder)), SIMILAR)


QUERIES = ["doc003", "a-copy-of-doc005", "naïve/π.txt"]
TEXT = make_document("q", "topic1word2 topic1word3 topic2word1 common1 common2 " * 3)


def check_same(found: Ranks, expected: Ranks) -> None:
    """The same documents in the same order, with the same scores and counts; positions may differ."""
    assert found.best.doc_ids == expected.best.doc_ids
    mine, theirs = found.best.exact, expected.best.exact
    np.testing.assert_allclose(mine.scores, theirs.scores, rtol=0, atol=1e-7)
    for name in COMPONENTS:
        np.testing.assert_allclose(getattr(mine.components, name), getattr(theirs.components, name), rtol=0, atol=1e-6)
    np.testing.assert_allclose(mine.matches.similarities, theirs.matches.similarities, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(mine.matches.chunks, theirs.matches.chunks)
    counts = [(one.n_found, one.n_evident, one.n_searched) for one in (found, expected)]
    assert counts[0] == counts[1]
    assert (found.is_exact, found.is_complete) == (expected.is_exact, expected.is_complete)


def test_a_partition_finds_nothing_where_nothing_matches(case: Case) -> None:
    assert list(case.partition.show(np.empty(0, np.int64))) == []
    prepared = case.prepared(make_document("q", "zyzzyva"))
    found = case.partition.rank(prepared, Selection("topic = 99", exact=True), 5)
    assert (found.best.doc_ids, found.n_found, found.n_searched) == ((), 0, 0)
    assert found.best.exact.matches.similarities.shape == (len(prepared.vectors.chunks), 0)


@pytest.mark.parametrize("n_most", [1, 7, 100])
@pytest.mark.parametrize("query", [*QUERIES, TEXT], ids=[*QUERIES, "text"])
def test_an_exact_ranking_is_that_of_all_documents(case: Case, query: str | Document, n_most: int) -> None:
    prepared = case.prepared(query)
    check_same(case.partition.rank(prepared, EXACT, n_most), case.expected(prepared, EXACT, n_most))


def test_equal_scores_are_ordered_by_doc_id_and_ranks_do_not_depend_on_how_many_are_wanted(case: Case) -> None:
    best = case.partition.rank(case.prepared("doc005"), EXACT, 100).best
    order = [(-score, doc_id) for score, doc_id in zip(best.exact.scores.tolist(), best.doc_ids, strict=True)]
    assert order == sorted(order)
    assert len({score for score, _ in order}) < len(order)
    prepared = case.prepared("doc003")
    long, short = (case.partition.rank(prepared, EXACT, n) for n in (25, 4))
    assert short.best.doc_ids == long.best.doc_ids[:4]
    assert short.best.exact.scores.tolist() == long.best.exact.scores[:4].tolist()
    assert (short.n_found, short.n_evident, short.n_searched) == (long.n_found, long.n_evident, long.n_searched)


@pytest.mark.parametrize("without", [(), ("doc003", "no such document"), ("a-copy-of-doc005",)])
@pytest.mark.parametrize("where", [None, "family = 'even'", "year >= 2010 and topic in (1, 2, 3)", "topic = 99"])
def test_a_selection_limits_the_ranking(case: Case, where: str | None, without: tuple[str, ...]) -> None:
    prepared, selection = case.prepared("doc003"), Selection(where, without, exact=True)
    found = case.partition.rank(prepared, selection, 10)
    check_same(found, case.expected(prepared, selection, 10))
    assert not set(found.best.doc_ids) & set(without)


@pytest.mark.slow
def test_containment_is_scored_too(kind: OpenPartition, folders: dict[str, Path]) -> None:
    with kind(folders["vectors"], CONTAINMENT) as partition, IndexSnapshot(folders["vectors"]) as snapshot:
        case = Case(partition, snapshot, CONTAINMENT)
        prepared = case.prepared("doc004")
        check_same(partition.rank(prepared, EXACT, 10), case.expected(prepared, EXACT, 10))


@pytest.mark.parametrize("where", ["topic =", "topic ~ 3", "drop table documents"])
def test_a_filter_that_does_not_parse_is_an_error(case: Case, where: str) -> None:
    with pytest.raises(QueryError):
        case.partition.rank(case.prepared("doc003"), Selection(where, exact=True), 5)


@pytest.mark.slow
@pytest.mark.parametrize("selection", [EXACT, Selection("family = 'even'", ("doc004",))], ids=["all", "some"])
def test_many_queries_find_what_one_index_finds(case: Case, selection: Selection) -> None:
    queries = [case.prepared(name) for name in ("doc003", "a-copy-of-doc005", "doc012")]
    at = dict(zip(*_names_and_positions(case.partition, case.prepared("doc003")), strict=True))
    left_out = at["doc012"]
    tops = case.partition.tops([(-1, queries[0]), (-1, queries[1]), (left_out, queries[2])], selection, 6)
    expected = [
        case.expected(one, Selection(selection.where, (*selection.without, *without), exact=True), 6)
        for one, without in zip(queries, ((), (), ("doc012",)), strict=True)
    ]
    assert [one.doc_ids for one in tops] == [one.best.doc_ids for one in expected]
    for query, found, one in zip(queries, tops, expected, strict=True):
        np.testing.assert_allclose(found.exact.scores, one.best.exact.scores, rtol=0, atol=1e-7)
        scores = case.partition.exact(query, found.exact.positions).scores
        np.testing.assert_allclose(scores, found.exact.scores, rtol=0, atol=1e-7)


def _names_and_positions(partition: Partition, prepared: Prepared) -> tuple[list[str], list[int]]:
    best = partition.rank(prepared, EXACT, 100).best
    return list(best.doc_ids), best.exact.positions.tolist()


@pytest.mark.parametrize("where", [None, "family = 'even'", "topic = 99"])
def test_a_survey_names_the_documents_of_a_selection(case: Case, where: str | None) -> None:
    found = case.partition.survey(Selection(where, ("doc004",)))
    shown = {one.document.doc_id for one in case.partition.show(found.positions)}
    allowed = case.snapshot.matching(where) if where else np.ones(case.snapshot.n_documents, bool)
    names = {case.snapshot.doc_ids()[position] for position in np.flatnonzero(allowed)}
    assert shown == names - {"doc004"}
    assert found.is_exhaustive
    assert found.is_complete == (case.snapshot.is_complete or where == "topic = 99")


def test_documents_are_shown_completely_and_in_the_requested_order(case: Case) -> None:
    best = case.partition.rank(case.prepared("naïve/π.txt"), EXACT, 12).best
    backwards = best.exact.positions[::-1]
    stored = {one.doc_id: one for one in documents()}
    shown = case.partition.show(backwards)
    assert [one.document.doc_id for one in shown] == list(best.doc_ids[::-1])
    for one in shown:
        assert one.document == stored[one.document.doc_id]
        position = case.snapshot.position(one.document.doc_id)
        assert position is not None
        ((_, coverage),) = case.snapshot.documents(np.array([position]))
        assert one.coverage == coverage
        np.testing.assert_array_equal(one.spans, case.snapshot.spans(position))
        assert one.has_vectors == bool(case.snapshot.has_vectors[position])


def test_the_contents_are_of_three_kinds(folders: dict[str, Path]) -> None:
    shares = {}
    for content, folder in folders.items():
        with IndexSnapshot(folder) as snapshot:
            shares[content] = (snapshot.width, int(snapshot.has_vectors.sum()))
    assert shares["words"] == (0, 0) and shares["vectors"] == (32, len(documents()))
    assert shares["some vectors"][0] == 32 and 0 < shares["some vectors"][1] < len(documents())
