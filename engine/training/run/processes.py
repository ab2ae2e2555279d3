"""The processes of one training run, started by `accelerate launch`, or the only one. No weights or losses here."""

from __future__ import annotations

import atexit
from collections.abc import Iterable
from typing import Any, TypeVar

import torch
from torch import nn

from engine.errors import MissingExtra

T = TypeVar("T")


class Processes:
    """What the processes of a run tell each other; every call waits for all of them, and costs nothing in one alone.

    Attributes:
        n: how many there are.
        position: of this one, from 0.
    """

    def __init__(self, device: torch.device) -> None:
        """Meet the others.

        Args:
            device: of the weights in this process.

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
            # Threads that still listen to the others when the interpreter ends abort it.
            atexit.register(self._state.destroy_process_group)

    @property
    def is_first(self) -> bool:
        """Whether it is this one that writes files and tells of progress."""
        return self.position == 0

    def wait(self) -> None:
        """Go on when all are here."""
        self._state.wait_for_everyone()

    def sum(self, number: int) -> int:
        """Of the numbers that the processes have."""
        return number if self.n == 1 else int(self._reduced(torch.tensor(number, device=self._device)).item())

    def from_first(self, value: T) -> T:
        """What the first process has, in all of them."""
        if self.n == 1:
            return value
        from accelerate.utils import broadcast_object_list

        shared: T = broadcast_object_list([value])[0]
        return shared

    def average_gradients(self, weights: Iterable[nn.Parameter]) -> None:
        """Put the mean gradient over all processes in place of each own.

        A weight that has no gradient in some process counts as 0 there; one that has
        none in any keeps none, so that an optimizer leaves it alone.
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
