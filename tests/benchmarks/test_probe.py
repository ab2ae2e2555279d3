from __future__ import annotations

from dataclasses import asdict

from benchmarks.runs import Case, Run
from benchmarks.tables.encoders import ProbeDetails, probe_table
from indexer.origin import Origin


def probe(system: str, wrong: int, origin: Origin, *, groups: str = "") -> Run:
    """Twelve documents, the first of which are classified wrongly."""
    details = ProbeDetails(False, 2, 20, 10, 0.4, {"5": {"accuracy": [0.25, 0.75], "macro_f1": [0.5, 0.5]}})
    cases = [
        Case(id=str(number), values={"accuracy": float(number >= wrong)}, group=groups[number : number + 1])
        for number in range(12)
    ]
    name, _, encoder = system.partition(", ")
    named = {"task": "probe", "dataset": "places@0", "system": name, "encoder": encoder and f"{encoder}@1"}
    return Run(**named, details=asdict(details), origin=origin, cases=cases)


def cells_of(table: str, system: str) -> list[str]:
    return next(line.split(" | ")[2:] for line in table.splitlines() if line.split(" | ")[1] == system)


def test_p_values_are_adjusted_over_the_systems_of_a_task(origin: Origin) -> None:
    runs = [probe("tfidf", 6, origin), probe("document, good", 0, origin), probe("document, fair", 3, origin)]
    table = probe_table(runs)
    for name, p in (("document, good", 2 * 2 / 2**6), ("document, fair", 2 / 2**3)):
        assert cells_of(table, name)[-1] == f"{p:.3f} |"
    assert cells_of(table, "tfidf") == ["0.500 [0.250, 0.750]", "0.400", "0.500 ± 0.354 / 0.500 ± 0.000", " |"]


def test_seeds_of_training_are_one_row(origin: Origin) -> None:
    first, second = probe("document, good", 0, origin), probe("document, good-seed1", 3, origin)
    second.details["few_shot"]["5"]["accuracy"] = [0.75, 0.75]
    table = probe_table([probe("tfidf", 6, origin), second, first])
    accuracy, _, few, _ = cells_of(table, "document, good, 2 seeds")
    assert accuracy.startswith("0.875 [") and accuracy.endswith(" ± 0.177")
    assert few == "0.625 ± 0.177 / 0.500 ± 0.000"
    assert "good-seed1" not in table
    second.details["few_shot"] = {}
    assert "document, good-seed1" in probe_table([second, first])
