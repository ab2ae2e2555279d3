from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks.records import read_records
from benchmarks.speed.records import AnnRecord
from benchmarks.speed.vectors.index_types import Candidate, Library
from benchmarks.speed.vectors.vectors import main

SMALL = ["synthetic", "--quick", "--documents", "30", "--chunks", "6", "--width", "16", "--queries", "3"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def recorded(folder: Path) -> AnnRecord:
    (record,) = read_records(folder)
    assert isinstance(record, AnnRecord)
    return record


@pytest.mark.slow
def test_types_are_measured_in_processes_of_their_own(tmp_path: Path) -> None:
    done = run(*SMALL, "--libraries", "longmatch,faiss", "--build-threads", "1", "--out", tmp_path)
    assert done.exit_code == 0, done.output
    record = recorded(tmp_path)
    assert record.name == "ann-synthetic-180x16-k10-threads1-quick"
    assert (record.n_vectors, record.n_documents, record.width, record.n_query_chunks) == (180, 30, 16, 18)
    flat = next(build for build in record.builds if build.name == "faiss Flat")
    assert flat.points[0].document is not None
    assert (flat.points[0].chunk.recall, flat.points[0].document.recall) == (1.0, 1.0)
    assert flat.bytes_per_vector == pytest.approx(64, abs=1)
    assert 0 < flat.points[0].chunk.latency.p50_ms <= flat.points[0].chunk.latency.p99_ms
    assert record.origin.command.startswith("python -m benchmarks study vectors synthetic --documents 30")
    assert "| synthetic (180) | faiss Flat (" in done.output


@pytest.mark.slow
def test_a_type_that_fails_is_recorded_and_only_it_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second type has more product codes than numbers in a vector."""

    def tried(factory: str) -> None:
        types = [Candidate(Library.FAISS, "Flat", ("",)), Candidate(Library.FAISS, factory, ("",))]
        monkeypatch.setattr("benchmarks.speed.vectors.vectors.candidates", lambda *_, **__: types)

    options = [*SMALL, "--libraries", "faiss", "--build-threads", "1", "--out", tmp_path]
    tried("PQ17x4fs")
    failed = run(*options)
    assert failed.exit_code == 1
    assert "Error: faiss PQ17x4fs ended with 1 (" in failed.stderr and "1 of 2 failed" in failed.stderr
    before = recorded(tmp_path)
    assert ([build.factory for build in before.builds], list(before.failed)) == (["Flat"], ["faiss PQ17x4fs"])
    tried("SQ8")
    again = run(*options)
    after = recorded(tmp_path)
    assert again.exit_code == 0 and "1 types are kept from a run before" in again.stderr
    assert (after.builds[0], [build.factory for build in after.builds]) == (before.builds[0], ["Flat", "SQ8"])
    assert after.failed == {}


@pytest.mark.slow
def test_of_all_types_only_those_named_are_measured(tmp_path: Path) -> None:
    named = ["--libraries", "faiss", "--factory", "SQ8", "--factory", "HNSW16_SQ8"]
    assert run(*SMALL, *named, "--out", tmp_path).exit_code == 0
    record = recorded(tmp_path)
    assert [build.factory for build in record.builds] == ["SQ8", "HNSW16_SQ8"]
    assert "--factory SQ8 --factory HNSW16_SQ8" in record.origin.command
    unknown = run(*SMALL, "--libraries", "faiss", "--factory", "SQ7")
    assert unknown.exit_code == 1 and "'SQ7' is none of the types that are measured here: Flat" in unknown.stderr


def test_a_missing_index_is_reported_in_one_line(tmp_path: Path) -> None:
    assert run(tmp_path / "none.lm", "--libraries", "faiss").output.startswith("Error: ")
