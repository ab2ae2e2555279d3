from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.figures import draw_figures, plot_quality
from benchmarks.measuring.latency import Percentiles
from benchmarks.record_file import write_record
from benchmarks.runs import Case, Run, write_run
from benchmarks.speed.records import RecallRecord
from indexer.training.origin import Origin
from tests.benchmarks.made_runs import made_run

pytest.importorskip("matplotlib")


def retrieval(system: str, value: float, origin: Origin, **given: Any) -> Run:  # noqa: ANN401
    return made_run(system, [0.0, 2 * value], origin, seconds=value, **given)


def probe(origin: Origin, corpus: str) -> Run:
    few = {"5": {"accuracy": [0.2, 0.4], "macro_f1": [0.2, 0.4]}}
    details = {"is_pairs": False, "max_words": 0, "n_classes": 2, "n_train": 20, "n_valid": 4, "macro_f1": 0.5}
    cases = [Case(id="a", values={"accuracy": 1.0}), Case(id="b", values={"accuracy": 0.0})]
    made = made_run("tfidf", [], origin, corpus, task="probe", details={**details, "few_shot": few})
    return replace(made, cases=cases)


def summaries(origin: Origin) -> Run:
    details = {"name": "citing-drawn", "is_trained_on_it": False, "n_candidates": 20.0, "n_draws": 20, "deviations": {}}
    values = {f"P@{k}": 0.5 for k in range(1, 6)}
    cases = [Case(id=name, values=values, group=name) for name in ("a", "b")]
    made = made_run("bm25", [], origin, "clscisumm", task="summaries", split="small", details=details)
    return replace(made, cases=cases)


@pytest.fixture
def results(tmp_path: Path, origin: Origin) -> Path:
    folder = tmp_path / "results"
    for system, value in (("bm25", 0.2), ("evidence", 0.4)):
        write_run(retrieval(system, value, origin), folder)
    latencies = Percentiles(1, 2, 3), Percentiles(4, 5, 6)
    write_record(RecallRecord("pets", "IVF2,Flat", 1, 9, 9, 5, 4, 1, 0.9, 0.5, *latencies, origin), folder)
    for run in (probe(origin, "news"), probe(origin, "news_quick"), summaries(origin)):
        write_run(run, folder)
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
