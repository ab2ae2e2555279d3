from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import open_dataset, read_documents, read_qrels
from benchmarks.pairs.judging import accuracy_threshold, is_correct
from benchmarks.pairs.scorer import Fit
from benchmarks.pairs.splitting import Split
from benchmarks.papers.comparison import Conditions, Numbers, Order, Unit
from benchmarks.papers.encoders import Matched, PairData, Pretrained, Reordered
from benchmarks.papers.judges import Matching, Probing, Retrieving
from engine.encoders.loading import load_encoder
from indexer.origin import Origin
from tests.benchmarks.papers.cases import COLDE_SIZES, conditions, write_articles, write_citations

pytest.importorskip("accelerate")
pytest.importorskip("sklearn")
pytest.importorskip("ir_measures")
DATA = PairData("clscisumm")
COLDE = Matched("colde", DATA, COLDE_SIZES)
BACKBONE = Pretrained("wikipedia_seealso")


@pytest.fixture
def given(tmp_path: Path, bert_folder: Path, origin: Origin) -> Conditions:
    write_articles(write_citations(tmp_path / "data"))
    return conditions(tmp_path, bert_folder, origin)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["maxsim-trained", "tde"])
def test_pairs_are_called_right_as_the_trained_scorer_calls_them(recipe: str, given: Conditions) -> None:
    system = Matched(recipe, DATA)
    judged = Matching(DATA).open(given).judge(system.make(given))
    pairs, scorer = DATA.open(given), system.scorer(given)
    train, valid, test = (pairs.splits[split] for split in (Split.TRAIN, Split.VALID, Split.TEST))
    scorer.fit(Fit(pairs.documents, train, valid, system.budget(given.scale), given.origin.seed))
    threshold = accuracy_threshold(scorer.score(valid), [pair.is_match for pair in valid])
    expected = is_correct(scorer.score(test), [pair.is_match for pair in test], threshold)
    assert [case.values["accuracy"] for case in judged.cases] == expected.astype(float).tolist()
    assert [case.group for case in judged.cases] == [pair.first for pair in test]


@pytest.mark.slow
def test_a_value_in_other_orders_is_a_mean_over_orders(given: Conditions) -> None:
    bench = Matching(DATA).open(given)
    made = Reordered(COLDE, Order(Unit.CHUNKS, Numbers.ANEW, n_orders=4)).make(given)
    values = np.array([case.values["accuracy"] for case in bench.judge(made).cases])
    assert np.array_equal(np.round(values * 4), values * 4)
    again = np.array([case.values["accuracy"] for case in bench.judge(made).cases])
    assert np.array_equal(values, again)


@pytest.mark.slow
def test_a_probe_value_is_a_document_classified_rightly(given: Conditions) -> None:
    bench = Probing("bbc_news").open(given)
    values = [case.values["accuracy"] for case in bench.judge(BACKBONE.make(given)).cases]
    assert (len(values), set(values) <= {0.0, 1.0}) == (12, True)
    assert sum(values) > 9  # words separate the classes
    assert (bench.settings["n_labelled"], bench.settings["labels"]) == (12, 0)


@pytest.mark.slow
def test_of_few_labels_the_values_are_those_of_draws(given: Conditions) -> None:
    judge = Probing("bbc_news", labels=2)
    cases = judge.open(given).judge(BACKBONE.make(given)).cases
    assert judge.metric == "accuracy from 2 labels a class"
    assert [case.id for case in cases] == [str(draw) for draw in range(10)]
    assert all(0 <= case.values[judge.metric] <= 1 for case in cases)
    other = replace(given, origin=replace(given.origin, seed=7))  # the seed of training; the draws stay the same
    assert judge.open(other).judge(BACKBONE.make(other)).cases == cases


@pytest.mark.slow
def test_targets_are_ranked_by_the_cosine_of_document_vectors(given: Conditions) -> None:
    judge = Retrieving("clscisumm", is_whole=True)
    judged = judge.open(given).judge(BACKBONE.make(given))
    corpus = open_dataset("clscisumm", given.data)
    documents = list(read_documents(corpus))
    encoder = load_encoder(given.encoder)
    vectors = {one.doc_id: encoded.document for one, encoded in zip(documents, encoder.encode(documents), strict=True)}
    assert [case.id for case in judged.cases] == list(read_qrels(corpus, "valid"))
    for case in judged.cases:
        cosine = {doc_id: float(vectors[case.id] @ vector) for doc_id, vector in vectors.items() if doc_id != case.id}
        best = sorted(cosine.values(), reverse=True)[: len(case.ranking)]
        np.testing.assert_allclose([score for _, score in case.ranking], best, atol=2e-3)  # stored in half precision


def test_the_scale_sets_the_number_of_queries_of_a_part(given: Conditions) -> None:
    settings = Retrieving("clscisumm").open(given).settings
    assert settings["n_queries"] == 6
    smaller = replace(given, scale=replace(given.scale, n_test=4))
    assert Retrieving("clscisumm").open(smaller).settings["part"] != settings["part"]
    assert Retrieving("clscisumm").open(given).settings == settings  # the smaller part lies beside it


@pytest.mark.slow
def test_the_evidence_of_an_encoder_is_judged_too(given: Conditions) -> None:
    made = BACKBONE.make(given)
    document, evidence = (
        Retrieving("clscisumm", system=name).open(given).judge(made) for name in ("document", "evidence")
    )
    assert [case.id for case in document.cases] == [case.id for case in evidence.cases]
    assert [case.ranking for case in document.cases] != [case.ranking for case in evidence.cases]
