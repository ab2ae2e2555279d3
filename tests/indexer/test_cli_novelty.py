"""`longmatch query --mode novelty` prints sections, most novel first, in every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import Result

from tests.commands import succeed
from tests.strict_schema import check

NEW = "Keel, mast and harbour: the wind fills a sail, and a rope holds the anchor against the tide. " * 4
OLD = "Old foxes cross the wide river at night, and a stone house by the bank stays dark until dawn. " * 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("novelty")
    (made / "fox.md").write_text(
        f"# Foxes\n\n{OLD}\n\n# Bread\n\nFlour, water and salt make a dough. " + "It rises. " * 30
    )
    (made / "draft.md").write_text(f"# Seen before\n\n{OLD}\n\n# Ships\n\n{NEW}\n")
    succeed("index", made / "x.lm", made / "fox.md", "--encode", "none")
    return made


def novelty(folder: Path, *arguments: str | Path) -> Result:
    return succeed("query", folder / "x.lm", *arguments, "--mode", "novelty")


def test_the_table_and_the_report_list_sections_from_the_most_novel(folder: Path, tmp_path: Path) -> None:
    result = novelty(folder, folder / "draft.md")
    assert "2 sections, most novel first" in result.stdout
    ships, seen = result.stdout.index("  Ships\n"), result.stdout.index("  Seen before\n", 20)
    assert ships < seen < result.stdout.rindex("fox.md")
    novelty(folder, folder / "draft.md", "--format", "html", "-o", tmp_path / "novelty.html")
    page = (tmp_path / "novelty.html").read_text(encoding="utf-8")
    assert "longmatch novelty report" in page and "Made by <code>longmatch query" in page
    assert page.index(">Ships</a>") < page.index(">Seen before</a>")


def test_json_holds_the_schema_of_novelty(folder: Path) -> None:
    values = json.loads(novelty(folder, folder / "draft.md", "--format", "json").stdout)
    (found,) = check(values)["results"]
    assert found["schema"] == "longmatch-novelty/1"
    assert [one["section"]["heading"] for one in found["sections"]] == ["Ships", "Seen before"]
    assert found["sections"][1]["novelty"] < 0.2 and found["sections"][1]["hit"]["id"] == "fox.md"
    (line,) = novelty(folder, folder / "draft.md", "--format", "jsonl").stdout.splitlines()
    assert json.loads(line)["sections"] == found["sections"]
    assert found["provenance"]["parameters"]["mode"] == "novelty"


def test_csv_has_a_row_for_each_section(folder: Path, tmp_path: Path) -> None:
    novelty(folder, folder / "draft.md", "--format", "csv", "-o", tmp_path / "novelty.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "novelty.csv").read_text())))
    assert [(row["rank"], row["heading"], row["doc_id"]) for row in rows][1] == ("2", "Seen before", "fox.md")
    assert float(rows[0]["novelty"]) > 0.8 > 0.2 > float(rows[1]["novelty"])
    assert rows[1]["target_heading"] == "Foxes" and rows[1]["words"]


def test_a_document_of_the_index_is_left_out_of_its_own_novelty(folder: Path) -> None:
    by_id = novelty(folder, "--id", "fox.md", "--format", "json")
    assert [one["hit"] for one in json.loads(by_id.stdout)["results"][0]["sections"]] == [None, None]
    by_file = novelty(folder, folder / "fox.md", "--format", "json")
    assert "left out: fox.md; same content as the query" in by_file.stderr
    assert [one["hit"] for one in json.loads(by_file.stdout)["results"][0]["sections"]] == [None, None]
