"""An inverted table gives exactly the scores of a pass for each query."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.words import likelihood
from engine.words.counts import pack
from engine.words.likelihood import FEWEST_QUERIES, collect, cover_terms, query_terms, scores, scores_of_many
from tests.words.test_likelihood import TEXTS, table_of


@pytest.mark.slow
@pytest.mark.parametrize("weigh", [query_terms, cover_terms])
@pytest.mark.parametrize("is_packed", [False, True])
@given(texts=TEXTS, queries=st.lists(st.lists(st.integers(0, 15), max_size=15), min_size=8, max_size=12))
def test_scores_are_those_of_each_query_alone(
    weigh: type, is_packed: bool, texts: list[list[int]], queries: list[list[int]]
) -> None:
    tables = table_of(texts)
    statistics = collect([tables]).words
    terms = [weigh(table_of([query]).words, statistics) for query in queries]
    table = pack(tables).words if is_packed else tables.words
    expected = [scores(one, table).tolist() for one in terms]
    assert scores_of_many(terms, table).tolist() == expected
    kept = likelihood.inverted(table)
    assert kept is None or [kept.scores(one).tolist() for one in terms] == expected


def test_many_queries_look_through_the_table_once(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []
    plain = likelihood.shared_terms

    def counted(*given: object) -> object:
        passes.append(1)
        return plain(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(likelihood, "shared_terms", counted)
    tables = table_of([[1, 2, 2], [3]])
    terms = query_terms(table_of([[2, 3]]).words, collect([tables]).words)
    found = scores_of_many([terms] * FEWEST_QUERIES, tables.words)
    assert (len(passes), np.unique(found, axis=0).shape) == (1, (1, 2))
