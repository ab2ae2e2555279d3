from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from benchmarks.pairs.scoring import Budget, Course
from benchmarks.runs import Case, Run
from benchmarks.tables.pairs import PairsDetails, pairs_table
from indexer.origin import Origin

DETAILS = PairsDetails(
    protocol="aan",
    split_rule="document",
    pairs="0b1c2d3e4f5a",
    n_pairs={"train": 40, "valid": 6, "test": 6},
    n_documents={"train": 1030, "valid": 7, "test": 8},
    n_lost={"train": 0, "valid": 0, "test": 0},
    chosen={},
    budget=None,
    course=None,
    accuracy_threshold=0.5,
    f1_threshold=0.5,
)


def pairs_run(origin: Origin, system: str, scores: list[float], *, seed: int = 0, groups: str = "abcdef") -> Run:
    """Six pairs of test, the first three of which match; the threshold is 0.5. Nothing was learned."""
    cases = [
        Case(id=str(number), values={"score": score, "match": float(number < 3)}, group=group)
        for number, (score, group) in enumerate(zip(scores, groups, strict=True))
    ]
    where = replace(origin, seed=seed)
    return Run(task="pairs", dataset="pets@0a", system=system, details=asdict(DETAILS), origin=where, cases=cases)


def changed(run: Run, **details: Any) -> Run:  # noqa: ANN401
    """The run with other details."""
    return replace(run, details=asdict(replace(run.details_as(PairsDetails), **details)))


def learned(run: Run, budget: Budget | None = None, course: Course | None = None) -> Run:
    """The run as that of a scorer that was trained."""
    return changed(run, budget=budget or Budget(), course=course or Course(1000, 800, 0.9))


WORSE, BETTER, WORST = [0.9, 0.8, 0.1, 0.7, 0.2, 0.1], [0.9, 0.8, 0.7, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.7, 0.8, 0.9]


def rows_of(table: str) -> list[list[str]]:
    lines = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in cells] for cells in lines]
    return [cells for cells in rows if cells[0] not in ("Scorer", "---", "always a match")]


def test_p_values_are_adjusted_for_each_other(origin: Origin) -> None:
    records = [pairs_run(origin, name, scores) for name, scores in (("bm25", BETTER), ("b", WORSE), ("c", WORST))]
    lines = pairs_table(records).splitlines()
    # Two of six pairs differ from b, all six from c: p is 2 / 2^2 and 2 / 2^6, which Holm's correction doubles.
    assert [line.split(" | ")[-1].strip("| ") for line in lines[4:7]] == ["", "0.500", "0.062"]


def test_pairs_of_one_document_are_swapped_and_drawn_together(origin: Origin) -> None:
    records = [pairs_run(origin, name, scores, groups="aaabbb") for name, scores in (("bm25", BETTER), ("c", WORST))]
    # Six pairs of two documents are two groups that can be swapped: p is 2 / 2^2, not 2 / 2^6.
    assert [row[-1] for row in rows_of(pairs_table(records))] == ["", "0.500"]
    half = pairs_run(origin, "b", [0.9, 0.8, 0.7, 0.7, 0.8, 0.9], groups="aaabbb")
    assert rows_of(pairs_table([half]))[0][1] == "0.500 [0.000, 1.000]"


def test_scorers_without_training_are_in_the_table_of_every_budget(origin: Origin) -> None:
    mine = pairs_run(origin, "mine", BETTER)
    records = [
        pairs_run(origin, "bm25", WORSE),
        learned(mine),
        learned(mine, Budget(10, 8), Course(9, 0, 0.5)),
    ]
    table = pairs_table(records)
    assert [row[0] for row in rows_of(table)] == ["mine", "bm25"] * 2
    assert "Budget: 10 steps of 8 pairs." in table
    assert "Budget: 1,000 steps of 32 pairs." in table
    assert "| 9 (0) |" in table
    assert "Budget: none." in pairs_table(records[:1])


def test_seeds_are_one_row_of_means(origin: Origin) -> None:
    records = [learned(pairs_run(origin, "mine", scores, seed=n)) for n, scores in enumerate((BETTER, WORSE))]
    (row,) = rows_of(pairs_table(records))
    assert row[0] == "mine, seeds 0, 1"
    assert row[1].startswith("0.833 ± 0.236 [")
    rival = pairs_run(origin, "bm25", WORST)
    # Over both seeds four pairs are always right, and two half of the time: all six differ from the rival.
    assert rows_of(pairs_table([*records, rival]))[0][-1] == "0.031"


def test_lost_pairs_and_steps_of_pretraining_are_shown(origin: Origin) -> None:
    record = learned(pairs_run(origin, "smith-wp", BETTER), course=Course(500, 400, 0.9, pretraining_steps=500))
    table = pairs_table([changed(record, n_lost={"train": 1200, "valid": 0, "test": 0})])
    assert "train 40 of 1,030 documents (1,200 dropped), valid 6" in table
    assert "| 500 + 500 (400) |" in table
