"""Masking of words, and the head that predicts them (Devlin et al. 2019, arXiv:1810.04805). Encodes nothing.

Letters in shapes: N sequences, L tokens of one (padded), M masked words, H width
of a state, V words of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

IGNORED = -100  # the target that `torch.nn.functional.cross_entropy` leaves out
SHARE = 0.15
_INITIAL_STD = 0.02


@dataclass(frozen=True, slots=True)
class MaskedWords:
    """Token ids to read, and the words to predict."""

    ids: Tensor  # (N, L) int64
    targets: Tensor  # (N, L) int64, the original id where a word is to be predicted, else IGNORED


def maskable(ids: Tensor, mask: Tensor, special_ids: Collection[int]) -> Tensor:
    """Tokens that may be masked: the real ones that are not special.

    Args:
        ids: (N, L) int64.
        mask: (N, L) bool, True where a token is real.
        special_ids: of [CLS], [SEP], [PAD], [MASK].

    Returns:
        (N, L) bool.
    """
    return mask & ~torch.isin(ids, torch.tensor(sorted(special_ids), device=ids.device))


def choose_by_chance(maskable: Tensor, generator: torch.Generator, *, share: float = SHARE) -> Tensor:
    """Choose each word with the same probability, (N, L) bool; a sequence may get none."""
    return maskable & (torch.rand(maskable.shape, generator=generator) < share)


def choose_by_count(
    maskable: Tensor, mask: Tensor, generator: torch.Generator, *, share: float = SHARE, most: int = 5
) -> Tensor:
    """Choose a fixed number of words of each sequence, as SMITH's released code does.

        n = min(most, max(1, round(share * length)))

    Args:
        maskable: (N, L) bool.
        mask: (N, L) bool, True where a token is real; `length` counts these, special ones included.
        generator: of the choice.
        share: of the words.
        most: maximum of one sequence.

    Returns:
        (N, L) bool; fewer where a sequence has fewer words.
    """
    wanted = (mask.sum(1, dtype=torch.float64) * share).round().clamp(1, most)  # half to even, as Python's round
    drawn = torch.rand(maskable.shape, generator=generator).masked_fill(~maskable, 2)
    return maskable & (drawn.argsort(1).argsort(1) < wanted[:, None])


def mask_words(
    ids: Tensor, chosen: Tensor, generator: torch.Generator, *, mask_id: int, vocabulary_size: int
) -> MaskedWords:
    """Mask the chosen words: 80 % become [MASK], 10 % a random id of the vocabulary, 10 % stay.

    Args:
        ids: (N, L) int64; not changed.
        chosen: (N, L) bool.
        generator: of the draws.
        mask_id: of [MASK].
        vocabulary_size: V.
    """
    fate = torch.rand(ids.shape, generator=generator)
    other = torch.randint(vocabulary_size, ids.shape, generator=generator)
    read = torch.where(chosen & (fate < 0.8), mask_id, ids)
    read = torch.where(chosen & (fate >= 0.9), other, read)
    return MaskedWords(read, ids.masked_fill(~chosen, IGNORED))


class PredictionTransform(nn.Module):
    """LN(gelu(W x + b)), which BERT applies before each prediction."""

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        limit = 2 * _INITIAL_STD
        nn.init.trunc_normal_(self.dense.weight, std=_INITIAL_STD, a=-limit, b=limit, generator=generator)
        nn.init.zeros_(self.dense.bias)

    def forward(self, states: Tensor) -> Tensor:
        """(..., H) to (..., H)."""
        transformed: Tensor = self.norm(gelu(self.dense(states), approximate="tanh"))
        return transformed


class MaskedWordHead(nn.Module):
    """Predicts words from their states: the transform, then the encoder's own word embeddings, and a bias."""

    def __init__(self, width: int, vocabulary_size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.transform = PredictionTransform(width, generator)
        self.bias = nn.Parameter(torch.zeros(vocabulary_size))

    def forward(
        self,
        states: Tensor,  # (M, H), of the masked words alone
        embeddings: Tensor,  # (V, H), of the encoder, trained here too
    ) -> Tensor:
        """(M, V) logits, float32."""
        transformed: Tensor = self.transform(states.float())
        return transformed @ embeddings.float().T + self.bias
