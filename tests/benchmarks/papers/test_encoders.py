from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.pairs.comparing import Comparison
from benchmarks.pairs.scorer import Budget
from benchmarks.pairs.splitting import Split
from benchmarks.papers.comparison import Conditions, Numbers, Order, Size, Unit
from benchmarks.papers.encoders import Matched, PairData, Pretrained, Reordered, size_of
from engine.encoders.loading import load_encoder
from engine.encoders.smith.encoder import SmithEncoder
from engine.encoders.variant import Variant
from engine.errors import TrainingError
from engine.training.tasks.samplers import Sampling
from indexer.origin import Origin
from indexer.training import TensionObjective, ViewsObjective
from tests.benchmarks.papers.cases import COLDE_SIZES, SCALE, conditions, write_articles, write_citations
from tests.encoders.tiny import SMITH, tiny_colde, tiny_mean

pytest.importorskip("accelerate")
DATA = PairData("clscisumm")
COLDE = Matched("colde", DATA, COLDE_SIZES)


@pytest.fixture
def given(tmp_path: Path, bert_folder: Path, origin: Origin) -> Conditions:
    write_articles(write_citations(tmp_path / "data"))
    return conditions(tmp_path, bert_folder, origin)


def test_given_sizes_override_those_of_the_recipe(given: Conditions) -> None:
    system = Matched("smith-wp-sp", DATA, {"width": "64", "combination": "mean"}, variant=Variant.RELEASED)
    settings = system.scorer(given).settings
    assert (settings["size_width"], settings["size_combination"]) == ("64", "mean")
    assert (settings["variant"], settings["pretraining"]) == ("released", "sp,wp")


@pytest.mark.parametrize(("n_sections", "max_chunks"), [("2", "6"), ("3", "4"), ("4", "3"), ("5", "2")])
def test_more_sections_have_fewer_chunks_each(n_sections: str, max_chunks: str, given: Conditions) -> None:
    long = replace(given, scale=replace(given.scale, training_tokens=1536))
    settings = Matched("colde", DATA, {"n_sections": n_sections}).scorer(long).settings
    assert (settings["size_n_sections"], settings["size_max_chunks"]) == (n_sections, max_chunks)


def test_given_settings_of_training_override_those_of_the_recipe(given: Conditions) -> None:
    system = Matched("tde", DATA, learned={"temperature": 0.2}, comparison=Comparison.COSINE, training_tokens=32)
    settings = system.scorer(given).settings
    assert (settings["temperature"], settings["training_tokens"]) == (0.2, 32)
    assert system.settings == {
        "recipe": "tde",
        "learned_temperature": 0.2,
        "comparison": "cosine",
        "training_tokens": 32,
        "budgets": 1.0,
    }


def test_budgets_are_steps() -> None:
    scale = replace(SCALE, steps=100)
    assert Matched("smith-wp", DATA, budgets=2).budget(scale) == Budget(200, 8)
    assert Matched("colde", DATA, batch=16, budgets=0.5).budget(scale) == Budget(50, 16)
    assert Matched("colde", DATA, batch=12, budgets=8 / 12).budget(scale).steps == 67


def test_the_size_is_that_of_the_parameters(bert_folder: Path) -> None:
    mean, colde = tiny_mean(bert_folder), tiny_colde(bert_folder)
    backbone = sum(weight.numel() for weight in mean.backbone.model.parameters())
    assert size_of(mean) == Size(2, 32, backbone)
    assert size_of(colde).layers == 2
    assert size_of(colde).weights > backbone
    smith = SmithEncoder.create(bert_folder, SMITH, device="cpu")
    assert (size_of(smith).layers, size_of(smith).width) == (4, 32)


def test_a_setting_that_a_recipe_lacks_is_refused(given: Conditions) -> None:
    with pytest.raises(TrainingError, match="ContrastSettings has no 'temperature'; it has n_classes, n_each"):
        Matched("colde", DATA, learned={"temperature": 0.2}).scorer(given)
    with pytest.raises(TrainingError, match="the recipe cosine-bce makes no new encoder"):
        Matched("cosine-bce", DATA, {"width": "64"}).scorer(given)


def test_cases_are_matching_pairs_each_with_one_that_does_not(given: Conditions) -> None:
    pairs = DATA.open(replace(given, scale=replace(given.scale, max_words=7)))
    assert {split: len(of_split) for split, of_split in pairs.splits.items()} == {
        Split.TEST: 12,
        Split.VALID: 12,
        Split.TRAIN: 24,
    }
    assert all(sum(pair.is_match for pair in of_split) * 2 == len(of_split) for of_split in pairs.splits.values())
    assert {len(document.text.split()) for document in pairs.documents.values()} == {7}
    named = {doc_id for of_split in pairs.splits.values() for pair in of_split for doc_id in (pair.first, pair.second)}
    assert pairs.documents.keys() == named


@pytest.mark.slow
def test_an_encoder_is_trained_once_for_all_orders(given: Conditions) -> None:
    messages: list[str] = []
    given = replace(given, log=messages.append)
    made = COLDE.make(given)
    order = Order(Unit.CHUNKS, Numbers.ANEW)
    assert Reordered(COLDE, order).make(given) == replace(made, order=order, remark="5 orders a document")
    assert messages == ["colde: up to 3 steps"]
    assert (made.n_train, made.comparison, made.encoder) == (24, "cosine", given.backbone)
    other = replace(given, origin=replace(given.origin, seed=given.origin.seed + 1))
    assert COLDE.trained_on(other) == COLDE.trained_on(given)  # another seed trains on the same pairs
    assert load_encoder(COLDE.make(other).folder).fingerprint != load_encoder(made.folder).fingerprint
    assert Reordered(COLDE, order).settings == {
        **COLDE.settings,
        "unit": "chunks",
        "numbers": "anew",
        "n_orders": 5,
    }


def test_every_objective_has_the_same_steps_and_seed() -> None:
    docsplit = Pretrained("wiki", Sampling.DOCSPLIT, mlm_weight=0.1).recipe("bert", SCALE, 5)
    tension = Pretrained("wiki", Sampling.CT, learning_rate=1e-5).recipe("bert", SCALE, 5)
    contriever = Pretrained("wiki", Sampling.CONTRIEVER, has_queue=True).recipe("bert", SCALE, 5)
    assert {(one.trainer.steps, one.trainer.seed) for one in (docsplit, tension, contriever)} == {(3, 5)}
    assert docsplit.objective == ViewsObjective(Sampling.DOCSPLIT, 8, 96, mlm_weight=0.1, momentum=0.9)
    assert tension.objective == TensionObjective(batch_size=16, view_tokens=96, negatives=7)
    assert isinstance(contriever.objective, ViewsObjective) and contriever.objective.queue == 128
    assert tension.trainer.learning_rate == 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [Sampling.DOCSPLIT, Sampling.CT])
def test_an_encoder_is_pretrained_once(sampling: Sampling, given: Conditions, bert_folder: Path) -> None:
    system = Pretrained("wikipedia_seealso", sampling)
    made = system.make(given)
    assert Path(made.folder).name.startswith(f"{sampling}-")
    assert (made.n_steps, made.n_train, made.begins_with) == (3, 12, "bert")
    assert load_encoder(made.folder).fingerprint != load_encoder(str(bert_folder)).fingerprint
    written = Path(made.folder, "model.safetensors").stat().st_mtime_ns
    assert system.make(given) == made
    assert Path(made.folder, "model.safetensors").stat().st_mtime_ns == written


@pytest.mark.slow
def test_documents_are_drawn_whole(given: Conditions) -> None:
    Pretrained("wikipedia_seealso", Sampling.SIMCSE).make(given)
    (file,) = (given.work / "papers").glob("*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 12
    assert min(len(line["text"].split()) for line in lines) > given.scale.max_words


def test_without_an_objective_the_backbone_is_judged(given: Conditions) -> None:
    made = Pretrained("wikipedia_seealso").make(given)
    assert (made.folder, made.n_steps, made.size) == (
        given.encoder,
        0,
        Size(2, 32, made.size.weights if made.size else 0),
    )
    assert Pretrained("wikipedia_seealso").trained_on(given) == {}
    assert np.isclose(made.seconds, 0)
