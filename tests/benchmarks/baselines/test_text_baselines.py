from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.baselines.doc2vec import Doc2Vec, Doc2VecConfig
from benchmarks.baselines.lexical import TfIdf
from benchmarks.baselines.text_baselines import TEXT_BASELINES, TextBaseline, TextScorer, fitted_baselines, text_scorer
from benchmarks.datasets import open_dataset, read_documents, read_qrels, read_queries
from benchmarks.pair_scorer import Budget, Fit, Pair, PairScorer
from tests.benchmarks.baselines.small_words import random_documents

pytest.importorskip("sklearn")

DOCUMENTS = {document.doc_id: document for document in random_documents(12, 60, 20)}
PAIRS = [Pair("doc0", f"doc{number}", number % 2 == 0) for number in range(1, 12)]
BUDGET = Budget(steps=1, pairs_per_step=1)


def fitted(scorer: PairScorer, *, seed: int = 0, budget: Budget = BUDGET) -> PairScorer:
    scorer.fit(Fit(DOCUMENTS, PAIRS[:4], PAIRS[4:8], budget, seed))
    return scorer


def test_pairs_are_scored_as_the_retrieval_system_scores_them() -> None:
    scorer, system = fitted(TextScorer(lambda _: TfIdf())), TfIdf().fit(DOCUMENTS.values())
    by_target = dict(system.search(DOCUMENTS["doc0"], k=20))
    expected = [by_target.get(pair.second, 0.0) for pair in PAIRS]
    np.testing.assert_allclose(scorer.score(PAIRS), expected, atol=1e-6)
    assert (scorer.name, scorer.settings) == ("tfidf", system.settings)


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


pytest.importorskip("gensim")

SYSTEM_DOCUMENTS = random_documents(15, 60, 30)
TINY = [TfIdf(), Doc2Vec(Doc2VecConfig(8, min_count=1))]


@pytest.fixture(scope="module")
def fitted_text_baselines() -> dict[str, TextBaseline]:
    made = fitted_baselines(TEXT_BASELINES, lambda: SYSTEM_DOCUMENTS, seed=3)
    return {baseline.name: baseline for baseline, _ in made}


def test_every_baseline_is_fitted_under_its_name(fitted_text_baselines: dict[str, TextBaseline]) -> None:
    assert tuple(fitted_text_baselines) == TEXT_BASELINES
    assert fitted_text_baselines["doc2vec"].settings["seed"] == 3


def test_pairs_are_scored_by_the_same_baseline(fitted_text_baselines: dict[str, TextBaseline]) -> None:
    documents = {document.doc_id: document for document in SYSTEM_DOCUMENTS}
    pairs = [Pair("doc0", "doc1", True), Pair("doc2", "doc5", False)]
    for name in TEXT_BASELINES:
        scorer = text_scorer(name)
        scorer.fit(Fit(documents, pairs, pairs, Budget(steps=1, pairs_per_step=1), 3))
        expected = [fitted_text_baselines[name].score(pair.first, pair.second) for pair in pairs]
        np.testing.assert_allclose(scorer.score(pairs), expected, atol=1e-6)
        assert (scorer.name, scorer.settings) == (name, fitted_text_baselines[name].settings)


@pytest.mark.parametrize("baseline", TINY, ids=lambda one: str(one.name))
def test_a_query_with_the_id_of_a_document_is_scored_by_its_own_text(baseline: TextBaseline, beir_folder: Path) -> None:
    dataset = open_dataset(str(beir_folder))
    queries = read_queries(dataset, read_qrels(dataset, "test"))
    baseline.fit(read_documents(dataset))
    assert [doc_id for doc_id, _ in baseline.search(queries["1"], k=5)] == ["2"]
    assert "2" in dict(baseline.search(replace(queries["1"], doc_id="draft"), k=5))


def test_an_id_changes_nothing_but_what_is_left_out(fitted_text_baselines: dict[str, TextBaseline]) -> None:
    own, namesake = (replace(SYSTEM_DOCUMENTS[3], doc_id=doc_id) for doc_id in ("doc3", "doc5"))
    expected, found = (dict(fitted_text_baselines["tfidf"].search(query, k=20)) for query in (own, namesake))
    assert "doc5" not in found and "doc3" in found
    others = expected.keys() - {"doc5"}
    assert {name: found[name] for name in others} == pytest.approx({name: expected[name] for name in others})
