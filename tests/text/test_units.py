"""Documents cut into sentences and claims: no character is lost."""

from __future__ import annotations

import pytest

from engine.errors import QueryError
from engine.text.document import Document
from engine.text.spans import Section
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
