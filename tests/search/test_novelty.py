"""Novelty of sections: the share that the best document does not contain, by a search with the section alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import longmatch
from engine.errors import QueryError
from engine.index import Index
from engine.result import Result, SectionNovelty, Status
from engine.search.request import Mode, Request
from engine.text.document import Document
from engine.text.segmentation import Section
from tests.fakes import FakeEncoder, make_corpus, make_document
from tests.search.test_on_demand import few_first_vectors
from tests.strict_schema import check
from tests.text.test_section_kinds import BODY, CITED

CORPUS = make_corpus(40)
NEW = "keel mast harbour wind sail rope anchor tide " * 3


def taken(doc_id: str) -> str:
    """The first section of a document of the corpus, without its heading."""
    document = next(one for one in CORPUS if one.doc_id == doc_id)
    section = document.sections[0]
    return document.text[section.start : section.stop].partition("\n")[2].strip()


NOVELTY = Request(mode=Mode.NOVELTY)
DRAFT = make_document("draft", [("ours", NEW), ("from 11", taken("doc011")), ("from 24", taken("doc024"))])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("novelty") / "x.lm"
    longmatch.build(made, CORPUS, encode="none", progress=False).close()
    return made


@pytest.fixture
def words(folder: Path) -> Iterator[Index]:
    with Index.open(folder) as opened:
        yield opened


def sections_of(result: Result) -> tuple[SectionNovelty, ...]:
    assert result.sections is not None and [one.hit for one in result.sections if one.hit] == list(result)
    return result.sections


def best_of(result: Result) -> list[tuple[str, str | None]]:
    return [(one.heading, None if one.hit is None else one.hit.doc_id) for one in sections_of(result)]


def test_planted_and_missing_sections_are_named(words: Index) -> None:
    found = words.search(DRAFT, NOVELTY)
    assert best_of(found) == [("ours", None), ("from 24", "doc024"), ("from 11", "doc011")]
    assert [one.novelty == 1 for one in sections_of(found)] == [True, False, False]
    assert max(one.novelty or 1 for one in sections_of(found)[1:]) < 0.15
    assert found.status is Status.CERTIFIED and found.n_searched == 40


@pytest.mark.parametrize("has_vectors", [False, True])
def test_each_section_is_searched_as_a_query_of_its_own(words: Index, index: Index, has_vectors: bool) -> None:
    opened, query = (index, make_corpus(61)[60]) if has_vectors else (words, DRAFT)
    for one in sections_of(opened.search(query, NOVELTY)):
        section = query.sections[one.section]
        text = query.text[section.start : section.stop]
        alone = Document("alone", query.title, text, (Section(section.heading, section.path, 0, len(text)),))
        (best,) = opened.search(alone, Request(k=1, mode="containment", exact=True)) or (None,)
        assert (one.hit and one.hit.doc_id) == (best and best.doc_id)
        if one.hit is not None and best is not None:
            assert one.hit.score == pytest.approx(best.score, abs=1e-4)
            assert one.novelty == 1 - one.hit.score


def test_parts_are_of_the_section_and_sum_to_what_is_not_novel(index: Index) -> None:
    found = index.search("doc004", NOVELTY)
    values = check(found.to_dict())
    shown = [one["novelty"] for one in values["sections"]]
    assert shown == sorted((one.novelty or 0.0 for one in sections_of(found)), reverse=True)
    for one in sections_of(found):
        assert one.hit is not None and one.novelty is not None
        assert {pair.query_section for pair in one.hit.pairs} == {one.section}
        assert one.hit.breakdown.score == pytest.approx(1 - one.novelty, abs=1e-5)
        assert one.hit.doc_id != "doc004"
        for part in (part for pair in one.hit.pairs for part in pair.parts):
            assert one.span.start <= part.query.start < part.query.stop <= one.span.stop
        assert one.hit.snippets(1)[0].query_section == one.heading


def test_many_sections_are_searched_in_several_passes(words: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    import engine.search.searcher as searcher_module

    at_once = words.search(DRAFT, NOVELTY).to_dict()
    monkeypatch.setattr(searcher_module, "PASS_SCORES", 1)
    one_by_one = words.search(DRAFT, NOVELTY).to_dict()
    assert one_by_one["sections"] == at_once["sections"]


def test_a_section_without_words_is_last_and_has_no_novelty(words: Index) -> None:
    text = DRAFT.text + "\n\n--- ---\n"
    draft = replace(DRAFT, text=text, sections=(*DRAFT.sections, Section("", (), len(DRAFT.text), len(text))))
    found = words.search(draft, NOVELTY)
    last = sections_of(found)[-1]
    assert (last.section, last.novelty, last.hit) == (3, None, None)
    assert "nothing to compare" in str(found) and "nothing to compare" in repr(last)
    check(found.to_dict())


def test_filters_and_kinds_leave_documents_and_sections_out(words: Index) -> None:
    found = words.search(DRAFT, Request.of(mode="novelty", where="family = 'odd'", without="doc011"))
    assert "doc011" not in {name for _, name in best_of(found)} and found.n_searched == 19
    paper = make_document("paper", [("1 Pumps", BODY), ("References", CITED)])
    request = Request.of(mode="novelty", skip=["references"])
    assert [one.heading for one in sections_of(words.search(paper, request))] == ["1 Pumps"]
    with pytest.raises(QueryError, match="no document 'nothing'"):
        words.search(DRAFT, Request.of(mode="novelty", without="nothing"))


@pytest.mark.slow
def test_documents_without_vectors_make_an_estimate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few_first_vectors(monkeypatch)
    longmatch.build(tmp_path / "x.lm", CORPUS, encoder=FakeEncoder(), encode="later", progress=False).close()
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as opened:
        found = opened.search(DRAFT, Request.of(mode="novelty", candidates=3))
        assert found.encoding is not None and found.encoding.n_encoded == 3
        assert found.status is not Status.CERTIFIED
        assert best_of(found)[1:] == [("from 24", "doc024"), ("from 11", "doc011")]


def test_the_table_names_the_best_document_and_its_passage(words: Index) -> None:
    text = str(words.search(DRAFT, NOVELTY))
    assert "3 sections, most novel first" in text and "  1  1.0000  ours" in text
    assert "no document shares anything with it" in text and "is in Title 24  doc024" in text
    assert "from 24 -> part one" in text
