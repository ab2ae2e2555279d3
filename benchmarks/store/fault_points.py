"""Kills this process just before or after one of its durable steps: rename, fsync, commit, checkpoint, unlink."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SQL_STEPS = ("PRAGMA wal_checkpoint", "PRAGMA journal_mode", "VACUUM")
_PATH_STEPS = ("replace", "rename", "unlink", "remove", "mkdir", "rmdir")


@dataclass(frozen=True)
class FaultPoint:
    """A moment in a run of a program whose steps come in the same order every time."""

    step: int  # from 0
    is_after: bool


class _Steps:
    """Counts the steps that touch one folder, writes each down, and kills at one of them."""

    def __init__(self, folder: Path, log: Path, fault: FaultPoint | None) -> None:
        self._folder = os.path.realpath(folder)
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._fault = fault
        self._count = 0
        self._in_log_mode: set[str] = set()

    def concerns(self, path: str) -> bool:
        return os.path.realpath(path).startswith(self._folder)

    def is_news(self, sql: str, path: str) -> bool:
        """False for a journal mode that was set before: every connection sets it, only the first changes a file."""
        is_old = sql.startswith("PRAGMA journal_mode") and path in self._in_log_mode
        self._in_log_mode.add(path)
        return not is_old

    def around(self, name: str, path: str, step: Callable[[], Any]) -> Any:  # noqa: ANN401
        number, self._count = self._count, self._count + 1
        place = os.path.relpath(os.path.realpath(path), self._folder)
        self._kill_at(FaultPoint(number, is_after=False))
        try:
            return step()
        finally:  # a step that fails is counted too: a folder that was there already
            os.write(self._log, f"{name} {place}\n".encode())
            self._kill_at(FaultPoint(number, is_after=True))

    def _kill_at(self, here: FaultPoint) -> None:
        if here == self._fault:
            os.kill(os.getpid(), signal.SIGKILL)


def watch(folder: Path, log: Path, fault: FaultPoint | None = None) -> None:
    """Write down every durable step of this process below a folder from now on, and die at one of them.

    Args:
        folder: the index.
        log: gets a line a step, after it: its name and its place below the folder.
        fault: where to die; nowhere without.
    """
    steps = _Steps(folder, log, fault)
    for name in _PATH_STEPS:
        setattr(os, name, _watched(name, getattr(os, name), steps))
    setattr(os, "fsync", _watched_fsync(os.fsync, steps))  # noqa: B010 - mypy lets no function be replaced
    sqlite3.dbapi2.connect = _watched_connect(sqlite3.dbapi2.connect, steps)  # type: ignore[assignment]


def read_steps(log: Path) -> list[str]:
    """The steps that were written down, in order."""
    return log.read_text().splitlines() if log.exists() else []


def _watched(name: str, original: Callable[..., Any], steps: _Steps) -> Callable[..., Any]:
    def step(path: Any, *rest: Any, **named: Any) -> Any:  # noqa: ANN401
        text = os.fspath(path) if not isinstance(path, int) else ""
        if not isinstance(text, str) or not steps.concerns(text):
            return original(path, *rest, **named)
        return steps.around(name, text, lambda: original(path, *rest, **named))

    return step


def _watched_fsync(original: Callable[[Any], None], steps: _Steps) -> Callable[[Any], None]:
    def fsync(descriptor: Any) -> None:  # noqa: ANN401
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        if steps.concerns(path):
            steps.around("fsync", path, lambda: original(descriptor))
        else:
            original(descriptor)

    return fsync


def _watched_connect(original: Callable[..., sqlite3.Connection], steps: _Steps) -> Callable[..., sqlite3.Connection]:
    class Watched(sqlite3.Connection):
        def commit(self) -> None:
            if self.in_transaction:
                steps.around("commit", _file_of(self), super().commit)

        def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:  # noqa: ANN401
            run = super().execute
            if sql.startswith(_SQL_STEPS) and steps.is_news(sql, _file_of(self)):
                done: sqlite3.Cursor = steps.around(sql.split("(")[0], _file_of(self), lambda: run(sql, *rest))
                return done
            return run(sql, *rest)

    return lambda *arguments, **named: original(*arguments, **{**named, "factory": Watched})


def _file_of(connection: sqlite3.Connection) -> str:
    cursor = sqlite3.Connection.cursor(connection)
    return str(cursor.execute("PRAGMA database_list").fetchone()[2])
