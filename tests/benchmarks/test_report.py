from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.measuring.timing import Percentiles
from benchmarks.record_file import write_record
from benchmarks.report import ReportError, drawn, is_partial, main, not_shown
from benchmarks.runs import Run, write_run
from benchmarks.speed.recall import RecallRecord
from indexer.origin import Origin
from tests.benchmarks.made_runs import made_run

README = "# Title\n<!-- results:retrieval -->\nold\n<!-- /results -->\nEnd\n"
DRAWN = """# Title
<!-- results:retrieval -->
| Task (queries) | System | nDCG@10 [95 %] | Recall@10 | Recall@100 | MRR@10 | p, document | p, BM25 |
| --- | --- | --- | --- | --- | --- | --- | --- |
| proposals (5) | evidence, mean | 0.750 [0.750, 0.750] | 0.750 | 0.750 | 0.750 | 0.062 | 0.125 |
| proposals (5) | document, mean | 0.500 [0.500, 0.500] | 0.500 | 0.500 | 0.500 |  | 0.125 |
| proposals (5) | bm25 | 0.250 [0.250, 0.250] | 0.250 | 0.250 | 0.250 |  |  |

nDCG@10 has the gain 2^relevance - 1, with a bootstrap interval over queries. p: two-sided paired randomisation test \
of nDCG@10, adjusted by Holm's method over the systems of a task in one column, against the document vector of \
the same encoder, and BM25.

Run again:

- `python -m benchmarks run retrieval pets`

Measured: commit 0123456789 on A Processor, 2 cores, 24 GiB.
<!-- /results -->
End
"""


@pytest.fixture
def records(origin: Origin) -> list[Run]:
    systems = [("bm25", "", 0.25), ("document", "mean@0f", 0.5), ("evidence", "mean@0f", 0.75)]
    return [made_run(system, [value] * 5, origin, "proposals", encoder=encoder) for system, encoder, value in systems]


def test_a_table_is_drawn_from_its_records(records: list[Run]) -> None:
    assert drawn(README, records) == DRAWN
    assert drawn(DRAWN, records) == DRAWN


def test_records_of_other_queries_are_not_compared(records: list[Run]) -> None:
    records[0] = replace(records[0], dataset="proposals@1")
    assert "| 0.750 | 0.062 |  |\n" in drawn(README, records)


def test_splits_for_tuning_are_not_shown(records: list[Run]) -> None:
    assert "No records yet." in drawn(README, [replace(each, split="valid") for each in records])


def test_quick_parts_are_not_shown(records: list[Run]) -> None:
    assert "No records yet." in drawn(README, [replace(each, dataset="proposals_quick@0") for each in records])
    assert [is_partial(records[0]), is_partial(replace(records[0], dataset="proposals_quick@0"))] == [False, True]


def test_a_recall_table_shows_both_latencies(origin: Origin) -> None:
    recall = RecallRecord(
        "pets", "IVF2,Flat", 1, 4000, 8000, 10, 4, 1, 0.9, 0.5, Percentiles(1, 2, 3), Percentiles(4, 5, 6), origin
    )
    row = "| pets | IVF2,Flat | 1 | 4,000 | 8,000 | 0.900 at 10 | 0.500 | 1.0 / 2.0 / 3.0 | 4.0 / 5.0 / 6.0 |"
    assert row in drawn("<!-- results:recall -->\n<!-- /results -->", [recall]).splitlines()


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
        "Error: the tables of README.md are stale; run python -m benchmarks report\n",
    )
    assert CliRunner().invoke(main, options).exit_code == 0
    assert CliRunner().invoke(main, [*options, "--check"]).exit_code == 0
    assert readme.read_text() == DRAWN


def test_check_fails_for_a_kind_of_record_that_no_table_shows(
    tmp_path: Path, records: list[Run], origin: Origin
) -> None:
    (tmp_path / "README.md").write_text(DRAWN)
    latency = Percentiles(1, 2, 3)
    recall = RecallRecord("pets", "IVF2,Flat", 1, 4, 8, 10, 4, 1, 0.9, 0.5, latency, latency, origin)
    for each in records:
        write_run(each, tmp_path / "results")
    write_record(recall, tmp_path / "results")
    options = [
        "--page",
        str(tmp_path / "README.md"),
        "--results",
        str(tmp_path / "results"),
    ]
    done = CliRunner().invoke(main, [*options, "--check"])
    assert (done.exit_code, done.stderr) == (
        1,
        "Error: there are records that no table of README.md shows; add <!-- results:recall -->, each with "
        "<!-- /results --> below it\n",
    )
    assert not_shown([README], [*records, recall]) == ["recall"]
    assert not_shown([README], records) == []


def test_each_kind_of_record_needs_one_table_on_one_of_the_pages(
    tmp_path: Path, records: list[Run], origin: Origin
) -> None:
    recall = RecallRecord("pets", "", 0, 4, 8, 10, 4, 1, 0.9, 0.5, *[Percentiles(1, 2, 3)] * 2, origin)
    other = "<!-- results:recall -->\nold\n<!-- /results -->\n"
    assert not_shown([README, other], [*records, recall]) == []
    for each in records:
        write_run(each, tmp_path / "results")
    write_record(recall, tmp_path / "results")
    (tmp_path / "README.md").write_text(README)
    (tmp_path / "OTHER.md").write_text(other)
    pages = [argument for name in ("README.md", "OTHER.md") for argument in ("--page", str(tmp_path / name))]
    options = [*pages, "--results", str(tmp_path / "results")]
    stale = CliRunner().invoke(main, [*options, "--check"])
    assert "the tables of README.md and OTHER.md are stale" in stale.stderr
    assert CliRunner().invoke(main, options).exit_code == 0
    assert CliRunner().invoke(main, [*options, "--check"]).exit_code == 0
    assert "| pets | none |" in (tmp_path / "OTHER.md").read_text()
