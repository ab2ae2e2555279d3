"""Runs an operation once without a fault, and keeps its changes and the state of the index after each commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sqlalchemy import Connection

from benchmarks.faults.calls import Call, watch
from benchmarks.faults.children import in_child
from benchmarks.faults.crash_states import Recording, State, killed_state, read_state, write_state
from benchmarks.faults.operations import Operation
from benchmarks.store.contents import Contents, look, read_contents
from engine.errors import EngineError
from engine.store.writable import WritableIndex

QUERIES = 2
Visible: TypeAlias = frozenset[tuple[str, str, bool]] | None  # doc_id, hash, has vectors; None: no index to open


@dataclass(frozen=True)
class Expected:
    """An operation that was not interrupted."""

    operation: Operation
    recording: Recording
    visible: list[Visible]  # before, and after each commit
    contents: Contents  # at the end
    queries: list[str]

    def allowed(self, at: int) -> list[Visible]:
        """The allowed states if the run ended before call `at`: that of the last commit, or of the one in progress."""
        n_done = sum(made <= at for made in self.recording.acknowledged)
        return self.visible[n_done : n_done + 2]


def record(operation: Operation, work: Path) -> Expected:
    """Run an operation in a child, and record its changes, its states and its result.

    Args:
        operation: the operation.
        work: a folder for it; its content stays as the operation leaves it.
    """
    write_state({}, work)
    in_child(lambda: operation.begin(work))
    recording = in_child(lambda: _recorded(operation, work))
    queries = in_child(lambda: sorted(visible(work / operation.index) or ())[:QUERIES])
    names = [doc_id for doc_id, _, _ in queries]
    contents = in_child(lambda: read_contents(work / operation.index, names))
    states = [
        in_child(lambda at=at: _visible_in(killed_state(recording, at), work, operation))  # type: ignore[misc]
        for at in [0, *recording.acknowledged, len(recording.calls)]
    ]
    return Expected(operation, recording, states, contents, names)


def visible(index: Path) -> Visible:
    """The documents that a reader finds now; None where there is no index, or a damaged one."""
    try:
        found = look(index)
    except EngineError:
        return None
    return frozenset((name, one.content_hash, one.first_chunk is not None) for name, one in found.items())


def _visible_in(state: State, work: Path, operation: Operation) -> Visible:
    write_state(state, work)
    return visible(work / operation.index)


def _recorded(operation: Operation, work: Path) -> Recording:
    before, calls, acknowledged = read_state(work), list[Call](), list[int]()
    watch(work, calls.append)
    acknowledge(lambda: acknowledged.append(len(calls)))
    operation.act(work)
    return Recording(before, calls, acknowledged)


def acknowledge(report: Callable[[], None]) -> None:
    """Call a function after each transaction of this process, from now on."""
    original = WritableIndex._transaction

    @contextmanager
    def acknowledged(index: WritableIndex) -> Iterator[Connection]:
        with original(index) as connection:
            yield connection
        report()

    WritableIndex._transaction = acknowledged  # type: ignore[assignment, method-assign]
