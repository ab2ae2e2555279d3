from __future__ import annotations

import numpy as np
import pytest

from engine.comparison import TwoDocuments
from engine.encoders.encoder import EncodedDocument
from engine.errors import QueryError
from engine.scoring.evidence import Scoring
from engine.scoring.similarity import products
from engine.search.query import Query, prepare
from engine.search.skipping import left_out_sections, query_stretches
from engine.store.precision import coarse
from engine.store.reference import Reference
from engine.text.document import Document
from engine.text.section_kinds import SectionKind, section_kinds
from engine.text.spans import Section, Span
from engine.words.counts import count_documents
from engine.words.segmenter import segmenter_of
from engine.words.statistics import collect
from tests.text.test_section_kinds import BODY, CITED, THANKS, document

PAPER = document(("1 Pumps", BODY), ("References", CITED), ("Acknowledgments", THANKS))
PUMPS, REFERENCES, _ = PAPER.sections


def test_a_query_without_such_sections_keeps_what_it_has() -> None:
    common = [Span(3, 9)]
    assert query_stretches(PAPER, np.zeros(3, bool), common, ()) == common


def test_stretches_of_a_query_do_not_overlap() -> None:
    start = REFERENCES.start
    common = [Span(3, 9), Span(start - 5, start + 4), Span(start + 20, start + 30)]
    assert query_stretches(PAPER, np.array([False, True, False]), common, ()) == [
        Span(3, 9),
        Span(start - 5, REFERENCES.stop),
    ]


def test_a_query_of_references_alone_is_refused() -> None:
    only = document(("References", CITED))
    with pytest.raises(QueryError, match=r"has no section but those to be skipped \(references\); skip fewer"):
        query_stretches(only, np.array([True]), [], ["references"])


def test_sections_are_left_out_by_kind_or_by_a_weight_of_0() -> None:
    kinds = section_kinds(PAPER)
    assert left_out_sections(kinds, {SectionKind.REFERENCES}).tolist() == [False, True, False]
    assert left_out_sections(kinds, {SectionKind.REFERENCES}, (1.0, 2.0, 0.0)).tolist() == [False, True, True]
    assert left_out_sections(kinds, ()).tolist() == [False, False, False]
    assert left_out_sections((), {SectionKind.APPENDIX}).tolist() == [False]


def test_words_are_no_neighbours_across_a_skipped_section() -> None:
    """The blanks in the place of a section would be white space between its neighbours."""
    text = "moving water "
    sections = [
        Section("", (), 0, len(text)),
        Section("References", ("References",), len(text), len(text) + len(CITED)),
    ]
    end = text + CITED
    paper = Document("a", "a", end + "upper basin", (*sections, Section("", (), len(end), len(end) + 11)))
    nothing = np.empty(0, np.uint64), coarse(np.empty((0, 0), np.float16)), np.empty(0, np.int64)
    counts = count_documents(segmenter_of("english"), [paper])
    background = TwoDocuments(Reference(0, 1, *nothing, collect([counts])), "english")
    query = Query(paper, EncodedDocument.unencoded(0), skip=frozenset([SectionKind.REFERENCES]))
    prepared = prepare(query, background, Scoring(), products)
    expected = segmenter_of("english").segment("moving water . upper basin")
    assert prepared.words is not None and prepared.pairs is not None
    assert set(prepared.words.terms.tolist()) == set(expected.words.tolist())
    assert set(prepared.pairs.terms.tolist()) == set(expected.pairs.tolist())
