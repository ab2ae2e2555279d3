from __future__ import annotations

import shutil
from pathlib import Path

from click.testing import CliRunner

from benchmarks.gaps.attempts import LESSONS, UNTRAINED, WORDS, Schedule
from benchmarks.gaps.record import GapsRecord
from benchmarks.gaps.table import gaps_table
from benchmarks.records import read_records
from benchmarks.word_gaps import main, measure
from tests.benchmarks.gaps.made_corpus import made_corpus


def test_rows_differ_by_attempt_and_by_what_is_left_out() -> None:
    rows = measure([made_corpus(), made_corpus(seed=1)], "valid", Schedule(3))
    assert [row.attempt for row in rows] == [WORDS, *UNTRAINED, *LESSONS]
    by_attempt = {row.attempt: row for row in rows}
    assert len({tuple(row.per_query["made0"]) for row in rows}) > 5
    assert by_attempt["map, joint score"].steps["made1"] in (1, 2, 3)
    assert by_attempt["whitened, power 0.5"].steps == {"made0": 0, "made1": 0}


def test_the_command_writes_a_record(folder: Path, tmp_path: Path, bert_folder: Path) -> None:
    other = tmp_path / "animals"
    shutil.copytree(folder, other)
    options = ["--encoder", str(bert_folder), "--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    arguments = [str(folder), str(other), "--quick", "--split", "test", *options]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    (record,) = read_records(tmp_path / "out")
    assert isinstance(record, GapsRecord)
    assert record.corpora.keys() == {"pets_quick", "animals_quick"}
    assert record.is_quick
    assert gaps_table([record]) in done.output


def test_one_dataset_leaves_nothing_to_learn_from(folder: Path) -> None:
    done = CliRunner().invoke(main, [str(folder)])
    assert done.exit_code == 2
    assert "is the only dataset; name another one to learn from" in done.stderr
