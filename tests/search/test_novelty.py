"""Novelty of sections, and weights of the sections of a query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import longmatch
from engine.comparison import compare_alone
from engine.errors import QueryError
from engine.index import Index
from engine.readers.jsonl import read
from engine.result import Result, SectionNovelty, Status
from engine.search.query import kinds_without_weight, names_of_sections, section_weights
from engine.search.request import Mode, Request, parse_weights
from engine.text.document import Document
from engine.text.section_kinds import SectionKind
from engine.text.segmentation import Section
from tests.fakes import FakeEncoder, make_corpus, make_document
from tests.search.test_on_demand import few_first_vectors
from tests.strict_schema import check
from tests.text.test_headings import BODY, CITED, document

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


def test_planted_and_missing_sections_are_named_also_in_the_table(words: Index) -> None:
    found = words.search(DRAFT, NOVELTY)
    assert best_of(found) == [("ours", None), ("from 24", "doc024"), ("from 11", "doc011")]
    assert [one.novelty == 1 for one in sections_of(found)] == [True, False, False]
    assert max(one.novelty or 1 for one in sections_of(found)[1:]) < 0.15
    assert found.status is Status.CERTIFIED and found.n_searched == 40
    text = str(words.search(DRAFT, NOVELTY))
    assert "3 sections, most novel first" in text and "  1  1.0000  ours" in text
    assert "no document shares anything with it" in text and "is in Title 24  doc024" in text
    assert "from 24 -> part one" in text


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


PAPER = document(("1 Pumps", BODY), ("2.1 Valves, new", BODY), ("References", CITED))
PATENT = document(("Background", BODY), ("What we protect", BODY), ("References", CITED))
WITH_KINDS = replace(PATENT, metadata={"kind.claims": ["What we protect"], "kind.old": "2. BACKGROUND", "kind": "B1"})
OWN = replace(document(("Abstract", BODY), ("Methods", BODY)), metadata={"kind.front": ["Abstract"]})
NESTED = Document(
    *("p", "p", "Claims A trap. Claim 1 A door."),
    (Section("Claims", ("Claims",), 0, 15), Section("Claim 1", ("Claims", "Claim 1"), 15, 30)),
)
USUAL = {
    "What is claimed is:": "claims",
    "Patentansprüche": "claims",
    "ABSTRACT OF THE DISCLOSURE": "abstract",
    "Detailed Description of the Invention": "description",
    "3 Materials and Methods": "methods",
    "5. Concluding remarks": "conclusions",
}


@pytest.mark.parametrize(
    ("query", "weights", "expected"),
    [
        (PAPER, {"pumps": 3}, (3, 1, 1)),
        (PAPER, {"2.1 valves, NEW": 0.5}, (1, 0.5, 1)),
        (PAPER, {"references": 0, "body": 2}, (2, 2, 0)),
        (PAPER, {"3": 7}, (1, 1, 7)),
        (PAPER, {"body": 2, "pumps": 3, "1": 4}, (4, 2, 1)),  # the most specific name counts
        (PAPER, {"body": 2, "pumps": 3}, (3, 2, 1)),
        (PAPER, {"appendix": 0, "claims": 3}, ()),  # kinds that it lacks
        (PAPER, {"pumps": 1, "references": 1.0}, ()),
        (NESTED, {"claims": 3}, (3, 3)),  # a heading above names its sections
        (NESTED, {"claims": 3, "claim 1": 5}, (3, 5)),
        (WITH_KINDS, {"claims": 3, "old": 0.5}, (0.5, 3, 1)),
        (WITH_KINDS, {"claims": 3, "what we protect": 2, "body": 7}, (7, 2, 1)),
        (OWN, {"front": 2, "body": 3}, (2, 3)),  # a kind of the metadata counts before that of the heading
        *((document((heading, BODY), ("Pumps", BODY)), {kind: 3}, (3, 1)) for heading, kind in USUAL.items()),
    ],
)
def test_sections_are_named_by_numbers_headings_and_kinds(
    query: Document, weights: dict[str, float], expected: tuple[float, ...]
) -> None:
    assert section_weights(query, weights) == expected


def test_the_metadata_gives_kinds_to_headings_and_sections_of_json_too() -> None:
    assert names_of_sections(WITH_KINDS) == [
        ("1", "background", "old", "body"),
        ("2", "what we protect", "claims", "body"),
        ("3", "references"),
    ]
    assert names_of_sections(OWN)[0] == ("1", "abstract", "front", "body")
    text = """{"title": "A trap", "sections": [
        {"heading": "What we  protect", "text": "A trap with a door.", "kind": "claims"},
        {"heading": "More of that", "text": "A trap with a spring.", "kind": "claims"},
        {"text": "A mouse.", "kind": "claims"}, {"heading": "Rest", "text": "A cat.", "kind": 7}]}"""
    assert read(text.encode(), "a", "a.json").metadata == {"kind.claims": ["What we protect", "More of that"]}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"pump": 3}, "no section of .* is named 'pump'; did you mean '1 Pumps'"),
        ({"seals": 3}, r"named 'seals'; name a heading \('1 Pumps', '2.1 Valves, new', 'References'\), a kind"),
        ({"4": 3}, "a number to 3"),
        ({"pumps": -1}, "the weight of 'pumps' is -1; it must be a number from 0 to 1,000,000"),
        ({"pumps": 1e308}, "the weight of 'pumps' is 1e.308; it must be a number from 0 to 1,000,000"),
        ({"pumps": float("nan")}, "is nan"),
        ({"pumps": "3"}, "is '3'"),
        ({"pumps": True}, "is True"),
        ({"pumps": 2, "1 Pumps": 3}, "two weights name the same sections, '1 Pumps' the second time"),
        ({1: 2}, "the section 1 is no name"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(weights: dict[str, float], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        section_weights(PAPER, weights)


def test_weights_are_read_from_a_text_and_kinds_of_weight_0_found_by_their_own_names() -> None:
    assert parse_weights("claims=3,abstract=0") == {"claims": 3.0, "abstract": 0.0}
    assert parse_weights(" Valves, new = .5 , 2=1e1") == {"Valves, new": 0.5, "2": 10.0}
    weights = {"7 References": 0, "appendix": 0.5, "body": 0, "pumps": 0, "Boilerplate": 0}
    assert kinds_without_weight(weights) == {SectionKind.REFERENCES, SectionKind.BOILERPLATE}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("claims", "'claims' gives no weight; write NAME=NUMBER"),
        ("claims=3,abstract", "'abstract' gives no weight"),
        ("claims=much", "the weight of 'claims' is 'much'"),
        ("claims=", "the weight of 'claims' is ''"),
        ("claims=1,claims=2", "the section 'claims' has two weights"),
    ],
)
def test_a_text_that_is_no_list_of_weights_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse_weights(text)


def test_a_kind_of_weight_0_adds_nothing_and_the_parts_sum_to_the_score() -> None:
    made = make_document("q", [("Fox", "the quick fox jumps over the dog"), ("River", "a long river runs to the sea")])
    query = replace(made, metadata={"kind.claims": ["River"]})
    target: Document = make_document("t", "the long river runs to the sea and a fox jumps")
    found = compare_alone(query, target, FakeEncoder(), Request(weights={"claims": 0}))
    assert {pair.query_section for pair in found[0].pairs} == {0}
    for weight in (0, 0.5, 3):
        weighted = compare_alone(query, target, FakeEncoder(), Request(weights={"claims": weight}))
        assert weighted[0].breakdown.score == pytest.approx(weighted[0].score, abs=1e-5)
        by_heading = compare_alone(made, target, FakeEncoder(), Request(weights={"river": weight}))
        assert weighted[0].score == by_heading[0].score
