from __future__ import annotations

from pathlib import Path

from benchmarks.measuring.latency import Percentiles
from benchmarks.record_file import write_record
from benchmarks.records import read_records
from benchmarks.report import drawn
from benchmarks.scaling.addition_record import AdditionRecord, Stage
from indexer.training.origin import Origin


def _record(origin: Origin) -> AdditionRecord:
    def stage(p50: float, n_vectors: int, nprobe: int) -> Stage:
        return Stage(Percentiles(p50, 40.0, 50.0), n_vectors, nprobe, 0.98)

    return AdditionRecord(
        source="papers@0123456789ab",
        is_quick=False,
        n_documents=25_000,
        n_chunks=1_000_000,
        factory="IVF4096,PQ192x4fs",
        n_added=1_000,
        n_added_chunks=40_000,
        commit_seconds=1.25,
        answer_seconds=0.75,
        n_asked=20,
        n_found=20,
        outcome="joined",
        join_seconds=12.5,
        build_seconds=111.4,
        encode_seconds=300.0,
        before=stage(30.0, 1_000_000, 144),
        committed=stage(35.0, 1_000_000, 144),
        after=stage(31.0, 1_040_000, 160),
        n_queries=100,
        k=10,
        threads=2,
        origin=origin,
    )


def test_a_row_tells_what_adding_took_and_what_queries_saw(origin: Origin) -> None:
    row = drawn("<!-- results:additions -->\n<!-- /results -->", [_record(origin)]).splitlines()[3]
    assert row.startswith("| papers | 25,000 | 1,000,000 | 1,000 | 40,000 | 1.2 | 0.75 | 20 of 20 |")
    assert row.endswith("| 12.5 | 111 | 300 | 30.0 / 35.0 / 31.0 | 144 / 160 | 0.980 / 0.980 |")


def test_a_record_is_read_as_it_was_written(tmp_path: Path, origin: Origin) -> None:
    write_record(_record(origin), tmp_path)
    assert read_records(tmp_path) == [_record(origin)]
    assert (tmp_path / "addition-papers-1000000-1000.json").exists()
