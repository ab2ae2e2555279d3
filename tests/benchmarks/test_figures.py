from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.figures import draw_figures, plot_quality
from benchmarks.measuring.timing import Percentiles
from benchmarks.record_file import write_record
from benchmarks.runs import Run, write_run
from benchmarks.speed.recall import RecallRecord
from indexer.origin import Origin
from tests.benchmarks.made_runs import made_run

pytest.importorskip("matplotlib")


def retrieval(system: str, value: float, origin: Origin, **given: Any) -> Run:  # noqa: ANN401
    return made_run(system, [0.0, 2 * value], origin, seconds=value, **given)


@pytest.fixture
def results(tmp_path: Path, origin: Origin) -> Path:
    folder = tmp_path / "results"
    for system, value in (("bm25", 0.2), ("evidence", 0.4)):
        write_run(retrieval(system, value, origin), folder)
    latencies = Percentiles(1, 2, 3), Percentiles(4, 5, 6)
    write_record(RecallRecord("pets", "IVF2,Flat", 1, 9, 9, 5, 4, 1, 0.9, 0.5, *latencies, origin), folder)
    return folder


@pytest.mark.slow
def test_records_that_have_a_plot_are_drawn_in_both_formats(results: Path, tmp_path: Path) -> None:
    written, again = draw_figures(results, tmp_path / "plots"), draw_figures(results, tmp_path / "again")
    assert [path.read_bytes() for path in written] == [path.read_bytes() for path in again]
    names = ["quality-pets-0", "recall"]
    assert [path.name for path in written] == [f"{name}.{suffix}" for name in names for suffix in ("png", "svg")]
    assert sorted((tmp_path / "plots").iterdir()) == sorted(written)


def test_other_data_of_a_task_has_a_file_of_its_own(tmp_path: Path, origin: Origin) -> None:
    other = retrieval("bm25", 0.3, origin, dataset="pets@1")
    first, second = plot_quality([retrieval("bm25", 0.2, origin), other], tmp_path)[::2]
    assert (first.name, second.name) == ("quality-pets-0.png", "quality-pets-1.png")


@pytest.mark.slow
def test_the_largest_set_of_queries_is_drawn(tmp_path: Path, origin: Origin) -> None:
    whole = retrieval("evidence", 0.4, origin)
    few = made_run("bm25", [0.4], origin)
    (alone, _), (both, _) = plot_quality([whole], tmp_path / "one"), plot_quality([few, whole], tmp_path / "two")
    assert alone.read_bytes() == both.read_bytes()


def test_quick_parts_are_not_drawn(tmp_path: Path, origin: Origin) -> None:
    one = retrieval("evidence", 0.4, origin)
    assert plot_quality([replace(one, dataset="pets_quick@0")], tmp_path) == []
