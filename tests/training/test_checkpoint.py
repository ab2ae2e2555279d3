"""Checkpoints: a resumed run continues as if it had never stopped, and damaged files are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.optim import SGD, Adafactor, AdamW, Optimizer, RMSprop

from engine.errors import EncoderError, TrainingError
from engine.training.run.checkpoint import (
    CHECKPOINT_FILE,
    MODULE_FILE,
    OPTIMIZER_FILE,
    Checkpoint,
    latest_checkpoint,
    load_checkpoint,
    save_checkpoint,
)

FILES = (MODULE_FILE, OPTIMIZER_FILE, CHECKPOINT_FILE)


class Net(nn.Module):
    """A module with all that a checkpoint must hold: a tied weight, a learned scalar, a frozen weight, buffers."""

    def __init__(self, seed: int = 0, width: int = 3) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.inner = nn.Linear(4, width)
        self.norm = nn.BatchNorm1d(width)  # counts its batches in a 0-d int64 buffer
        self.outer = nn.Linear(4, width, bias=False)
        self.outer.weight = self.inner.weight
        self.scale = nn.Parameter(torch.tensor(6.0))
        self.frozen = nn.Parameter(torch.randn(width), requires_grad=False)

    def forward(self, rows: Tensor) -> Tensor:
        hidden = self.norm(self.inner(rows)) + self.frozen
        loss: Tensor = torch.tanh(self.scale * hidden @ self.outer.weight).square().mean()
        return loss


def adamw(net: Net, *, amsgrad: bool = False, fused: bool = False) -> Optimizer:
    groups: list[dict[str, Any]] = [
        {"params": list(net.inner.parameters())},
        {"params": [*net.norm.parameters(), net.scale], "lr": 0.3},
    ]
    return AdamW(groups, lr=0.1, betas=(0.8, 0.95), weight_decay=0.02, amsgrad=amsgrad, fused=fused)


OPTIMIZERS: dict[str, Callable[[Net], Optimizer]] = {
    "AdamW": adamw,
    "AMSGrad": lambda net: adamw(net, amsgrad=True),
    "fused AdamW": lambda net: adamw(net, fused=True),
    "RMSprop": lambda net: RMSprop(net.parameters(), lr=0.01, momentum=0.9, centered=True),
    "SGD with momentum": lambda net: SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True),
    "SGD": lambda net: SGD(net.parameters(), lr=0.1),
    "Adafactor": lambda net: Adafactor(net.parameters(), lr=0.1),
}


def train(net: Net, optimizer: Optimizer, steps: range) -> None:
    for step in steps:
        rows = torch.randn(5, 4, generator=torch.Generator().manual_seed(step))
        for group in optimizer.param_groups:
            group["lr"] *= 0.9
        optimizer.zero_grad()
        net(rows).backward()
        optimizer.step()


def assert_same_bits(one: nn.Module, other: nn.Module) -> None:
    ours, theirs = one.state_dict(), other.state_dict()
    assert list(ours) == list(theirs)
    for name, value in ours.items():
        assert value.dtype == theirs[name].dtype
        assert value.numpy().tobytes() == theirs[name].numpy().tobytes(), name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run" / "checkpoints"


@pytest.fixture
def saved(folder: Path) -> Path:
    """A run that was saved at steps 3 and 5."""
    net = Net()
    optimizer = adamw(net)
    train(net, optimizer, range(3))
    save_checkpoint(folder, 3, net, optimizer, {"seed": 7})
    train(net, optimizer, range(3, 5))
    return save_checkpoint(folder, 5, net, optimizer, {"seed": 7})


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_five_steps_a_checkpoint_and_five_more_steps_equal_ten_steps(folder: Path, kind: str) -> None:
    straight = Net()
    train(straight, OPTIMIZERS[kind](straight), range(10))
    first = Net()
    optimizer = OPTIMIZERS[kind](first)
    train(first, optimizer, range(5))
    save_checkpoint(folder, 5, first, optimizer, {})

    second = Net(seed=1)
    optimizer = OPTIMIZERS[kind](second)
    resumed = load_checkpoint(folder, second, optimizer)
    assert_same_bits(first, second)
    train(second, optimizer, range(resumed.step, 10))
    assert_same_bits(straight, second)
    assert second.outer.weight is second.inner.weight


def test_settings_of_the_optimizer_become_those_that_were_saved(folder: Path, saved: Path) -> None:
    net = Net(seed=1)
    optimizer = AdamW(adamw(net).param_groups)
    for group in optimizer.param_groups:
        group.update(lr=9.0, betas=(0.0, 0.0), weight_decay=9.0)
    load_checkpoint(folder, net, optimizer)
    kept = [(group["lr"], group["betas"], group["weight_decay"]) for group in optimizer.param_groups]
    lr, other_lr = 0.1, 0.3
    for _ in range(5):
        lr, other_lr = lr * 0.9, other_lr * 0.9
    assert kept == [(lr, (0.8, 0.95), 0.02), (other_lr, (0.8, 0.95), 0.02)]
    step = optimizer.state[net.scale]["step"]
    assert (step.item(), step.shape, step.dtype) == (5.0, (), torch.float32)


def test_step_and_extra_come_back(folder: Path) -> None:
    net = Net()
    extra = {"seed": 7, "best": {"step": 40, "nDCG@10": 0.1 + 0.2}, "seconds": 1e-9, "name": "über", "none": None}
    path = save_checkpoint(folder, 50, net, adamw(net), extra)
    assert load_checkpoint(folder, net, adamw(net)) == Checkpoint(path, 50, extra)


def test_state_of_any_nesting_comes_back(folder: Path) -> None:
    net, other = Net(), Net(seed=1)
    optimizers = [SGD(one.parameters(), lr=0.1) for one in (net, other)]
    state = {
        "history": [torch.arange(6.0).reshape(2, 3).T, (torch.tensor(3), None)],
        "count": 2,
        "flags": {0: True, "a": 1.5},
    }
    optimizers[0].state[net.scale] = state
    save_checkpoint(folder, 1, net, optimizers[0], {})
    load_checkpoint(folder, other, optimizers[1])
    loaded = optimizers[1].state[other.scale]
    assert loaded["history"][0].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert (loaded["history"][1][0].item(), loaded["history"][1][1]) == (3, None)
    assert (loaded["count"], loaded["flags"]) == (2, {0: True, "a": 1.5})


def test_parameters_can_be_read_by_name_without_longmatch(saved: Path) -> None:
    weights = load_file(saved / MODULE_FILE)
    assert sorted(weights) == sorted(Net().state_dict())
    assert torch.equal(weights["inner.weight"], weights["outer.weight"])
    content = json.loads((saved / CHECKPOINT_FILE).read_text())["checkpoint"]
    assert (content["step"], content["optimizer"]) == (5, "AdamW")


@pytest.mark.parametrize(("keep", "left"), [(1, [9]), (2, [8, 9]), (5, [5, 6, 7, 8, 9]), (20, list(range(10)))])
def test_only_the_last_checkpoints_are_kept(folder: Path, keep: int, left: list[int]) -> None:
    net = Net()
    for step in range(10):
        save_checkpoint(folder, step, net, adamw(net), {}, keep=keep)
    assert sorted(path.name for path in folder.iterdir()) == [f"{step + 1:06d}-step-{step}" for step in left]


def test_the_latest_checkpoint_is_the_one_saved_last_whatever_its_step(folder: Path, saved: Path) -> None:
    net = Net(seed=2)
    assert save_checkpoint(folder, 5, net, adamw(net), {}).name == "000003-step-5"
    assert save_checkpoint(folder, 2, net, adamw(net), {}).name == "000004-step-2"
    assert latest_checkpoint(folder) == folder / "000004-step-2"
    assert load_checkpoint(folder, net, adamw(net)).step == 2


@pytest.mark.parametrize("written", range(4))
def test_a_save_that_was_killed_leaves_the_previous_checkpoint(folder: Path, saved: Path, written: int) -> None:
    unfinished = folder / "000003-step-9.tmp"
    unfinished.mkdir()
    for name in FILES[:written]:
        shutil.copy(saved / name, unfinished)
    net = Net(seed=1)
    optimizer = adamw(net)
    assert load_checkpoint(folder, net, optimizer) == Checkpoint(saved, 5, {"seed": 7})
    save_checkpoint(folder, 9, net, optimizer, {})
    assert sorted(path.name for path in folder.iterdir()) == ["000002-step-5", "000003-step-9"]


def test_a_save_that_fails_leaves_the_previous_checkpoint(folder: Path, saved: Path) -> None:
    net = Net()
    with pytest.raises(TypeError, match="not JSON serializable"):
        save_checkpoint(folder, 9, net, adamw(net), {"path": folder})
    assert latest_checkpoint(folder) == saved


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_a_flipped_byte_is_refused_and_changes_nothing(
    folder: Path, saved: Path, name: str, flip_byte: Callable[[Path, int], None]
) -> None:
    net, path = Net(seed=1), saved / name
    optimizer = adamw(net)
    for at in [*range(50), *range(50, path.stat().st_size, 41), path.stat().st_size - 1]:
        flip_byte(path, at)
        with pytest.raises(TrainingError, match=f"{name} is damaged: "):
            load_checkpoint(folder, net, optimizer)
        flip_byte(path, at)
    assert_same_bits(net, Net(seed=1))
    assert not optimizer.state
    load_checkpoint(folder, net, optimizer)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_file_is_refused(folder: Path, saved: Path, name: str, share: float) -> None:
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(content[: int(len(content) * share)])
    with pytest.raises(TrainingError) as raised:
        load_checkpoint(folder, Net(), adamw(Net()))
    assert str(raised.value).startswith(f"{saved / name} is damaged: ")
    assert str(raised.value).endswith(f"; delete {saved}, and the run goes on from the checkpoint before it")


def test_after_deleting_the_latest_checkpoint_the_previous_one_is_loaded(folder: Path, saved: Path) -> None:
    shutil.rmtree(saved)
    net = Net()
    assert load_checkpoint(folder, net, adamw(net)).step == 3


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_refused(folder: Path, saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(TrainingError, match=rf"{name} cannot be read \(No such file or directory\); delete "):
        load_checkpoint(folder, Net(), adamw(Net()))


def test_without_a_checkpoint_there_is_nothing_to_load(folder: Path) -> None:
    assert latest_checkpoint(folder) is None
    with pytest.raises(TrainingError) as raised:
        load_checkpoint(folder, Net(), adamw(Net()))
    assert str(raised.value) == f"{folder} holds no checkpoint; start the run again"


def wider(net: Net) -> Net:
    return Net(width=5)


def halved(net: Net) -> Net:
    return net.bfloat16()


def without_scale(net: Net) -> Net:
    net.scale = net.inner.bias
    return net


def with_another(net: Net) -> Net:
    net.register_parameter("shift", nn.Parameter(torch.zeros(())))
    return net


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (wider, "'frozen' float32 (3,), the module float32 (5,)"),
        (halved, "'scale' float32 (), the module bfloat16 ()"),
        (without_scale, "'scale' float32 (), the module float32 (3,)"),
        (with_another, "'shift' none, the module float32 ()"),
    ],
)
def test_another_module_is_refused_and_left_alone(
    folder: Path, saved: Path, change: Callable[[Net], Net], difference: str
) -> None:
    net = change(Net(seed=1))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with pytest.raises(EncoderError) as raised:
        load_checkpoint(folder, net, SGD(net.parameters()))
    assert str(raised.value) == (
        f"{saved} holds as weight {difference}; give the settings of its first run, or start it again"
    )
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def one_group(net: Net) -> Optimizer:
    return AdamW(net.parameters())


def reversed_groups(net: Net) -> Optimizer:
    return AdamW(adamw(net).param_groups[::-1])


@pytest.mark.parametrize(
    ("make", "difference"),
    [
        (OPTIMIZERS["SGD"], "the state of AdamW, the optimizer is SGD"),
        (one_group, "2 parameter groups, the optimizer has 1"),
        (
            reversed_groups,
            "parameter group 0 over 2 weights (inner.weight, inner.bias), "
            "the optimizer over 3 weights (norm.weight, norm.bias, scale)",
        ),
    ],
)
def test_another_optimizer_is_refused_and_the_module_left_alone(
    folder: Path, saved: Path, make: Callable[[Net], Optimizer], difference: str
) -> None:
    net = Net(seed=1)
    with pytest.raises(EncoderError) as raised:
        load_checkpoint(folder, net, make(net))
    assert str(raised.value) == (f"{saved} holds {difference}; give the settings of its first run, or start it again")
    assert_same_bits(net, Net(seed=1))


def test_a_trained_weight_outside_the_module_is_refused(folder: Path) -> None:
    net, alone = Net(), nn.Parameter(torch.zeros(2))
    with pytest.raises(EncoderError) as raised:
        save_checkpoint(folder, 1, net, SGD([*net.parameters(), alone]), {})
    assert str(raised.value) == ("SGD trains a weight of shape (2,) that is none of the 6 of Net; register it there")
    assert not folder.exists()


def test_state_that_is_neither_tensor_nor_json_is_refused(folder: Path) -> None:
    net = Net()
    optimizer = adamw(net)
    optimizer.state[net.scale]["seen"] = {1, 2}
    with pytest.raises(EncoderError, match=r"^the optimizer's state state/4/seen is a set, neither tensor nor JSON; "):
        save_checkpoint(folder, 1, net, optimizer, {})
    assert not folder.exists()
