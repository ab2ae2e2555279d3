from __future__ import annotations

import pytest

from benchmarks.headlines import headline_table
from benchmarks.runs import Run
from indexer.origin import Origin
from tests.benchmarks.made_runs import made_run


def retrieval(system: str, task: str, value: float, origin: Origin) -> Run:
    return made_run(system, [value] * 3, origin, task, encoder="longmatch-minilm@0f" if system == "evidence" else "")


@pytest.fixture
def quality(origin: Origin) -> list[Run]:
    values = {"evidence": 0.5, "words": 0.45, "tfidf": 0.4, "bm25": 0.3, "wmd": 0.9}
    measured = [retrieval(system, "proposals", value, origin) for system, value in values.items()]
    return [*measured, retrieval("bm25", "rfc", 0.2, origin)]


def test_the_headline_has_four_systems_and_a_dash_for_what_was_not_measured(quality: list[Run]) -> None:
    assert headline_table(quality).splitlines()[:6] == [
        "| nDCG@10 | proposals (3 queries) | rfc (3 queries) |",
        "| --- | --- | --- |",
        "| evidence | 0.500 | - |",
        "| words | 0.450 | - |",
        "| TF-IDF | 0.400 | - |",
        "| BM25 | 0.300 | 0.200 |",
    ]
