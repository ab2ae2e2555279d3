"""Breakdowns of scores: the parts add up to the score."""

from dataclasses import replace
from functools import partial, reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.encoders.encoder import EncodedDocument, Vectors
from engine.scoring.breakdown import Prepared, Scored, break_down
from engine.scoring.evidence import Components, Matches, Scoring, Thresholds, chunk_component, combine, no_matches
from engine.scoring.parts import Breakdown
from engine.text.document import Document
from engine.text.segmentation import Chunk, Section, Span
from engine.words.counts import count_documents
from engine.words.likelihood import collect, query_terms, scores
from engine.words.mixture import Mixture
from engine.words.places import QueryText
from engine.words.segmenter import WordSegmenter

PLAIN = Scoring(chunk_weight=1, word_weight=0, pair_weight=0, opening=0, root=1.0)
NOTHING = Document("q", "q", "", (Section("", (), 0, 0),))


def chunks_of(n_chunks: int) -> list[Chunk]:
    return [Chunk(number // 2, 10 * number, 10 * number + 8, number + 1) for number in range(n_chunks)]


NO_KINDS = np.zeros(1, np.uint8)  # of sections: all are body


def spans_of(n_chunks: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    return np.array([[number // 3, 5 * number, 5 * number + 4, 2] for number in range(n_chunks)], np.int32)


def limits_of(theta: list[float], weights: list[float]) -> Thresholds:
    """Thresholds of a query whose chunks have these."""
    zeros, ones = np.zeros(len(theta), np.float32), np.ones(len(theta), np.float32)
    return Thresholds(np.array(theta, np.float32), zeros, ones, zeros, np.array(weights))


def matches(similarities: Vectors) -> Matches:
    """Best chunks of one target, from the cosines (I, C) of all."""
    best = similarities.max(axis=1, keepdims=True)
    return Matches(best, np.full_like(best, 0.5), similarities.argmax(axis=1)[:, None])


def scored(found: Matches, limits: Thresholds, scoring: Scoring = PLAIN) -> Scored:
    n = found.similarities.shape[1]
    chunks = chunk_component(found.similarities, found.openings, limits, scoring)
    components = Components(chunks, np.zeros(n), np.zeros(n))
    return Scored(query_of(limits, scoring.weights(words=False)), found, components, scoring)


def query_of(limits: Thresholds, weights: dict[str, float]) -> Prepared:
    vectors = replace(EncodedDocument.unencoded(0), chunk_spans=tuple(chunks_of(len(limits.chunks))))
    return Prepared(vectors, limits.weights, limits, None, None, weights, QueryText(NOTHING, None))


def breakdown_of(similarities: Vectors, limits: Thresholds, scoring: Scoring = PLAIN) -> Breakdown:
    given = scored(matches(similarities), limits, scoring)
    return break_down([NOTHING], [spans_of(similarities.shape[1])], [NO_KINDS], given)[0]


@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 9), st.booleans())
def test_the_parts_sum_to_the_score(seed: int, n_query: int, n_target: int, is_rooted: bool) -> None:
    rng = np.random.default_rng(seed)
    scoring = Scoring(chunk_weight=0.8, root=0.5 if is_rooted else 1.0)
    similarities = rng.uniform(-0.5, 1, (n_query, n_target)).astype(np.float32)
    theta = rng.uniform(0, 1, n_query).astype(np.float32)
    limits = limits_of(theta.tolist(), [1 / n_query] * n_query)
    given = scored(matches(similarities), limits, scoring)
    (breakdown,) = break_down([NOTHING], [spans_of(n_target)], [NO_KINDS], given)
    expected = combine(given.components, given.query.weights, scoring.root)[0]
    assert breakdown.score == pytest.approx(expected, abs=1e-9)
    assert sum(breakdown.components.values()) == pytest.approx(expected, abs=1e-9)


def test_each_part_goes_to_the_pair_of_its_best_match() -> None:
    similarities = np.array([[0.1, 0.2, 0.3, 0.9], [0.8, 0.1, 0.1, 0.1], [0.7, 0.6, 0.5, 0.4]], np.float32)
    limits = limits_of([0.5, 0.5, 0.8], [0.5, 0.3, 0.2])
    pairs = breakdown_of(similarities, limits).pairs
    assert [(pair.query_section, pair.target_section) for pair in pairs] == [(0, 1), (0, 0)]
    assert [(part.query, part.target) for pair in pairs for part in pair.parts] == [
        (Span(0, 8), Span(15, 19)),
        (Span(10, 18), Span(0, 4)),
    ]
    np.testing.assert_allclose([pair.contribution for pair in pairs], [0.5 * 0.8**2, 0.3 * 0.6**2], rtol=1e-6)


def test_a_part_shows_its_numbers_and_an_index_without_words_has_no_terms() -> None:
    part = breakdown_of(np.array([[0.75]], np.float32), limits_of([0.5], [0.75])).pairs[0].parts[0]
    assert (part.similarity, part.threshold, part.weight, part.contribution) == (0.75, 0.5, 0.75, 0.75 * 0.25)
    assert part.opening == 0.5
    limits = limits_of([0.5], [1])
    assert breakdown_of(np.array([[0.75]], np.float32), replace(limits)).terms == ()


def test_parts_and_pairs_come_strongest_first() -> None:
    similarities = np.array([[0.6, 0, 0, 0], [0.9, 0, 0, 0], [0, 0, 0, 0.95], [0.7, 0, 0, 0]], np.float32)
    pairs = breakdown_of(similarities, limits_of([0] * 4, [0.2] * 4)).pairs
    assert [(pair.query_section, pair.target_section) for pair in pairs] == [(0, 0), (1, 1), (1, 0)]
    assert [part.similarity for part in pairs[0].parts] == [np.float32(0.9), np.float32(0.6)]


def test_breakdowns_of_several_targets_equal_those_of_each_alone() -> None:
    rng = np.random.default_rng(0)
    tables = [rng.uniform(-0.5, 1, (5, n_chunks)).astype(np.float32) for n_chunks in (1, 4, 9)]
    limits = limits_of(rng.uniform(0, 0.5, 5).tolist(), [0.2] * 5)
    alone = [breakdown_of(table, limits) for table in tables]
    best = scored(reduce(Matches.beside, [matches(table) for table in tables]), limits)
    spans = [spans_of(table.shape[1]) for table in tables]
    together = break_down([NOTHING] * 3, spans, [NO_KINDS] * 3, best)
    for one, other in zip(together, alone, strict=True):
        assert [(pair.query_section, pair.target_section) for pair in one.pairs] == [
            (pair.query_section, pair.target_section) for pair in other.pairs
        ]
        assert one.score == pytest.approx(other.score, abs=1e-12)


QUERY = Document(
    "q", "q", "red apples grow\n\nred apples fall in the autumn rain", (Section("", (), 0, 17), Section("", (), 17, 51))
)
TARGET = Document(
    "t",
    "t",
    "apples of autumn\n\nRed apples, red apples\n\nrain falls",
    (Section("", (), 0, 18), Section("", (), 18, 42), Section("", (), 42, 52)),
)


TITLED = replace(TARGET, title="Apples of Autumn")  # the first lines of its text


def by_words(root: float = 1.0, target: Document = TARGET) -> Breakdown:
    scoring = Scoring(chunk_weight=0, word_weight=1, pair_weight=1, root=root)
    segmenter = WordSegmenter("english")
    mine, theirs = (count_documents(segmenter, [document]) for document in (QUERY, target))
    statistics = collect([mine, theirs])
    words, pairs = query_terms(mine.words, statistics.words), query_terms(mine.pairs, statistics.pairs)
    zero = np.zeros(1)
    components = Components(zero, scores(words, theirs.words), scores(pairs, theirs.pairs))
    query = replace(
        query_of(limits_of([], []), scoring.weights()), words=words, pairs=pairs, text=QueryText(QUERY, "english")
    )
    given = Scored(query, no_matches(0, 1), components, scoring)
    return break_down([target], [np.zeros((0, 4), np.int32)], [NO_KINDS], given)[0]


@pytest.mark.parametrize("root", [1.0, 0.5])
def test_terms_and_section_pairs_both_sum_to_the_words_of_the_score(root: float) -> None:
    breakdown = by_words(root)
    total = breakdown.components["words"] + breakdown.components["pairs"]
    assert total > 0
    assert sum(part.contribution for part in breakdown.terms) == pytest.approx(total, abs=1e-12)
    assert sum(pair.words for pair in breakdown.pairs) == pytest.approx(total, abs=1e-12)
    for pair in breakdown.pairs:
        assert sum(part.contribution for part in pair.terms) == pytest.approx(pair.words, abs=1e-12)


def test_a_term_is_divided_among_sections_by_its_occurrences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.scoring.breakdown.Mixture", partial(Mixture, rounds=0))
    breakdown = by_words()
    apples = {
        (pair.query_section, pair.target_section): part.contribution
        for pair in breakdown.pairs
        for part in pair.terms
        if part.term == "apples"
    }
    total = sum(apples.values())
    # Once in each of two sections of the query; once and twice in the target.
    expected = {(0, 0): 1 / 6, (0, 1): 2 / 6, (1, 0): 1 / 6, (1, 1): 2 / 6}
    assert {key: value / total for key, value in apples.items()} == pytest.approx(expected)


def test_a_title_divides_a_term_among_sections_by_its_count_in_the_title_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.scoring.breakdown.Mixture", partial(Mixture, rounds=0))
    breakdown = by_words(target=TITLED)
    apples = [
        (pair.target_section, part.contribution)
        for pair in breakdown.pairs
        for part in pair.terms
        if part.term == "apples"
    ]
    total = sum(contribution for _, contribution in apples)
    by_section = [sum(value for at, value in apples if at == section) for section in (0, 1)]
    # 8 words, 2 of them in the title: each of the 2 counts round(0.15 * 8 / 2) = 1 more.
    assert [value / total for value in by_section] == pytest.approx([2 / 4, 2 / 4])
    assert sum(pair.words for pair in breakdown.pairs) == pytest.approx(breakdown.score, abs=1e-12)


def test_terms_are_written_as_in_the_target() -> None:
    terms = {part.term for part in by_words().terms}
    assert terms == {"apples", "Red", "autumn", "rain", "falls", "Red apples"}
