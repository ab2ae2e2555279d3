"""References in texts, and documents that name a document, found by its identifiers in the usual spellings."""

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from engine.errors import QueryError, limited
from engine.references.extraction import common_references, own_references, references
from engine.references.identifiers import Kind
from engine.store import snapshot
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.rewriting import partition
from indexer.cli import main
from longmatch import Index
from tests.fakes import make_document

LETTERS = dict(zip("CSRPANTM", Kind, strict=True))
FILES = [Path(__file__).with_name(f"{name}.txt") for name in ("gold", "held_out")]


def gold(file: Path) -> list[tuple[str, set[str]]]:
    """Sentences, and the names of the works that each cites, with the letters of their kinds."""
    lines = (line.partition(" =>") for line in file.read_text("utf-8").splitlines() if "=>" in line)
    return [(sentence, {name for name in names.strip().split(" | ") if name}) for sentence, _, names in lines]


def names(text: str) -> list[str]:
    return [reference.name for reference in references(text)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_references_of_sentences_are_found(file: Path) -> None:
    letters = {kind: letter for letter, kind in LETTERS.items()}
    counts: Counter[tuple[str, str]] = Counter()
    for sentence, expected in gold(file):
        found = {f"{letters[reference.kind]} {reference.name}" for reference in references(sentence)}
        counts.update((name[0], "right") for name in expected & found)
        counts.update((name[0], "false") for name in found - expected)
        counts.update((name[0], "missed") for name in expected - found)
    for letter in {letter for letter, _ in counts}:
        right, false, missed = (counts[letter, part] for part in ("right", "false", "missed"))
        assert right / (right + false) >= 0.98, (letter, counts)
        assert right / (right + missed) >= 0.95, (letter, counts)


def test_the_span_of_a_reference_is_its_text() -> None:
    text = "See 42 U.S.C. §§ 1983, 1985(3); 347 U. S. 483, and [RFC2119]. It is doi:10.1000/ABC."
    assert [(reference.name, text[reference.span.start : reference.span.stop]) for reference in references(text)] == [
        ("42 U.S.C. § 1983", "42 U.S.C. §§ 1983"),
        ("42 U.S.C. § 1985", "1985"),
        ("347 U.S. 483", "347 U. S. 483"),
        ("RFC 2119", "RFC2119"),
        ("doi:10.1000/abc", "10.1000/ABC"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("347 U.S. 483 (1954), and again 347 U.S. at 495.", ["347 U.S. 483", "347 U.S. 483"]),
        ("347 U.S. at 495 alone.", []),
        ("A § 1983 claim, that is, under 42 U.S.C. § 1983.", ["42 U.S.C. § 1983", "42 U.S.C. § 1983"]),
        ("§ 5 of 15 U.S.C. § 5 and of 18 U.S.C. § 5", ["15 U.S.C. § 5", "18 U.S.C. § 5"]),
        ("§ 1985 and nothing else", []),
        ("Id. § 1985 without a law before it", []),
    ],
)
def test_short_forms_stand_for_what_the_text_cites(text: str, expected: list[str]) -> None:
    assert [name for name in names(text) if not name.endswith("U.S.C. §")] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the value shown is stored as 01 23 OR 12 30, and (0 OR 1) AND (2 OR 3)", []),
        ("SYST 500, 501, 502, 421 STAT 211, 212, 213", []),
        ("3 14 VA 1 2 1 4 NB; COL=2 NEB 11.00%; MJ-1 VT 94.1; 1 P E T 70 .2; 1 P. 48.7", []),
        ("(PT) 20 LA 5 vs PIT 2; 90 NJ 38 35; 8 NC 9 NC; 1029 NW 15 St., Miami; in 90 A.D. 60 years", []),
        ("an Alfa Romeo 33 SC 12, 200 US 90 mm guns (2 Pet 1:19), and KRS 349 of 1999", []),
        ("FED-STD-1016 and PEP2 PIN PEP2", []),
        ("ORS 163.095; 225 ILCS 210", ["Or. Rev. Stat. § 163.095", "225 Ill. Comp. Stat. § 210"]),
        ("Poe v. Doe, 23 Or. 12; later 23 Or 12", ["23 Or. 12", "23 Or. 12"]),
        ("see 23 Or. 12; 24 Or. 12, 15; 25 OR 12 (1893)", ["23 Or. 12", "24 Or. 12", "25 Or. 12"]),
        ("In 23 Or. 12 one reads 347 U.S. 483.", ["23 Or. 12", "347 U.S. 483"]),
        ("the Treaty of Tripoli (8 Stat 154, Treaty Series 358)", ["8 Stat. 154"]),
    ],
)
def test_a_word_between_numbers_is_a_case_where_the_text_speaks_of_law(text: str, expected: list[str]) -> None:
    assert names(text) == expected


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "1 ",
            "§",
            "§ 1, ",
            "§§ 1, 2, ",
            "A.",
            "1 A. ",
            "1 U.S. 1, ",
            "Id. § 1 ",
            "10.1000/",
            "10.1000/((((",
            "Cal. ",
        ),
        *(
            "U.S.C. ",
            "42 U.S.C. §§ 1, ",
            "sections 1, 2 of title ",
            "(a)",
            "1-1",
            "RFC 1, ",
            "RFCs 1 and ",
            "US 1,000,",
        ),
        *("ISO/IEC ", "[1990] ", "1 F.2d 1, ", "1-", "§ 1-1-1-", "tit. 8, ", "Cal. Penal Code ", "arXiv:"),
        *("hep-th/", "U.S. Const. ", "U.S. Pat. No. "),
    ],
)
def test_the_time_grows_with_the_length(unit: str) -> None:
    def seconds(n_characters: int) -> float:
        text = unit * (n_characters // len(unit))
        start = time.process_time()
        references.__wrapped__(text)
        return time.process_time() - start

    short = min(seconds(25_000) for _ in range(2))
    assert min(seconds(100_000) for _ in range(2)) < 4 * 2 * short + 0.05


def document(doc_id: str, *texts: str, **metadata: str) -> Document:
    return make_document(doc_id, [(f"Part {number}", text) for number, text in enumerate(texts)], metadata=metadata)


def test_what_both_texts_cite_comes_with_all_mentions() -> None:
    query = document("q", "347 U.S. 483, 74 S. Ct. 686 (1954); RFC 2119.", "See RFC 8174 and RFC 2119.")
    target = document("t", "We follow 74 S. Ct. 686 and 42 U.S.C. § 1983.", "RFC 2119, and RFC2119 again.")
    common = common_references(query, target)
    assert [(reference.name, len(reference.query), len(reference.target)) for reference in common.shared] == [
        ("RFC 2119", 2, 2),
        ("347 U.S. 483", 2, 1),
    ]
    assert (common.to_target, common.to_query) == ((), ())


def test_each_text_is_read_once_for_all_hits() -> None:
    query, *targets = (document(str(number), f"RFC 2119 and RFC {number + 1}.") for number in range(9))
    references.cache_clear()
    for target in targets:
        common_references(query, target)
    assert references.cache_info().misses == 9


def test_the_documents_themselves_are_no_shared_reference() -> None:
    query = document("rfc8174.txt", "RFC 8174 updates RFC 2119 and cites RFC 2026.")
    target = document("rfc2119.txt", "This is RFC 2119; it cites RFC 2026.")
    common = common_references(query, target)
    assert [reference.name for reference in common.shared] == ["RFC 2026"]
    assert [query.text[span.start : span.stop] for span in common.to_target] == ["RFC 2119"]
    assert common.to_query == ()
    assert len(common_references(target, query).to_query) == 1


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (document("x/rfc2119.txt", "T"), {"RFC 2119"}),
        (document("x", "T", doi="https://doi.org/10.1000/XYZ.12"), {"doi:10.1000/xyz.12"}),
        (document("1706.03762v5.pdf", "T"), {"arXiv:1706.03762"}),
        (document("US-10000000-B2.xml", "T"), {"US10000000"}),
        (document("x", "T", citation="347 U.S. 483 (1954)"), {"347 U.S. 483"}),
        (document("x", "T", citation="23 Or. 12"), {"23 Or. 12"}),
        (document("notes-on-rfc-2119", "T"), set()),
    ],
    ids=lambda value: value.doc_id if isinstance(value, Document) else "",
)
def test_a_document_is_known_by_its_identifiers(known: Document, expected: set[str]) -> None:
    assert set(own_references(known)) == expected


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
