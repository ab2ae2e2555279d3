"""CL-SciSumm as the task of a comparison: encoders trained on summaries of other topics rank a topic's papers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.cut import first_words
from benchmarks.pairs.scorer import Fit, Pair
from benchmarks.pairs.splitting import documents_of
from benchmarks.papers.comparison import Conditions, Measured
from benchmarks.papers.encoder_arm import EncoderArm, size_of
from benchmarks.papers.matching_task import backbone_label
from benchmarks.papers.summary_pairs import PAIRS, learnable
from benchmarks.scisumm.collection import NAME, Collection, open_scisumm, read_collection
from benchmarks.scisumm.tasks import TASKS
from benchmarks.summaries import SummaryTrial, make_trial, measure
from benchmarks.systems import BuildCost, Ranking, Settings
from engine.document import Document

_TRAIN, _VALID = "train", "valid"  # summaries of ScisummNet, no topic of which is one of CL-SciSumm


@dataclass(frozen=True)
class SummaryRanking:
    """Which papers belong to a summary; a case of the scale is a pair that matches, with one that does not.

    TDE's own split is not told, and the baselines that it cites learn nothing. Here encoders learn from the
    summaries of ScisummNet, whose topics are others, and no paper that is a candidate of test stands in a pair of
    train or valid.
    """

    name: str  # of `benchmarks.scisumm.tasks`
    metric: str  # one of the task's

    def open(self, conditions: Conditions) -> SummaryBench:
        """See `Task.open`."""
        return SummaryBench(self, conditions)


class SummaryBench:
    """Pairs to learn from, and questions."""

    def __init__(self, task: SummaryRanking, conditions: Conditions) -> None:
        """Read summaries and papers.

        Raises:
            DatasetError: a file is missing, or no pair is left to learn from.
        """
        scale, seed, asked = conditions.scale, conditions.origin.seed, TASKS[task.name]
        self._task, self._conditions = task, conditions
        data = open_scisumm(asked.split, conditions.data)
        n_draws = min(asked.n_draws, 3) if conditions.is_quick else asked.n_draws
        whole = make_trial(task.name, data, n_draws, conditions.origin)
        self.trial = _first(whole, scale.n_test)
        candidates = {doc_id for draw in self.trial.draws for question in draw for doc_id in question.candidates} | {
            doc_id for papers in (data.reference, data.citing) for own in papers.values() for doc_id in own
        }
        self.valid = self._pairs(_VALID, candidates, scale.n_test, seed)
        self.train = self._pairs(_TRAIN, candidates | documents_of(self.valid), scale.n_train, seed)
        self.documents = self._read(documents_of([*self.train, *self.valid]) | self._asked_about())
        self._backbone = backbone_label(conditions.encoder)

    @property
    def settings(self) -> Settings:
        """See `Bench.settings`."""
        return {
            "dataset": f"{NAME}@{self.trial.data.checksum}",
            "task": self._task.name,
            "split": self.trial.data.split,
            "n_summaries": len(self.trial.draws[0]),
            "n_draws": len(self.trial.draws),
            "backbone": self._backbone,
        }

    def measure(self, arm: EncoderArm) -> Measured:
        """See `Bench.measure`; a value is the metric of a summary, its mean over draws of candidates."""
        started = time.perf_counter()
        scorer = arm.scorer(self._conditions)
        budget, seed = arm.budget(self._conditions.scale), self._conditions.origin.seed
        scorer.fit(Fit(self.documents, self.train, self.valid, budget, seed))
        pairs = {
            Pair(question.query_id, doc_id, False)
            for draw in self.trial.draws
            for question in draw
            for doc_id in question.candidates
        }
        ranker = PairRanker(scorer, sorted(pairs, key=lambda pair: (pair.first, pair.second)))
        record = measure(ranker, BuildCost(time.perf_counter() - started), self.trial)
        number = {topic: at for at, topic in enumerate(dict.fromkeys(record.topic_ids))}
        course = scorer.course
        assert course is not None
        return Measured(
            values=record.per_query[self._task.metric],
            groups=[number[topic] for topic in record.topic_ids],
            encoder=scorer.encoder,
            begins_with=str(scorer.settings["begins_with"]),
            size=size_of(scorer.trained),
            n_train=len(self.train),
            n_steps=course.n_steps,
            best_step=course.best_step,
            seconds=time.perf_counter() - started,
        )

    def _pairs(self, split: str, forbidden: set[str], most: int, seed: int) -> list[Pair]:
        data = open_scisumm(split, self._conditions.data)
        return learnable(PAIRS[self._task.name](data, np.random.default_rng(seed)), forbidden, most)

    def _asked_about(self) -> set[str]:
        questions = [question for draw in self.trial.draws for question in draw]
        return {doc_id for question in questions for doc_id in (question.query_id, *question.candidates)}

    def _read(self, wanted: set[str]) -> Mapping[str, Document]:
        """Summaries and papers of these ids, their first words."""
        splits = (_TRAIN, _VALID, self.trial.data.split)
        data = [open_scisumm(split, self._conditions.data) for split in splits]
        texts = [summary for one in data for summary in one.summaries.values()]
        papers = read_collection(self.trial.data, Collection.PAPERS)
        most = self._conditions.scale.max_words
        return {text.doc_id: first_words(text, most) for text in (*texts, *papers) if text.doc_id in wanted}


class Fitted(Protocol):
    """Of a `PairScorer` what is needed once it is fitted."""

    @property
    def encoder(self) -> str:
        """See `PairScorer.encoder`."""

    @property
    def settings(self) -> Settings:
        """See `PairScorer.settings`."""

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """See `PairScorer.score`."""


class PairRanker:
    """A `System` of a scorer of pairs: what is asked of it are the pairs that it was made with."""

    name = "pairs"

    def __init__(self, scorer: Fitted, pairs: Sequence[Pair]) -> None:
        """Score all pairs at once, so that documents are encoded in blocks."""
        self.encoder, self.settings = scorer.encoder, scorer.settings
        scores = scorer.score(pairs).tolist()
        self._scores = {(pair.first, pair.second): score for pair, score in zip(pairs, scores, strict=True)}

    def score(self, first: str, second: str) -> float:
        """As `benchmarks.scisumm.ranking.Scorer`."""
        return float(self._scores[first, second])

    def search(self, query: Document, k: int) -> Ranking:
        """As `System.search`, among the papers that the query was paired with."""
        found = [(second, score) for (first, second), score in self._scores.items() if first == query.doc_id]
        return sorted(found, key=lambda hit: -hit[1])[:k]


def _first(trial: SummaryTrial, n_questions: int) -> SummaryTrial:
    """The same with the first questions of each draw alone."""
    return replace(trial, draws=[draw[:n_questions] for draw in trial.draws])
