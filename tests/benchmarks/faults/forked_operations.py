"""Tests that fork: `test_faults.py` runs them in a process of their own, which has used no threads before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.faults.interruptions import Fault, injected, replayed
from benchmarks.faults.operations import ENCODER, INDEX, OPERATIONS, Operation
from benchmarks.faults.recording import record
from engine.store.presence import stored_sources
from engine.store.shards import SHARD_FOLDER
from indexer.building.builder import build
from indexer.upkeep.removal import remove


def _forgetful(folder: Path) -> None:
    """Loses a file that its first run committed, as no operation should."""
    is_again = (folder / INDEX).exists()
    documents = next(one for one in OPERATIONS if one.name == "index vectors")
    documents.act(folder)
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
    operation = next(one for one in OPERATIONS if one.name == "remove")
    expected = record(operation, tmp_path / "clean")
    careless = Operation("careless", operation.begin, _careless)
    found = injected(
        type(expected)(careless, expected.recording, expected.visible, expected.contents, expected.queries),
        Fault.IO_ERROR,
        10_000,
        tmp_path / "case",
    )
    assert "builtins.ValueError: not of the engine" in found.problems[0]


def _encoding_again(folder: Path) -> None:
    """Removes what its first run committed and encodes it again: the same contents, twice the cost."""
    if (folder / INDEX).exists() and (present := [doc_id for doc_id, _ in stored_sources(folder / INDEX)]):
        remove(folder / INDEX, present)
    next(one for one in OPERATIONS if one.name == "index vectors").act(folder)


@pytest.mark.parametrize("fault", [Fault.KILL, Fault.SECOND_KILL])
def test_documents_that_are_encoded_twice_are_found(fault: Fault, tmp_path: Path) -> None:
    expected = record(Operation("again", lambda _: None, _encoding_again, keeps=True), tmp_path / "clean")
    found = replayed(expected, fault, len(expected.recording.calls), np.random.default_rng(0), tmp_path / "case")
    assert len([problem for problem in found.problems if problem.startswith("lost or encoded twice: ")]) >= 14
