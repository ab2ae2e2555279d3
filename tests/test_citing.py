"""Documents that name a document are found by its identifiers, in the usual spellings, with whole sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from engine.errors import QueryError, limited
from engine.references.extraction import own_references, references
from engine.store import snapshot
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.rewriting import partition
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


OPINIONS = {
    "brown": "Segregation of schools is unequal. We overrule Plessy v. Ferguson, 163 U.S. 537 (1896).",
    "cooper": "The holding in Brown v. Board of Education, 347 U. S. 483, binds the schools of this state.",
    "bolling": "In Brown v. Board, 347 US 483, 495 (1954), the schools of states were in question.",
    "both": "Plessy, 163 U.S. 537, 544, was the law of schools until Brown, 347 U.S. 483.",
    "page": "The schools of the county kept 483 desks and paid 347 dollars for them under 42 U.S.C. § 1983.",
}


@pytest.mark.parametrize("n_partitions", [1, 2])
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("cites '347 U.S. 483'", ["bolling", "both", "cooper"]),
        ("cites '347 US 483' and not cites \"163 U.S. 537\"", ["bolling", "cooper"]),
        ("(cites '42 USC 1983' or cites '163 U.S. 537') and doc_id != 'brown'", ["both", "page"]),
        ({"$cites": "347 U.S. 483", "year": {">": 1956}}, ["both"]),
        ("cites '1 U.S. 1'", []),
        ("cites = 'x' or year = 1954", ["brown"]),
    ],
)
def test_a_filter_keeps_documents_that_cite_a_work(
    opinions: tuple[Path, Path], where: str, expected: list[str], n_partitions: int
) -> None:
    with Index.open(opinions[n_partitions - 1]) as index:
        result = index.search("schools of the states", where=where)
        assert sorted(hit.doc_id for hit in result) == expected


@pytest.fixture(scope="module")
def opinions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("opinions")
    documents = [
        replace(make_document(doc_id, [("Opinion", text)]), metadata={"year": 1954 + number, "cites": "y"})
        for number, (doc_id, text) in enumerate(OPINIONS.items())
    ]
    build(folder / "x.lm", documents, encode="none")
    partition(folder / "x.lm", folder / "p.lm", 2)
    return folder / "x.lm", folder / "p.lm"


@pytest.mark.parametrize("where", ["cites 'Brown'", {"$cites": "nothing at all"}])
def test_a_filter_by_no_work_is_refused(opinions: tuple[Path, Path], where: Any) -> None:  # noqa: ANN401
    with Index.open(opinions[0]) as index, pytest.raises(QueryError, match="expected a case, law, patent, paper"):
        index.search("schools", where=where)


def test_a_look_up_can_be_ended_and_few_are_kept(opinions: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_WORKS", 2)

    def end(n_bytes: int) -> None:
        raise ArithmeticError("deadline")

    with Index.open(opinions[0]) as index:
        with limited(end), pytest.raises(ArithmeticError, match="deadline"):
            index.search("schools", where="cites '347 U.S. 483'")
        for volume in (1, 2, 3, 347):
            found = index.search("schools of the states", where=f"cites '{volume} U.S. 483'").hits
        assert len(found) == 3
        (part,) = index.opened.snapshot.parts
        assert list(part._citing) == ["3 U.S. 483", "347 U.S. 483"]


def test_citing_sentences_are_a_section_of_the_document_that_they_name(tmp_path: Path) -> None:
    texts = {
        "rfc1001.txt": "Locks\n\nA keeper opens the gate in spring.\n",
        "rfc1002.txt": "Weirs\n\nThe gates of RFC 1001 and RFC 2000 have a sluice warden. Another one follows.\n",
        "rfc1003.txt": "Pumps\n\nThis is RFC 1003. It is empty but for rotors.\n",
    }
    (tmp_path / "files").mkdir()
    for name, text in texts.items():
        (tmp_path / "files" / name).write_text(text)
    arguments = ["index", str(tmp_path / "x.lm"), str(tmp_path / "files"), "--citing-text", "--encode", "none"]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    assert "3 unchanged" in CliRunner().invoke(main, arguments).output
    with Index.open(tmp_path / "x.lm") as index:
        cited = index.document("rfc1001.txt")
        assert cited.text == f"{texts['rfc1001.txt']}\n\nCited by\n\nThe gates of … and … have a sluice warden."
        assert [section.heading for section in cited.sections] == ["", "Cited by"]
        assert cited.sections[-1].stop == len(cited.text)
        assert [index.document(name).text for name in list(texts)[1:]] == list(texts.values())[1:]
        assert index.search("a warden of sluices").hits[0].doc_id in ("rfc1001.txt", "rfc1002.txt")
