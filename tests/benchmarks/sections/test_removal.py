from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks.prepare import index_documents
from benchmarks.sections.matches import Corpus, Placed
from benchmarks.sections.parts import Order, OrderKind, Parts, Side
from benchmarks.sections.removal import (
    COARSE_SHARES,
    ENCODED,
    METHODS,
    SHARES,
    STORED,
    Course,
    Kept,
    Pairing,
    RemovalPlan,
    encoded_rescore,
    follow,
    follow_hits,
    kept_document,
    mean_course,
    stored_rescore,
    summaries,
)
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search.query import Query, as_stored
from engine.search.request import Request
from engine.search.searcher import Searcher
from engine.text.segmentation import Chunk
from tests.fakes import FakeEncoder, make_document

TOKENS = np.array([10, 20, 30, 40])
WORTH = np.array([0.4, 0.3, 0.2, 0.1])  # of each part; a score is the sum over the parts that are present


def parts() -> Parts:
    return Parts(TOKENS, WORTH, WORTH)


def rescore(kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Placed:
    return Placed(float(2 * WORTH[kept].sum()), float(1 + 4 * np.count_nonzero(~kept)))


def deletion_by_hand(order: Order, share: float) -> float:
    """The line between the last part that is wholly removed at a share, and the next one."""
    done, score = 0.0, 1.0
    for part in order:
        if done + TOKENS[part] / 100 > share:
            return score - WORTH[part] * (share - done) / (TOKENS[part] / 100)
        done += TOKENS[part] / 100
        score -= WORTH[part]
    return 0.0


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
@pytest.mark.parametrize("shares", [SHARES, COARSE_SHARES])
def test_a_course_is_the_line_through_the_parts(order: list[int], shares: tuple[float, ...]) -> None:
    course = follow(parts(), np.array(order), rescore, shares)
    expected = [deletion_by_hand(np.array(order), share) for share in shares]
    np.testing.assert_allclose(course.deletion, expected, atol=1e-12)
    # The score is a sum, so inserted and remaining parts add up to the whole.
    np.testing.assert_allclose(course.insertion, 1 - course.deletion, atol=1e-12)
    assert (course.deletion_rank[0], course.insertion_rank[-1]) == (1.0, 1.0)
    assert course.deletion_rank[-1] == course.insertion_rank[0] == pytest.approx(1 / 17)


def test_only_removals_near_a_share_are_scored() -> None:
    n_kept: list[int] = []

    def score_kept(kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Placed:
        n_kept.append(int(kept.sum()))
        return Placed(float(kept.mean()), 1.0)

    many = Parts(np.ones(1000, np.int64), np.ones(1000), np.ones(1000))
    course = follow(many, np.arange(1000), score_kept, COARSE_SHARES)
    np.testing.assert_allclose(course.deletion, 1 - np.array(COARSE_SHARES))
    numbers = [round(1000 * share) for share in COARSE_SHARES]
    assert sorted(n_kept) == sorted([*numbers, *(1000 - number for number in numbers)])


def test_summaries_by_hand() -> None:
    ends = np.array([1.0, 0.9, 0.8, 0.6, 0.2, 0.0])
    summed = summaries(Course(ends, 1 - ends, ends, ends), COARSE_SHARES)
    area = (0.05 * 1.9 + 0.05 * 1.7 + 0.1 * 1.4 + 0.3 * 0.8 + 0.5 * 0.2) / 2
    assert summed["deletion_area"] == pytest.approx(area)
    assert summed["insertion_area"] == pytest.approx(1 - area)
    assert summed["comprehensiveness"] == pytest.approx((0.1 + 0.2 + 0.4 + 0.8) / 4)
    assert summed["sufficiency"] == pytest.approx((0.9 + 0.8 + 0.6 + 0.2) / 4)


def test_a_mean_is_taken_share_by_share() -> None:
    one, other = (Course(*(np.full(2, value) for _ in range(4))) for value in (0.0, 1.0))
    assert mean_course([one, other]).insertion_rank.tolist() == [0.5, 0.5]


QUERY = "doc007"


@pytest.fixture
def pairing(index: Index) -> Pairing:
    return third_hit(index, Scoring())


def third_hit(index: Index, scoring: Scoring) -> Pairing:
    """The third hit, whose rank can rise and fall."""
    targets = np.delete(np.arange(index.n_documents), index.snapshot.doc_ids().index(QUERY))
    query, hit = index.stored_query(QUERY), index.search(QUERY, Request(k=3, exact=True, scoring=scoring)).hits[2]
    searched = Corpus(index, scoring)
    prepared = searched.prepare(query)
    matches = searched.find_matches(prepared, targets)
    column = int(np.searchsorted(targets, index.snapshot.position(hit.doc_id)))
    return Pairing(searched, query, prepared, index.stored_query(hit.doc_id), targets, matches, column)


def half(pairing: Pairing, side: Side) -> Kept:
    own = pairing.query if side is Side.QUERY else pairing.target
    return np.arange(len(own.vectors.chunks)) % 3 > 0


@pytest.mark.parametrize("side", Side)
def test_everything_kept_is_the_hit_and_nothing_kept_no_score(pairing: Pairing, index: Index, side: Side) -> None:
    hit = index.search(QUERY, Request(k=3, exact=True)).hits[2]
    own = pairing.query if side is Side.QUERY else pairing.target
    everything = np.ones(len(own.vectors.chunks), bool)
    for rescore in (stored_rescore(pairing, side), encoded_rescore(pairing, side, index.encoder)):
        whole, nothing = rescore(everything), rescore(~everything)
        assert (whole.score, whole.rank) == (pytest.approx(hit.score, abs=1e-6), 3)
        assert nothing.score == 0 and nothing.rank >= 30


def test_rescoring_a_shorter_query_equals_a_search_with_it(pairing: Pairing, index: Index) -> None:
    kept = half(pairing, Side.QUERY)
    short = kept_document(pairing.query.document, pairing.query.vectors.chunk_spans, kept)
    shortened = Query(short, as_stored(FakeEncoder().encode([short])[0]), key=pairing.query.key)
    hits = Searcher(index.snapshot).search(shortened, Request(k=60, without=QUERY, exact=True)).hits
    (hit,) = [hit for hit in hits if hit.doc_id == pairing.target.document.doc_id]
    placed = encoded_rescore(pairing, Side.QUERY, index.encoder)(kept)
    assert (placed.score, placed.rank) == (pytest.approx(hit.score, abs=1e-6), hit.rank)


def test_a_shorter_target_is_as_in_an_index_that_holds_it(pairing: Pairing, built_folder: Path, tmp_path: Path) -> None:
    """The index keeps its reference, which holds the document at its full length."""
    kept = half(pairing, Side.TARGET)
    short = kept_document(pairing.target.document, pairing.target.vectors.chunk_spans, kept)
    folder = Path(shutil.copytree(built_folder, tmp_path / "short.lm"))
    index_documents(folder, [short], FakeEncoder())
    placed = encoded_rescore(pairing, Side.TARGET, FakeEncoder())(kept)
    with Index.open(folder) as changed:
        hits = changed.search(QUERY, Request(k=60, exact=True)).hits
    (hit,) = [hit for hit in hits if hit.doc_id == short.doc_id]
    assert (placed.score, placed.rank) == (pytest.approx(hit.score, abs=1e-6), hit.rank)


@pytest.mark.parametrize("side", Side)
def test_stored_scores_are_of_the_terms_that_are_left(index: Index, side: Side) -> None:
    pairing = third_hit(index, Scoring(0, 1, 1))
    own = pairing.query if side is Side.QUERY else pairing.target
    kept = np.arange(len(own.vectors.chunks)) < 2
    encoded = encoded_rescore(pairing, side, FakeEncoder())(kept)
    assert stored_rescore(pairing, side)(kept).score == pytest.approx(encoded.score, abs=1e-6)


def test_the_remaining_text_keeps_its_sections_and_no_sentence_runs_across_a_gap() -> None:
    document = make_document("a", [("One", "b c d e"), ("Two", "f g")])
    chunks = [Chunk(0, 0, 5, 2), Chunk(0, 6, 7, 1), Chunk(0, 8, 11, 2), Chunk(1, 13, 20, 3)]
    assert [document.text[chunk.start : chunk.stop] for chunk in chunks] == ["One\nb", "c", "d e", "Two\nf g"]
    for kept, texts in {
        (True, True, True, True): ["One\nb c d e\n\n", "Two\nf g\n\n"],
        (True, False, True, False): ["One\nb\n\nd e\n\n"],
        (False, True, True, True): ["c d e\n\n", "Two\nf g\n\n"],
    }.items():
        short = kept_document(document, chunks, np.array(kept))
        assert [short.text[section.start : section.stop] for section in short.sections] == texts
    overlapping = [Chunk(0, 0, 5, 3), Chunk(0, 4, 9, 3)]
    assert kept_document(make_document("a", "b c d e f"), overlapping, np.array([True, True])).text == "b c d e f\n\n"


QUERIES = ["doc007", "doc011", "doc020", "doc033", "doc045", "doc058"]


@pytest.mark.slow
def test_parts_that_the_breakdown_names_carry_the_score(index: Index) -> None:
    courses = follow_hits(index, QUERIES, RemovalPlan(hits=2, random=4, encoded=2), seed=0)
    arms = {(arm.method, arm.side, arm.order): arm for arm in courses.arms()}
    assert (courses.n_hits, len(arms)) == (12, 12)
    for side in Side:
        named, random = (arms[STORED, side, kind].per_query for kind in (OrderKind.BREAKDOWN, OrderKind.RANDOM))
        assert np.mean(named["deletion_area"]) < np.mean(random["deletion_area"])
        assert np.mean(named["insertion_area"]) > np.mean(random["insertion_area"])
    assert arms[STORED, Side.QUERY, OrderKind.COSINE].query_ids == QUERIES
    assert arms[ENCODED, Side.QUERY, OrderKind.COSINE].query_ids == QUERIES[:2]


def test_curves_begin_with_the_whole_and_end_with_nothing(index: Index) -> None:
    plan = RemovalPlan(encoded=1)
    arms, again, other = (follow_hits(index, QUERIES[:2], plan, seed).arms() for seed in (0, 0, 1))
    assert arms == again != other
    for arm in arms:
        assert len(arm.curves["deletion"]) == len(METHODS[arm.method])
        assert (arm.curves["deletion"][0], arm.curves["deletion"][-1]) == (1, 0)
        assert (arm.curves["insertion"][0], arm.curves["insertion"][-1]) == (0, 1)
        assert arm.curves["deletion_rank"][0] == arm.curves["insertion_rank"][-1] == pytest.approx(1)
