"""Which chunks are encoded together: like lengths, under a budget of padded tokens, smaller where a GPU is full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor

from engine.errors import BudgetExceeded

Group = Callable[[Sequence[int], int], Iterable[Sequence[int]]]
Read = Callable[[Sequence[int]], Tensor]


def token_budget_batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Group positions so that a padded batch holds at most `budget` tokens.

    Longest first: a batch that does not fit in memory is met at once, and
    neighbours in a batch differ little in length, so little is padding.

    Args:
        lengths: tokens of each sequence.
        budget: most tokens of a batch, padding counted; one longer sequence is a batch by itself.

    Yields:
        Positions in `lengths`; each exactly once.
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

    Only without gradients: those hold the memory of all batches of a step, so smaller batches would not help.
    """

    def __init__(self) -> None:
        """Begin without a limit."""
        self.limit: int | None = None  # tokens, once a batch did not fit

    def read(self, n: int, token_budget: int, group: Group, read: Read) -> Tensor:
        """Read sequences in batches, and put the rows into the order of their positions.

        Args:
            n: sequences, at least one.
            token_budget: most tokens of a batch, padding counted; halved, and remembered, each time that one
                does not fit.
            group: from positions and a token budget to batches, each position in one.
            read: from the positions of a batch to their rows (B, H).

        Returns:
            (N, H): row i is that of position i.

        Raises:
            BudgetExceeded: the GPU has no room for one sequence by itself.
        """
        order: list[int] = []
        parts: list[Tensor] = []
        budget = min(token_budget, self.limit or token_budget)
        while len(order) < n:
            done = set(order)
            for batch in group([position for position in range(n) if position not in done], budget):
                rows = self._try(batch, read)
                if rows is None:
                    budget = self.limit = max(1, budget // 2)
                    break
                parts.append(rows)
                order.extend(batch)
        back = torch.empty(n, dtype=torch.int64)
        back[torch.tensor(order)] = torch.arange(n)
        return torch.cat(parts)[back.to(parts[0].device)]

    def _try(self, batch: Sequence[int], read: Read) -> Tensor | None:
        """The rows of a batch, or None where it must be smaller."""
        try:
            return read(batch)
        except torch.OutOfMemoryError as error:
            if torch.is_grad_enabled():
                raise
            if len(batch) == 1:
                told = str(error).splitlines()[0]
                raise BudgetExceeded(
                    f"the GPU has no room for one chunk beside the weights ({told}); free its memory, allow more "
                    "--vram, or use --device cpu"
                ) from error
        # Outside of the handler: the error holds the tensors of the pass that failed.
        torch.cuda.empty_cache()
        return None
