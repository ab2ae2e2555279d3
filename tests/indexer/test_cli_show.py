"""`longmatch show`, `export` and `plot`: sections, pages, lists, fields, tables in files, and pictures."""

import json
from pathlib import Path
from typing import Any

import pytest

import longmatch
from engine.index import Index
from engine.search.request import Request
from tests.commands import run, succeed
from tests.readers.made_pdf import pdf_of_contents

BODY = "the old fox runs over the lazy dog and jumps through the dark light of the house. " * 8


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shown")
    sections = "\n\n".join(
        f"## {heading}\n\n{BODY}{heading}." for heading in ("The Aim", "Way of work", "2020", "Way on")
    )
    (folder / "fox.md").write_text(
        f"---\nauthors: [Ann Lee, Ben Roy]\nopen: true\n---\n# Fox\n\n{BODY}\n\n{sections}\n"
    )
    lines = [b"BT /F1 10 Tf 72 700 Td (Page %d has a fox.) Tj ET" % number for number in (1, 2, 3)]
    (folder / "pages.pdf").write_bytes(pdf_of_contents(lines))
    succeed("index", folder / "x.lm", folder / "fox.md", folder / "pages.pdf", "--encode", "none")
    return folder / "x.lm"


def test_lists_sections_with_their_numbers_and_pages_are_printed(built: Path) -> None:
    lines = [line.split(maxsplit=1) for line in run("show", built, "fox.md").stdout.splitlines() if line]
    assert ["authors", "Ann Lee, Ben Roy"] in lines and ["open", "true"] in lines
    rows = run("show", built, "fox.md").stdout.split("number", 1)[1].splitlines()[1:]
    assert [row.split(maxsplit=3)[0] for row in rows] == [str(number) for number in range(1, len(rows) + 1)]
    assert run("show", built, "pages.pdf", "--page", "2").stdout.strip() == "Page 2 has a fox."
    (page,) = json.loads(run("show", built, "pages.pdf", "--page", "3", "--json").stdout)
    assert page["page"] == 3 and page["text"].strip() == "Page 3 has a fox."


@pytest.mark.parametrize(
    ("wanted", "heading"),
    [("2", "The Aim"), ("the aim", "The Aim"), ("AIM", "The Aim"), ("of work", "Way of work"), ("2020", "2020")],
)
def test_a_section_is_found_by_number_and_heading(built: Path, wanted: str, heading: str) -> None:
    shown = succeed("show", built, "fox.md", "--section", wanted)
    assert shown.stdout.startswith(f"## {heading}\n") and shown.stdout.endswith(f"{heading}.\n")
    (passage,) = json.loads(run("show", built, "fox.md", "--section", wanted, "--json").stdout)
    text = (built.parent / "fox.md").read_text().split("---\n", 2)[2]
    assert passage["text"] == text[passage["start"] : passage["end"]] and passage["heading"] == heading


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["fox.md", "--section", "way"], 1, "2 headings contain 'way': 3 'Way of work', 5 'Way on'; name one by"),
        (["fox.md", "--section", "The Aims"], 1, "no section 'The Aims' among 5 in fox.md; did you mean 'The Aim'?"),
        (["fox.md", "--section", "99"], 1, "no section '99'"),
        (["fox.md", "--page", "1"], 1, "fox.md has no pages"),
        (["pages.pdf", "--page", "4"], 1, "pages.pdf has no page 4; name one from 1 to 3"),
        (["pages.pdf", "--page", "0"], 2, "0 is not in the range"),
        (["fox.md", "--page", "1", "--text"], 2, "exclude each other"),
        (["--fields", "--failures"], 2, "exclude each other"),
        (["fox.md", "--cited-by"], 1, "'fox.md' has no identifier"),
        (["--section", "2"], 2, "--section needs a DOC_ID"),
        (["fox.md", "--fields"], 2, "--fields shows all of INDEX"),
    ],
)
def test_the_error_names_what_cannot_be_shown(built: Path, arguments: list[str], status: int, message: str) -> None:
    result = run("show", built, *arguments)
    assert result.exit_code == status and message in result.stderr


def test_the_fields_are_listed(built: Path) -> None:
    lines = [line.split(maxsplit=3) for line in run("show", built, "--fields").stdout.splitlines()]
    assert lines[0] == ["field", "type", "documents", "examples"]
    assert ["authors", "list", "1", "'Ann Lee', 'Ben Roy'"] in lines
    fields = {field["name"]: field for field in json.loads(run("show", built, "--fields", "--json").stdout)}
    assert fields["authors"] == {
        "name": "authors",
        "types": ["list"],
        "n_documents": 1,
        "examples": ["Ann Lee", "Ben Roy"],
    }


def read_table(path: Path) -> Any:  # noqa: ANN401
    return pytest.importorskip("pyarrow.parquet").read_table(path)


@pytest.mark.parametrize("what", ["documents", "sections"])
def test_the_file_is_the_table_of_the_index(words_folder: Path, tmp_path: Path, what: str) -> None:
    with longmatch.open(words_folder) as index:
        succeed("export", words_folder, "--what", what, "-o", tmp_path / "x.parquet")
        assert read_table(tmp_path / "x.parquet").equals(index.to_arrow(what))  # type: ignore[arg-type]


def test_vectors_of_filtered_documents_are_exported(built_folder: Path, tmp_path: Path) -> None:
    result = succeed(
        "export", built_folder, "--what", "vectors", "--where", "year = 2003", "-o", tmp_path / "x.parquet"
    )
    table = read_table(tmp_path / "x.parquet")
    assert set(table.column("doc_id").to_pylist()) == {"doc003", "doc028", "doc053"}
    assert result.stderr == f"{table.num_rows:,} rows, 3 documents\n"


def test_failed_exports_keep_the_old_file(words_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.parquet").write_text("old")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("engine.report.arrow.Export.write", full)
    result = run("export", words_folder, "-o", tmp_path / "x.parquet")
    assert (
        result.exit_code == 1
        and "x.parquet: No space left on device; it is as it was before; free some space" in result.stderr
    )
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_hits_are_printed_as_bibtex_and_ris(words_folder: Path) -> None:
    query = ["query", words_folder, "--id", "doc003", "-k", "2", "--format"]
    text = run(*query, "bibtex").stdout
    assert text.count("@misc{doc") == 2 and "  year = {" in text
    assert run(*query, "ris").stdout_bytes.count(b"ER  - \r\n") == 2


@pytest.mark.slow
def test_the_name_of_the_file_gives_the_format(built_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name, start in (("x.png", b"\x89PNG"), ("x.SVG", b"<?xml")):
        succeed("plot", built_folder, "-o", tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)


def test_an_indexed_document_is_on_the_map_with_its_hits(built_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    succeed("plot", built_folder, "--id", "doc003", "-k", "2", "--by", "family", "-o", tmp_path / "x.svg")
    svg = (tmp_path / "x.svg").read_text()
    assert "query: Title 3" in svg and "family: even" in svg
    with Index.open(built_folder) as index:
        hits = index.search("doc003", Request(k=2)).hits
    assert all(f"{hit.rank}: {hit.score:.4f} {hit.title}" in svg for hit in hits)
    succeed("plot", built_folder, "--id", "doc003", "--where", "topic = 3", "-o", tmp_path / "x.svg")
    svg = (tmp_path / "x.svg").read_text()
    assert "query: Title 3" in svg and "6 of 60 documents" in svg
