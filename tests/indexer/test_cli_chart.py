"""`longmatch chart` writes HTML, CSV and Word files."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import docx
import pytest

from tests.commands import run, succeed

FOX = "# Traps\n\nOld foxes cross the wide river at night.\n\n## House\n\nA stone house by the wide river is red.\n"
PATENT = "# Trap\n\n## Description\n\nIt catches foxes by the river.\n\n## Claims\n\n"
PATENT += "1. A trap for old foxes that cross a wide river at night.\n2. The trap of claim 1 by a stone house.\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("charts")
    (made / "fox.md").write_text(FOX)
    (made / "patent.md").write_text(PATENT)
    succeed("index", made / "x.lm", made / "fox.md", made / "patent.md", "--encode", "none")
    return made


def test_claims_and_their_elements_are_rows_and_the_document_itself_is_no_column(folder: Path) -> None:
    result = succeed("chart", folder / "x.lm", folder / "patent.md", "--by", "claim", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["label"] for row in rows] == ["Claim 1", "Claim 2"]
    assert rows[0]["fox.md passage"] == "Old foxes cross the wide river at night."
    assert "patent.md passage" not in rows[0]
    (folder / "long.md").write_text("# Trap\n\n## Claims\n\n1. A trap comprising: a door; and a stone house.\n")
    result = succeed("chart", folder / "x.lm", folder / "long.md", "--by", "element", "--format", "csv", "--least", "0")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["text"] for row in rows] == ["1. A trap comprising:", "a door; and", "a stone house."]


def test_an_indexed_document_is_charted_by_its_id_in_every_format(folder: Path, tmp_path: Path) -> None:
    by_id = succeed("chart", folder / "x.lm", "--id", "fox.md", "--format", "csv", "--by", "sentence")
    assert (
        by_id.stdout == run("chart", folder / "x.lm", folder / "fox.md", "--format", "csv", "--by", "sentence").stdout
    )
    succeed("chart", folder / "x.lm", "--id", "fox.md", "-o", tmp_path / "x.docx")
    assert len(docx.Document(str(tmp_path / "x.docx")).tables) == 1
    page = run("chart", folder / "x.lm", "--id", "fox.md").stdout
    assert page.startswith("<!doctype html>") and "longmatch chart" in page and "--id fox.md" in page


@pytest.mark.parametrize(
    ("words", "name", "beginning"),
    [
        ("chart", "x.csv", b"row,label,"),
        ("chart", "x.HTM", b"<!doctype html>"),
        ("chart", "x.txt", b"<!doctype html>"),
        ("query", "x.txt", b"query  "),
        ("query", "x.csv", b"query_id,rank,score,"),
        ("query", "x.json", b'{\n "schema"'),
        ("query", "x.bib", b"@"),
        ("query --format jsonl", "x.json", b'{"schema"'),
    ],
)
def test_the_file_names_the_format(folder: Path, tmp_path: Path, words: str, name: str, beginning: bytes) -> None:
    command, *options = words.split()
    assert succeed(command, folder / "x.lm", "--id", "fox.md", "-o", tmp_path / name, *options).stdout == ""
    assert (tmp_path / name).read_bytes().startswith(beginning)
