from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import engine.search as search_module
from benchmarks.scaling.stages import DOCUMENTS, HITS, LISTS, OTHER, RESCORING, STAGES, StageClock, StagedSearcher
from engine.index import Index
from engine.neighbours import Neighbours
from engine.store.document_index import DocumentIndex
from engine.store.snapshot import Snapshot


def test_a_staged_search_answers_as_any_other(real_folder: Path) -> None:
    with Index.open(real_folder) as index:
        searcher = StagedSearcher(index)
        for name in ("d3", "d77"):
            result, stages = searcher.timed_search(index.stored_query(name), 5)
            expected = index.search_id(name, k=5)
            assert [(hit.doc_id, hit.score) for hit in result.hits] == [
                (hit.doc_id, hit.score) for hit in expected.hits
            ]
            assert list(stages) == list(STAGES)
            assert sum(stages.values()) >= 1000 * result.seconds


class Clock:
    """Stands still but for the work that is told to take so long."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def taking(self, seconds: float, work: Callable[..., object]) -> Callable[..., object]:
        def slow(*arguments: object, **named: object) -> object:
            self.seconds += seconds
            return work(*arguments, **named)

        return slow


# What a search does, the stage that it is in, and seconds that it takes here: no two sums are alike.
WORK = (
    (Snapshot, "position", OTHER, 1),
    (search_module, "pool_long", OTHER, 2),
    (Neighbours, "lists", LISTS, 4),
    (DocumentIndex, "nearest", DOCUMENTS, 8),
    (search_module, "thresholds", DOCUMENTS, 16),
    (search_module, "list_scores", RESCORING, 32),
    (search_module, "best_matches", RESCORING, 64),
    (DocumentIndex, "similarities", RESCORING, 128),
    (search_module, "exact_scores", RESCORING, 256),
    (search_module, "break_down", HITS, 512),
    (Snapshot, "documents", HITS, 1024),
)


def test_all_work_of_a_search_is_in_its_stage(real_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    with Index.open(real_folder) as index:
        query = index.stored_query("d3")
        searcher = StagedSearcher(index, clock)
        for owner, name, _, seconds in WORK:
            monkeypatch.setattr(owner, name, clock.taking(seconds, getattr(owner, name)))
        _, stages = searcher.timed_search(query, 5)
    # The nearest documents are held against their vectors once more.
    again = {DOCUMENTS: 128}
    expected = {
        stage: 1000 * (sum(seconds for *_, its, seconds in WORK if its == stage) + again.get(stage, 0))
        for stage in STAGES
    }
    assert stages == expected
    assert sum(stages.values()) == 1000 * clock.seconds


def test_a_stage_within_another_counts_by_itself() -> None:
    clock = Clock()
    stages = StageClock(clock)
    with stages.stage(OTHER):
        clock.seconds += 1
        with stages.stage(LISTS):
            clock.seconds += 2
            with stages.stage(DOCUMENTS):
                clock.seconds += 4
            clock.seconds += 8
        clock.seconds += 16
    assert stages.seconds == {LISTS: 10, DOCUMENTS: 4, RESCORING: 0, HITS: 0, OTHER: 17}
