"""States after a kill or a loss of power: what the system may leave, and nothing else."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.calls import Call, Change
from benchmarks.faults.recording import Recording, State, crashed_state, killed_state, unsynced

_SAVE = [
    Call(Change.CONTENT, "x.tmp", data=b"new"),
    Call(Change.SYNC, "x.tmp"),
    Call(Change.RENAME, "x.tmp", "x"),
    Call(Change.SYNC_FOLDER, "."),
]


def _crashes(before: State, calls: list[Call], at: int) -> set[frozenset[tuple[str, bytes | None]]]:
    rng, recording = np.random.default_rng(0), Recording(before, calls, [])
    return {frozenset(crashed_state(recording, at, rng).items()) for _ in range(200)}


def test_a_kill_leaves_everything_that_was_done() -> None:
    recording = Recording({"x": b"old"}, _SAVE, [])
    assert killed_state(recording, 1) == {"x": b"old", "x.tmp": b"new"}
    assert killed_state(recording, 3) == {"x": b"new"}


def test_a_synced_file_may_have_its_old_name_until_the_folder_is_synced() -> None:
    old, new = frozenset({("x", b"old"), ("x.tmp", b"new")}), frozenset({("x", b"new")})
    assert _crashes({"x": b"old"}, _SAVE, 3) == {old, new}
    assert _crashes({"x": b"old"}, _SAVE, 4) == {new}


def test_a_file_that_was_not_synced_may_be_missing_torn_or_zero() -> None:
    contents = {dict(state).get("x.tmp") for state in _crashes({}, _SAVE, 1)}
    assert {None, b"", b"new", b"n", b"n\0\0", b"\0\0\0"} <= contents
    assert contents <= {None, b"", b"n", b"ne", b"new", b"\0\0\0", b"n\0\0", b"ne\0"}


def test_a_write_is_torn_at_sectors() -> None:
    calls = [Call(Change.WRITE, "x", offset=512, data=b"a" * 512 + b"b" * 512)]
    states = {dict(state)["x"] for state in _crashes({"x": bytes(1536)}, calls, 1)}
    firsts, seconds = (bytes(512), b"a" * 512), (bytes(512), b"b" * 512)
    assert states == {bytes(512) + first + second for first in firsts for second in seconds}


def test_bytes_go_with_a_renamed_folder() -> None:
    calls = [
        Call(Change.MKDIR, "new"),
        Call(Change.CONTENT, "new/x", data=b"1"),
        Call(Change.RENAME, "new", "old"),
        Call(Change.SYNC, "old/x"),
    ]
    assert set(unsynced(calls)) == {2}
    assert killed_state(Recording({}, calls, []), 4) == {"old": None, "old/x": b"1"}
