from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.fuzz_readers import fuzz, main, outcome_of
from benchmarks.fuzzing.record import FuzzRecord, Outcome
from benchmarks.records import read_records
from engine.document import Document
from engine.readers import Unreadable
from indexer.reading.reader import ReadLimits
from tests.indexer.hostile_readers import FORMATS

READ = Document("a", "a", "a", ())


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("it holds no text", Outcome.REFUSED),
        ("the HTML parser failed (ValueError: x); the file may be damaged", Outcome.FAILED),
        ("the parser gave no document (x)", Outcome.FAILED),
        ("reading needs more than 5 s of processor time; leave it out", Outcome.LIMIT),
        ("the parser crashed (SIGSEGV): the file is damaged", Outcome.DIED),
        ("the process that read it was killed twice (SIGKILL)", Outcome.DIED),
        ("the reader failed (exit status 82)", Outcome.DIED),
        ("no answer within 50 s; leave it out", Outcome.HUNG),
    ],
)
def test_a_reason_says_what_became_of_a_file(reason: str, outcome: Outcome) -> None:
    assert outcome_of([Unreadable("a", reason)]) == (outcome, reason)


def test_the_worst_of_several_results_counts() -> None:
    assert outcome_of([READ, Unreadable("a", "it holds no text")])[0] is Outcome.READ
    assert outcome_of([READ, Unreadable("a", "reading needs more than 5 s")])[0] is Outcome.LIMIT
    assert outcome_of([]) == (Outcome.READ, "")


@pytest.mark.parametrize(
    ("suffix", "outcome"), [(".loop", Outcome.LIMIT), (".crash", Outcome.DIED), (".sleep", Outcome.HUNG)]
)
def test_harm_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, outcome: Outcome) -> None:
    monkeypatch.setattr("indexer.reading.reader._MODULE", "tests.indexer.hostile_readers")
    monkeypatch.setattr("engine.readers.reader.FORMATS", FORMATS)
    monkeypatch.setattr("benchmarks.fuzz_readers.seeds", lambda: {suffix: b"words"})
    row = fuzz(suffix, 1, 0, tmp_path, ReadLimits(0.2, 150 * 2**20))
    assert row.outcomes == {outcome: 1}
    assert len(row.reasons) == 1 and row.reasons[0].startswith("0: ")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_of_the_caller_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexer.reading.reader._MODULE", "no_such_module")
    assert fuzz(".txt", 2, 0, tmp_path).outcomes == {Outcome.LOST: 2}


def test_a_quick_run_writes_its_record(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--quick", "--files", "48", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (record,) = read_records(tmp_path)
    assert isinstance(record, FuzzRecord) and record.is_quick
    assert sum(row.n_files for row in record.rows) == record.n_files == 48
    assert all(sum(row.outcomes.values()) == row.n_files for row in record.rows)
    assert sum(row.outcomes.get(Outcome.LOST, 0) + row.outcomes.get(Outcome.HUNG, 0) for row in record.rows) == 0
