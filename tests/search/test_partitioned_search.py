"""A partitioned index answers like one index: the same hits, scores, parts and counts, however many partitions."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.index import Index
from engine.result import Result, Status
from engine.scoring.evidence import Components, no_matches
from engine.search.partition import Ranked, Selection, merged
from engine.search.query import stored_queries
from engine.search.request import Request
from engine.search.scorer import Exact
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.rewriting import partition
from tests.fakes import FakeEncoder, make_corpus, make_document, with_copies

N = 45
LICENCE = "permission is hereby granted to any person who obtains a copy of this text"
WORDS = [f"topic{topic}word{number}" for topic in range(4) for number in range(8)] + ["common1", "common2", "absent"]


def corpus() -> list[Document]:
    """Topics, a licence in all, and every third document twice more under another name."""
    return with_copies(make_corpus(N, boilerplate=LICENCE), 3)


Open = Callable[[str, int], Index]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Open:
    """Indexes by what they hold, words or vectors, and by the number of partitions; 0 for one that is not split."""
    folder = tmp_path_factory.mktemp("partitioned")

    @cache
    def open_index(kind: str, n_partitions: int) -> Index:
        path = folder / f"{kind}{n_partitions}"
        if n_partitions:
            open_index(kind, 0)
            partition(folder / f"{kind}0", path, n_partitions)
        else:
            build(path, corpus(), encoder=FakeEncoder(), encode="none" if kind == "words" else "all", factory="Flat")
        return Index.open(path, encoder=FakeEncoder() if kind == "vectors" else None)

    return open_index


def answer(result: Result) -> dict[str, Any]:
    """All of a result but its seconds and its provenance."""
    return {name: value for name, value in result.to_dict().items() if name not in ("seconds", "provenance")}


@pytest.mark.slow
@settings(max_examples=80)
@given(
    kind=st.sampled_from(["words", "vectors"]),
    n_partitions=st.integers(1, 8),
    query=st.one_of(
        st.integers(0, N - 1).map(lambda number: f"doc{number:03d}"),
        st.lists(st.sampled_from(WORDS), min_size=3, max_size=40).map(
            lambda words: make_document("q", " ".join(words))
        ),
    ),
    k=st.sampled_from([1, 3, 10, 100]),
    offset=st.sampled_from([0, 1, 7, 70, 200]),
    where=st.sampled_from([None, "family = 'even'", "year >= 2010 and topic in (1, 2, 3)", "topic = 99"]),
    without=st.sampled_from([(), ("doc003",), ("a-copy-of-doc003", "doc006")]),
    exact=st.booleans(),
)
def test_answers_do_not_depend_on_partitions(
    opened: Open,
    kind: str,
    n_partitions: int,
    query: str | Document,
    k: int,
    offset: int,
    where: str | None,
    without: tuple[str, ...],
    exact: bool,
) -> None:
    def ranked_by(index: Index) -> Result:
        return index.search(query, Request(k=k, offset=offset, where=where, without=without, exact=exact))

    expected, found = ranked_by(opened(kind, 0)), ranked_by(opened(kind, n_partitions))
    assert answer(found) == answer(expected)
    assert found.status is Status.CERTIFIED


@pytest.mark.parametrize("kind", ["words", "vectors"])
def test_tops_of_many_queries_do_not_depend_on_partitions(opened: Open, kind: str) -> None:
    names = ["doc003", "doc007", "a-copy-of-doc003"]
    found = []
    for index in (opened(kind, 0), opened(kind, 3)):
        at = np.array([index.position(name) for name in names])
        queries = [*zip(at.tolist(), stored_queries(index.snapshot, at), strict=True)]
        searcher, doc_ids = index.searcher(), index.snapshot.doc_ids()
        tops = searcher.tops(queries, Selection("family = 'even'"), k=7)
        shown = [([doc_ids[position] for position in positions], scores.tolist()) for positions, scores in tops]
        found.append((shown, searcher.scores_of(queries[0][1], at[::-1]).tolist()))
    assert found[1] == found[0]
    assert all(len(doc_ids) == 7 for doc_ids, _ in found[1][0])


def ranked(found: list[tuple[float, str]]) -> Ranked:
    scores = np.array([score for score, _ in found], np.float64)
    nothing = Components(*np.zeros((3, len(found))))
    exact = Exact(np.arange(len(found)), scores, nothing, no_matches(2, len(found)))
    return Ranked(exact, tuple(name for _, name in found))


@given(
    scores=st.lists(st.sampled_from([0.1, 0.25, 0.5, 0.75, 1.0]), max_size=30),
    n_parts=st.integers(1, 5),
    n_most=st.integers(0, 40),
    seed=st.integers(0, 9),
)
def test_merging_sorted_rankings_is_sorting_all(scores: list[float], n_parts: int, n_most: int, seed: int) -> None:
    owners = np.random.default_rng(seed).integers(0, n_parts, len(scores))
    documents = [(score, f"d{number:02d}") for number, score in enumerate(scores)]
    parts = [
        sorted((one for one, owner in zip(documents, owners, strict=True) if owner == part), key=order)
        for part in range(n_parts)
    ]
    bases = np.cumsum([0, *map(len, parts)])[:-1]
    best = merged([ranked(part) for part in parts], bases, n_most).exact
    everything = [one for part in parts for one in part]
    assert [everything[position] for position in best.positions] == sorted(documents, key=order)[:n_most]
    assert best.scores.tolist() == [score for score, _ in sorted(documents, key=order)][:n_most]


def order(document: tuple[float, str]) -> tuple[float, str]:
    return -document[0], document[1]


def test_more_hits_never_change_the_first_ones() -> None:
    # A second tier of candidates may hold a better document than the first: it does not move up.
    parts = [ranked([(0.5, "a"), (0.9, "b")]), ranked([(0.8, "c"), (0.4, "d")])]
    names = [merged(parts, np.array([0, 2]), n_most).doc_ids for n_most in range(5)]
    assert names == [(), ("c",), ("c", "a"), ("c", "a", "b"), ("c", "a", "b", "d")]
