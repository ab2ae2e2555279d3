from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.pairs.scorer import Pair
from benchmarks.papers.comparison import Conditions
from benchmarks.papers.encoder_arm import EncoderArm
from benchmarks.papers.summary_task import PairRanker, SummaryBench, SummaryRanking
from benchmarks.systems import Settings
from engine.document import Document
from indexer.training.origin import Origin
from tests.benchmarks.papers.cases import conditions, write_summaries

pytest.importorskip("ir_measures")
TASK = SummaryRanking("reference-topic", "MRR")


@pytest.fixture
def given(tmp_path: Path, bert_folder: Path, origin: Origin) -> Conditions:
    write_summaries(tmp_path / "data")
    return conditions(tmp_path, bert_folder, origin)


def test_topics_are_learned_from_or_asked_about(given: Conditions) -> None:
    bench = SummaryBench(TASK, given)
    assert {pair.first for pair in bench.train} == {"sum:speech", "sum:parsing"}
    assert {pair.first for pair in bench.valid} == {"sum:words"}
    asked = {question.query_id for draw in bench.trial.draws for question in draw}
    assert asked == {"sum:dialogue"}
    assert bench.documents.keys() >= {"sum:dialogue", "dialogue", "dialogue0", "sum:words", "words", "sum:parsing"}
    assert "parsing" in bench.documents and max(len(one.text.split()) for one in bench.documents.values()) <= 50


def test_a_trained_encoder_ranks_the_papers_of_a_topic(given: Conditions) -> None:
    bench = SummaryBench(TASK, given)
    measured = bench.measure(EncoderArm("cosine-bce"))
    assert len(measured.values) == len(measured.groups) == 1
    assert round(1 / measured.values[0]) in range(1, 8)  # the rank of its paper among seven
    assert (measured.n_train, measured.encoder.startswith("bert@")) == (4, True)
    assert bench.measure(EncoderArm("cosine-bce")).values == measured.values


def test_settings_name_the_questions(given: Conditions) -> None:
    settings = SummaryBench(TASK, given).settings
    assert (settings["task"], settings["split"], settings["n_summaries"]) == ("reference-topic", "cl2017train", 1)
    assert str(settings["dataset"]).startswith("clscisumm@")


class FakeScorer:
    """The longer its name, the better a paper."""

    encoder = "fake@0"

    def __init__(self) -> None:
        self.settings: Settings = {}

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        return np.array([len(pair.second) for pair in pairs], np.float64)


def test_a_ranker_answers_the_pairs_that_it_was_made_with() -> None:
    pairs = [Pair("s", "a", False), Pair("s", "ccc", False), Pair("t", "bb", False)]
    ranker = PairRanker(FakeScorer(), pairs)
    assert ranker.score("s", "ccc") == 3.0
    assert ranker.search(Document("s", "", "", ()), 5) == [("ccc", 3.0), ("a", 1.0)]
