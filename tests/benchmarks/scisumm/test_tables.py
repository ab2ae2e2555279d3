from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.scisumm.record import SummaryRecord
from benchmarks.scisumm.tables import summary_table
from benchmarks.significance import holm, randomization_p
from indexer.training.origin import Origin


@pytest.fixture
def bm25(origin: Origin) -> SummaryRecord:
    return SummaryRecord(
        task="citing-drawn",
        dataset="clscisumm@0",
        split="cl2018train",
        system="bm25",
        encoder="",
        settings={},
        is_trained_on_it=False,
        is_quick=False,
        n_queries=6,
        n_candidates=20.0,
        n_draws=20,
        metrics={"P@5": 0.2, "P@1": 0.4},
        deviations={"P@5": 0.01, "P@1": 0.02},
        query_ids=list("abcdef"),
        topic_ids=list("abcdef"),
        per_query={"P@5": [0.2] * 6, "P@1": [0.4] * 6},
        search_seconds=1.0,
        n_tokens=0,
        seconds=1.0,
        origin=origin,
    )


def test_systems_stand_in_one_table_with_adjusted_p_values(bm25: SummaryRecord) -> None:
    good = replace(bm25, system="document", encoder="good@1", per_query={"P@5": [0.8] * 6, "P@1": [1.0] * 6})
    fair = replace(bm25, system="tfidf", per_query={"P@5": [0.2] * 3 + [0.4] * 3, "P@1": [0.0] * 6})
    lines = summary_table([bm25, fair, good]).splitlines()
    raw = [randomization_p(record.per_query["P@5"], bm25.per_query["P@5"]) for record in (good, fair)]
    p_good, p_fair = (f"{p:.3f}" for p in holm(raw))
    assert lines[0] == "| System | P@5 [95 %] | P@1 | p, BM25 |"
    assert lines[2:5] == [
        f"| document, good | 0.200 ± 0.010 [0.800, 0.800] | 0.400 ± 0.020 | {p_good} |",
        "| bm25 | 0.200 ± 0.010 [0.200, 0.200] | 0.400 ± 0.020 |  |",
        f"| tfidf | 0.200 ± 0.010 [0.233, 0.367] | 0.400 ± 0.020 | {p_fair} |",
    ]
    assert "20 candidates each, mean and standard deviation of 20 draws" in lines[6]


def test_other_questions_make_another_table(bm25: SummaryRecord) -> None:
    other = replace(bm25, system="tfidf", split="cl2018test", is_quick=True, deviations={}, n_draws=1)
    table = summary_table([bm25, other])
    assert table.count("| System | P@5 [95 %] | P@1 | p, BM25 |") == 2
    assert "| tfidf | 0.200 [0.200, 0.200] | 0.400 |  |" in table
    assert "CL-SciSumm, citing-drawn (cl2018test, a small part): 6 summaries, 20 candidates each. Bootstrap" in table
    assert table.splitlines()[-1].startswith("Measured: commit 0123456789")


def test_summaries_of_one_paper_are_one_case(bm25: SummaryRecord) -> None:
    values = {"P@5": [0.2, 0.2, 0.2, 0.8, 0.8, 0.8], "P@1": [0.4] * 6}
    three = replace(bm25, system="tfidf", per_query=values, topic_ids=["x"] * 3 + ["y"] * 3)
    lines = summary_table([replace(bm25, topic_ids=three.topic_ids), three]).splitlines()
    assert lines[3] == "| tfidf | 0.200 ± 0.010 [0.200, 0.800] | 0.400 ± 0.020 | 1.000 |"  # one paper differs
    assert "both over 2 papers, with all summaries of each." in lines[5]


def test_an_encoder_that_learned_from_the_dataset_is_marked(bm25: SummaryRecord) -> None:
    trained = replace(bm25, system="document", encoder="mean@1", is_trained_on_it=True)
    table = summary_table([bm25, trained])
    assert "| document, mean† | 0.200" in table
    assert "† was trained on pairs of this dataset, citing papers with papers that they cite" in table
    assert "†" not in summary_table([bm25])


def test_no_records_give_no_table() -> None:
    assert summary_table([]) == ""
