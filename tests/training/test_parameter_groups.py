"""Learning rates of parameters: heads have a rate of their own only where one is given."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from torch import nn

from engine.encoders.colde.config import ColdeConfig
from engine.encoders.colde.encoder import ColdeEncoder
from engine.encoders.mean import MeanEncoder
from engine.encoders.trainable import TrainableEncoder
from engine.training.trainer import TrainerSettings, _groups
from indexer.training import Recipe, TextPairsObjective
from tests.encoders.tiny import tiny_tde

RATE, HEAD_RATE = 1e-4, 1e-2


@pytest.fixture(scope="module")
def colde(bert_folder: Path) -> ColdeEncoder:
    return ColdeEncoder.create(
        bert_folder, ColdeConfig(chunk_tokens=12, lstm_width=8, projection_width=16), device="cpu"
    )


def rates(module: nn.Module, encoder: TrainableEncoder, settings: TrainerSettings) -> dict[str, float]:
    """The rate of each weight, by name."""
    names = {id(weight): name for name, weight in module.named_parameters()}
    return {names[id(one)]: group["lr"] for group in _groups(module, encoder, settings) for one in group["params"]}


def test_without_a_head_rate_all_parameters_learn_at_one_rate(colde: ColdeEncoder) -> None:
    task = nn.ModuleDict({"encoder": colde.module, "scale": nn.Linear(1, 1)})
    groups = _groups(task, colde, TrainerSettings(learning_rate=RATE))
    own = [id(weight) for weight in colde.module.parameters()]
    kinds = [
        ({id(one) in own for one in group["params"]}, {one.dim() > 1 for one in group["params"]}) for group in groups
    ]
    assert kinds == [({True}, {True}), ({True}, {False}), ({False}, {True}), ({False}, {False})]
    assert [group["weight_decay"] for group in groups] == [0.01, 0.0, 0.01, 0.0]
    in_order = [id(one) for one in colde.module.parameters() if one.dim() > 1]
    assert [id(one) for one in groups[0]["params"]] == in_order  # as the checkpoints have it
    assert set(rates(task, colde, TrainerSettings(learning_rate=RATE)).values()) == {RATE}


def test_the_head_rate_applies_to_all_parameters_outside_the_backbone(colde: ColdeEncoder) -> None:
    task = nn.ModuleDict({"encoder": colde.module, "scale": nn.Linear(1, 1)})
    settings = TrainerSettings(learning_rate=RATE, head_learning_rate=HEAD_RATE)
    for name, rate in rates(task, colde, settings).items():
        assert rate == (RATE if name.startswith("encoder.backbone.") else HEAD_RATE), name


def test_the_head_rate_applies_to_the_document_layers_of_a_smith() -> None:
    module = nn.ModuleDict({"sentence": nn.Linear(2, 2), "document": nn.Linear(2, 2)})
    smith = SimpleNamespace(module=module)
    settings = TrainerSettings(learning_rate=RATE, head_learning_rate=HEAD_RATE)
    for name, rate in rates(module, smith, settings).items():  # type: ignore[arg-type]
        assert rate == (RATE if name.startswith("sentence.") else HEAD_RATE), name


def test_with_an_encoder_without_heads_the_head_rate_applies_to_the_task_alone(mean_encoder: MeanEncoder) -> None:
    task = nn.ModuleDict({"encoder": mean_encoder.module, "scale": nn.Linear(1, 1)})
    found = rates(task, mean_encoder, TrainerSettings(learning_rate=RATE, head_learning_rate=HEAD_RATE))
    assert {name for name, rate in found.items() if rate == HEAD_RATE} == {"scale.weight", "scale.bias"}


def test_topics_and_head_of_a_tde_learn_faster_than_its_backbone(bert_folder: Path) -> None:
    tde = tiny_tde(bert_folder)
    settings = Recipe(objective=TextPairsObjective(), trainer=TrainerSettings(learning_rate=2e-5)).trainer
    found = rates(tde.module, tde, settings)
    assert {name.partition(".")[0] for name, rate in found.items() if rate == 2e-5} == {"backbone"}
    assert {name.partition(".")[0] for name, rate in found.items() if rate == 1e-3} == {"topics", "head"}
    assert set(found.values()) == {2e-5, 1e-3}


def test_a_rate_that_was_given_for_the_head_of_a_tde_is_kept() -> None:
    trainer = TrainerSettings(head_learning_rate=HEAD_RATE)
    assert Recipe(objective=TextPairsObjective(), trainer=trainer).trainer.head_learning_rate == HEAD_RATE
    assert Recipe().trainer.head_learning_rate is None
