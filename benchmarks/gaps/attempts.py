"""The attempts, and how each is made with a corpus left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.gaps.corpus import Corpus, VectorMap, best_documents, joint_scores, mapped_corpus
from benchmarks.gaps.learning import Lesson, Target, learn
from benchmarks.gaps.maps import LinearMap, removal, unchanged, whitening
from benchmarks.gaps.record import BUNDLED
from benchmarks.metrics import PRIMARY, evaluate

WORDS = "words alone"
DEPTH = 10  # of rankings
VALID = "valid"
LESSONS: Mapping[str, Lesson] = {
    "map, joint score": Lesson(Target.JOINT),
    "map, joint score where words fail": Lesson(Target.GAPS),
    "map, chunks taught by the joint score": Lesson(Target.TEACHER),
    "factors of dimensions, joint score": Lesson(Target.JOINT, is_diagonal=True, learning_rate=3e-3),
}
UNTRAINED: Mapping[str, Callable[[Sequence[Corpus]], VectorMap]] = {
    BUNDLED: lambda corpora: unchanged,
    "mean subtracted": lambda corpora: whitening(_chunks(corpora), 0.0),
    "whitened, power 0.1": lambda corpora: whitening(_chunks(corpora), 0.1),
    "whitened, power 0.25": lambda corpora: whitening(_chunks(corpora), 0.25),
    "whitened, power 0.5": lambda corpora: whitening(_chunks(corpora), 0.5),
    "mean and 1 direction removed": lambda corpora: removal(_chunks(corpora), 1),
    "mean and 3 directions removed": lambda corpora: removal(_chunks(corpora), 3),
}


@dataclass(frozen=True)
class Schedule:
    """How long maps are trained, and how often one is chosen from."""

    steps: int
    n_choices: int = 3  # maps at equal distances in steps that the best one is chosen from
    choice_queries: int = 60  # valid queries of each corpus that choose
    seed: int = 0


def by_words(corpus: Corpus, split: str) -> list[float]:
    """nDCG@10 of each query where words and pairs of words alone rank."""
    cases = corpus.cases[split]
    return _ndcg(corpus, split, {case.query_id: best_documents(corpus, case, case.words, DEPTH) for case in cases})


def by_map(corpus: Corpus, split: str, vector_map: VectorMap, n_queries: int | None = None) -> list[float]:
    """nDCG@10 of each query by the joint score with mapped chunk vectors.

    Args:
        corpus: of the queries.
        split: of the queries.
        vector_map: of all chunk vectors.
        n_queries: read these many at equal distances; all by default.
    """
    cases = list(corpus.cases[split])
    if n_queries is not None and n_queries < len(cases):
        cases = [cases[at] for at in np.linspace(0, len(cases) - 1, n_queries).round().astype(int).tolist()]
    mapped = mapped_corpus(corpus, vector_map)
    scores = ((case, joint_scores(corpus, case, mapped)) for case in cases)
    return _ndcg(corpus, split, {case.query_id: best_documents(corpus, case, one, DEPTH) for case, one in scores})


def trained_map(corpora: Sequence[Corpus], lesson: Lesson, schedule: Schedule) -> tuple[int, LinearMap]:
    """Train a map, and choose its steps on the valid queries of the same corpora; returns steps and map."""
    best: tuple[float, int, LinearMap] | None = None
    kept = {round(schedule.steps * part / schedule.n_choices) for part in range(1, schedule.n_choices + 1)}
    for step, vector_map in learn(corpora, lesson, schedule.steps, seed=schedule.seed):
        if step not in kept:
            continue
        values = [np.mean(by_map(corpus, VALID, vector_map, schedule.choice_queries)) for corpus in corpora]
        if best is None or float(np.mean(values)) > best[0]:
            best = float(np.mean(values)), step, vector_map
    assert best is not None
    return best[1], best[2]


def _chunks(corpora: Sequence[Corpus]) -> list[np.ndarray]:
    return [corpus.chunks for corpus in corpora]


def _ndcg(corpus: Corpus, split: str, run: Mapping[str, Sequence[str]]) -> list[float]:
    judged = {query_id: corpus.qrels[split][query_id] for query_id in run}
    return [round(value, 4) for value in evaluate(judged, run)[PRIMARY].values()]
