from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import DatasetError
from benchmarks.scisumm.collection import Scisumm, open_scisumm
from benchmarks.scisumm.questions import FEW, N_NEGATIVES, N_POSITIVES, TASKS, CandidateRanker, Question
from benchmarks.systems import Ranking, Settings
from engine.document import Document
from tests.benchmarks.scisumm_folder import TOPICS, write_scisumm
from tests.fakes import make_document


@pytest.fixture
def data(tmp_path: Path) -> Scisumm:
    return open_scisumm("cl2018train", write_scisumm(tmp_path / "data"))


def asked(name: str, data: Scisumm, seed: int = 0) -> dict[str, Question]:
    task = TASKS[name]
    return {question.query_id: question for question in task.ask(data, task.pool(data), np.random.default_rng(seed))}


def test_a_papers_rivals_are_those_that_cite_it(data: Scisumm) -> None:
    question = asked("reference-topic", data)["sum:words"]
    assert sorted(question.candidates) == ["words", "words0", "words1", "words2", "words3", "words4", "words5"]
    assert question.relevant == {"words"}


def test_candidates_are_drawn_from_own_and_other_topics(data: Scisumm) -> None:
    for topic in TOPICS:
        question = asked("citing-drawn", data)[f"sum:{topic}"]
        assert len(set(question.candidates)) == len(question.candidates) == N_POSITIVES + N_NEGATIVES
        own = {doc_id for doc_id in question.candidates if doc_id.startswith(topic)}
        assert (question.relevant, len(own)) == (own, N_POSITIVES)
        assert not set(TOPICS) & set(question.candidates)  # a reference paper cites none here


def test_a_draw_depends_on_its_seed_and_order_tells_nothing(data: Scisumm) -> None:
    first, second = asked("citing-drawn", data, 1), asked("citing-drawn", data, 2)
    assert first == asked("citing-drawn", data, 1)
    assert first["sum:words"].candidates != second["sum:words"].candidates
    places = [
        place
        for seed in range(50)
        for place, doc_id in enumerate(asked("citing-drawn", data, seed)["sum:words"].candidates)
        if doc_id.startswith("words")
    ]
    assert np.mean(places) == pytest.approx((N_POSITIVES + N_NEGATIVES - 1) / 2, abs=1.5)


def test_summaries_with_too_little_to_find_are_left_out(data: Scisumm) -> None:
    few = replace(data, citing={**data.citing, "sum:words": {"words0": 1}, "sum:speech": {}})
    assert list(asked("reference-topic", few)) == ["sum:parsing", "sum:words", "sum:dialogue"]
    assert list(asked("citing", few)) == ["sum:parsing", "sum:words", "sum:dialogue"]
    with pytest.raises(
        DatasetError, match="has 7 papers that cite other topics than that of 'sum:parsing', 15 are drawn"
    ):
        asked("citing-drawn", few)


def test_whole_collections_leave_out_only_the_summarys_own_paper(data: Scisumm) -> None:
    assert len(asked("reference", data)["sum:words"].candidates) == 28
    citing = asked("citing", replace(data, reference={**data.reference, "sum:words": {"speech0": 1}}))["sum:words"]
    assert len(citing.candidates) == 23
    assert "speech0" not in citing.candidates
    assert citing.relevant == {f"words{number}" for number in range(6)}
    assert len(asked("citances", data)["sum:words"].candidates) == 8


def test_citances_of_the_split_are_those_of_its_topics(data: Scisumm) -> None:
    small = replace(data, citances={"sum:words": data.citances["sum:words"], "sum:speech": {}})
    assert asked("citances-split", small)["sum:words"].candidates == ("cit:words:0", "cit:words:1")


SUMMARIES = {"q": make_document("q", "words")}
SCORES = {"a": 0.1, "b": 0.9, "c": 0.5, "d": 0.5}


class Searching:
    """Finds what it scores above 0.2."""

    name = "searching"
    encoder = ""

    def __init__(self) -> None:
        self.settings: Settings = {}
        self.asked: Counter[str] = Counter()

    def search(self, query: Document, k: int) -> Ranking:
        self.asked[query.doc_id] += 1
        found = [(doc_id, score) for doc_id, score in SCORES.items() if score > 0.2]
        return sorted(found, key=lambda hit: -hit[1])[:k]


class Scoring(Searching):
    """Scores pairs too, and remembers them."""

    def score(self, first: str, second: str) -> float:
        self.asked[second] += 1
        return SCORES.get(second, -1.0)


def test_a_search_is_filtered_to_the_candidates_and_asked_once() -> None:
    system = Searching()
    ranker = CandidateRanker(system, SUMMARIES, depth=10)
    assert ranker.rank(Question("q", ("d", "a", "b"), frozenset("b"))) == ["b", "d"]
    assert ranker.rank(Question("q", ("a",), frozenset("a"))) == []
    assert system.asked == {"q": 1}


def test_few_candidates_are_scored_pair_by_pair_and_each_once() -> None:
    system = Scoring()
    ranker = CandidateRanker(system, SUMMARIES, depth=10)
    assert ranker.rank(Question("q", ("d", "a", "c"), frozenset("d"))) == ["d", "c", "a"]
    assert ranker.rank(Question("q", ("c", "a", "d"), frozenset("d"))) == ["c", "d", "a"]
    assert system.asked == {"a": 1, "c": 1, "d": 1}


def test_many_candidates_are_searched() -> None:
    many = tuple(f"x{number}" for number in range(FEW))
    system = Scoring()
    ranker = CandidateRanker(system, SUMMARIES, depth=10)
    assert ranker.rank(Question("q", ("b", *many), frozenset("b"))) == ["b"]
    assert system.asked == {"q": 1}
