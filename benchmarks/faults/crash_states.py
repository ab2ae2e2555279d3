"""The possible states of a folder after a kill or a loss of power, replayed from the recorded changes of one run.

After a kill everything that the process wrote is present. After a loss of power a write that no later sync of its file
covers can be missing or torn, and a name that no later sync of its folder covers can be the old one.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import numpy as np

from benchmarks.faults.calls import Call, Change

SECTOR_BYTES = 512  # written as a whole, or not at all
State: TypeAlias = dict[str, bytes | None]  # by place below the folder; None for a folder


@dataclass(frozen=True)
class Recording:
    """One run of an operation."""

    before: State
    calls: list[Call]
    acknowledged: list[int]  # calls made before each commit was reported as done


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
            case _:  # an empty file has only its name, which a sync of its folder makes durable
                pending[number] = (
                    {call.path}
                    if call.data or call.change is not Change.CONTENT
                    else {
                        call.path,
                        _folder(call.path),
                    }
                )
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
            moved = [place for place in state if place == call.path or place.startswith(f"{call.path}/")]
            for place in moved:
                state[call.other + place[len(call.path) :]] = state.pop(place)


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
