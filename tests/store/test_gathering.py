"""Term counts of documents are gathered from several shards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.store.snapshot import IndexSnapshot
from engine.words.counts import count_documents
from engine.words.segmenter import segmenter_of
from indexer.building.builder import build
from tests.fakes import make_corpus


@pytest.mark.parametrize("apart", [False, True])
def test_counts_come_in_the_requested_order(tmp_path: Path, apart: bool) -> None:
    corpus = make_corpus(8)
    build(tmp_path / "x.lm", corpus[:4], encode="none")
    build(tmp_path / "x.lm", corpus[4:], encode="none")
    positions = np.array([6, 1, 3, 4])
    with IndexSnapshot(tmp_path / "x.lm") as snapshot:
        found = snapshot.words(positions, apart=apart)
        expected = count_documents(segmenter_of(snapshot.language or "none"), [corpus[at] for at in positions])
        places, packed = snapshot.packed_words(positions)
        assert sorted(places.tolist()) == [0, 1, 2, 3]
        assert "_count_ones" not in vars(packed.words)  # lengths need no counts
        assert packed.words.lengths()[np.argsort(places)].tolist() == expected.words.lengths().tolist()
    assert (found.apart is not None) is apart
    for kind in ("words", "pairs"):
        mine, theirs = getattr(found, kind), getattr(expected, kind)
        assert np.array_equal(mine.terms, theirs.terms) and np.array_equal(mine.counts, theirs.counts)
        assert np.array_equal(mine.lengths(), theirs.lengths())
