from __future__ import annotations

import pytest

from engine.document import Span
from engine.errors import QueryError
from engine.search.skipping import kinds_of, query_stretches
from engine.section_kinds import SectionKind
from tests.test_section_kinds import BODY, CITED, THANKS, document

PAPER = document(("1 Pumps", BODY), ("References", CITED), ("Acknowledgments", THANKS))
PUMPS, REFERENCES, _ = PAPER.sections


def test_kinds_have_names() -> None:
    assert kinds_of(["references", "appendix"]) == {SectionKind.REFERENCES, SectionKind.APPENDIX}
    with pytest.raises(
        QueryError, match="'body' is no kind of section that can be skipped; these are: references, ack"
    ):
        kinds_of(["body"])


def test_a_query_without_such_sections_keeps_what_it_has() -> None:
    common = [Span(3, 9)]
    assert query_stretches(PAPER, {SectionKind.APPENDIX}, common) == common
    assert query_stretches(PAPER, set(), common) == common


def test_stretches_of_a_query_do_not_overlap() -> None:
    start = REFERENCES.start
    common = [Span(3, 9), Span(start - 5, start + 4), Span(start + 20, start + 30)]
    assert query_stretches(PAPER, {SectionKind.REFERENCES}, common) == [Span(3, 9), Span(start - 5, REFERENCES.stop)]


def test_a_query_of_references_alone_is_refused() -> None:
    only = document(("References", CITED))
    with pytest.raises(QueryError, match=r"has no section but those to be skipped \(references\); skip fewer"):
        query_stretches(only, {SectionKind.REFERENCES}, [])
