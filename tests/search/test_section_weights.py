"""The sections that the name of a weight selects, and names and weights that are refused."""

from __future__ import annotations

import pytest

from engine.errors import QueryError
from engine.search.request import parse_weights
from engine.search.section_weights import kinds_without_weight, section_weights
from engine.text.document import Document
from engine.text.section_kinds import SectionKind
from engine.text.spans import Section
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
