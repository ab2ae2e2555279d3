"""Citations of passages, and lines of a terminal."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import longmatch
from engine.report.exports import bibtex, references, ris
from engine.report.lines import Run, Style, columns, counted, cut, cut_text, line, pad, plain, shortened, table
from engine.result import Status
from engine.scoring.parts import Breakdown
from engine.text.document import MetadataValue
from engine.text.segmentation import Coverage
from engine.views import Hit, Result
from tests.fakes import make_document


def result(*documents: tuple[str, str, Mapping[str, MetadataValue]], query: str = "My draft") -> Result:
    nothing, coverage = Breakdown((), None, (), {}), Coverage(0, 0)
    hits = tuple(
        Hit(rank, 0.5 / rank, make_document(doc_id, "text", title=title, metadata=metadata), nothing, coverage)
        for rank, (doc_id, title, metadata) in enumerate(documents, start=1)
    )
    counts = {"n_found": len(hits), "n_evident": 0, "n_searched": 9}
    return Result(
        make_document("q", "text", title=query), coverage, hits, Status.CERTIFIED, **counts, seconds=0.0, language=None,
        reference=0,
    )  # fmt: skip


PAPER = (
    "acl/P19-1001.pdf",
    "Long documents & sparse attention",
    {
        "authors": ["Ada Lovelace", "Grace Hopper"],
        "year": 2019,
        "venue": "ACL",
        "doi": "https://doi.org/10.1000/X_1",
        "url": "https://example.org/a_b?c=1%20d",
    },
)


def test_a_paper_is_an_entry_with_its_fields() -> None:
    assert bibtex([result(PAPER)]) == (
        "@inproceedings{acl/P19-1001.pdf,\n"
        "  title = {{Long documents \\& sparse attention}},\n"
        "  author = {Ada Lovelace and Grace Hopper},\n"
        "  year = {2019},\n"
        "  booktitle = {ACL},\n"
        "  doi = {10.1000/X_1},\n"
        "  url = {https://example.org/a_b?c=1%20d},\n"
        "  note = {longmatch: rank 1, score 0.5000 for My draft},\n"
        "}\n"
    )


def test_a_paper_is_a_reference_of_ris() -> None:
    assert ris([result(PAPER)]).split("\r\n") == [
        "TY  - CONF",
        "ID  - acl/P19-1001.pdf",
        "TI  - Long documents & sparse attention",
        "AU  - Ada Lovelace",
        "AU  - Grace Hopper",
        "PY  - 2019",
        "T2  - ACL",
        "DO  - 10.1000/X_1",
        "UR  - https://example.org/a_b?c=1%20d",
        "N1  - longmatch: rank 1, score 0.5000 for My draft",
        "ER  - ",
        "",
        "",
    ]


def test_ris_has_the_evidence_of_a_hit_as_a_note(tmp_path: Path) -> None:
    texts = {
        "weir.md": "# Weirs\n\n## Gates\n\nThe sluice gate of the weir holds back the river, as RFC 2119 says.\n",
        "draft.md": "# Draft\n\n## Plan\n\nA sluice gate of the weir holds back water under RFC 2119.\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    with longmatch.build(tmp_path / "x.lm", tmp_path / "weir.md", encode="none") as index:
        found = index.search(tmp_path / "draft.md")
    notes = [line for line in ris([found]).split("\r\n") if line.startswith("N1")]
    assert len(notes) == 2 and notes[1].startswith("N1  - longmatch, evidence for Draft: ")
    assert 'The sluice gate of the weir holds back the river, as RFC 2119 says."; both cite RFC 2119' in notes[1]
    assert "evidence" not in bibtex([found])


@pytest.mark.parametrize(
    ("metadata", "types"),
    [
        ({"journal": "Nature", "venue": "x"}, ("@article", "JOUR")),
        ({"booktitle": "Proc."}, ("@inproceedings", "CONF")),
        ({"inventors": ["A"], "number": "US1"}, ("@misc", "PAT")),
        ({"Journal": "Nature"}, ("@article", "JOUR")),
        ({"journal": ""}, ("@misc", "GEN")),
        ({}, ("@misc", "GEN")),
    ],
)
def test_metadata_decide_on_the_type(metadata: Mapping[str, MetadataValue], types: tuple[str, str]) -> None:
    found = result(("d", "T", metadata))
    assert bibtex([found]).startswith(f"{types[0]}{{d,")
    assert ris([found]).startswith(f"TY  - {types[1]}\r\n")


@pytest.mark.parametrize(
    ("metadata", "field", "value"),
    [
        ({"author": "Ada Lovelace; Grace Hopper"}, "authors", ("Ada Lovelace", "Grace Hopper")),
        ({"author": "Ada Lovelace and Grace Hopper"}, "authors", ("Ada Lovelace", "Grace Hopper")),
        ({"author": "Lovelace, Ada"}, "authors", ("Lovelace, Ada",)),
        ({"authors": ["Barnes and Noble", ""]}, "authors", ("Barnes and Noble",)),
        ({"authors": [], "inventors": ["Edison"]}, "authors", ("Edison",)),
        ({"authors": None}, "authors", ()),
        ({"year": 2019, "date": "2020-01-01"}, "year", "2019"),
        ({"date": "12 May 1998"}, "year", "1998"),
        ({"published": "2020-05"}, "year", "2020"),
        ({"date": "120203", "created": "2021-10-15"}, "year", "2021"),
        ({"date": "today"}, "year", ""),
    ],
)
def test_authors_are_lists_or_texts_and_years_are_read_from_dates(
    metadata: Mapping[str, MetadataValue], field: str, value: object
) -> None:
    assert getattr(references([result(("d", "T", metadata))])[0], field) == value


@pytest.mark.parametrize("name", ["Barnes and Noble", "The Weir Consortium", "World Bank"])
def test_the_name_of_an_organisation_is_in_braces(name: str) -> None:
    assert f"author = {{{{{name}}} and Ada Lovelace}}" in bibtex(
        [result(("d", "T", {"authors": [name, "Ada Lovelace"]}))]
    )


def test_special_characters_are_escaped_and_braces_stay_balanced() -> None:
    title = "50% of {x & $y_1$ #2 ~ ^ \\end} }{"
    text = bibtex([result(("d", title, {"url": "http://e.org/{a} b"}))])
    assert (
        "title = {{50\\% of {\\textbraceleft}x \\& \\$y\\_1\\$ \\#2 {\\textasciitilde} {\\textasciicircum} "
        "{\\textbackslash}end{\\textbraceright} {\\textbraceright}{\\textbraceleft}}}," in text
    )
    assert "url = {http://e.org/%7Ba%7D%20b}" in text
    assert text.count("{") == text.count("}")


def test_line_breaks_do_not_leave_a_field() -> None:
    found = result(("d", "A\ntitle\r\nER  - ", {"authors": ["Ada\nLovelace"]}), query="A\x0bdraft")
    assert "TI  - A title ER -\r\nAU  - Ada Lovelace\r\nN1" in ris([found])
    assert "for A draft" in bibtex([found])


def test_keys_are_unique_without_case() -> None:
    found = references([result(*((name, "T", {}) for name in ("a b", "a-b", "A,b", "é", "{}")))])
    assert [one.key for one in found] == ["a-b", "a-b-2", "A-b-3", "document", "document-2"]


def test_a_document_that_two_queries_find_is_one_reference_and_no_hits_are_none() -> None:
    text = ris([result(("d", "T", {}), ("e", "U", {})), result(("e", "U", {}), query="Other")])
    assert re.findall("ID  - (.*)\r", text) == ["d", "e"]
    note = "longmatch: rank 2, score 0.2500 for My draft; longmatch: rank 1, score 0.5000 for Other"
    assert f"N1  - {note}\r\n" in text
    assert bibtex([result()]) == ris([result()]) == ""


@pytest.mark.parametrize(
    ("text", "width"),
    [("fox", 3), ("狐狸", 4), ("cafe\u0301", 4), ("नि", 2), ("a\u200bb", 2), ("…", 1), ("한글", 4), ("", 0)],
)
def test_columns_are_those_of_a_terminal(text: str, width: int) -> None:
    assert columns(text) == width
    assert columns(line(text, Run(text, Style.TITLE))) == width * 2


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("the fox", 7, "the fox"),
        ("the fox", 6, "the f…"),
        ("the fox", 5, "the…"),
        ("狐狸狐狸", 6, "狐狸…"),
        ("狐狸", 3, "狐…"),
    ],
)
def test_a_line_is_cut_to_a_width(text: str, width: int, shown: str) -> None:
    assert shortened(text, width) == shown
    assert columns(shown) <= width


def test_a_cut_is_made_between_characters_and_keeps_the_styles() -> None:
    whole = line("the ", Run("quick", Style.MATCH), " fox")
    assert cut(whole, 8) == (Run("the "), Run("qui…", Style.MATCH))
    assert cut(whole, 10) == (Run("the "), Run("quick…", Style.MATCH))
    assert cut(whole, 13) == whole
    assert cut_text("狐狸", 3) == "狐"


def test_line_breaks_become_blanks_and_control_characters_are_replaced() -> None:
    assert plain([line("a\x1b[31mb\nc")]) == "a\ufffd[31mb c"


def test_a_table_is_as_wide_as_its_cells_and_its_padding_counts_wide_characters() -> None:
    rows = [("年", "2019"), ("venue", "ACL")]
    assert plain(table(rows)) == "年     2019\nvenue  ACL"
    assert plain(table(rows, head=("a", "b"))).splitlines()[0] == "a      b"
    assert table([]) == []
    long = "x" * 300
    assert plain(table([(long, "Ann"), ("a.md", "Ben"), ("b.md", "Cem")])) == f"{long}  Ann\na.md  Ben\nb.md  Cem"
    assert plain([pad(line("狐"), 4)]) == "狐  "


def test_a_count_agrees_with_its_noun() -> None:
    assert [counted(n, "section") for n in (0, 1, 1234)] == ["0 sections", "1 section", "1,234 sections"]
