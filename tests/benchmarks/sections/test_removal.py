from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.sections.matches import Placed, find_matches
from benchmarks.sections.parts import Side
from benchmarks.sections.removal import Kept, Pairing, encoded_rescore, kept_document, remembered, stored_rescore
from benchmarks.sections.subcorpus import index_documents
from engine.document import Chunk, Document
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search import Query, Searcher, as_stored
from engine.store.snapshot import Positions
from tests.fakes import FakeEncoder, make_document

QUERY = "doc007"


@pytest.fixture
def targets(index: Index) -> Positions:
    return np.delete(np.arange(index.n_documents), index.snapshot.doc_ids().index(QUERY))


@pytest.fixture
def pairing(index: Index, targets: Positions) -> Pairing:
    """The third hit: there is room above and below."""
    query, hit = index.stored_query(QUERY), index.search_id(QUERY, k=3, exact=True).hits[2]
    position = index.snapshot.position(hit.doc_id)
    column = int(np.searchsorted(targets, position))
    matches = find_matches(index.snapshot, query.vectors, targets)
    return Pairing(query, index.stored_query(hit.doc_id), matches, column, Scoring())


def half(pairing: Pairing, side: Side) -> Kept:
    own = pairing.query if side is Side.QUERY else pairing.target
    return np.arange(len(own.vectors.chunks)) % 3 > 0


@pytest.mark.parametrize("side", Side)
def test_with_everything_kept_the_hit_is_as_it_was(
    pairing: Pairing, index: Index, targets: Positions, side: Side
) -> None:
    hit = index.search_id(QUERY, k=3, exact=True).hits[2]
    own = pairing.query if side is Side.QUERY else pairing.target
    kept = np.ones(len(own.vectors.chunks), bool)
    for rescore in (
        stored_rescore(pairing, side),
        encoded_rescore(pairing, side, index.encoder, index.snapshot, targets),
    ):
        placed = rescore(kept)
        assert (placed.score, placed.rank) == (pytest.approx(hit.score, abs=1e-6), 3)


@pytest.mark.parametrize("side", Side)
def test_with_nothing_kept_there_is_no_score(pairing: Pairing, index: Index, targets: Positions, side: Side) -> None:
    own = pairing.query if side is Side.QUERY else pairing.target
    kept = np.zeros(len(own.vectors.chunks), bool)
    stored = stored_rescore(pairing, side)(kept)
    assert stored.score == 0 and stored.rank >= 30
    assert encoded_rescore(pairing, side, index.encoder, index.snapshot, targets)(kept) == stored


def test_a_shorter_query_is_asked_anew(pairing: Pairing, index: Index, targets: Positions) -> None:
    kept = half(pairing, Side.QUERY)
    short = kept_document(pairing.query.document, pairing.query.vectors.chunk_spans, kept)
    asked = Query(short, as_stored(FakeEncoder().encode([short])[0]))
    hits = Searcher(index.snapshot).search(asked, k=60, without=QUERY, exact=True).hits
    (hit,) = [hit for hit in hits if hit.doc_id == pairing.target.document.doc_id]
    placed = encoded_rescore(pairing, Side.QUERY, index.encoder, index.snapshot, targets)(kept)
    assert (placed.score, placed.rank) == (pytest.approx(hit.score, abs=1e-6), hit.rank)


def test_a_shorter_target_is_as_in_an_index_that_holds_it(
    pairing: Pairing, index: Index, targets: Positions, tmp_path: Path, corpus: list[Document]
) -> None:
    kept = half(pairing, Side.TARGET)
    short = kept_document(pairing.target.document, pairing.target.vectors.chunk_spans, kept)
    others = [document for document in corpus if document.doc_id != short.doc_id]
    index_documents(tmp_path / "short.lm", [*others, short], FakeEncoder())
    placed = encoded_rescore(pairing, Side.TARGET, index.encoder, index.snapshot, targets)(kept)
    with Index.open(tmp_path / "short.lm") as changed:
        hits = changed.search_id(QUERY, k=60, exact=True).hits
    (hit,) = [hit for hit in hits if hit.doc_id == short.doc_id]
    assert (placed.score, placed.rank) == (pytest.approx(hit.score, abs=1e-6), hit.rank)


def test_what_is_left_keeps_its_sections_and_no_sentence_runs_across_a_gap() -> None:
    document = make_document("a", [("One", "b c d e"), ("Two", "f g")])
    chunks = [Chunk(0, 0, 5, 2), Chunk(0, 6, 7, 1), Chunk(0, 8, 11, 2), Chunk(1, 13, 20, 3)]
    assert [document.text[chunk.start : chunk.stop] for chunk in chunks] == ["One\nb", "c", "d e", "Two\nf g"]

    def left(*kept: bool) -> list[str]:
        short = kept_document(document, chunks, np.array(kept))
        return [short.text[section.start : section.stop] for section in short.sections]

    assert left(True, True, True, True) == ["One\nb c d e\n\n", "Two\nf g\n\n"]
    assert left(True, False, True, False) == ["One\nb\n\nd e\n\n"]
    assert left(False, True, True, True) == ["c d e\n\n", "Two\nf g\n\n"]


def test_tokens_of_overlapping_windows_are_kept_once() -> None:
    document = make_document("a", "b c d e f")
    chunks = [Chunk(0, 0, 5, 3), Chunk(0, 4, 9, 3)]
    assert kept_document(document, chunks, np.array([True, True])).text == "b c d e f\n\n"


def test_the_same_chunks_are_scored_once() -> None:
    asked: list[list[bool]] = []

    def rescore(kept: Kept) -> Placed:
        asked.append(kept.tolist())
        return Placed(1.0, 1.0)

    ask = remembered(rescore)
    for kept in ([True, False], [True, False], [False, True]):
        assert ask(np.array(kept)) == Placed(1.0, 1.0)
    assert asked == [[True, False], [False, True]]
