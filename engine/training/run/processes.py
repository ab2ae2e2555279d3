"""The processes of one training run: those of `accelerate launch`, or a single one. Computes no losses."""

from __future__ import annotations

import atexit
from collections.abc import Iterable
from typing import Any, TypeVar

import torch
from torch import nn

from engine.errors import MissingExtra

T = TypeVar("T")


class Processes:
    """Communication of the processes of a run; every call waits for all of them, and a single process waits for none.

    Attributes:
        n: number of processes.
        position: of this process, from 0.
    """

    def __init__(self, device: torch.device) -> None:
        """Connect to the other processes.

        Args:
            device: of the parameters in this process.

        Raises:
            MissingExtra: accelerate is not installed.
        """
        try:
            from accelerate import PartialState
        except ModuleNotFoundError as error:
            raise MissingExtra("training", "accelerate", "training") from error
        self._state: Any = PartialState(cpu=device.type == "cpu")
        self._device = device
        self.n: int = self._state.num_processes
        self.position: int = self._state.process_index
        if self.n > 1:
            # Threads that still wait for other processes when the interpreter ends would abort it.
            atexit.register(self._state.destroy_process_group)

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that writes files and logs progress."""
        return self.position == 0

    def wait(self) -> None:
        """Wait until all processes have called this."""
        self._state.wait_for_everyone()

    def sum(self, number: int) -> int:
        """Sum a number over all processes."""
        return number if self.n == 1 else int(self._reduced(torch.tensor(number, device=self._device)).item())

    def from_first(self, value: T) -> T:
        """Return the value of the first process in all processes."""
        if self.n == 1:
            return value
        from accelerate.utils import broadcast_object_list

        shared: T = broadcast_object_list([value])[0]
        return shared

    def average_gradients(self, weights: Iterable[nn.Parameter]) -> None:
        """Replace the gradients of each process with their mean over all processes.

        A parameter without a gradient in one process counts as 0 there. A parameter
        without a gradient in any process keeps none, so the optimizer does not change it.
        """
        if self.n == 1:
            return
        trained = [weight for weight in weights if weight.requires_grad]
        has_gradient = torch.tensor([weight.grad is not None for weight in trained], device=self._device)
        is_learning = self._reduced(has_gradient.int()).tolist()
        for weight, count in zip(trained, is_learning, strict=True):
            if count:
                own = torch.zeros_like(weight) if weight.grad is None else weight.grad
                weight.grad = self._reduced(own) / self.n

    def _reduced(self, tensor: torch.Tensor) -> torch.Tensor:
        from accelerate.utils import reduce

        summed: torch.Tensor = reduce(tensor, "sum")
        return summed
