"""The level that hierarchical networks are stacked from: a bidirectional GRU and an attention over its states.

Letters in shapes: N sequences, T elements of all of them together, L of the longest, E width of an element, H of a GRU.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn


class AttentiveGru(nn.Module):
    """A vector for each sequence; section 2.2 of Yang et al. (2016, NAACL, N16-1174).

        h_t = [forward GRU; backward GRU](x)_t,  u_t = tanh(W h_t + b),
        a_t = softmax_t(u_t . u_w),  v = sum_t a_t h_t

    Sequences stand one after the other and are read in batches of like length, the
    backward GRU from the end of each: padding comes last in either direction, so that nothing depends
    on it. (Packed sequences would do the same, but on a CPU their gradient takes time that
    grows with the square of a document's length.)
    """

    def __init__(self, input_width: int, width: int, attention_width: int) -> None:
        """Draw random weights.

        Args:
            input_width: E.
            width: H, in each direction.
            attention_width: of u and the context vector u_w.
        """
        super().__init__()
        self.forwards = nn.GRU(input_width, width, batch_first=True)
        self.backwards = nn.GRU(input_width, width, batch_first=True)
        self.attention = nn.Linear(2 * width, attention_width)
        self.context = nn.Linear(attention_width, 1, bias=False)

    def forward(self, elements: Tensor, lengths: Tensor) -> Tensor:
        """Read sequences.

        Args:
            elements: (T, E), those of the first sequence first.
            lengths: (N,) int64 on the CPU, at least 1 each; their sum is T.

        Returns:
            (N, 2 H).
        """
        starts = lengths.cumsum(0) - lengths
        batches = list(_of_like_length(lengths))
        rows = [self._read(elements, starts[batch], lengths[batch]) for batch in batches]
        return torch.cat(rows)[torch.cat(batches).argsort().to(elements.device)]

    def _read(self, elements: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
        at = torch.arange(int(lengths.max()))  # (L,)
        mask = at < lengths[:, None]  # (N, L)
        # Where padded, any element will do.
        onwards = torch.where(mask, at, 0)
        back = torch.where(mask, lengths[:, None] - 1 - at, 0)
        starts, mask, onwards, back = (each.to(elements.device) for each in (starts, mask, onwards, back))
        ahead = self.forwards(_taken(elements, starts[:, None] + onwards))[0]
        behind = self.backwards(_taken(elements, starts[:, None] + back))[0]
        behind = behind.gather(1, back.unsqueeze(-1).expand_as(behind))  # what stands at t was read at L - 1 - t
        states = torch.cat([ahead, behind], -1).float()  # (N, L, 2 H)
        scores = self.context(torch.tanh(self.attention(states))).squeeze(-1).float()
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        rows: Tensor = (weights.unsqueeze(-1) * states).sum(1)
        return rows


def _of_like_length(lengths: Tensor) -> Iterator[Tensor]:
    """Positions of sequences, batch by batch; none is half as long as the longest beside it."""
    doublings = [(length - 1).bit_length() for length in lengths.tolist()]
    for doubling in sorted(set(doublings)):
        yield torch.tensor([at for at, own in enumerate(doublings) if own == doubling])


def _taken(elements: Tensor, places: Tensor) -> Tensor:
    """(N, L, E): the elements at places (N, L)."""
    return elements.index_select(0, places.flatten()).reshape(*places.shape, -1)
