"""Changes of a folder are recorded, those of SQLite included, and can be made to fail."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.faults.calls import Call, Change, watch
from benchmarks.faults.children import ChildDied, in_child
from benchmarks.faults.crash_states import Recording, killed_state, read_state
from engine.store.durable import write_durably


def _change(folder: Path) -> None:
    write_durably(folder / "a", lambda path: _write(path, "one"))
    with closing(sqlite3.connect(folder / "b.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 50)
        connection.commit()
    (folder / "a").unlink()


def _write(path: Path, text: str) -> None:
    path.write_text(text)


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

    with pytest.raises(ChildDied, match="ended with -9"):
        in_child(run)
    assert _without_salt(killed_state(Recording({}, calls, []), at)) == _without_salt(read_state(tmp_path / "killed"))


def _without_salt(state: dict[str, bytes | None]) -> dict[str, int]:
    """Sizes of files, because the log of SQLite holds random numbers; it is empty before its first write."""
    return {place: len(content) for place, content in state.items() if content}


def test_a_failing_write_of_sqlite_is_an_error_of_sqlite(tmp_path: Path) -> None:
    def fail(call: Call) -> None:
        if call.change is Change.WRITE and call.path == "b.sqlite-wal":
            raise OSError(errno.ENOSPC, "full")

    def run() -> str:
        watch(tmp_path, fail)
        try:
            _change(tmp_path)
        except sqlite3.OperationalError as error:
            return str(error)
        return "no error"

    assert in_child(run) == "database or disk is full"


def test_a_child_that_hangs_is_killed() -> None:
    with pytest.raises(ChildDied, match="no end after"):
        in_child(lambda: signal.pause(), seconds=0.2)
