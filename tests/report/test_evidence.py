"""Marks that overlap become runs that do not, and no character is lost."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.report.page import Mark, Run, excerpts, marked_runs
from engine.text.segmentation import Span

TEXT = "The old fox crosses the wide river."


def test_passages_that_overlap_share_a_run() -> None:
    marks = [Mark(Span(4, 19), 1), Mark(Span(12, 28), 2)]
    assert marked_runs(TEXT, Span(0, 35), marks) == [
        Run((), (("The ", False),)),
        Run((1,), (("old fox ", False),)),
        Run((1, 2), (("crosses", False),)),
        Run((2,), ((" the wide", False),)),
        Run((), ((" river.", False),)),
    ]


_SPANS = st.tuples(st.integers(0, 35), st.integers(0, 35)).map(lambda ends: Span(min(ends), max(ends)))
_MARKS = st.lists(st.builds(Mark, _SPANS, st.integers(1, 3), st.booleans()), max_size=8)


@given(_SPANS, _MARKS)
def test_runs_join_to_the_text_and_know_their_passages(span: Span, marks: list[Mark]) -> None:
    runs = marked_runs(TEXT, span, marks)
    assert "".join(text for run in runs for text, _ in run.pieces) == TEXT[span.start : span.stop]
    assert all(one.matches != other.matches for one, other in pairwise(runs))
    at = span.start
    for run in runs:
        for text, is_word in run.pieces:
            for place in range(at, at + len(text)):
                over = [mark for mark in marks if mark.span.start <= place < mark.span.stop]
                assert is_word == any(mark.is_word for mark in over)
                assert run.matches == tuple(sorted({mark.match for mark in over if not mark.is_word}))
            at += len(text)


def test_excerpts_stay_in_the_section_and_join_where_they_meet() -> None:
    focuses = [Span(60, 70), Span(12, 20), Span(22, 30)]
    assert excerpts(Span(10, 75), focuses, 5) == [Span(10, 35), Span(55, 75)]
