from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import DatasetError
from benchmarks.pairs.splitting import Split
from benchmarks.papers.comparison import Conditions
from benchmarks.papers.pairs_task import EncoderArm, MatchingBench, MatchingTask
from indexer.training.origin import Origin
from tests.benchmarks.papers.cases import conditions, write_citations

TASK = MatchingTask("clscisumm")


@pytest.fixture
def given(tmp_path: Path, bert_folder: Path, origin: Origin) -> Conditions:
    write_citations(tmp_path / "data")
    return conditions(tmp_path, bert_folder, origin)


def test_cases_are_matching_pairs_each_with_one_that_does_not(given: Conditions) -> None:
    splits = MatchingBench(TASK, given).trial.splits
    assert {split: len(pairs) for split, pairs in splits.items()} == {
        Split.TEST: 12,
        Split.VALID: 12,
        Split.TRAIN: 24,
    }
    assert all(sum(pair.is_match for pair in pairs) * 2 == len(pairs) for pairs in splits.values())


def test_documents_are_cut_and_no_others_are_kept(given: Conditions) -> None:
    trial = MatchingBench(TASK, conditions(given.data.parent, Path(given.encoder), given.origin, max_words=7)).trial
    assert {len(document.text.split()) for document in trial.documents.values()} == {7}
    named = {doc_id for pairs in trial.splits.values() for pair in pairs for doc_id in (pair.first, pair.second)}
    assert trial.documents.keys() == named


def test_a_value_tells_whether_a_pair_is_called_right(given: Conditions) -> None:
    bench = MatchingBench(TASK, given)
    measured = bench.measure(EncoderArm("cosine-bce"))
    test = bench.trial.splits[Split.TEST]
    firsts = list(dict.fromkeys(pair.first for pair in test))
    assert set(measured.values) <= {0.0, 1.0}
    assert list(measured.groups) == [firsts.index(pair.first) for pair in test]
    assert (measured.n_train, len(measured.values)) == (24, 12)
    assert measured.n_steps <= 3
    assert measured.encoder.startswith("bert@") and measured.begins_with == measured.encoder
    again = bench.measure(EncoderArm("cosine-bce"))
    assert np.array_equal(measured.values, again.values)


def test_settings_name_the_pairs_and_the_backbone(given: Conditions, other_bert_folder: Path) -> None:
    one = MatchingBench(TASK, given).settings
    fewer = MatchingBench(TASK, conditions(given.data.parent, other_bert_folder, given.origin, n_train=4)).settings
    assert one["pairs"] != fewer["pairs"]
    assert str(one["backbone"]).startswith("bert@") and str(fewer["backbone"]).startswith("other@")
    assert one["dataset"] == fewer["dataset"]


def test_a_corpus_that_is_not_there_is_named(tmp_path: Path, bert_folder: Path, origin: Origin) -> None:
    with pytest.raises(DatasetError, match=r"dataset clscisumm: .* holds no corpus\.jsonl\.gz"):
        TASK.open(conditions(tmp_path, bert_folder, origin))
