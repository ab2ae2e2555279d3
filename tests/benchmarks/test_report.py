from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.report import ReportError, drawn, is_partial, main, not_shown
from benchmarks.runs import Case, Run, write_run
from indexer.origin import Origin
from tests.benchmarks.made_runs import made_run

README = "# Title\n<!-- results:retrieval -->\nold\n<!-- /results -->\nEnd\n"
ROWS = """
| proposals (5) | evidence, mean |  | 0.750 [0.750, 0.750] | 0.750 | 0.750 | 0.750 | 0.062 | 0.125 |
| proposals (5) | document, mean |  | 0.500 [0.500, 0.500] | 0.500 | 0.500 | 0.500 |  | 0.125 |
| proposals (5) | bm25 |  | 0.250 [0.250, 0.250] | 0.250 | 0.250 | 0.250 |  |  |
"""


@pytest.fixture
def records(origin: Origin) -> list[Run]:
    systems = [("bm25", "", 0.25), ("document", "mean@0f", 0.5), ("evidence", "mean@0f", 0.75)]
    return [made_run(system, [value] * 5, origin, "proposals", encoder=encoder) for system, encoder, value in systems]


def test_a_table_is_drawn_from_its_records(records: list[Run]) -> None:
    page = drawn(README, records)
    assert page.startswith("# Title\n<!-- results:retrieval -->\n| Task (queries) |") and ROWS in page
    assert page.endswith("2 cores, 24 GiB.\n<!-- /results -->\nEnd\n") and "old" not in page
    assert drawn(page, records) == page


def test_records_of_other_queries_are_not_compared(records: list[Run]) -> None:
    records[0] = replace(records[0], dataset="proposals@1")
    assert "| 0.750 | 0.062 |  |\n" in drawn(README, records)


@pytest.mark.parametrize("changed", [{"split": "valid"}, {"dataset": "proposals_quick@0"}])
def test_splits_for_tuning_and_quick_parts_are_not_shown(records: list[Run], changed: dict[str, Any]) -> None:
    assert "No runs yet." in drawn(README, [replace(each, **changed) for each in records])
    assert is_partial(replace(records[0], **changed)) and not is_partial(records[0])


@pytest.fixture
def search(origin: Origin) -> Run:
    case = Case(id="pets, CPU, lists", labels={"lists": "IVF2,Flat"}, values={"documents": 4000, "recall": 0.9})
    return Run(task="search", dataset="pets", system="search", details={"note": "Why."}, origin=origin, cases=[case])


def test_a_study_has_a_row_for_each_case(search: Run) -> None:
    lines = drawn("<!-- results:search -->\n<!-- /results -->", [search]).splitlines()
    assert lines[1] == "| Search | lists | documents | recall |"
    assert lines[3:6] == ["| pets, CPU, lists | IVF2,Flat | 4,000 | 0.9 |", "", "Why."]


def test_a_table_that_is_not_known_is_refused() -> None:
    with pytest.raises(ReportError, match="there is no table 'speed'; name one of headline, findings"):
        drawn("<!-- results:speed -->\n<!-- /results -->", [])
    with pytest.raises(ReportError, match="there is no table to draw; add <!-- results:retrieval -->"):
        drawn("# Title\n", [])


def test_check_fails_until_the_readme_is_drawn(tmp_path: Path, records: list[Run]) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(README)
    for each in records:
        write_run(each, tmp_path / "results")
    options = ["--page", str(readme), "--results", str(tmp_path / "results")]
    stale = CliRunner().invoke(main, [*options, "--check"])
    assert (stale.exit_code, stale.stderr) == (
        1,
        "Error: these files differ from what the runs give: README.md; draw them: python -m benchmarks report\n",
    )
    assert CliRunner().invoke(main, options).exit_code == 0
    assert CliRunner().invoke(main, [*options, "--check"]).exit_code == 0
    assert readme.read_text() == drawn(README, records)


def test_check_fails_for_a_task_that_no_table_shows(tmp_path: Path, records: list[Run], search: Run) -> None:
    (tmp_path / "README.md").write_text(drawn(README, records))
    for each in [*records, search]:
        write_run(each, tmp_path / "results")
    options = ["--page", str(tmp_path / "README.md"), "--results", str(tmp_path / "results")]
    done = CliRunner().invoke(main, [*options, "--check"])
    assert (done.exit_code, done.stderr) == (
        1,
        "Error: there are runs that no table of README.md shows; add <!-- results:search -->, each with "
        "<!-- /results --> below it\n",
    )
    assert not_shown([README], [*records, search]) == ["search"]
    assert not_shown([README], records) == []
