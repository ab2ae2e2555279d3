"""Term counts of documents are gathered from shards of this and of earlier versions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.store.shards import ShardSet
from engine.store.snapshot import Snapshot
from engine.words.counts import WordTables
from engine.words.packing import PackedTable, PackedWords
from indexer.building.builder import build
from tests.fakes import make_corpus


def without_lengths(table: PackedTable) -> PackedTable:
    return replace(table, occurrences=None)


def test_lengths_that_a_shard_lacks_are_summed_over_the_documents_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = make_corpus(8)
    build(tmp_path / "x.lm", corpus[:4], encode="none")
    build(tmp_path / "x.lm", corpus[4:], encode="none")
    positions = np.array([6, 1, 3, 4])
    with Snapshot(tmp_path / "x.lm") as snapshot:
        expected = snapshot.words(positions)
    stored = ShardSet.words
    read: dict[int, PackedWords] = {}

    def words(self: ShardSet, number: int, *, apart: bool = True) -> WordTables | PackedWords | None:
        found = stored(self, number, apart=apart)
        assert isinstance(found, PackedWords)
        if number == 1:
            found = replace(found, words=without_lengths(found.words), pairs=without_lengths(found.pairs))
        return read.setdefault(number, found)

    monkeypatch.setattr(ShardSet, "words", words)
    with Snapshot(tmp_path / "x.lm") as snapshot:
        parts = list(snapshot.word_parts(positions))
        assert sorted(np.concatenate([places for places, _ in parts]).tolist()) == [0, 1, 2, 3]
        found = snapshot.words(positions)
    assert len(read) == 2
    for kind in ("words", "pairs"):
        mine, theirs = getattr(found, kind), getattr(expected, kind)
        assert np.array_equal(mine.terms, theirs.terms) and np.array_equal(mine.counts, theirs.counts)
        assert np.array_equal(mine.lengths(), theirs.lengths())
        of_shard: PackedTable = getattr(read[1], kind)
        assert "_count_ones" not in vars(of_shard)  # the counts of all documents of the shard, unpacked
