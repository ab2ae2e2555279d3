from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.runs import Run
from benchmarks.significance import bootstrap_interval
from benchmarks.tables.quality import buckets, length_table, overview_table, saw_corpus
from indexer.origin import Origin
from tests.benchmarks.made_runs import made_run

N = 8


@pytest.fixture
def runs(origin: Origin) -> list[Run]:
    values = {"evidence": 0.75, "document": 0.5, "bm25": 0.25}
    return [
        made_run(system, [value] * N, origin, task, encoder="" if system == "bm25" else "mean@0f")
        for task in ("rfc", "proposals")
        for system, value in values.items()
    ]


def test_systems_not_significantly_behind_the_best_are_marked(runs: list[Run], origin: Origin) -> None:
    runs[1] = made_run("document", [1.0, 0.0] * (N // 2), origin, "rfc", encoder="mean@0f")
    assert "| document, mean |  | 0.500 | 0.500 = |" in overview_table(runs)


def test_a_system_that_misses_a_task_is_left_out(runs: list[Run]) -> None:
    assert "document" not in overview_table([run for run in runs if run is not runs[1]])
    assert "bm25" not in overview_table([*runs[:2], *runs[3:]])


@pytest.mark.parametrize(
    ("lengths", "n_buckets", "cut"),
    [
        ([50, 10, 40, 20, 30, 60], 3, [[1, 3], [2, 4], [0, 5]]),
        ([7, 7, 7, 7, 9], 4, [[0, 1, 2, 3], [4]]),
        ([3], 4, [[0]]),
    ],
)
def test_buckets_rise_and_equal_lengths_stay_together(
    lengths: list[float], n_buckets: int, cut: list[list[int]]
) -> None:
    assert [places.tolist() for places in buckets(np.array(lengths, np.float64), n_buckets)] == cut


def with_words(run: Run, words: list[float | None]) -> Run:
    facts: list[dict[str, float]] = [{} if n is None else {"target_words": n} for n in words]
    return replace(run, cases=[replace(case, facts=own) for case, own in zip(run.cases, facts, strict=True)])


def test_a_bucket_has_the_mean_of_its_queries_and_an_interval(origin: Origin) -> None:
    run = with_words(made_run("bm25", [1.0, 0.5, 0.25, 0.25], origin), [10, 2000, 30, 1000])
    rows = length_table([run]).splitlines()[2:4]
    spans = " | ".join(f"{n:,} to {n:,} (1)" for n in (10, 30, 1000, 2000))
    assert rows[0] == f"| pets, median length of the relevant targets | words (queries) | {spans} |"
    assert rows[1].startswith("|  | bm25 | 1.000 [1.000, 1.000] | 0.250 [0.250, 0.250] | 0.250 [")
    long = with_words(made_run("bm25", [1.0, 0.25], origin), [5, 5])
    low, high = bootstrap_interval([1.0, 0.25])
    assert f"| bm25 | 0.625 [{low:.3f}, {high:.3f}] |  |  |  |" in length_table([long])


def test_queries_without_a_length_are_left_out_and_counted(origin: Origin) -> None:
    run = with_words(made_run("bm25", [1.0, 0.5], origin), [None, 20])
    assert "targets (left out, all targets absent: 1) | words (queries) | 20 to 20 (1) |" in length_table([run])


@pytest.mark.parametrize(
    ("encoder", "corpus", "expected"),
    [
        ("longmatch-minilm@0", "rfc_200documents", "yes"),
        ("longmatch-minilm@0", "aila_casedocs", "no"),
        ("all-MiniLM-L6-v2@0", "rfc", "no"),
        ("mine@0", "rfc", ""),
        ("", "rfc", ""),
    ],
)
def test_a_row_says_whether_its_encoder_saw_the_corpus(
    encoder: str, corpus: str, expected: str, origin: Origin
) -> None:
    assert saw_corpus(made_run("evidence", [1.0], origin, corpus, encoder=encoder)) == expected
