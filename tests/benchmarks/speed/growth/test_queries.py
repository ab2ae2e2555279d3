from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import engine.search.query as query_module
import engine.search.searcher as search_module
from benchmarks.speed.growth.folder import Real, publish
from benchmarks.speed.growth.queries import (
    HITS,
    LISTS,
    OTHER,
    SCORES,
    STAGES,
    THRESHOLDS,
    WORDS,
    StagedSearcher,
    draw_names,
    encode,
    exact_answers,
)
from engine.index import Index
from engine.search.candidates import CandidateLists
from engine.search.request import Request
from engine.store.postings import TermPostings
from engine.store.snapshot import Snapshot
from tests.fakes import FakeEncoder


def test_queries_have_the_requested_number_of_chunks(real_folder: Path) -> None:
    with Snapshot(real_folder) as snapshot:
        drawn = draw_names(snapshot, 4, 6, seed=0)
        assert drawn["synthetic"] == [] and drawn == draw_names(snapshot, 4, 6, seed=0)
        rows = [snapshot.position(name) for name in drawn["real"]]
        assert snapshot.locations.n_chunks[rows].tolist() == [6] * 4


def test_exact_answers_are_those_of_exact_searches(real_folder: Path) -> None:
    answers = exact_answers(real_folder, 3, 6, 0, 4)
    assert len(answers["names"]["real"]) == len(answers["found"]) == 3
    with Index.open(real_folder) as index:
        for name, found in answers["found"].items():
            assert found == [hit.doc_id for hit in index.search(name, Request(k=4, exact=True)).hits]


def test_a_staged_search_gives_the_hits_of_an_ordinary_search(real_folder: Path) -> None:
    with Index.open(real_folder) as index:
        searcher = StagedSearcher(index)
        for name in ("d3", "d77"):
            result, stages = searcher.timed_search(index.stored_query(name), 5)
            expected = index.search(name, Request(k=5))
            hits, expected_hits = ([(hit.doc_id, hit.score) for hit in one.hits] for one in (result, expected))
            assert hits == expected_hits
            assert list(stages) == list(STAGES)
            assert sum(stages.values()) >= 1000 * result.seconds


class Clock:
    """A clock that advances only by the seconds given to the work."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def taking(self, seconds: float, work: Callable[..., object]) -> Callable[..., object]:
        def slow(*arguments: object, **named: object) -> object:
            self.seconds += seconds
            return work(*arguments, **named)

        return slow


# The work of a search, its stage, and the seconds that it takes here: no two sums are equal.
WORK = (
    (Snapshot, "position", OTHER, 1),
    (query_module, "pool_long", THRESHOLDS, 2),
    (query_module, "thresholds", THRESHOLDS, 4),
    (CandidateLists, "lists", LISTS, 8),
    (TermPostings, "scores", WORDS, 8),  # of words, and of pairs
    (Snapshot, "doc_ids_of", SCORES, 16),  # to order equal scores, and to merge rankings
    (search_module, "break_down", HITS, 64),
    (Snapshot, "documents", HITS, 128),
)


@pytest.mark.slow
def test_all_work_of_a_search_is_in_its_stage(
    real_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(real_folder, tmp_path / "grown.lm"))
    publish(folder, "SQ8", None, 0.0)
    clock = Clock()
    with Index.open(folder) as index:
        query = index.stored_query("d3")
        searcher = StagedSearcher(index, clock)
        for owner, name, _, seconds in WORK:
            monkeypatch.setattr(owner, name, clock.taking(seconds, getattr(owner, name)))
        _, stages = searcher.timed_search(query, 5)
    assert stages == {THRESHOLDS: 6000, LISTS: 8000, WORDS: 16_000, SCORES: 32_000, HITS: 192_000, OTHER: 1000}


def test_real_documents_are_encoded_by_the_encoder_of_their_index(
    real_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = []
    monkeypatch.setattr("engine.encoders.loading.load_encoder", lambda name: loaded.append(name) or FakeEncoder())
    encoded = encode(Real(real_folder, 60, 0), 3)
    assert loaded == ["made"] and encoded["n_chunks"] >= 3 and encoded["seconds"] > 0
