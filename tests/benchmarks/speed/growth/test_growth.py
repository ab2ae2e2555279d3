from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.measuring.isolation import Memory
from benchmarks.records import read_records
from benchmarks.speed.growth import growth
from benchmarks.speed.growth.growth import main
from benchmarks.speed.records import AdditionRecord, ScaleRecord
from engine.store.snapshot import Snapshot

MEMORY = Memory(100.0, 200.0, 80.0, 120.0)


@pytest.fixture
def caps(monkeypatch: pytest.MonkeyPatch) -> dict[str, int | None]:
    """The caps of steps, which run in this process with made memory: eight processes would take minutes to start."""
    given: dict[str, int | None] = {}

    def run_here(
        target: Callable[..., dict[str, Any]], *arguments: object, cap_bytes: int | None = None, **_: object
    ) -> tuple[dict[str, Any], Memory]:
        given[target.__name__] = cap_bytes
        return json.loads(json.dumps(target(*arguments))), MEMORY

    monkeypatch.setattr(growth, "run_fresh", run_here)
    return given


def recorded(index: Path, folder: Path, *options: str) -> object:
    small = ["--chunks", "700", "--queries", "3", "--query-chunks", "5", "--quick"]
    places = ["--work", str(folder / "work"), "--out", str(folder / "out")]
    done = CliRunner().invoke(main, [str(index), *small, *options, *places])
    assert done.exit_code == 0, done.output
    (record,) = read_records(folder / "out")
    return record


@pytest.mark.slow
def test_an_index_is_grown_published_and_searched(
    real_folder: Path, tmp_path: Path, caps: dict[str, int | None]
) -> None:
    record = recorded(real_folder, tmp_path, "--real", "60", "--factory", "Flat", "--cap", "4GiB")
    assert isinstance(record, ScaleRecord)
    assert (record.n_real, record.factory, record.n_lists, record.cap_kind) == (60, "Flat", 0, "RLIMIT_DATA")
    assert record.n_chunks >= 700 and record.is_quick and record.asked.keys() == {"real", "synthetic"}
    for searched in record.asked.values():
        assert (searched.n_queries, searched.n_chunks) == (3, 5)
        assert searched.lowest_recall == searched.recall == 1
        assert 0 < searched.latency.p50_ms <= searched.latency.p99_ms
        assert searched.vectors_p50_ms is not None
    assert record.calibration.turn > 0 and record.memory["search"] == MEMORY
    capped = {name for name, cap in caps.items() if cap == 4 << 30}
    assert capped == {"grow", "publish", "latency", "throughput"} < caps.keys()
    assert record.neighbours.n_chunks == record.n_chunks
    assert record.words_bytes is not None and 0 < record.words_bytes < sum(record.disk.values())
    assert record.disk["shards"] > 2 * 16 * record.n_chunks and record.origin.seed == 0


def test_a_missing_index_is_reported_in_one_line() -> None:
    done = CliRunner().invoke(main, ["absent.lm", "--quick"])
    assert done.exit_code == 1 and "absent.lm" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_documents_are_added_to_a_copy_and_found_at_once(
    real_folder: Path, tmp_path: Path, caps: dict[str, int | None]
) -> None:
    record = recorded(real_folder, tmp_path, "--add", "20", "--encoded", "0")
    assert isinstance(record, AdditionRecord)
    assert (record.n_added, record.n_found, record.n_asked, record.n_queries) == (20, 20, 20, 6)
    assert record.n_chunks >= 700 and record.n_added_chunks >= 20 and record.encode_seconds is None
    assert (record.factory, record.outcome) == ("Flat", "scanned"), "so few are scanned, as FRESH_CHUNKS says"
    assert record.before.n_vectors == record.committed.n_vectors == record.after.n_vectors == record.n_chunks
    assert record.commit_seconds > 0 < record.answer_seconds and record.before.latency.p50_ms > 0
    assert caps.keys() >= {"add", "find", "join"}
    work = tmp_path / "work"
    assert not [path.name for path in work.iterdir() if path.name.startswith("added-")], "the copy is gone"
    (grown,) = work.glob("*.lm")
    with Snapshot(grown) as snapshot:
        assert (snapshot.n_documents, snapshot.n_chunks) == (record.n_documents, record.n_chunks), "as it was"
