"""The training loop: exact resumption, learning rates, early stopping, and which step is saved."""

import csv
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from engine.encoders.colde import ColdeConfig, ColdeEncoder
from engine.encoders.hardware import default_dtype
from engine.encoders.loading import load_trainable
from engine.encoders.trainable import MeanEncoder, TrainableEncoder
from engine.errors import EncoderError, TrainingError
from engine.training.fine_tuning import FineTuning, FineTuningSettings, Source
from engine.training.selection import RandomRuns
from engine.training.task import Backward
from engine.training.trainer import Outcome, Step, Trainer, TrainerSettings, Validation, _groups, rate_share, torch_seed
from indexer.training.recipe import Recipe, TextPairsObjective
from tests.encoders.tiny import tiny_tde
from tests.training.made import assert_equal, plain_encoder, small_corpus, small_fine_tuning, weights_of, without_speed


class Stop(Exception):
    """Stands for a machine that goes down."""


def stops_at(number: int) -> Callable[[Step], None]:
    def watch(step: Step) -> None:
        if step.number == number:
            raise Stop

    return watch


SETTINGS = TrainerSettings(steps=10, learning_rate=1e-3, validate_every=3, checkpoint_every=5)


@pytest.mark.slow
def test_a_resumed_run_ends_like_one_that_never_stopped(bert_folder: Path, tmp_path: Path) -> None:
    def run(folder: Path, watch: Callable[[Step], None] = lambda step: None) -> tuple[FineTuning, Outcome]:
        task = small_fine_tuning(bert_folder)
        validate = measured(Validation(small_corpus(), task.encoder, chunks=2))
        return task, Trainer(task, task.encoder, folder, SETTINGS, validate=validate, watch=watch).run()

    expected, straight = run(tmp_path / "straight")
    with pytest.raises(Stop):
        run(tmp_path / "broken", stops_at(8))
    assert [path.name for path in (tmp_path / "broken" / "checkpoints").iterdir()] == ["checkpoint-5"]
    found, resumed = run(tmp_path / "broken")
    assert_equal(weights_of(found.module), weights_of(expected.module))
    assert without_speed(resumed.history) == without_speed(straight.history)
    assert (resumed.best_step, resumed.steps, resumed.n_tokens) == (straight.best_step, 10, straight.n_tokens)


@pytest.mark.slow
def test_random_numbers_depend_on_seed_step_and_process(bert_folder: Path, tmp_path: Path) -> None:
    assert torch_seed(0, 1, 0) == torch_seed(0, 1, 0)
    assert (
        len({torch_seed(seed, step, process) for seed in range(3) for step in range(3) for process in range(3)}) == 27
    )
    runs = []
    for seed in (0, 0, 1):
        task = small_fine_tuning(bert_folder)
        settings = TrainerSettings(steps=2, learning_rate=1e-3, seed=seed)
        Trainer(task, task.encoder, tmp_path / str(len(runs)), settings).run()
        runs.append(weights_of(task.module)["encoder.encoder.layer.0.output.dense.weight"])
    assert torch.equal(runs[0], runs[1]) and not torch.equal(runs[0], runs[2])


@pytest.mark.parametrize(
    ("warmup_share", "expected"),
    [
        (0.2, [1 / 3, 2 / 3, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        (0.0, [1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]),
        (0.9, [*(step / 10 for step in range(1, 10)), 1.0]),
    ],
)
def test_the_rate_rises_then_falls_to_nothing(warmup_share: float, expected: list[float]) -> None:
    settings = TrainerSettings(steps=10, warmup_share=warmup_share)
    assert [rate_share(step, settings) for step in range(10)] == pytest.approx(expected)


class Toy:
    """A task of one layer; the loss of a step is a function of the layer and the step."""

    def __init__(self, loss: Callable[[nn.Linear, int], Tensor]) -> None:
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 2)
        self.module: nn.Module = nn.ModuleDict({"layer": self.layer})
        self.loss = loss
        self.seen: list[int] = []

    def batch(self, step: int) -> int:
        return step

    def n_tokens(self, batch: int) -> int:
        return 10 + batch

    def backward(self, batch: int, backward: Backward) -> Mapping[str, float]:
        self.seen.append(batch)
        loss = self.loss(self.layer, batch)
        backward(loss)
        return {"loss": loss.item()}


def scripted(**values: Sequence[float]) -> Callable[[], dict[str, float]]:
    """A validation whose values are known, by corpus."""
    rows = iter(zip(*values.values(), strict=True))
    return lambda: dict(zip(values, next(rows), strict=True))


def measured(validation: Validation) -> Callable[[], dict[str, float]]:
    return lambda: {validation.name: validation.ndcg()}


def pull(layer: nn.Linear, step: int) -> Tensor:
    return (layer.weight - 1).square().sum() + layer.bias.square().sum()


def test_steps_losses_rates_and_tokens_are_recorded(mean_encoder: MeanEncoder, tmp_path: Path) -> None:
    task = Toy(lambda layer, step: layer.weight.sum() * 0 + step)
    settings = TrainerSettings(steps=4, learning_rate=0.1, warmup_share=0.5, mixed_precision=False)
    outcome = Trainer(task, mean_encoder, tmp_path, settings).run()
    assert task.seen == [0, 1, 2, 3]
    assert without_speed(outcome.history) == [
        row
        for step, share in enumerate([1 / 3, 2 / 3, 1, 0.5])
        for row in ((step + 1, "loss", float(step)), (step + 1, "learning rate", pytest.approx(0.1 * share)))
    ]
    assert (outcome.steps, outcome.n_tokens) == (4, 10 + 11 + 12 + 13)
    header, *rows = csv.reader((tmp_path / "history.csv").read_text().splitlines())
    assert header == ["step", "name", "value"]
    assert [(int(step), name, float(value)) for step, name, value in rows] == list(outcome.history.rows)


def test_only_matrices_decay_and_heads_have_their_own_rate(mean_encoder: MeanEncoder, tmp_path: Path) -> None:
    task = Toy(lambda layer, step: 0 * (layer.weight.sum() + layer.bias.sum()))
    before = weights_of(task.module)
    settings = TrainerSettings(steps=1, head_learning_rate=0.5, warmup_share=0, weight_decay=0.2)
    Trainer(task, mean_encoder, tmp_path, settings).run()
    torch.testing.assert_close(task.layer.weight.data, before["layer.weight"] * (1 - 0.5 * 0.2))
    assert torch.equal(task.layer.bias.data, before["layer.bias"])


def test_a_gradient_above_the_norm_is_clipped(mean_encoder: MeanEncoder, tmp_path: Path) -> None:
    task = Toy(lambda layer, step: 1000 * pull(layer, step))
    trainer = Trainer(task, mean_encoder, tmp_path, TrainerSettings(steps=1, gradient_norm=0.3))
    trainer.run()
    means = [state["exp_avg"].flatten() for state in trainer.optimizer.state.values()]  # a tenth of the gradients
    assert torch.cat(means).norm().item() == pytest.approx(0.03, rel=1e-4)


@pytest.mark.parametrize("mixed_precision", [True, False])
def test_products_are_bfloat16_where_that_is_native_and_wanted(
    mean_encoder: MeanEncoder, tmp_path: Path, mixed_precision: bool
) -> None:
    seen: list[torch.dtype] = []

    def loss(layer: nn.Linear, step: int) -> Tensor:
        seen.append(layer(torch.ones(1, 3)).dtype)
        return pull(layer, step)

    settings = TrainerSettings(steps=1, mixed_precision=mixed_precision)
    Trainer(Toy(loss), mean_encoder, tmp_path, settings).run()
    assert seen == [default_dtype("cpu") if mixed_precision else torch.float32]


@pytest.mark.slow
def test_the_best_weights_are_kept_and_validate_the_same(bert_folder: Path, tmp_path: Path) -> None:
    encoder = plain_encoder(bert_folder)
    task = FineTuning(encoder, [Source(small_corpus(), RandomRuns(4, 4))], FineTuningSettings(queries=12, negatives=0))
    settings = TrainerSettings(steps=12, learning_rate=2e-3, validate_every=2, mixed_precision=False)
    validation = Validation(small_corpus(), task.encoder)
    outcome = Trainer(task, task.encoder, tmp_path, settings, validate=measured(validation)).run()
    values = outcome.history.validation["made"]
    assert outcome.best_step == max(values, key=values.__getitem__) > 0
    best = load_trainable(str(outcome.folder), device="cpu", dtype=torch.float32)
    assert isinstance(best, TrainableEncoder)
    assert Validation(small_corpus(), best).ndcg() == max(values.values())


def test_without_validation_the_last_weights_are_kept(bert_folder: Path, tmp_path: Path) -> None:
    task = small_fine_tuning(bert_folder)
    outcome = Trainer(task, task.encoder, tmp_path, TrainerSettings(steps=2, learning_rate=1e-3)).run()
    best = load_trainable(str(outcome.folder), device="cpu", dtype=torch.float32)
    assert isinstance(best, MeanEncoder)
    assert_equal(weights_of(best.module), weights_of(task.encoder.module))
    assert outcome.best_step == outcome.steps == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "patience", "steps", "best_step"),
    [
        ([0.5, 0.4, 0.6, 0.6, 0.5], 2, 8, 4),  # equal is not better
        ([0.5, 0.4, 0.3], 2, 4, 0),
        ([0.5, 0.4, 0.3, 0.2, 0.1, 0.0], None, 10, 0),
    ],
)
def test_training_stops_after_a_number_of_validations_without_a_gain(
    mean_encoder: MeanEncoder, tmp_path: Path, values: list[float], patience: int | None, steps: int, best_step: int
) -> None:
    settings = TrainerSettings(steps=10, validate_every=2, checkpoint_every=100, patience=patience)
    outcome = Trainer(Toy(pull), mean_encoder, tmp_path, settings, validate=scripted(made=values)).run()
    assert (outcome.steps, outcome.best_step) == (steps, best_step)
    again = Trainer(Toy(pull), mean_encoder, tmp_path, settings, validate=scripted(made=[])).run()
    assert (again.steps, again.best_step) == (steps, best_step)


def test_the_mean_over_corpora_decides_the_best_step(mean_encoder: MeanEncoder, tmp_path: Path) -> None:
    validate = scripted(made=[0.2, 0.9, 0.1], other=[0.2, 0.1, 0.8])
    logged: list[str] = []
    settings = TrainerSettings(steps=2, validate_every=1)
    outcome = Trainer(Toy(pull), mean_encoder, tmp_path, settings, validate=validate, log=logged.append).run()
    assert outcome.best_step == 1
    assert [line for line in logged if line.startswith("valid")] == [
        "valid nDCG@10 after step 0: made 0.2000, other 0.2000; mean 0.2000 *",
        "valid nDCG@10 after step 1: made 0.9000, other 0.1000; mean 0.5000 *",
        "valid nDCG@10 after step 2: made 0.1000, other 0.8000; mean 0.4500",
    ]


def test_a_loss_that_is_no_number_ends_the_run(mean_encoder: MeanEncoder, tmp_path: Path) -> None:
    task = Toy(lambda layer, step: pull(layer, step) * (math.nan if step == 2 else 1))
    settings = TrainerSettings(steps=5, learning_rate=0.01, checkpoint_every=1)
    with pytest.raises(TrainingError) as raised:
        Trainer(task, mean_encoder, tmp_path, settings).run()
    assert str(raised.value) == (
        "the loss of step 3 is nan; lower the learning rate (0.01) and run again: it goes on from the last checkpoint "
        f"in {tmp_path}/checkpoints"
    )
    assert all(weight.isfinite().all() for weight in task.module.parameters())
    repaired = Toy(pull)
    assert Trainer(repaired, mean_encoder, tmp_path, settings).run().steps == 5
    assert repaired.seen == [2, 3, 4]


def test_a_gradient_that_is_no_number_reaches_no_weight(mean_encoder: MeanEncoder, tmp_path: Path) -> None:
    task = Toy(lambda layer, step: (0 * layer.weight).sqrt().sum())
    with pytest.raises(TrainingError, match=r"^the length of the gradient of step 1 is nan; lower the learning rate"):
        Trainer(task, mean_encoder, tmp_path, TrainerSettings(steps=1)).run()
    assert all(weight.isfinite().all() for weight in task.module.parameters())


def resumed(task: Toy, encoder: MeanEncoder, folder: Path, **settings: float) -> Outcome:
    return Trainer(task, encoder, folder, TrainerSettings(learning_rate=0.01, checkpoint_every=1, **settings)).run()  # type: ignore[arg-type]


@pytest.mark.parametrize("leftover", ["", '{"global_'])
def test_a_checkpoint_that_was_not_finished_is_passed_over(
    mean_encoder: MeanEncoder, tmp_path: Path, leftover: str
) -> None:
    resumed(Toy(pull), mean_encoder, tmp_path, steps=2)
    unfinished = tmp_path / "checkpoints" / "checkpoint-3"
    unfinished.mkdir()
    if leftover:
        (unfinished / "trainer_state.json").write_text(leftover)
    task = Toy(pull)
    assert resumed(task, mean_encoder, tmp_path, steps=4).steps == 4
    assert task.seen == [2, 3]


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.pt", "scheduler.pt"])
def test_a_damaged_checkpoint_raises_an_error_with_the_way_out(
    mean_encoder: MeanEncoder, tmp_path: Path, name: str
) -> None:
    resumed(Toy(pull), mean_encoder, tmp_path, steps=2)
    checkpoint = tmp_path / "checkpoints" / "checkpoint-2"
    (checkpoint / name).write_bytes(b"damaged")
    with pytest.raises(TrainingError) as raised:
        resumed(Toy(pull), mean_encoder, tmp_path, steps=3)
    assert str(raised.value).startswith(f"{checkpoint} is damaged (")
    assert str(raised.value).endswith("); delete it, and the run goes on from the checkpoint before it")
    shutil.rmtree(checkpoint)
    task = Toy(pull)
    resumed(task, mean_encoder, tmp_path, steps=3)
    assert task.seen == [1, 2]


def test_tied_parameters_are_saved_and_resumed(mean_encoder: MeanEncoder, tmp_path: Path) -> None:
    def tied() -> Toy:
        task = Toy(pull)
        task.module = nn.ModuleDict({"layer": task.layer, "again": nn.Linear(3, 2)})
        task.module["again"].weight = task.layer.weight
        return task

    whole, broken = tied(), tied()
    resumed(whole, mean_encoder, tmp_path / "whole", steps=4)
    resumed(tied(), mean_encoder, tmp_path / "broken", steps=2)
    # The rate falls over all steps, so that the first two differ from those of the whole run.
    resumed(broken, mean_encoder, tmp_path / "broken", steps=4)
    assert torch.equal(broken.module["again"].weight, broken.layer.weight) and broken.seen == [2, 3]


def test_two_checkpoints_are_kept(mean_encoder: MeanEncoder, tmp_path: Path) -> None:
    resumed(Toy(pull), mean_encoder, tmp_path, steps=4)
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {"checkpoint-3", "checkpoint-4"}


def test_a_checkpoint_of_another_module_is_refused(mean_encoder: MeanEncoder, tmp_path: Path) -> None:
    resumed(Toy(pull), mean_encoder, tmp_path, steps=2)
    other = Toy(lambda layer, step: other.layer.weight.sum())
    other.layer = nn.Linear(5, 2)
    other.module = nn.ModuleDict({"layer": other.layer})
    with pytest.raises(
        EncoderError, match=r"checkpoint-2 is of another encoder .*; give the settings of its first run"
    ):
        resumed(other, mean_encoder, tmp_path, steps=3)


def test_steps_are_watched_with_the_last_validation(mean_encoder: MeanEncoder, tmp_path: Path) -> None:
    steps: list[Step] = []
    settings = TrainerSettings(steps=3, validate_every=2)
    Trainer(
        Toy(pull), mean_encoder, tmp_path, settings, validate=scripted(made=[0.1, 0.4, 0.3]), watch=steps.append
    ).run()
    assert [(step.number, step.of, step.valid) for step in steps] == [(1, 3, 0.1), (2, 3, 0.1), (3, 3, 0.4)]


def test_nothing_is_printed_and_the_configuration_of_a_model_stays(
    mean_encoder: MeanEncoder, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    task = Toy(pull)
    task.module.config = SimpleNamespace(use_cache=None)  # type: ignore[assignment]
    Trainer(task, mean_encoder, tmp_path, TrainerSettings(steps=4, checkpoint_every=1)).run()
    assert capfd.readouterr() == ("", "")
    assert task.module.config.use_cache is None  # type: ignore[union-attr]


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


SMITH_LAYERS = nn.ModuleDict({"sentence": nn.Linear(2, 2), "document": nn.Linear(2, 2)})


def test_the_head_rate_applies_outside_the_backbone_and_topics_and_head_of_a_tde_learn_faster(
    colde: ColdeEncoder, mean_encoder: MeanEncoder, bert_folder: Path
) -> None:
    settings = TrainerSettings(learning_rate=RATE, head_learning_rate=HEAD_RATE)
    encoders = [(colde, "backbone."), (mean_encoder, ""), (SimpleNamespace(module=SMITH_LAYERS), "sentence.")]
    for encoder, backbone in encoders:
        task = nn.ModuleDict({"encoder": encoder.module, "scale": nn.Linear(1, 1)})
        for name, rate in rates(task, encoder, settings).items():
            assert rate == (RATE if name.startswith(f"encoder.{backbone}") else HEAD_RATE), name
    tde = tiny_tde(bert_folder)
    settings = Recipe(objective=TextPairsObjective(), trainer=TrainerSettings(learning_rate=2e-5)).trainer
    found = rates(tde.module, tde, settings)
    assert {name.partition(".")[0] for name, rate in found.items() if rate == 2e-5} == {"backbone"}
    assert {name.partition(".")[0] for name, rate in found.items() if rate == 1e-3} == {"topics", "head"}
    assert set(found.values()) == {2e-5, 1e-3}
    trainer = TrainerSettings(head_learning_rate=HEAD_RATE)
    assert Recipe(objective=TextPairsObjective(), trainer=trainer).trainer.head_learning_rate == HEAD_RATE
    assert Recipe().trainer.head_learning_rate is None
