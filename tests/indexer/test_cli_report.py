"""`longmatch query --format html` writes one report for all queries."""

from __future__ import annotations

import json
from pathlib import Path

import lxml.html
import pytest

from tests.commands import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("reports")
    for topic in ("fox", "house", "ship"):
        (made / f"{topic}.md").write_text(f"# On the {topic}\n\nAn old {topic} stands by the wide river.\n")
    assert run("index", made / "x.lm", *made.glob("*.md"), "--encode", "none").exit_code == 0
    return made


def test_a_report_has_the_numbers_of_the_json_for_every_query(folder: Path) -> None:
    command = ["query", folder / "x.lm", "--id", "fox.md", "--text", "an old house", "--sections", "2", "--format"]
    results = json.loads(run(*command, "json").stdout)["results"]
    assert run(*command, "html", "-o", folder / "report.html").exit_code == 0
    page = lxml.html.document_fromstring((folder / "report.html").read_text())
    for number, result in enumerate(results, start=1):
        shown = page.xpath(f"//section[@id='q{number}']//table[@class='ranking']//data/@value")
        assert [float(one) for one in shown] == [hit["score"] for hit in result["hits"]]
    assert page.xpath("//footer//code")[0].text == (
        f"longmatch query {folder}/x.lm --id fox.md --text 'an old house' --sections 2 --format html "
        f"-o {folder}/report.html"
    )


def test_a_report_takes_no_matrix(folder: Path) -> None:
    result = run("query", folder / "x.lm", "--id", "fox.md", "--format", "html", "--matrix")
    assert result.exit_code == 2 and "leave --matrix out" in result.stderr
