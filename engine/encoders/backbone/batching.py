"""Batches of chunks: similar lengths, within a budget of padded tokens, smaller if GPU memory is short."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from engine.encoders.backbone.hardware import tokens_at_once
from engine.errors import BudgetExceeded

if TYPE_CHECKING:
    from torch import Tensor

Read = Callable[[Sequence[int]], "Tensor"]
Group = Callable[[Sequence[int], int], Iterable[Sequence[int]]]


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


def group_by_length(lengths: Sequence[int]) -> Group:
    """The grouping of `token_budget_batches`, for `BatchReader`; `lengths` are those of all positions."""

    def group(positions: Sequence[int], budget: int) -> Iterator[list[int]]:
        for batch in token_budget_batches([lengths[position] for position in positions], budget):
            yield [positions[at] for at in batch]

    return group


class BatchReader:
    """Reads sequences batch by batch; where a GPU has no room for a batch, this one and all later ones are smaller.

    This works only without gradients: they hold the memory of all batches of a step, so smaller batches do not help.
    """

    def __init__(self, device: str = "cpu") -> None:
        """Begin without a limit."""
        self._device = device
        self.limit: int | None = None  # most tokens of a batch, once one did not fit
        self.n_read = 0  # sequences read so far; counted while `read` runs

    def read(self, n: int, token_budget: int, group: Group, read: Read) -> Tensor:
        """Read sequences in batches, and put the rows into the order of their positions.

        Args:
            n: sequences, at least one.
            token_budget: most tokens of a batch, padding counted, on a CPU or with gradients; for a GPU see
                `tokens_at_once`. Halved, and remembered, each time that a batch does not fit.
            group: from positions and a token budget to batches, each position in one.
            read: from the positions of a batch to their rows (B, H).

        Returns:
            (N, H): row i is that of position i.

        Raises:
            BudgetExceeded: the GPU has no room for one sequence by itself.
        """
        import torch

        order: list[int] = []
        parts: list[Tensor] = []
        budget = token_budget if torch.is_grad_enabled() else tokens_at_once(self._device, token_budget)
        budget = min(budget, self.limit or budget)
        while len(order) < n:
            done = set(order)
            for batch in group([position for position in range(n) if position not in done], budget):
                rows = self._try(batch, read)
                if rows is None:
                    budget = self.limit = max(1, budget // 2)
                    break
                parts.append(rows)
                self.n_read += len(batch)
                order.extend(batch)
        return torch.cat(parts)[torch.tensor(order).argsort().to(parts[0].device)]

    def _try(self, batch: Sequence[int], read: Read) -> Tensor | None:
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
