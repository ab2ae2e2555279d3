"""Removal of parts of documents: parts, their matches, courses of the score, and faithfulness."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from benchmarks.prepare import index_documents
from benchmarks.runs import read_runs
from benchmarks.sections.matches import Corpus, Matches, Placed, TargetTerms, place
from benchmarks.sections.parts import ChunkTerms, Order, OrderKind, Parts, Side, parts_of, removal_orders
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
from benchmarks.tasks.faithfulness import main
from engine.index import Index
from engine.scoring.breakdown import Prepared
from engine.scoring.evidence import Scoring
from engine.scoring.parts import Breakdown, TermPart
from engine.search.query import Query, as_stored, pool_long
from engine.search.request import Request
from engine.search.searcher import Searcher
from engine.store.snapshot import Positions
from engine.text.segmentation import Chunk
from engine.views import Hit
from engine.words.counts import TermTable, count_words
from engine.words.likelihood import TermStatistics, query_terms
from engine.words.places import PAIR
from engine.words.segmenter import segmenter_of
from tests.benchmarks.corpora import explanation
from tests.benchmarks.made_runs import error_of, run_program
from tests.encoders.tiny import ENCODERS
from tests.fakes import FakeEncoder, make_document

QUERY = "doc007"


@pytest.fixture
def query(index: Index) -> Query:
    return index.stored_query(QUERY)


@pytest.fixture
def hit(index: Index) -> Hit:
    return index.search(QUERY, Request(k=1, exact=True)).hits[0]


@pytest.fixture
def target(index: Index, hit: Hit) -> Query:
    return index.stored_query(hit.doc_id)


@pytest.mark.parametrize("side", Side)
def test_contributions_are_of_pairs_and_weights_of_the_model(query: Query, hit: Hit, target: Query, side: Side) -> None:
    model = explanation(query.document, query.vectors, target.document, target.vectors)
    parts = parts_of(hit.breakdown, side, query, target, "english", model)
    own = query if side is Side.QUERY else target
    assert len(parts) == len(own.vectors.chunks)
    assert parts.n_tokens.sum() == sum(chunk.n_tokens for chunk in own.vectors.chunk_spans)
    by_section = np.zeros(len(own.document.sections))
    for pair in hit.breakdown.pairs:
        by_section[pair.query_section if side is Side.QUERY else pair.target_section] += pair.contribution
    section_of = [chunk.section for chunk in own.vectors.chunk_spans]
    np.testing.assert_allclose(np.bincount(section_of, parts.contribution), by_section, atol=1e-9)
    weights = model.query_weights if side is Side.QUERY else model.target_weights
    np.testing.assert_allclose(parts.model, weights, rtol=1e-6)


def test_the_cosine_of_a_chunk_is_that_of_its_nearest_one(query: Query, hit: Hit, target: Query) -> None:
    parts = parts_of(hit.breakdown, Side.TARGET, query, target, "english")
    assert parts.model is None
    cosines = query.vectors.chunks @ target.vectors.chunks.T
    np.testing.assert_allclose(parts.cosine, cosines.max(axis=0))


def test_a_pooled_chunk_has_the_weights_of_all_that_it_stands_for(query: Query, target: Query) -> None:
    model = explanation(query.document, query.vectors, target.document, target.vectors)
    pooled = replace(query, vectors=pool_long(query.vectors, 4))
    assert len(pooled.vectors.chunks) < len(query.vectors.chunks)
    parts = parts_of(Breakdown((), (), {}), Side.QUERY, pooled, target, "english", model)
    assert parts.model is not None
    for weight, run in zip(parts.model, pooled.vectors.chunk_spans, strict=True):
        inside = [run.start <= chunk.start < run.stop for chunk in model.query_chunks]
        assert weight == pytest.approx(model.query_weights[inside].sum(), rel=1e-6)


def test_orders_begin_with_what_is_largest_and_a_model_adds_one() -> None:
    given = np.array([5, 9, 5, 5]), np.array([0.1, 0, 0.3, 0]), np.array([4, 3, 2, 1])
    parts = Parts(*given)
    orders = removal_orders(parts, 3, np.random.default_rng(0))
    assert orders[OrderKind.BREAKDOWN][0][:2].tolist() == [2, 0]
    assert orders[OrderKind.COSINE][0].tolist() == [0, 1, 2, 3]
    assert [sorted(order.tolist()) for kind in orders for order in orders[kind]] == [[0, 1, 2, 3]] * 5
    assert parts.chunks_of(np.array([1, 3])).tolist() == [False, True, False, True]
    named = removal_orders(Parts(*given, np.array([0.2, -0.1, 0.0, 0.4])), 3, np.random.default_rng(0))
    assert [order.tolist() for order in named.pop(OrderKind.MODEL)] == [[3, 0, 2, 1]]
    np.testing.assert_equal(named, orders)


def test_parts_without_a_contribution_come_last_in_random_order() -> None:
    parts = Parts(np.ones(6, np.int64), np.array([0, 0, 1.0, 0, 0, 0]), np.zeros(6))
    draws = [removal_orders(parts, 1, np.random.default_rng(seed))[OrderKind.BREAKDOWN][0] for seed in range(20)]
    assert {int(draw[0]) for draw in draws} == {2}
    assert {int(draw[1]) for draw in draws} == {0, 1, 3, 4, 5}


def test_a_term_is_spread_over_its_occurrences_and_counts_where_it_is_kept() -> None:
    document = make_document("a", "fox runs fox jumps fox")
    chunks = [Chunk(0, 0, 8, 2), Chunk(0, 9, 22, 3)]
    assert [document.text[chunk.start : chunk.stop] for chunk in chunks] == ["fox runs", "fox jumps fox"]
    segmenter = segmenter_of("english")
    terms = ChunkTerms(document, chunks, segmenter)
    found = terms.terms
    fox, runs = found.words[:2].tolist()
    _, runs_fox, fox_jumps, _ = (found.pairs.astype(np.int64) + PAIR).tolist()
    values = {"Fox": (0.3, fox), "runs": (0.1, runs), "fox jumps": (0.2, fox_jumps), "runs fox": (0.4, runs_fox)}
    parts = [TermPart(name, *value) for name, value in values.items()]
    np.testing.assert_allclose(terms.spread(parts), [0.1 + 0.1 + 0.4, 0.2 + 0.2])
    expected = count_words(segmenter, ["fox jumps fox"])
    counts = terms.counts(np.array([False, True]))
    assert counts.words.terms.tolist() == expected.words.terms.tolist()
    assert counts.words.counts.tolist() == expected.words.counts.tolist()
    assert counts.pairs.terms.tolist() == expected.pairs.terms.tolist(), "none across the end of what is kept"


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


@pytest.fixture
def pairing(index: Index) -> Pairing:
    return third_hit(index, Scoring())


def other_documents(index: Index) -> Positions:
    return np.delete(np.arange(index.n_documents), index.snapshot.doc_ids().index(QUERY))


def third_hit(index: Index, scoring: Scoring) -> Pairing:
    """The third hit, whose rank can rise and fall."""
    targets = other_documents(index)
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


@pytest.fixture(params=[Scoring(), Scoring(chunk_weight=0.5, exceeding=2)], ids=["usual", "other"])
def corpus_of_index(index: Index, request: pytest.FixtureRequest) -> Corpus:
    return Corpus(index, request.param)


@pytest.fixture
def targets(index: Index) -> Positions:
    return other_documents(index)


@pytest.fixture
def prepared(index: Index, corpus_of_index: Corpus) -> Prepared:
    return corpus_of_index.prepare(index.stored_query(QUERY))


@pytest.fixture
def found(corpus_of_index: Corpus, prepared: Prepared, targets: Positions) -> Matches:
    return corpus_of_index.find_matches(prepared, targets)


def test_scores_are_those_of_the_search(
    index: Index, corpus_of_index: Corpus, found: Matches, targets: Positions
) -> None:
    scores = corpus_of_index.score_all(found)
    column = {name: number for number, name in enumerate(index.snapshot.doc_ids_of(targets))}
    hits = index.search(QUERY, Request(k=60, exact=True, scoring=corpus_of_index.scoring)).hits
    assert len(hits) == np.count_nonzero(scores)
    for hit in hits:
        assert scores[column[hit.doc_id]] == pytest.approx(hit.score, abs=1e-6)
        assert place(scores, column[hit.doc_id]).rank == hit.rank


def test_matches_without_some_chunks_and_terms_score_like_the_shorter_query(
    index: Index, corpus_of_index: Corpus, prepared: Prepared, found: Matches, targets: Positions
) -> None:
    query = index.stored_query(QUERY)
    kept = np.arange(len(query.vectors.chunks)) % 2 == 0
    spans = tuple(chunk for chunk, is_kept in zip(query.vectors.chunk_spans, kept, strict=True) if is_kept)
    part = replace(query.vectors, chunks=query.vectors.chunks[kept], chunk_spans=spans)
    text = query.document.text[: query.vectors.chunk_spans[1].stop]
    words = count_words(segmenter_of(corpus_of_index.language), [text])
    searcher = Searcher(index.snapshot, corpus_of_index.scoring)
    hits = searcher.search(Query(query.document, part, words), Request(k=60, without=QUERY, exact=True)).hits
    terms = corpus_of_index.target_terms(prepared, targets)
    assert terms is not None
    fewer = found.of_chunks(kept, terms[0].scores(words.words), terms[1].scores(words.pairs))
    scores = dict(zip(index.snapshot.doc_ids_of(targets), corpus_of_index.score_all(fewer), strict=True))
    assert len(hits) == sum(score > 0 for score in scores.values()) > 3
    assert all(scores[hit.doc_id] == pytest.approx(hit.score, abs=1e-6) for hit in hits)


def test_a_document_scores_the_same_outside_of_the_index(
    index: Index, corpus_of_index: Corpus, prepared: Prepared, found: Matches, targets: Positions
) -> None:
    scores = corpus_of_index.score_all(found)
    for column in (0, 20, 40):
        target = index.stored_query(index.snapshot.doc_ids_of(targets[[column]])[0])
        vectors = target.vectors
        score = corpus_of_index.score_target(prepared, vectors.chunks, target.words)
        assert score == pytest.approx(scores[column], abs=1e-6)


def test_equal_scores_share_the_middle_of_their_places() -> None:
    scores = np.array([0.5, 0.0, 0.9, 0.0, 0.0])
    assert [place(scores, column).rank for column in range(5)] == [2, 4, 1, 4, 4]


def test_a_query_without_chunks_scores_nothing(corpus_of_index: Corpus, found: Matches) -> None:
    nothing = found.of_chunks(np.zeros(len(found.best), bool), found.words, found.pairs)
    assert not corpus_of_index.score_all(nothing).any()


def test_a_term_that_the_whole_query_does_not_weigh_counts_nothing_in_a_part() -> None:
    statistics = TermStatistics(np.array([3, 5, 9], np.uint32), np.array([1, 1, 1], np.uint32), 100)
    counts = np.array([2, 1], np.uint16), np.array([0, 2]), np.array([3], np.uint32)
    whole, part = (TermTable(np.array(terms, np.uint32), *counts) for terms in ([3, 5], [3, 9]))
    query = query_terms(whole, statistics)
    of_terms = TargetTerms(query, csr_array(np.array([[0.5, 0.25]])), statistics)
    weight = query_terms(part, statistics).weights[0]
    np.testing.assert_allclose(of_terms.scores(part), [0.5 * weight])


@pytest.mark.slow
def test_a_run_measures_the_order_of_the_model_of_an_encoder_that_explains_itself(
    long_folder: Path, bert_folder: Path, tmp_path: Path
) -> None:
    ENCODERS["smith fixed normal"](bert_folder).save_pretrained(tmp_path / "encoder")
    options = ["--encoder", tmp_path / "encoder", "--queries", "1", "--encoded", "1"]
    done = run_program(main, long_folder, *options, "--work", tmp_path / "work", "--out", tmp_path / "out")
    runs = read_runs(tmp_path / "out")
    assert len(runs) == 16  # four orders of two sides, rescored in two ways
    for run in (run for run in runs if run.system == "model"):
        assert (run.details["curves"]["deletion"][0], run.details["curves"]["deletion"][-1]) == (1, 0)
    assert "minus model [95 %]" in done.output
    assert "| long | encoder | target, re-encoded (1) | sufficiency (low) |" in done.output


@pytest.mark.slow
def test_the_command_measures_queries_of_the_split(long_folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    options = ["--encoder", bert_folder, "--queries", "2", "--encoded", "1"]
    done = run_program(main, long_folder, *options, "--work", tmp_path / "work", "--out", tmp_path / "out")
    runs = {run.name: run for run in read_runs(tmp_path / "out")}
    assert len(runs) == 12  # three orders of two sides, rescored in two ways
    run = runs["long-breakdown-bert-chunk-stored-query-test"]
    assert (run.details["n_documents"], run.details["n_hits"], sorted(run.case_ids)) == (24, 2, ["d0", "d2"])
    assert "--queries 2 --encoded 1" in run.origin.command
    assert "| long | bert | query, stored (2) | deletion, area (low) |" in done.output


def test_documents_of_one_chunk_are_refused(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    error = error_of(main, folder, "--encoder", bert_folder, "--work", tmp_path / "work")
    assert error.startswith("Error: none of 2 queries of dataset pets has a hit with two chunks or more")
