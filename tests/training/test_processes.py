"""A process alone, and two processes, which train like one that takes the batches of both."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from engine.encoders.hardware import default_dtype
from engine.training.fine_tuning import FineTuning
from engine.training.task import full_precision
from engine.training.trainer import Trainer, TrainerSettings, Validation, average_gradients, rate_share, torch_seed
from tests.training.made import assert_equal, small_corpus, small_fine_tuning, weights_of, without_speed

ROOT = Path(__file__).parents[2]


def test_gradients_of_a_process_alone_stay_as_they_are() -> None:
    one, other = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
    one.grad = gradient = torch.tensor([1.0, 2.0])
    average_gradients([one, other], 1)
    assert one.grad is gradient and other.grad is None


TWO = TrainerSettings(steps=3, learning_rate=1e-3, validate_every=2, checkpoint_every=2)


def averages_of_two() -> list[float | None]:
    """Mean gradients of three weights: one with a gradient in both processes, one in the first, and one in none."""
    position = int(os.environ["RANK"])
    weights = [nn.Parameter(torch.zeros(1)) for _ in range(3)]
    weights[0].grad = torch.tensor([1.0 + 2 * position])
    if position == 0:
        weights[1].grad = torch.tensor([5.0])
    average_gradients(weights, 2)
    return [None if weight.grad is None else weight.grad.item() for weight in weights]


def run_one_of_two(bert_folder: Path, folder: Path) -> None:
    """Run one of two processes; write its weights, and its record of the run."""
    task = small_fine_tuning(bert_folder)
    task.encoder.backbone.freeze(1)
    validation = Validation(small_corpus(), task.encoder, chunks=2)
    logged: list[str] = []
    outcome = Trainer(
        task, task.encoder, folder / "run", TWO, validate=lambda: {"made": validation.ndcg()}, log=logged.append
    ).run()
    known = {
        "best_step": outcome.best_step,
        "n_tokens": outcome.n_tokens,
        "history": without_speed(outcome.history),
        "tells": bool(logged),
        "averages": averages_of_two(),
    }
    save_file(weights_of(task.module), folder / f"{os.environ['RANK']}.safetensors")
    (folder / f"{os.environ['RANK']}.json").write_text(json.dumps(known))


@pytest.mark.slow
def test_two_processes_train_as_one_that_averages_both_of_their_batches(bert_folder: Path, tmp_path: Path) -> None:
    run = f"run_one_of_two(Path({str(bert_folder)!r}), Path({str(tmp_path)!r}))"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", f"from tests.training.test_processes import *; {run}"],
            cwd=ROOT,
            env={**common, "RANK": rank, "LOCAL_RANK": rank},
            stderr=subprocess.PIPE,
        )
        for rank in "01"
    ]
    try:
        errors = [worker.communicate(timeout=300)[1].decode() for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [0, 0], errors
    one, other = (load_file(tmp_path / f"{rank}.safetensors") for rank in "01")
    assert_equal(one, other)
    known = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in "01"]
    assert [own.pop("tells") for own in known] == [True, False]
    assert known[0] == known[1]
    assert known[0]["averages"] == [2.0, 2.5, None]

    task = small_fine_tuning(bert_folder)
    task.encoder.backbone.freeze(1)
    expected, n_tokens = averaged_by_hand(task)
    assert known[0]["n_tokens"] == n_tokens
    assert one.keys() == expected.keys()
    for name, weight in expected.items():
        # A bias of keys moves all logits of a softmax alike: its gradient is rounding, which Adam scales up.
        if not name.endswith("key.bias"):
            torch.testing.assert_close(one[name], weight, atol=1e-6, rtol=1e-5)


def backward_of_half(loss: Tensor) -> None:
    with full_precision(loss.device):
        (loss / 2).backward()


def averaged_by_hand(task: FineTuning) -> tuple[dict[str, Tensor], int]:
    """One process that takes the batches of both, one after the other."""
    decaying = [weight for weight in task.module.parameters() if weight.requires_grad and weight.dim() > 1]
    others = [weight for weight in task.module.parameters() if weight.requires_grad and weight.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decaying, "weight_decay": TWO.weight_decay}, {"params": others, "weight_decay": 0.0}]
    )
    n_tokens = 0
    task.module.train()
    for step in range(TWO.steps):
        for group in optimizer.param_groups:
            group["lr"] = TWO.learning_rate * rate_share(step, TWO)
        optimizer.zero_grad()
        for process in (0, 1):
            batch = task.batch(2 * step + process)
            torch.manual_seed(torch_seed(TWO.seed, step, process))
            with torch.autocast("cpu", torch.bfloat16, enabled=default_dtype("cpu") is torch.bfloat16):
                task.backward(batch, backward_of_half)
            n_tokens += task.n_tokens(batch)
        nn.utils.clip_grad_norm_(task.module.parameters(), TWO.gradient_norm)
        optimizer.step()
    return weights_of(task.module), n_tokens
