"""Batches of chunks: similar lengths, within a budget of padded tokens, smaller if GPU memory is short."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from engine.encoders.backbone.hardware import tokens_at_once
from engine.errors import BudgetExceeded

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
Read = Callable[[Sequence[T]], "Tensor"]
Batches = Callable[[Sequence[T], int], Iterable[Sequence[int]]]


def next_multiple(length: int, size: int) -> int:
    """Round a length up to the next multiple of a size."""
    return -(-length // size) * size


def token_budget_batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Group positions so that a padded batch holds at most `budget` tokens, or one longer sequence.

    The longest are first, so that a batch that does not fit in memory fails at once.
    Neighbours in a batch differ little in length, so little is padding.
    """
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    first = 0
    while first < len(order):
        size = max(1, budget // max(1, lengths[order[first]]))
        yield order[first : first + size]
        first += size


class BatchReader:
    """Reads sequences batch by batch; where a GPU has no room for a batch, this one and all later ones are smaller.

    This works only without gradients: they hold the memory of all batches of a step, so smaller batches do not help.
    """

    def __init__(self, device: str = "cpu") -> None:
        """Begin without a limit."""
        self._device = device
        self.limit: int | None = None  # most tokens of a batch, once one did not fit
        self.n_read = 0  # sequences read so far; counted while `read` runs

    def read(self, sequences: Sequence[T], token_budget: int, batches: Batches[T], read: Read[T]) -> Tensor:
        """Read sequences, at least one, in batches, and return their rows in the order given.

        Args:
            token_budget: most tokens of a batch, padding counted, on a CPU or with gradients; for a GPU see
                `tokens_at_once`. Halved, and remembered, each time that a batch does not fit.
            batches: from sequences and a token budget to batches of their positions, each position in one.
            read: from the sequences of a batch to their rows (B, H).

        Returns:
            (N, H).

        Raises:
            BudgetExceeded: the GPU has no room for one sequence by itself.
        """
        import torch

        order: list[int] = []
        parts: list[Tensor] = []
        budget = token_budget if torch.is_grad_enabled() else tokens_at_once(self._device, token_budget)
        budget = min(budget, self.limit or budget)
        while len(order) < len(sequences):
            done = set(order)
            left = [position for position in range(len(sequences)) if position not in done]
            for batch in batches([sequences[position] for position in left], budget):
                positions = [left[at] for at in batch]
                rows = self._try([sequences[position] for position in positions], read)
                if rows is None:
                    budget = self.limit = max(1, budget // 2)
                    break
                parts.append(rows)
                self.n_read += len(batch)
                order.extend(positions)
        return torch.cat(parts)[torch.tensor(order).argsort().to(parts[0].device)]

    def _try(self, batch: Sequence[T], read: Read[T]) -> Tensor | None:
        """The rows of a batch, or None where it must be smaller."""
        import torch

        try:
            return read(batch)
        except torch.OutOfMemoryError as error:
            if torch.is_grad_enabled():
                raise
            if len(batch) == 1:
                reason = str(error).splitlines()[0]
                raise BudgetExceeded(
                    f"the GPU has no room for one chunk beside the weights ({reason}); free its memory, allow more "
                    "--vram, or use --device cpu"
                ) from error
        # Outside of the handler: the error holds the tensors of the pass that failed.
        torch.cuda.empty_cache()
        return None
