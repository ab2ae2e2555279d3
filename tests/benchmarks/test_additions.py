from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from benchmarks.additions import main
from benchmarks.records import read_records
from benchmarks.scaling.addition_record import AdditionRecord

OPTIONS = ["--chunks", "700", "--documents", "20", "--queries", "3", "--query-chunks", "5", "--encoded", "0", "--quick"]


def test_documents_are_added_to_a_copy_and_found_at_once(real_folder: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    places = ["--work", str(work), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, [str(real_folder), *OPTIONS, *places])
    assert done.exit_code == 0, done.output
    (record,) = read_records(tmp_path / "out")
    assert isinstance(record, AdditionRecord)
    assert (record.n_added, record.n_found, record.n_asked, record.n_queries) == (20, 20, 20, 6)
    assert record.n_chunks >= 700 and record.n_added_chunks >= 20 and record.encode_seconds is None
    assert (record.factory, record.outcome) == ("Flat", "scanned"), "so few are scanned, as FRESH_CHUNKS says"
    assert record.before.n_vectors == record.committed.n_vectors == record.after.n_vectors == record.n_chunks
    assert record.commit_seconds > 0 < record.answer_seconds and record.before.latency.p50_ms > 0
    assert "20 of 20" in done.output and "Flat, scanned" in done.output
    assert not [path.name for path in work.iterdir() if path.name.startswith("added-")], "the copy is gone"
    again = CliRunner().invoke(main, [str(real_folder), *OPTIONS, *places])
    assert again.exit_code == 0, "the index that was grown is as it was"


def test_a_mistake_is_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, [str(tmp_path / "absent.lm"), *OPTIONS])
    assert done.exit_code == 1 and "absent.lm" in done.stderr.splitlines()[-1]
