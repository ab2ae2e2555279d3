from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import DatasetError
from benchmarks.pairs.comparing import Comparison
from benchmarks.pairs.scorer import Budget
from benchmarks.pairs.splitting import Split
from benchmarks.papers.comparison import Conditions, Size
from benchmarks.papers.pairs_task import EncoderArm, MatchingBench, MatchingTask, size_of
from engine.encoders.smith.encoder import SmithEncoder
from engine.encoders.variant import Variant
from engine.errors import TrainingError
from indexer.training.origin import Origin
from tests.benchmarks.papers.cases import SCALE, conditions, write_citations
from tests.encoders.tiny import SMITH, tiny_colde, tiny_mean


def test_sizes_go_over_those_of_the_recipe(bert_folder: Path, tmp_path: Path, origin: Origin) -> None:
    arm = EncoderArm("smith-wp-sp", {"width": "64", "combination": "mean"}, variant=Variant.RELEASED)
    settings = arm.scorer(conditions(tmp_path, bert_folder, origin)).settings
    assert (settings["size_width"], settings["size_combination"]) == ("64", "mean")
    assert (settings["variant"], settings["pretraining"]) == ("released", "sp,wp")


@pytest.mark.parametrize(("n_sections", "max_chunks"), [("2", "6"), ("3", "4"), ("4", "3"), ("5", "2")])
def test_a_document_in_more_sections_has_as_many_chunks(
    n_sections: str, max_chunks: str, bert_folder: Path, tmp_path: Path, origin: Origin
) -> None:
    arm = EncoderArm("colde", {"n_sections": n_sections})
    settings = arm.scorer(conditions(tmp_path, bert_folder, origin, training_tokens=1536)).settings
    assert (settings["size_n_sections"], settings["size_max_chunks"]) == (n_sections, max_chunks)


def test_what_is_learned_goes_over_the_recipe(bert_folder: Path, tmp_path: Path, origin: Origin) -> None:
    arm = EncoderArm("tde", learned={"temperature": 0.2}, comparison=Comparison.COSINE, training_tokens=32)
    settings = arm.scorer(conditions(tmp_path, bert_folder, origin)).settings
    assert (settings["temperature"], settings["training_tokens"]) == (0.2, 32)
    assert arm.settings == {
        "recipe": "tde",
        "learned_temperature": 0.2,
        "comparison": "cosine",
        "training_tokens": 32,
        "budgets": 1.0,
    }


def test_pretraining_comes_on_top_and_larger_batches_make_fewer_steps() -> None:
    scale = replace(SCALE, steps=100)
    assert EncoderArm("smith-wp", budgets=2).budget(scale) == Budget(200, 8, 120.0)
    assert EncoderArm("colde", batch=16, budgets=0.5).budget(scale) == Budget(50, 16, 60.0)
    assert EncoderArm("colde", batch=12, budgets=8 / 12).budget(scale).steps == 67


def test_the_size_is_that_of_the_weights(bert_folder: Path) -> None:
    mean, colde = tiny_mean(bert_folder), tiny_colde(bert_folder)
    backbone = sum(weight.numel() for weight in mean.backbone.model.parameters())
    assert size_of(mean) == Size(2, 32, backbone)
    assert size_of(colde).layers == 2
    assert size_of(colde).weights > backbone
    smith = SmithEncoder.create(bert_folder, SMITH, device="cpu")
    assert (size_of(smith).layers, size_of(smith).width) == (4, 32)


def test_what_a_recipe_does_not_have_is_refused(bert_folder: Path, tmp_path: Path, origin: Origin) -> None:
    given = conditions(tmp_path, bert_folder, origin)
    with pytest.raises(TrainingError, match="ContrastSettings has no 'temperature'; it has n_classes, n_each"):
        EncoderArm("colde", learned={"temperature": 0.2}).scorer(given)
    with pytest.raises(TrainingError, match="the recipe cosine-bce makes no new encoder"):
        EncoderArm("cosine-bce", {"width": "64"}).scorer(given)


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
