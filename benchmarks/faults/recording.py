"""The recorded changes of one run of an operation, and the folders that a kill or a loss of power during it can leave.

After a kill everything that the process wrote is present. After a loss of power a write that no later sync of its file
covers can be missing or torn, and a name that no later sync of its folder covers can be the old one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import numpy as np
from sqlalchemy import Connection

from benchmarks.faults.calls import Call, Change, watch
from benchmarks.faults.operations import Operation
from benchmarks.measuring.isolation import in_child
from benchmarks.store.contents import Contents, look, read_contents
from engine.errors import EngineError
from engine.store.writable import WritableIndex

N_QUERIES = 2
SECTOR_BYTES = 512  # written as a whole, or not at all
State: TypeAlias = dict[str, bytes | None]  # by place below the folder; None for a folder
Visible: TypeAlias = frozenset[tuple[str, str, bool]] | None  # doc_id, hash, has vectors; None: no index to open


@dataclass(frozen=True)
class Recording:
    """One run of an operation."""

    before: State
    calls: list[Call]
    acknowledged: list[int]  # calls made before each commit was reported as done


@dataclass(frozen=True)
class Expected:
    """An operation that was not interrupted."""

    operation: Operation
    recording: Recording
    visible: list[Visible]  # before, and after each commit
    contents: Contents  # at the end

    def allowed(self, at: int) -> list[Visible]:
        """The allowed states if the run ended before call `at`: that of the last commit, or of the one in progress."""
        n_done = sum(made <= at for made in self.recording.acknowledged)
        return self.visible[n_done : n_done + 2]


def record(operation: Operation, work: Path) -> Expected:
    """Run an operation in the folder `work`, in a child; record its changes, its states and its result."""
    index = work / operation.index

    def recorded() -> Recording:
        before, calls, acknowledged = read_state(work), list[Call](), list[int]()
        watch(work, calls.append)
        acknowledge(lambda: acknowledged.append(len(calls)))
        operation.act(work)
        return Recording(before, calls, acknowledged)

    def visible_at(at: int) -> Visible:
        write_state(killed_state(recording, at), work)
        return visible(index)

    write_state({}, work)
    in_child(lambda: operation.begin(work))
    recording = in_child(recorded)
    contents = in_child(lambda: queried(index))
    commits = [0, *recording.acknowledged, len(recording.calls)]
    states = [in_child(lambda at=at: visible_at(at)) for at in commits]  # type: ignore[misc]
    return Expected(operation, recording, states, contents)


def queried(index: Path) -> Contents:
    """The contents of an index, with the hits of its first documents by name."""
    names = sorted(doc_id for doc_id, _, _ in visible(index) or ())
    return read_contents(index, names[:N_QUERIES])


def visible(index: Path) -> Visible:
    """The documents that a reader finds now; None where there is no index, or a damaged one."""
    try:
        found = look(index)
    except EngineError:
        return None
    return frozenset((name, one.content_hash, one.first_chunk is not None) for name, one in found.items())


def acknowledge(report: Callable[[], None]) -> None:
    """Call a function after each transaction of this process, from now on."""
    original = WritableIndex._transaction

    @contextmanager
    def acknowledged(index: WritableIndex) -> Iterator[Connection]:
        with original(index) as connection:
            yield connection
        report()

    WritableIndex._transaction = acknowledged  # type: ignore[assignment, method-assign]


def read_state(folder: Path) -> State:
    """The content of a folder, without the shared memory of SQLite, which need not survive a crash."""
    return {
        path.relative_to(folder).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith("-shm")
    }


def write_state(state: State, folder: Path) -> None:
    """Make a folder hold a state, and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for place in sorted(state):
        content, path = state[place], folder / place
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def killed_state(recording: Recording, at: int) -> State:
    """The folder if the process was killed before call `at`."""
    state = dict(recording.before)
    for call in recording.calls[:at]:
        _apply(state, call)
    return state


def crashed_state(recording: Recording, at: int, rng: np.random.Generator) -> State:
    """A possible folder after a loss of power before call `at`: some changes that were not synced are missing."""
    pending = unsynced(recording.calls[:at])
    state = dict(recording.before)
    for number, call in enumerate(recording.calls[:at]):
        if number not in pending or rng.random() < 0.5:
            _apply(state, call)
        elif call.change in (Change.WRITE, Change.CONTENT) and rng.random() < 0.7:
            _apply_torn(state, call, rng)
    return state


def unsynced(calls: Sequence[Call]) -> Collection[int]:
    """Numbers of the calls that no later call made durable."""
    pending: dict[int, set[str]] = {}  # by number of a call: the places whose sync makes it durable
    made: dict[int, str] = {}  # folders by number of their call: durable as soon as something in them is synced
    for number, call in enumerate(calls):
        match call.change:
            case Change.SYNC | Change.SYNC_FOLDER:
                pending = {
                    one: wanted
                    for one, wanted in pending.items()
                    if call.path not in wanted and not (one in made and f"{call.path}/".startswith(f"{made[one]}/"))
                }
            case Change.RENAME:
                for wanted in pending.values():  # pending changes move with the file or folder to its new name
                    wanted |= {_moved(place, call) for place in wanted}
                made = {one: _moved(place, call) for one, place in made.items()}
                pending[number] = {_folder(call.path), _folder(call.other)}
            case Change.MKDIR:
                pending[number], made[number] = {_folder(call.path)}, call.path
            case Change.UNLINK | Change.RMDIR:
                pending[number] = {_folder(call.path)}
            case Change.CONTENT if not call.data:  # only a name, which a sync of its folder makes durable
                pending[number] = {call.path, _folder(call.path)}
            case _:
                pending[number] = {call.path}
    return pending.keys()


def _moved(place: str, rename: Call) -> str:
    is_moved = f"{place}/".startswith(f"{rename.path}/")
    return rename.other + place[len(rename.path) :] if is_moved else place


def _folder(place: str) -> str:
    return PurePosixPath(place).parent.as_posix()


def _apply(state: State, call: Call) -> None:
    old = state.get(call.path) or b""
    match call.change:
        case Change.WRITE:
            padded = old.ljust(call.offset, b"\0")
            state[call.path] = padded[: call.offset] + call.data + padded[call.offset + len(call.data) :]
        case Change.TRUNCATE:
            state[call.path] = old[: call.offset].ljust(call.offset, b"\0")
        case Change.CONTENT:
            state[call.path] = call.data
        case Change.MKDIR:
            state[call.path] = None
        case Change.UNLINK | Change.RMDIR:
            state.pop(call.path, None)
        case Change.RENAME:
            for place in list(state):
                state[_moved(place, call)] = state.pop(place)


def _apply_torn(state: State, call: Call, rng: np.random.Generator) -> None:
    """Write only some sectors; of a whole file, only a beginning, at random with zeros in place of the rest."""
    if call.change is Change.CONTENT:
        length = int(rng.integers(len(call.data) + 1))
        zeros = bytes(len(call.data) - length) if rng.random() < 0.5 else b""
        state[call.path] = call.data[:length] + zeros
        return
    for first in range(0, len(call.data), SECTOR_BYTES):
        if rng.random() < 0.5:
            data = call.data[first : first + SECTOR_BYTES]
            _apply(state, Call(Change.WRITE, call.path, offset=call.offset + first, data=data))
