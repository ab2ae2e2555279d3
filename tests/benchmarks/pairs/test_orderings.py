"""Published orderings tested on runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from benchmarks.pairs.scoring import Budget, Course
from benchmarks.runs import Case, Run
from benchmarks.tables.encoders import ProbeDetails
from benchmarks.tables.orderings import orderings_table
from benchmarks.tables.pairs import PairsDetails
from indexer.origin import Origin


def pairs_run(system: str, right: Sequence[bool], origin: Origin, **chosen: str) -> Run:
    """A run of pairs, of which every other one matches, each classified correctly or not."""
    details = PairsDetails(
        protocol="aan",
        split_rule="document",
        pairs="0",
        n_pairs={},
        n_documents={},
        n_lost={},
        chosen=dict(chosen),
        budget=Budget(60, 8),
        course=Course(60, 60, 0.7),
        accuracy_threshold=0.5,
        f1_threshold=0.5,
    )
    cases = [
        Case(id=f"a{number} b", values={"score": float(one == (number % 2)), "match": number % 2}, group=f"a{number}")
        for number, one in enumerate(right)
    ]
    dataset = "clscisumm_800words@0"
    return Run(task="pairs", dataset=dataset, system=system, details=asdict(details), origin=origin, cases=cases)


def row_of(table: str, ordering: str) -> list[str]:
    (line,) = [line for line in table.splitlines() if f"| {ordering} |" in line]
    return [cell.strip() for cell in line.strip("|").split("|")]


def probe_run(encoder: str, draws: list[float], origin: Origin, *, c: float = 1.0) -> Run:
    """A run of a probe of one document, with the accuracies of draws of five labels."""
    few = {"5": {"accuracy": draws, "macro_f1": draws}}
    details = ProbeDetails(False, 5, 10, 10, 0.5, few)
    return Run(
        task="probe",
        dataset="bbc_news@0",
        system="document",
        encoder=f"{encoder}@0",
        settings={"c": c},
        details=asdict(details),
        origin=origin,
        cases=[Case(id="a", values={"accuracy": 1.0})],
    )


def test_seeds_of_a_system_are_tested_as_their_mean(origin: Origin) -> None:
    good, half = [True] * 20, [True] * 10 + [False] * 10
    seeds = [replace(origin, seed=seed) for seed in range(3)]
    runs = [
        *(pairs_run("colde", right, of) for right, of in zip((good, good, half), seeds, strict=True)),
        pairs_run("han", half, origin),
    ]
    *_, here, n_seeds, p, verdict = row_of(orderings_table(runs), "colde above han")
    assert (here, n_seeds, verdict) == ("0.833, 0.500", "3, 1", "confirmed")
    one_seed = row_of(orderings_table([runs[0], runs[-1]]), "colde above han")
    assert p == one_seed[-2]  # the same pairs differ, all in favour of colde


def test_runs_with_other_settings_are_no_seeds(origin: Origin) -> None:
    good, bad = [True] * 20, [False] * 20
    resized = replace(pairs_run("colde", bad, origin, size_chunk_tokens="62"), settings={"size_chunk_tokens": "62"})
    runs = [resized, pairs_run("colde", good, origin), pairs_run("han", bad, origin)]
    assert row_of(orderings_table(runs), "colde above han")[4:6] == ["1.000, 0.000", "1, 1"]


def test_seeds_of_a_probe_may_have_other_regularisation(origin: Origin) -> None:
    seeds = [
        probe_run(f"docsplit{suffix}", [accuracy] * 10, origin, c=c)
        for suffix, accuracy, c in (("", 0.9, 1.0), ("-seed1", 0.8, 10.0), ("-seed2", 0.7, 0.1))
    ]
    table = orderings_table([*seeds, probe_run("ct", [0.6] * 10, origin)])
    assert "| probe, few labels | 0.869, 0.596 | 0.800, 0.600 | 3, 1 | 0.004 | confirmed |" in table
