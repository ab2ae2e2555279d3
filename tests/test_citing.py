"""Documents that name a document are found by its identifiers, in the usual spellings, with whole sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from engine.references.extraction import own_references, references
from engine.text.document import Document
from indexer.building.builder import build
from indexer.cli import main
from longmatch import Index
from tests.fakes import make_document


def named(doc_id: str, title: str = "", **metadata: str | int | list[str]) -> Document:
    return Document(doc_id, title, "text", (), metadata)


@pytest.mark.parametrize(
    ("document", "spellings", "others"),
    [
        (
            named("rfc2119.txt"),
            ["RFC 2119.", "[RFC2119]", "rfc-2119", "RFC\n2119"],
            ["RFC 21190", "RFC 2119.5", "XRFC2119"],
        ),
        (named("x", "PEP 484 -- Type Hints"), ["PEP 0484 says", "pep-0484"], ["PEP 4840", "step 484"]),
        (named("x", family="eip", number=20), ["ERC-20", "EIP-20", "EIP 20,"], ["EIP-200", "20"]),
        (
            named("x", doi="https://doi.org/10.1000/xyz.12"),
            ["doi:10.1000/XYZ.12.", "(10.1000/xyz.12)"],
            ["10.1000/xyz.123", "10.1000/xyz.12/3"],
        ),
        (
            named("1706.03762v5.pdf"),
            ["arXiv:1706.03762v2", "arxiv.org/abs/1706.03762", "10.48550/arXiv.1706.03762."],
            ["1706.03762", "arXiv:1706.037621"],
        ),
        (
            named("US-10000000-B2.xml"),
            ["U.S. Pat. No. 10,000,000", "US10000000B2", "US Patent 10,000,000 B2"],
            ["10,000,000 people", "US 10,000,0001"],
        ),
        (
            named("x", citation=["347 U.S. 483 (1954)", "74 S. Ct. 686"]),
            ["347 U. S. 483", "347 US 483, 495", "74 S.Ct. 686"],
            ["347 U.S. 4830", "1347 U.S. 483"],
        ),
    ],
    ids=lambda value: value.doc_id if isinstance(value, Document) else None,
)
def test_an_identifier_is_found_in_its_spellings(
    document: Document, spellings: Sequence[str], others: Sequence[str]
) -> None:
    own = own_references(document)
    cites = {
        text: not own.keys().isdisjoint(reference.name for reference in references(text))
        for text in (*spellings, *others)
    }
    assert cites == dict.fromkeys(spellings, True) | dict.fromkeys(others, False)


def test_citing_documents_come_with_their_sentences(tmp_path: Path) -> None:
    documents = [
        make_document("rfc2119.txt", [("Terms", "Must and should, as in RFC 2119 itself, are key words.")]),
        make_document("a", [("One", "Nothing."), ("Two", "A first line. Read [RFC2119] for\nthe words. The end.")]),
        make_document("b", [("One", "See RFC 2119. It is short. Then RFC 2119 again, and RFC 2119 twice.")]),
        make_document("c", [("One", "RFC 21190 is another one.")]),
    ]
    build(tmp_path / "x.lm", documents, encode="none")
    shown = CliRunner().invoke(main, ["show", str(tmp_path / "x.lm"), "rfc2119.txt", "--cited-by", "--json"])
    found = {citing["id"]: citing["citations"] for citing in json.loads(shown.stdout)}
    assert list(found) == ["b", "a"]
    assert [citation["text"] for citation in found["b"]] == [
        "See RFC 2119.",
        "Then RFC 2119 again, and RFC 2119 twice.",
    ]
    (citation,) = found["a"]
    text = next(document.text for document in documents if document.doc_id == "a")
    assert (citation["heading"], citation["name"]) == ("Two", "RFC2119")
    assert text[citation["start"] : citation["end"]] == citation["text"] == "Read [RFC2119] for\nthe words."
    listed = CliRunner().invoke(main, ["show", str(tmp_path / "x.lm"), "rfc2119.txt", "--cited-by"]).stdout
    assert "    Two: Read [RFC2119] for the words." in listed.splitlines()
    with Index.open(tmp_path / "x.lm") as index:
        assert [citing.document.doc_id for citing in index.cited_by("rfc2119.txt")] == ["b", "a"]
