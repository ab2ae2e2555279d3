from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.sections.finding import NOT_NAMED, Asker, judge
from benchmarks.sections.hosts import Adoption
from benchmarks.sections.overlap import Overlap
from benchmarks.sections.planting import Form, Passage, Planted, Position, plant
from benchmarks.sections.subcorpus import index_documents
from engine.document import Document, Span
from engine.index import Index
from engine.scoring.breakdown import Breakdown, ChunkPart, SectionPair
from tests.fakes import FakeEncoder, make_document


def pair(query_section: int, target_section: int, target: Span) -> SectionPair:
    return SectionPair(query_section, target_section, 0.2, (ChunkPart(Span(0, 9), target, 0.9, 0.5, 0.3, 0.2),))


def breakdown(*pairs: SectionPair) -> Breakdown:
    return Breakdown(pairs, None, (), {})


def test_the_first_pair_is_held_against_what_was_planted() -> None:
    planted = Planted(make_document("host", "text"), Span(100, 200), 2)
    named = judge(breakdown(pair(1, 2, Span(150, 250)), pair(0, 0, Span(0, 9))), 1, planted)
    assert (named.is_first, named.spans) == (True, Overlap(1 / 3, 0.5, 0.5))
    assert not judge(breakdown(pair(1, 0, Span(0, 9)), pair(1, 2, Span(100, 200))), 1, planted).is_first
    assert not judge(breakdown(pair(0, 2, Span(100, 200))), 1, planted).is_first
    assert judge(breakdown(), 1, planted) == NOT_NAMED
    by_words = judge(breakdown(SectionPair(1, 2, 0.2, (), 0.2)), 1, planted)
    assert (by_words.is_first, by_words.spans) == (True, Overlap(0, 0, 0))


def test_a_copy_is_found_and_named(corpus: list[Document], tmp_path: Path) -> None:
    words = " ".join(f"rare{number}" for number in range(24))
    source = make_document("source", [("part one", "common1 common2 common3"), ("part two", words)])
    adoption = Adoption("source", 1, Passage("part two", words), "doc012", "short", 0)
    index_documents(tmp_path / "a.lm", [*corpus, source], FakeEncoder())
    with Index.open(tmp_path / "a.lm") as index:
        before = Asker(index).ranks(adoption)
    planted = plant(corpus[12], adoption.passage, Position.MIDDLE, Form.SECTION)
    index_documents(tmp_path / "a.lm", [planted.document], FakeEncoder())
    with Index.open(tmp_path / "a.lm") as index:
        after, named = Asker(index).ranks(adoption), Asker(index).named(adoption, planted)
    assert before.evidence > 1 and after.evidence == 1 and after.document < before.document
    assert named.is_first and named.spans.iou == pytest.approx(1, abs=0.02)  # spaces between chunks


def test_a_host_without_a_score_has_the_last_place(index: Index) -> None:
    adoption = Adoption("doc007", 1, Passage("", "text"), "absent", "short", 0)
    assert Asker(index).ranks(adoption).evidence == 59
    assert Asker(index).named(adoption, Planted(index.document("doc001"), Span(0, 9), 0)) == NOT_NAMED
