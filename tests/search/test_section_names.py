"""Names of a section: its heading, kinds from the metadata, and kinds of usual headings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.comparison import compare_alone
from engine.readers.jsonl import read
from engine.search.request import Request
from engine.search.section_names import names_of_sections
from engine.search.section_weights import section_weights
from engine.text.document import Document
from tests.fakes import FakeEncoder, make_document
from tests.text.test_section_kinds import BODY, CITED, document

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
