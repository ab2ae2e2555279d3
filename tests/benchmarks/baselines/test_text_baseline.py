from __future__ import annotations

import numpy as np
import pytest

from benchmarks.baselines.doc2vec import Doc2Vec, Doc2VecConfig
from benchmarks.baselines.text_baseline import TextScorer
from benchmarks.baselines.tfidf_system import TfIdf
from benchmarks.pairs.scorer import Budget, Fit, Pair, PairScorer
from engine.errors import TrainingError
from tests.benchmarks.baselines.small_words import random_documents

pytest.importorskip("sklearn")

DOCUMENTS = {document.doc_id: document for document in random_documents(12, 60, 20)}
PAIRS = [Pair("doc0", f"doc{number}", number % 2 == 0) for number in range(1, 12)]
BUDGET = Budget(steps=1, pairs_per_step=1, seconds=60)


def fitted(scorer: PairScorer, *, seed: int = 0, budget: Budget = BUDGET) -> PairScorer:
    scorer.fit(Fit(DOCUMENTS, PAIRS[:4], PAIRS[4:8], budget, seed))
    return scorer


def test_pairs_are_scored_as_the_retrieval_system_scores_them() -> None:
    scorer, system = fitted(TextScorer(lambda _: TfIdf())), TfIdf().fit(DOCUMENTS.values())
    by_target = dict(system.search(DOCUMENTS["doc0"], k=20))
    expected = [by_target.get(pair.second, 0.0) for pair in PAIRS]
    np.testing.assert_allclose(scorer.score(PAIRS), expected, atol=1e-6)
    assert (scorer.name, scorer.settings) == ("tfidf", system.settings)


def test_judgments_change_nothing() -> None:
    scorer = fitted(TextScorer(lambda _: TfIdf()))
    turned = [Pair(pair.first, pair.second, not pair.is_match) for pair in PAIRS]
    np.testing.assert_array_equal(scorer.score(PAIRS), scorer.score(turned))
    assert scorer.score([]).shape == (0,)


def test_the_seed_of_a_fit_reaches_the_baseline_and_its_settings() -> None:
    pytest.importorskip("gensim")
    config = Doc2VecConfig(width=8, min_count=1, epochs=2)
    scorers = [
        fitted(TextScorer(lambda seed: Doc2Vec(Doc2VecConfig(width=8, min_count=1, epochs=2, seed=seed))), seed=seed)
        for seed in (0, 7)
    ]
    assert config.seed == 0
    assert [scorer.settings["seed"] for scorer in scorers] == [0, 7]
    assert not np.allclose(scorers[0].score(PAIRS), scorers[1].score(PAIRS))


def test_the_seconds_of_the_budget_are_kept() -> None:
    pytest.importorskip("gensim")
    scorer = TextScorer(lambda seed: Doc2Vec(Doc2VecConfig(width=8, min_count=1, epochs=2, seed=seed)))
    with pytest.raises(TrainingError, match="1 of 2 epochs took"):
        fitted(scorer, budget=Budget(steps=1, pairs_per_step=1, seconds=0))
