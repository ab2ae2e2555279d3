from __future__ import annotations

from collections import Counter

from benchmarks.scisumm.questions import FEW, CandidateRanker, Question
from benchmarks.systems import Ranking, Settings
from engine.document import Document
from tests.fakes import make_document

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
