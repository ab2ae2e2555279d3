from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.probing.record import ProbeRecord
from benchmarks.probing.tables import probe_table
from benchmarks.significance import holm, randomization_p
from indexer.training.origin import Origin


@pytest.fixture
def tfidf(origin: Origin) -> ProbeRecord:
    """Right about half of twelve documents."""
    return ProbeRecord(
        task="places",
        dataset="places@0",
        system="tfidf",
        encoder="",
        settings={"c": 1.0, "max_words": 0},
        is_quick=False,
        n_classes=2,
        n_train=20,
        n_valid=10,
        n_test=12,
        metrics={"accuracy": 0.5, "macro_f1": 0.4},
        wrong=[0, 1, 2, 3, 4, 5],
        groups=[],
        few_shot={"5": {"accuracy": [0.25, 0.75], "macro_f1": [0.5, 0.5]}},
        n_tokens=0,
        seconds=1.0,
        origin=origin,
    )


def cells_of(table: str, system: str) -> list[str]:
    return next(line.split(" | ")[2:] for line in table.splitlines() if line.split(" | ")[1] == system)


def test_p_values_are_adjusted_over_the_systems_of_a_task(tfidf: ProbeRecord) -> None:
    good = replace(tfidf, system="document", encoder="good@1", wrong=[])
    fair = replace(good, encoder="fair@2", wrong=[0, 1, 2])
    table = probe_table([tfidf, good, fair])
    raw = [randomization_p(record.is_right, tfidf.is_right) for record in (good, fair)]
    for record, p in zip((good, fair), holm(raw), strict=True):
        assert cells_of(table, f"document, {record.encoder[:4]}")[-1] == f"{p:.3f} |"
    assert raw == [2 / 2**6, 2 / 2**3]
    assert cells_of(table, "tfidf") == ["0.500 [0.250, 0.750]", "0.400", "0.500 ± 0.354 / 0.500 ± 0.000", " |"]


def test_records_that_were_not_asked_the_same_are_not_compared(tfidf: ProbeRecord) -> None:
    cut = replace(tfidf, system="document", encoder="good@1", wrong=[], settings={"c": 1.0, "max_words": 300})
    table = probe_table([tfidf, cut])
    assert cells_of(table, "document, good")[-1] == " |"
    assert "| places (12, first 300 words) | document, good |" in table


def test_pairs_of_one_first_document_are_one_case(tfidf: ProbeRecord) -> None:
    pairs = replace(tfidf, groups=[0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
    good = replace(pairs, system="document", encoder="good@1", wrong=[])
    cells = cells_of(probe_table([pairs, good]), "document, good")
    assert cells[-1] == "0.500 |"  # two documents differ, of whose four sign patterns two are as extreme
    assert cells_of(probe_table([pairs, good]), "tfidf")[0] == "0.500 [0.000, 1.000]"


def test_a_column_stands_for_each_number_of_labels(tfidf: ProbeRecord) -> None:
    other = replace(tfidf, task="news", few_shot={"10": {"accuracy": [1.0, 1.0], "macro_f1": [1.0, 1.0]}})
    lines = probe_table([tfidf, other]).splitlines()
    assert lines[0].endswith("| 5 a class | 10 a class | p, TF-IDF |")
    assert lines[2].endswith("| 0.400 |  | 1.000 ± 0.000 / 1.000 ± 0.000 |  |")
    assert lines[3].endswith("| 0.400 | 0.500 ± 0.354 / 0.500 ± 0.000 |  |  |")


def test_no_records_give_no_table() -> None:
    assert probe_table([]) == ""
