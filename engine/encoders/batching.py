"""Which chunks are encoded together: like lengths, under a budget of padded tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor


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


def read_batches(batches: Iterable[Sequence[int]], read: Callable[[Sequence[int]], Tensor]) -> Tensor:
    """Read batch by batch, and put the rows into the order of their positions.

    Args:
        batches: positions, from 0, each in one batch; at least one batch.
        read: from the positions of a batch to their rows (B, H).

    Returns:
        (N, H): row i is that of position i.
    """
    order: list[int] = []
    parts: list[Tensor] = []
    for batch in batches:
        parts.append(read(batch))
        order.extend(batch)
    back = torch.empty(len(order), dtype=torch.int64)
    back[torch.tensor(order)] = torch.arange(len(order))
    return torch.cat(parts)[back.to(parts[0].device)]
