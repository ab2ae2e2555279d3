"""The sections that the name of a weight selects, and names and weights that are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.comparison import compare_alone
from engine.errors import QueryError
from engine.readers.jsonl import read
from engine.search.query import kinds_without_weight, names_of_sections, section_weights
from engine.search.request import Request, parse_weights
from engine.text.document import Document
from engine.text.section_kinds import SectionKind
from engine.text.segmentation import Section
from tests.fakes import FakeEncoder, make_document
from tests.text.test_section_kinds import BODY, CITED, document

PAPER = document(("1 Pumps", BODY), ("2.1 Valves, new", BODY), ("References", CITED))


def test_names_are_headings_kinds_and_numbers() -> None:
    assert section_weights(PAPER, {"pumps": 3}) == (3, 1, 1)
    assert section_weights(PAPER, {"2.1 valves, NEW": 0.5}) == (1, 0.5, 1)
    assert section_weights(PAPER, {"references": 0, "body": 2}) == (2, 2, 0)
    assert section_weights(PAPER, {"3": 7}) == (1, 1, 7)


def test_the_most_specific_name_counts() -> None:
    assert section_weights(PAPER, {"body": 2, "pumps": 3, "1": 4}) == (4, 2, 1)
    assert section_weights(PAPER, {"body": 2, "pumps": 3}) == (3, 2, 1)


def test_a_heading_above_names_its_sections() -> None:
    text = "Claims A trap. Claim 1 A door."
    sections = (Section("Claims", ("Claims",), 0, 15), Section("Claim 1", ("Claims", "Claim 1"), 15, 30))
    patent = Document("p", "p", text, sections)
    assert section_weights(patent, {"claims": 3}) == (3, 3)
    assert section_weights(patent, {"claims": 3, "claim 1": 5}) == (3, 5)


def test_a_kind_that_the_query_lacks_is_no_error() -> None:
    assert section_weights(PAPER, {"appendix": 0, "claims": 3}) == ()


def test_kinds_of_weight_0_are_found_by_their_own_names() -> None:
    weights = {"7 References": 0, "appendix": 0.5, "body": 0, "pumps": 0, "Boilerplate": 0}
    assert kinds_without_weight(weights) == {SectionKind.REFERENCES, SectionKind.BOILERPLATE}


def test_weights_of_one_count_as_none() -> None:
    assert section_weights(PAPER, {"pumps": 1, "references": 1.0}) == ()


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


def test_weights_are_read_from_a_text() -> None:
    assert parse_weights("claims=3,abstract=0") == {"claims": 3.0, "abstract": 0.0}
    assert parse_weights(" Valves, new = .5 , 2=1e1") == {"Valves, new": 0.5, "2": 10.0}


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


PATENT = document(("Background", BODY), ("What we protect", BODY), ("References", CITED))
WITH_KINDS = replace(PATENT, metadata={"kind.claims": ["What we protect"], "kind.old": "2. BACKGROUND", "kind": "B1"})


def test_the_metadata_gives_kinds_to_headings() -> None:
    assert names_of_sections(WITH_KINDS) == [
        ("1", "background", "old", "body"),
        ("2", "what we protect", "claims", "body"),
        ("3", "references"),
    ]
    assert section_weights(WITH_KINDS, {"claims": 3, "old": 0.5}) == (0.5, 3, 1)


def test_a_kind_of_the_metadata_is_less_specific_than_a_heading() -> None:
    assert section_weights(WITH_KINDS, {"claims": 3, "what we protect": 2, "body": 7}) == (7, 2, 1)


def test_a_kind_of_the_metadata_counts_before_that_of_the_heading() -> None:
    own = replace(document(("Abstract", BODY), ("Methods", BODY)), metadata={"kind.front": ["Abstract"]})
    assert section_weights(own, {"front": 2, "body": 3}) == (2, 3)
    assert names_of_sections(own)[0] == ("1", "abstract", "front", "body")


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("What is claimed is:", "claims"),
        ("Patentansprüche", "claims"),
        ("ABSTRACT OF THE DISCLOSURE", "abstract"),
        ("Detailed Description of the Invention", "description"),
        ("3 Materials and Methods", "methods"),
        ("5. Concluding remarks", "conclusions"),
    ],
)
def test_usual_headings_name_a_kind(heading: str, kind: str) -> None:
    assert section_weights(document((heading, BODY), ("Pumps", BODY)), {kind: 3}) == (3, 1)


def test_sections_of_json_have_kinds() -> None:
    text = """{"title": "A trap", "sections": [
        {"heading": "What we  protect", "text": "A trap with a door.", "kind": "claims"},
        {"heading": "More of that", "text": "A trap with a spring.", "kind": "claims"},
        {"text": "A mouse.", "kind": "claims"}, {"heading": "Rest", "text": "A cat.", "kind": 7}]}"""
    assert read(text.encode(), "a", "a.json").metadata == {"kind.claims": ["What we protect", "More of that"]}


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
