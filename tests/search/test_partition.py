"""Merged rankings are those of a sort over all documents."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.scoring.evidence import Components
from engine.scoring.similarity import no_matches
from engine.search.partition import Ranked, merged
from engine.search.scorer import Exact


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
