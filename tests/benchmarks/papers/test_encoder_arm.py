from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.pairs.comparing import Comparison
from benchmarks.pairs.scorer import Budget
from benchmarks.papers.comparison import Size
from benchmarks.papers.pairs_task import EncoderArm, size_of
from engine.encoders.smith.encoder import SmithEncoder
from engine.encoders.variant import Variant
from engine.errors import TrainingError
from indexer.training.origin import Origin
from tests.benchmarks.papers.cases import SCALE, conditions
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
