"""A search reads what it needs of each document once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search.request import Request
from engine.search.scorer import Scorer
from engine.store.snapshot import IndexSnapshot
from engine.text.document import Document
from engine.words.counts import PackedWords
from indexer.building.builder import build
from tests.fakes import FakeEncoder

N = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, corpus: list[Document]) -> Path:
    folder = tmp_path_factory.mktemp("scored") / "x.lm"
    build(folder, corpus, encoder=FakeEncoder(), factory="IVF4,Flat", recall_floor=0.0)
    return folder


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> dict[str, Counter[int]]:
    """How often vectors and term counts of each document were read."""
    counts: dict[str, Counter[int]] = {"vectors": Counter(), "words": Counter()}
    vectors, words = IndexSnapshot.chunk_vectors, IndexSnapshot.packed_words

    def counted_vectors(self: IndexSnapshot, positions: NDArray[np.int64]) -> object:
        counts["vectors"].update(positions.tolist())
        return vectors(self, positions)

    def counted_words(
        self: IndexSnapshot, positions: NDArray[np.int64], *, apart: bool = False
    ) -> tuple[NDArray[np.int64], PackedWords]:
        counts["words"].update(positions.tolist())
        return words(self, positions, apart=apart)

    monkeypatch.setattr(IndexSnapshot, "chunk_vectors", counted_vectors)
    monkeypatch.setattr(IndexSnapshot, "packed_words", counted_words)
    return counts


@pytest.mark.parametrize("k", [5, 15, 40])
@pytest.mark.parametrize("exact", [False, True])
def test_each_candidate_is_read_once(
    folder: Path, reads: dict[str, Counter[int]], monkeypatch: pytest.MonkeyPatch, k: int, exact: bool
) -> None:
    monkeypatch.setattr("engine.search.partition.TIERS", ((10, 20), (20, 40)))
    with Index.open(folder, encoder=FakeEncoder()) as index:
        query = index.stored_query("doc003")
        for counts in reads.values():
            counts.clear()
        result = index.searcher().search(query, Request(k=k, exact=exact))
    n_hits = len(result.hits)
    assert n_hits == k
    assert max(reads["words"].values()) == 1
    # Where all documents are compared, the few best are compared again, to the last digit.
    n_again = sum(1 for count in reads["vectors"].values() if count > 1)
    assert n_again == (n_hits if exact and k < N / 2 else 0)
    if not exact:
        assert len(reads["vectors"]) == {5: 20, 15: 40, 40: N}[k]


def test_scoring_all_at_once_and_narrowing_down_give_the_same_ranking(folder: Path) -> None:
    with Index.open(folder, encoder=FakeEncoder()) as index:
        scorer = Scorer(index.snapshot, Scoring())
        prepared = index.searcher().prepare(index.stored_query("doc003"))
        everything = np.arange(N)
        narrowed = scorer.best_of(prepared, scorer.pool(prepared, everything), 10)
        at_once = scorer.ranked(scorer.exact(prepared, everything), 10)
    assert narrowed.positions.tolist() == at_once.positions.tolist()
    assert narrowed.scores.tolist() == at_once.scores.tolist()
    assert narrowed.matches.chunks.tolist() == at_once.matches.chunks.tolist()
    counts = narrowed.matches.chunks >= 0  # below its threshold a similarity decides nothing
    assert narrowed.matches.similarities[counts].tolist() == at_once.matches.similarities[counts].tolist()
    for name in ("chunks", "words", "pairs"):
        one, other = getattr(narrowed.components, name), getattr(at_once.components, name)
        np.testing.assert_allclose(one, other, rtol=1e-12)
