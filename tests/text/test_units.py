"""Documents cut into sentences and claims: no character is lost."""

from __future__ import annotations

import pytest

from engine.errors import QueryError
from engine.text.document import Document
from engine.text.segmentation import Section
from engine.text.units import Unit, divide_by
from tests.fakes import make_document

CLAIMS = (
    "1. A fox trap with a door.\n2. The trap of claim 1,\n"
    "5. wide\nas a river.\n3) The trap of claim 2, where the door is red.\n"
)


def patent() -> Document:
    body, head = "The invention catches foxes at night.\n", "What is claimed is:\n"
    text = body + head + CLAIMS
    sections = (
        Section("Description", ("Description",), 0, len(body)),
        Section("What is claimed is:", ("What is claimed is:",), len(body), len(text)),
    )
    return Document("p", "Trap", text, sections)


def texts(document: Document) -> list[str]:
    return [document.text[section.start : section.stop] for section in document.sections]


def test_claims_are_sections_and_the_only_rows() -> None:
    found = divide_by(patent(), Unit.CLAIM)
    assert texts(found.document) == [
        "The invention catches foxes at night.\n",
        "What is claimed is:\n",
        "1. A fox trap with a door.\n",
        "2. The trap of claim 1,\n5. wide\nas a river.\n",
        "3) The trap of claim 2, where the door is red.\n",
    ]
    assert [found.document.sections[row].heading for row in found.rows] == ["Claim 1", "Claim 2", "Claim 3"]
    assert found.rows == (2, 3, 4)


def test_a_document_without_claims_is_refused_with_the_next_step() -> None:
    with pytest.raises(QueryError, match=r"^d has no section of numbered claims among 1; .*--by section"):
        divide_by(make_document("d", "fox and river"), Unit.CLAIM)


def test_sentences_are_sections_and_short_ones_join_the_next() -> None:
    first, second = "Yes. The old fox crosses the wide river at night. ", "It never comes back to the house."
    document = Document("d", "d", first + second, (Section("A", ("A",), 0, len(first + second)),))
    found = divide_by(document, Unit.SENTENCE)
    assert texts(found.document) == [first, second]
    assert found.rows == (0, 1) and found.document.sections[0].path == ("A",)


def test_sections_stay_as_they_are() -> None:
    assert divide_by(patent(), Unit.SECTION).document == patent()
    assert divide_by(patent(), Unit.SECTION).rows == (0, 1)


@pytest.mark.parametrize(
    ("claim", "elements"),
    [
        ("1. A pump comprising: two seals (one red; one blue); and a drain, wherein the drain opens below.",
         ["1. A pump comprising:", "two seals (one red; one blue); and", "a drain,", "wherein the drain opens below."]),
        ("1. A pump, characterised in that it has a rotor comprising a shaft.",
         ["1. A pump, characterised in that", "it has a rotor comprising a shaft."]),
        ("1. The pump of claim 4, wherein the drain is shut; and it leaks.",
         ["1. The pump of claim 4, wherein the drain is shut; and", "it leaks."]),
        ("1. Pumpe, dadurch gekennzeichnet, dass sie leckt, wobei sie ruht.",
         ["1. Pumpe, dadurch gekennzeichnet, dass", "sie leckt,", "wobei sie ruht."]),
        ("1. A method comprising:\n\n(a) reading;\n\n(b) writing.",
         ["1. A method comprising:", "(a) reading;", "(b) writing."]),
    ],
    ids=["list", "characterised", "dependent", "german", "steps"],
)  # fmt: skip
def test_an_element_is_the_preamble_or_a_limitation(claim: str, elements: list[str]) -> None:
    found = divide_by(make_document("d", [("Claims", claim)]), Unit.ELEMENT)
    rows = [found.document.sections[row] for row in found.rows]
    assert [found.document.text[row.start : row.stop].strip() for row in rows] == elements
    assert [row.heading for row in rows] == [f"Claim 1.{number}" for number in range(1, len(elements) + 1)]
    assert "".join(texts(found.document)) == found.document.text


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1-3. (canceled)\n4. A pump.\n5 (cancelled)\n6. A drain.\n", ["Claims 1–3", "Claim 4", "Claim 5", "Claim 6"]),
        *((text, ["Claim 1", "Claim 2"]) for text in (
            "1\\. A pump.\n\n2\\. A drain.\n", "(1) A pump.\n\n(2) A drain.\n", "[1] A pump.\n\n[2] A drain.\n",
            "Claim 1 - A pump.\n\nClaim 2 - A drain.\n", "【請求項1】 A pump.\n\n【請求項2】 A drain.\n",
            "- 1. A pump.\n- 2. A drain.\n", "1. A pump.\n1. A drain.\n", "1.- A pump.\n\n2.- A drain.\n",
            "### Claim 1\n\nA pump.\n\n### Claim 2\n\nA drain.\n", "1.\nA pump.\n2.\nA drain.\n",
            "Claim 1. A pump.\n\nClaim 2. A drain.\n",
        )),
    ],
)  # fmt: skip
@pytest.mark.parametrize("heading", [
    "Claims", "Patentansprüche", "What is claimed is:", "特許請求の範囲", "CLAIMS (as amended)",
    "I claim as my invention:", "Having described the pump, what is claimed as new is:", "Claim(s)", "In the Claims",
    "Having described the pump, I claim:", "We hereby claim:", "The claims are:", "Zastrzeżenia patentowe",
    "Patentkrav", "Формула изобретения",
])  # fmt: skip
def test_claims_are_found_under_every_heading_and_in_a_short_text(text: str, names: list[str], heading: str) -> None:
    for document in (make_document("d", [(heading, text)]), Document.from_text(f"Pump\n\n{heading}\n\n{text}")):
        found = divide_by(document, Unit.CLAIM)
        assert [found.document.sections[row].heading for row in found.rows] == names


def test_a_claim_across_the_parts_of_a_long_section_is_whole() -> None:
    text = "1. A pump comprising a housing, and many more words.\n2. A drain.\n"
    middle = text.index("and many")
    sections = tuple(
        Section("Claims", ("Claims",), *edges, part=part, n_parts=2)
        for part, edges in enumerate([(0, middle), (middle, len(text))], start=1)
    )
    found = divide_by(Document("d", "d", text, sections), Unit.CLAIM)
    assert texts(found.document) == text.splitlines(keepends=True)
