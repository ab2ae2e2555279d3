"""Tests that fork: `test_faults.py` runs them in a process of their own, which has used no threads before."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.faults.calls import Call, Change, watch
from benchmarks.faults.interruptions import Fault, injected, replayed
from benchmarks.faults.operations import ENCODER, INDEX, OPERATIONS, Operation
from benchmarks.faults.recording import Recording, killed_state, read_state, record
from benchmarks.measuring.isolation import ProcessFailed, in_child
from engine.store.durable import write_durably
from engine.store.presence import stored_sources
from engine.store.shards import SHARD_FOLDER
from indexer.building.builder import build
from indexer.upkeep.removal import remove

VECTORS, REMOVE = (next(one for one in OPERATIONS if one.name == name) for name in ("index vectors", "remove"))


def _change(folder: Path) -> None:
    write_durably(folder / "a", _write)
    with closing(sqlite3.connect(folder / "b.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 50)
        connection.commit()
    (folder / "a").unlink()


def _write(path: Path) -> None:
    path.write_text("one")


def _recorded(folder: Path) -> list[Call]:
    calls: list[Call] = []
    watch(folder, calls.append)
    _change(folder)
    return calls


def test_recorded_changes_replay_to_the_folder(tmp_path: Path) -> None:
    calls = in_child(lambda: _recorded(tmp_path))
    assert killed_state(Recording({}, calls, []), len(calls)) == read_state(tmp_path)
    assert [call.path for call in calls if call.change is Change.RENAME] == ["a.tmp"]
    assert "." in [call.path for call in calls if call.change is Change.SYNC_FOLDER]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_replayed_kill_leaves_the_state_of_a_real_kill(share: float, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    calls = in_child(lambda: _recorded(tmp_path / "whole"))
    at, seen = int(len(calls) * share), list[Call]()

    def kill(call: Call) -> None:
        if len(seen) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        seen.append(call)

    def run() -> None:
        watch(tmp_path / "killed", kill)
        _change(tmp_path / "killed")

    with pytest.raises(ProcessFailed, match="ended with -9"):
        in_child(run)
    assert _without_salt(killed_state(Recording({}, calls, []), at)) == _without_salt(read_state(tmp_path / "killed"))


def _without_salt(state: dict[str, bytes | None]) -> dict[str, int]:
    """Sizes of files, because the log of SQLite holds random numbers; it is empty before its first write."""
    return {place: len(content) for place, content in state.items() if content}


def test_a_failing_write_of_sqlite_is_an_error_of_sqlite(tmp_path: Path) -> None:
    def fail(call: Call) -> None:
        if call.change is Change.WRITE and call.path == "b.sqlite-wal":
            raise OSError(errno.ENOSPC, "full")

    def run() -> None:
        watch(tmp_path, fail)
        _change(tmp_path)

    with pytest.raises(ProcessFailed, match=r"sqlite3.OperationalError: database or disk is full"):
        in_child(run)


def test_a_child_that_hangs_is_killed() -> None:
    with pytest.raises(ProcessFailed, match="no end after"):
        in_child(lambda: signal.pause(), seconds=0.2)


def _forgetful(folder: Path) -> None:
    """Loses a file that its first run committed, as no operation should."""
    is_again = (folder / INDEX).exists()
    VECTORS.act(folder)
    if is_again:
        for path in (folder / INDEX / SHARD_FOLDER).iterdir():
            path.unlink()


def test_an_operation_that_loses_a_file_is_found(tmp_path: Path) -> None:
    expected = record(Operation("forgetful", lambda _: None, _forgetful), tmp_path / "clean")
    found = replayed(expected, Fault.KILL, len(expected.recording.calls), np.random.default_rng(0), tmp_path / "case")
    assert "verify after the next run" in found.problems[0]


def _careless(folder: Path) -> None:
    build(folder / INDEX, [], encoder=ENCODER)
    (folder / "note").write_text("never synced")
    raise ValueError("not of the engine")


def test_an_error_that_is_not_of_the_engine_is_found(tmp_path: Path) -> None:
    expected = record(REMOVE, tmp_path / "clean")
    careless = replace(expected, operation=Operation("careless", REMOVE.begin, _careless))
    found = injected(careless, Fault.IO_ERROR, 10_000, tmp_path / "case")
    assert "builtins.ValueError: not of the engine" in found.problems[0]


def _encoding_again(folder: Path) -> None:
    """Removes what its first run committed and encodes it again: the same contents, twice the cost."""
    if (folder / INDEX).exists() and (present := [doc_id for doc_id, _ in stored_sources(folder / INDEX)]):
        remove(folder / INDEX, present)
    VECTORS.act(folder)


@pytest.mark.parametrize("fault", [Fault.KILL, Fault.SECOND_KILL])
def test_documents_that_are_encoded_twice_are_found(fault: Fault, tmp_path: Path) -> None:
    expected = record(Operation("again", lambda _: None, _encoding_again, keeps=True), tmp_path / "clean")
    found = replayed(expected, fault, len(expected.recording.calls), np.random.default_rng(0), tmp_path / "case")
    assert len([problem for problem in found.problems if problem.startswith("lost or encoded twice: ")]) >= 14
