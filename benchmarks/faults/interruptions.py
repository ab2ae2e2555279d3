"""One interrupted operation: the documents that a reader finds, and the result of running the command again."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import numpy as np

from benchmarks.faults.calls import Call, Change, watch
from benchmarks.faults.recording import (
    Expected,
    Visible,
    acknowledge,
    crashed_state,
    killed_state,
    visible,
    write_state,
)
from benchmarks.faults.records import Case
from benchmarks.measuring.isolation import ProcessFailed, described, in_child
from benchmarks.store.contents import Seen, compare, look, read_contents
from engine.errors import EngineError
from indexer.upkeep.verify import verify


class Fault(StrEnum):
    """What interrupts an operation."""

    KILL = "kill"  # the state at a kill, replayed
    SECOND_KILL = "kill of the run after a kill"  # the first kill is replayed; the second one is real
    CRASH = "loss of power"  # the state after a loss of power, replayed
    IO_ERROR = "I/O error"  # of one call: EIO; half of the bytes are written
    DISK_FULL = "disk full"  # from one call on: ENOSPC, until the command is run again
    SHORT_WRITE = "short write"  # a limit of file sizes, from one call on: a full disk as libraries see it
    VANISHED = "vanished file"  # another program deletes a file of the index


def replayed(expected: Expected, fault: Fault, at: int, rng: np.random.Generator, work: Path) -> Case:
    """Lay out the state of a kill or a loss of power before call `at`, check it, and run the command again."""
    recording = expected.recording
    state = crashed_state(recording, at, rng) if fault is Fault.CRASH else killed_state(recording, at)
    n_calls = int(rng.integers(len(recording.calls) + 1))

    def case() -> Case:
        found = Case()
        write_state(state, work)
        _check_seen(found, visible(work / expected.operation.index), expected.allowed(at))
        if fault is Fault.SECOND_KILL:
            _kill_next_run(found, expected, n_calls, work)
        _finish(found, expected, work)
        return found

    return _answer(case)


def _kill_next_run(found: Case, expected: Expected, n_calls: int, work: Path) -> None:
    """Run the command again in a child, which is killed before its call `n_calls`, if it makes that many."""
    before = _kept(expected, work)
    left = iter(range(n_calls))

    def kill(_: Call) -> None:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    def run() -> None:
        watch(work, kill)
        expected.operation.act(work)

    with suppress(ProcessFailed):
        in_child(run)
    _check_kept(found, before, _kept(expected, work))


def injected(expected: Expected, fault: Fault, at: int, work: Path) -> Case:
    """Run the operation with a fault at call `at`, check the result, and run it again in the same process."""

    def case() -> Case:
        found, hook = Case(), _Injection(fault, at, expected, work)
        write_state(expected.recording.before, work)
        watch(work, hook)
        acknowledge(hook.acknowledge)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        with found.guarded("the operation", "named"):
            expected.operation.act(work)
            found.outcomes.add("passed")
        hook.is_over = True
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        if fault is Fault.VANISHED:
            _check_loss(found, expected, work)
            return found
        allowed = expected.visible[hook.n_acknowledged : hook.n_acknowledged + 2]
        _check_seen(found, visible(work / expected.operation.index), allowed)
        _finish(found, expected, work)
        return found

    return _answer(case)


def _answer(case: Callable[[], Case]) -> Case:
    try:
        return in_child(case)
    except ProcessFailed as error:
        return Case(problems=[str(error)])


class _Injection:
    """A hook that counts calls, and makes some of them fail."""

    def __init__(self, fault: Fault, at: int, expected: Expected, work: Path) -> None:
        self._fault, self._at, self._work = fault, at, work
        self._index = expected.operation.index
        sizes = [len(call.data) for call in expected.recording.calls[at:] if call.change is Change.CONTENT]
        self._limit = max(1, (sizes or [2])[0] // 2)  # of a short write: half of the next file
        self._n_calls = 0
        self.n_acknowledged = 0
        self.is_over = False

    def acknowledge(self) -> None:
        self.n_acknowledged += not self.is_over

    def __call__(self, call: Call) -> None:
        number, self._n_calls = self._n_calls, self._n_calls + 1
        if self.is_over or number < self._at:
            return
        match self._fault:
            case Fault.IO_ERROR if number == self._at:
                raise OSError(errno.EIO, "Input/output error", str(self._work / call.path))
            case Fault.DISK_FULL if call.change not in (Change.UNLINK, Change.RMDIR, Change.TRUNCATE):
                raise OSError(errno.ENOSPC, "No space left on device", str(self._work / call.path))
            case Fault.SHORT_WRITE if number == self._at:
                resource.setrlimit(resource.RLIMIT_FSIZE, (self._limit, resource.RLIM_INFINITY))
            case Fault.VANISHED if number == self._at:
                files = [*(self._work / self._index).rglob("*.safetensors"), *self._work.rglob("*.faiss")]
                if files:
                    sorted(files)[self._at % len(files)].unlink()


def _check_seen(found: Case, seen: Visible, allowed: list[Visible]) -> None:
    if seen is None and None not in allowed:
        found.outcomes.add("refused")
    elif seen not in allowed:
        found.problems.append(f"a reader saw {_count(seen)} documents, not {' or '.join(map(_count, allowed))}")


def _count(seen: Visible) -> str:
    return "no" if seen is None else str(len(seen))


def _finish(found: Case, expected: Expected, work: Path) -> None:
    """Run the command again; the index must be as if nothing had happened."""
    index = work / expected.operation.index
    before = _kept(expected, work)
    try:
        expected.operation.act(work)
        _check_kept(found, before, _kept(expected, work))
        if findings := verify(index):
            found.problems.append(f"verify after the next run: {findings}")
        difference = compare(read_contents(index, list(expected.contents.hits)), expected.contents)
    except Exception as error:  # noqa: BLE001 - any error here needs a step by hand
        found.problems.append(f"the next run: {described(error)}")
        return
    if not difference.is_none:
        found.problems.append(f"the next run made another index: {difference}")


def _kept(expected: Expected, work: Path) -> dict[str, Seen]:
    """The documents that must stay unchanged; none without an index, or if the operation keeps none."""
    try:
        return look(work / expected.operation.index) if expected.operation.keeps else {}
    except EngineError:
        return {}


def _check_kept(found: Case, before: dict[str, Seen], after: dict[str, Seen]) -> None:
    """No document may be lost, indexed or encoded again."""
    for doc_id, seen in before.items():
        now = after.get(doc_id)
        if now is None or now.id != seen.id or seen.first_chunk not in (None, now.first_chunk):
            found.problems.append(f"lost or encoded twice: {doc_id} was {seen} and is {now}")


def _check_loss(found: Case, expected: Expected, work: Path) -> None:
    """After a file vanished, answers must be right or refused, and `verify` must not crash."""
    index = work / expected.operation.index
    known = {content_hash for state in expected.visible for _, content_hash, _ in state or ()}
    with found.guarded("with a file gone", "refused"):
        is_there = visible(index) is not None
        verify(index)
        documents = read_contents(index, []).documents if is_there else {}
        if wrong := [name for name, one in documents.items() if one.content_hash not in known]:
            found.problems.append(f"with a file gone, documents that nobody indexed: {wrong}")
