from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.figures import draw_figures, plot_quality
from benchmarks.measuring.latency import Percentiles
from benchmarks.probing.record import ProbeRecord
from benchmarks.record_file import write_record
from benchmarks.runs import Run, write_run
from benchmarks.scisumm.record import SummaryRecord
from benchmarks.speed.records import RecallRecord
from indexer.training.origin import Origin
from tests.benchmarks.made_runs import made_run

pytest.importorskip("matplotlib")


def retrieval(system: str, value: float, origin: Origin, **given: Any) -> Run:  # noqa: ANN401
    return made_run(system, [0.0, 2 * value], origin, seconds=value, **given)


def probe(origin: Origin, *, is_quick: bool) -> ProbeRecord:
    few = {"5": {"accuracy": [0.2, 0.4], "macro_f1": [0.2, 0.4]}}
    metrics = {"accuracy": 0.5, "macro_f1": 0.5}
    settings: dict[str, str | int | float | bool] = {"c": 1.0, "max_words": 0}
    return ProbeRecord(
        "news", "news@0", "tfidf", "", settings, is_quick, 2, 20, 4, 4, metrics, [0, 1], [], few, 0, 1.0, origin
    )


def summaries(origin: Origin) -> SummaryRecord:
    return SummaryRecord(
        task="citing-drawn",
        dataset="clscisumm@0",
        split="small",
        system="bm25",
        encoder="",
        settings={},
        is_trained_on_it=False,
        is_quick=False,
        n_queries=2,
        n_candidates=20.0,
        n_draws=20,
        metrics={f"P@{k}": 0.5 for k in range(1, 6)},
        deviations={},
        query_ids=["a", "b"],
        topic_ids=["a", "b"],
        per_query={f"P@{k}": [0.25, 0.75] for k in range(1, 6)},
        search_seconds=1.0,
        n_tokens=0,
        seconds=1.0,
        origin=origin,
    )


@pytest.fixture
def results(tmp_path: Path, origin: Origin) -> Path:
    folder = tmp_path / "results"
    for system, value in (("bm25", 0.2), ("evidence", 0.4)):
        write_run(retrieval(system, value, origin), folder)
    latencies = Percentiles(1, 2, 3), Percentiles(4, 5, 6)
    write_record(RecallRecord("pets", "IVF2,Flat", 1, 9, 9, 5, 4, 1, 0.9, 0.5, *latencies, origin), folder)
    write_record(probe(origin, is_quick=False), folder)
    write_record(probe(origin, is_quick=True), folder)
    write_record(summaries(origin), folder)
    return folder


def test_records_that_have_a_plot_are_drawn_in_both_formats(results: Path, tmp_path: Path) -> None:
    written = draw_figures(results, tmp_path / "plots")
    names = ["quality-pets-0", "recall", "few-shot-news-0", "precision-citing-drawn-small-0"]
    assert [path.name for path in written] == [f"{name}.{suffix}" for name in names for suffix in ("png", "svg")]
    assert sorted((tmp_path / "plots").iterdir()) == sorted(written)


def test_the_same_records_give_the_same_bytes(results: Path, tmp_path: Path) -> None:
    first, second = draw_figures(results, tmp_path / "one"), draw_figures(results, tmp_path / "two")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_other_data_of_a_task_has_a_file_of_its_own(results: Path, tmp_path: Path, origin: Origin) -> None:
    other = retrieval("bm25", 0.3, origin, dataset="pets@1")
    first, second = plot_quality([retrieval("bm25", 0.2, origin), other], tmp_path)[::2]
    assert (first.name, second.name) == ("quality-pets-0.png", "quality-pets-1.png")


def test_the_largest_set_of_queries_is_drawn(tmp_path: Path, origin: Origin) -> None:
    whole = retrieval("evidence", 0.4, origin)
    few = made_run("bm25", [0.4], origin)
    (alone, _), (both, _) = plot_quality([whole], tmp_path / "one"), plot_quality([few, whole], tmp_path / "two")
    assert alone.read_bytes() == both.read_bytes()


def test_quick_parts_and_encoders_trained_without_a_corpus_are_not_drawn(tmp_path: Path, origin: Origin) -> None:
    one = retrieval("evidence", 0.4, origin)
    assert plot_quality([replace(one, dataset="pets_quick@0"), replace(one, encoder="without-pets@1")], tmp_path) == []


def test_a_folder_without_records_gives_no_plots(tmp_path: Path) -> None:
    assert draw_figures(tmp_path, tmp_path / "plots") == []
