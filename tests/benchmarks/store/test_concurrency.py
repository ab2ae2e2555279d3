from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from benchmarks.faults.encoder import WordEncoder
from benchmarks.store.concurrency import percentiles, read, tally_of, together, write
from benchmarks.synthetic import SHORT, documents
from indexer.building.builder import build

TEXTS = list(documents(SHORT, 40))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    build(tmp_path / "x.lm", TEXTS, encoder=WordEncoder(), factory="Flat", recall_floor=0.3)
    return tmp_path / "x.lm"


@pytest.mark.slow
def test_readers_beside_a_writer_meet_no_error(path: Path) -> None:
    writer, *readers = together([(write, (path, TEXTS, 0, 0.05)), *((read, (path, seed, 0.05)) for seed in (0, 1))], 15)
    assert [one.errors for one in (writer, *readers)] == [[], [], []]
    assert sum(writer.changes.values()) > 0 and all(one.query_ms for one in readers)


@pytest.mark.slow
def test_the_error_of_a_process_is_kept_in_its_place(path: Path) -> None:
    failed, read_well = together([(read, (path.with_name("none.lm"), 0, 0.05)), (read, (path, 0, 0.05))], 5)
    assert failed.n_errors == 1 and failed.errors[0].startswith("the process: ") and "none.lm" in failed.errors[0]
    assert (read_well.n_errors, read_well.errors) == (0, []) and read_well.query_ms


def test_a_process_that_dies_is_an_error() -> None:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=os._exit, args=(3,))
    process.start()
    sender.close()
    assert tally_of(process, receiver).errors == ["the process: ended with exit code 3"]


def test_percentiles_of_times() -> None:
    assert percentiles([]) == (0.0, 0.0)
    assert percentiles([float(ms) for ms in range(101)]) == (50.0, 99.0)
