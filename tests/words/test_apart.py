"""Counts without some kinds of sections equal counting the remaining text, occurrence by occurrence."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.segmentation import Span
from engine.words.apart import TITLE_SHARE, Sections
from engine.words.counts import KeptTable, PackedWords, TermTable, WordTables, counted, join, kept_table, pack, unpacked
from engine.words.likelihood import QueryTerms, matches, scores, scores_of_many
from engine.words.segmenter import segmenter_of

WORDS = ["bees", "roads", "pumps", "valves", "honey", "the", "x"]
JOINTS = [" ", "\n\n", ". ", " - ", ""]

pieces = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(JOINTS)), max_size=12)
texts = st.lists(st.tuples(pieces, st.sampled_from([0, 0, 1, 2, 4, 8])), min_size=1, max_size=6)
Text = list[tuple[list[tuple[str, str]], int]]


def written(parts: Text) -> tuple[str, Sections]:
    """A text with its sections and the bits of their kinds; a word may continue in the next section."""
    text, starts = "", []
    for words, _ in parts:
        starts.append(len(text))
        text += "".join(map("".join, words))
    return text, Sections(np.array(starts, np.int64), np.array([bits for _, bits in parts], np.uint8))


def touches(span: list[int], sections: Sections, n_chars: int, skip: int) -> bool:
    """Whether a span has a character in a section of a kind that is skipped, or encloses one, which may be empty."""
    stops = [*sections.starts[1:].tolist(), n_chars]
    both = zip(sections.starts.tolist(), stops, sections.bits.tolist(), strict=True)
    return any(bits & skip and start < span[1] and span[0] < stop for start, stop, bits in both)


def remaining_by_hand(
    terms: list[int], spans: list[list[int]], title: Span | None, sections: Sections, n_chars: int, skip: int
) -> tuple[Counter[int], int]:
    """The counts of the remaining terms, and |d|."""
    left = [(term, span) for term, span in zip(terms, spans, strict=True) if not touches(span, sections, n_chars, skip)]
    counts = Counter(term for term, _ in left)
    if title is not None:
        inside = [term for term, (start, stop) in left if start >= title.start and stop <= title.stop]
        for term in inside:
            counts[term] += round(TITLE_SHARE * len(left) / len(inside))
    return counts, len(left)


def kept(words: WordTables | PackedWords, kind: str, skip: int) -> KeptTable:
    return kept_table(getattr(words, kind), getattr(words.apart.counts, kind), words.apart, skip)


def ones(tables: WordTables, kind: str) -> QueryTerms:
    """All terms of a table as a query."""
    table: TermTable = getattr(tables, kind)
    terms = np.unique(table.terms)
    return QueryTerms(terms, np.ones(len(terms)) / max(1, len(terms)), np.full(len(terms), 2.0))


@pytest.mark.slow
@given(
    documents=st.lists(st.tuples(texts, st.integers(0, 30), st.integers(1, 40)), min_size=1, max_size=4),
    skip=st.integers(1, 15),
    is_packed=st.booleans(),
)
def test_counts_without_skipped_sections_equal_those_by_hand(
    documents: list[tuple[Text, int, int]], skip: int, is_packed: bool
) -> None:
    made = [written(parts) for parts, _, _ in documents]
    titles = [Span(start, start + length) if start else None for _, start, length in documents]
    found = [segmenter_of("english").segment(text) for text, _ in made]
    tables = counted(found, titles, [sections for _, sections in made])
    words: WordTables | PackedWords = pack(tables) if is_packed else tables
    for kind, terms_of, spans_of in (("words", "words", "word_spans"), ("pairs", "pairs", "pair_spans")):
        query, table = ones(tables, kind), kept(words, kind, skip)
        (shared, shares), lengths = matches(query, table), table.lengths()
        for row, (one, title, (text, sections)) in enumerate(zip(found, titles, made, strict=True)):
            terms, spans = getattr(one, terms_of).tolist(), getattr(one, spans_of).tolist()
            counts, length = remaining_by_hand(terms, spans, title, sections, len(text), skip)
            assert lengths[row] == length
            own = shared.documents == row
            expected = {
                term: np.log1p(2.0 * count / length) / len(query.terms) for term, count in counts.items() if count
            }
            assert dict(zip(query.terms[shared.terms[own]].tolist(), shares[own].tolist(), strict=True)) == (
                pytest.approx(expected, abs=1e-12)
            )


@given(parts=texts, skip=st.integers(1, 15))
def test_kept_terms_are_those_that_are_counted(parts: Text, skip: int) -> None:
    text, sections = written(parts)
    found = segmenter_of("english").segment(text)
    left, tables = counted([sections.kept(found, skip)]), counted([found], None, [sections])
    for kind in ("words", "pairs"):
        query = ones(tables, kind)
        np.testing.assert_array_equal(scores(query, kept(tables, kind, skip)), scores(query, getattr(left, kind)))


def three_documents() -> WordTables:
    texts = [
        [([("bees", " "), ("roads", ". ")], 0), ([("pumps", " ")], 1), ([("valves", " "), ("honey", " ")], 4)],
        [([("honey", " ")], 0)],
        [([("roads", " "), ("bees", " ")], 2), ([("pumps", " ")], 0), ([("pumps", "\n\n")], 1)],
    ]
    made = [written(one) for one in texts]
    titles = [Span(0, 4), None, Span(0, 4)]
    return counted(
        [segmenter_of("english").segment(text) for text, _ in made], titles, [sections for _, sections in made]
    )


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("order", [[2, 0], [1], [], [0, 1, 2]])
def test_counts_by_kind_of_section_follow_their_documents(is_packed: bool, order: list[int]) -> None:
    tables = three_documents()
    words: WordTables | PackedWords = pack(tables) if is_packed else tables
    query = ones(tables, "words")
    np.testing.assert_array_equal(
        scores(query, kept(words.of(np.array(order, np.int64)), "words", 1)),
        scores(query, kept(tables, "words", 1))[order],
    )


def test_joined_tables_have_counts_by_kind_of_section_if_all_of_them_do() -> None:
    tables = three_documents()
    both = join([tables, tables.of(np.array([2]))])
    query = ones(tables, "pairs")
    np.testing.assert_array_equal(
        scores(query, kept(both, "pairs", 6)), scores(query, kept(tables, "pairs", 6))[[0, 1, 2, 2]]
    )
    assert join([tables, WordTables(tables.words, tables.pairs)]).apart is None


def test_packing_keeps_counts_by_kind_of_section_and_many_queries_score_like_one() -> None:
    tables = three_documents()
    again = unpacked(pack(tables)).apart
    assert tables.apart is not None and again is not None
    for name in ("kinds", "section_starts", "groups", "group_starts"):
        np.testing.assert_array_equal(getattr(again, name), getattr(tables.apart, name))
    np.testing.assert_array_equal(again.counts.words.terms, tables.apart.counts.words.terms)
    np.testing.assert_array_equal(again.counts.pairs.counts, tables.apart.counts.pairs.counts)
    query = ones(tables, "words")
    for row in scores_of_many([query] * 9, kept(tables, "words", 3)):
        np.testing.assert_array_equal(row, scores(query, kept(tables, "words", 3)))
