from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.papers.comparison import Size
from benchmarks.papers.record import PaperRecord
from benchmarks.papers.table import compared, paper_table
from benchmarks.record_file import rebuild, record_text
from benchmarks.significance import bootstrap_interval, holm, randomization_p
from indexer.training.origin import Origin
from tests.benchmarks.papers.cases import SCALE

GROUPS = [at // 2 for at in range(80)]
BELOW = {"wp-sp": ["wp", "np"], "wp": ["np"], "np": []}


def record(variant: str, accuracy: float, origin: Origin, *, failure: str = "", seed: int = 0) -> PaperRecord:
    values = (np.random.default_rng(seed).random(len(GROUPS)) < accuracy).astype(float).tolist()
    return PaperRecord(
        paper="SMITH",
        comparison="pretraining",
        source="table 5",
        variant=variant,
        place=["np", "wp", "wp-sp"].index(variant),
        reference="wp-sp",
        published={"np": 0.7725, "wp": 0.84, "wp-sp": 0.8536}[variant],
        below=BELOW[variant],
        metric="accuracy",
        scale=SCALE,
        bench={"dataset": "pets@0", "backbone": "bert@0"},
        settings={"recipe": variant},
        is_quick=False,
        failure=failure,
        encoder="" if failure else "bert@0",
        begins_with="" if failure else "random weights",
        size=None if failure else Size(4, 128, 4552704),
        n_train=0 if failure else 24,
        n_steps=0 if failure else 3,
        best_step=0 if failure else 2,
        seconds=0.0 if failure else 7.4,
        remark="",
        values=[] if failure else values,
        groups=[] if failure else GROUPS,
        origin=origin,
    )


@pytest.fixture
def records(origin: Origin) -> list[PaperRecord]:
    return [record("wp-sp", 0.6, origin, seed=3), record("np", 0.2, origin, seed=1), record("wp", 0.95, origin, seed=2)]


def test_rows_stand_in_the_order_of_the_paper_beside_its_numbers(records: list[PaperRecord]) -> None:
    best, *others = records
    adjusted = holm([randomization_p(one.values, best.values, groups=GROUPS) for one in others])
    assert adjusted.max() < 0.001
    low, high = bootstrap_interval(others[0].values, groups=GROUPS)
    lines = paper_table(records).split("\n")
    assert lines[0].startswith(
        "**SMITH, pretraining** (published: table 5), here on pets@0. Scale: at most 3 steps of 8"
    )
    assert "4 layers, 128 wide, 4,552,704 weights, begun with random weights; seed 0." in lines[0]
    assert "learned from 24 examples" in paper_table([replace(others[0], n_train=0), best]).split("\n")[0]
    assert lines[2] == "| Variant | accuracy [95 %] | p | Published | Steps | Seconds |"
    assert lines[4] == f"| np | {others[0].mean:.3f} [{low:.3f}, {high:.3f}] | < 0.001 | 0.7725 | 3 (2) | 7 |"
    assert [line.split(" | ")[0] for line in lines[5:7]] == ["| wp", "| **wp-sp**"]


def test_orderings_are_counted_below(records: list[PaperRecord]) -> None:
    found = compared(records)
    assert (found.n_pairs, found.n_shared, found.n_reversed) == (3, 2, 1)
    assert (found.n_decided, found.n_decided_shared) == (3, 2)
    told = "Orderings of the paper shared: 2 of 3 (1 reversed); of those decided here 2 of 3. Kendall's tau 0.33."
    assert told in paper_table(records)


def test_one_that_failed_is_told_and_takes_no_part(records: list[PaperRecord], origin: Origin) -> None:
    table = paper_table([*records[:2], record("wp", 0, origin, failure="the loss is nan")])
    assert "| wp | failed |  | 0.84 |  |  |" in table
    assert "- wp failed: the loss is nan" in table
    assert "shared: 1 of 1 (0 reversed)" in table


def test_without_the_reference_there_are_no_tests(records: list[PaperRecord]) -> None:
    assert "] |  | 0.7725 |" in paper_table(records[1:])


def test_other_scales_have_tables_of_their_own(records: list[PaperRecord]) -> None:
    more = [replace(one, scale=replace(SCALE, steps=9)) for one in records]
    table = paper_table([*records, *more])
    assert table.count("Kendall's tau 0.33.") == 2
    assert "at most 9 steps" in table


def test_a_comparison_without_an_order_says_so(records: list[PaperRecord]) -> None:
    table = paper_table([replace(one, published=None, below=[]) for one in records])
    assert "The paper puts none of these variants in order." in table
    assert paper_table([]) == ""


def test_a_record_comes_back_as_it_was_written(records: list[PaperRecord]) -> None:
    values = json.loads(record_text(records[0]))
    assert values.pop("kind") == "paper"
    assert rebuild(PaperRecord, values) == records[0]
