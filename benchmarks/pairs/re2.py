"""RE2: two texts aligned word by word, block by block; a re-ranker, since it must read both documents together.

Letters in shapes: B pairs, A and C words of the first and the second text (padded), E width of a word vector, H hidden
width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.parametrizations import weight_norm

from benchmarks.pairs.inputs import DocumentWords, WordConfig, pad_words
from benchmarks.pairs.pair_model import PairModel

_KERNEL = 3  # words of a convolution
_N_CLASSES = 2
WORDS = WordConfig(width=300, tuned=False)


@dataclass(frozen=True, slots=True)
class Re2Config:
    """Sizes of the released code; on SNLI the paper uses three blocks."""

    words: WordConfig = WORDS
    max_words: int = 999  # the limit of the released code; time and memory grow with its square
    blocks: int = 2
    width: int = 150  # H
    encoder_layers: int = 2
    dropout: float = 0.2


class Re2(PairModel[DocumentWords]):
    """Yang et al. (2019, ACL, P19-1465), as released: the variant `full` of every part.

    In block n, for either text, with e the word vectors, x the input and o the output,

        x(1) = e,  x(n) = [r(n); e],  r(2) = o(1),  r(n) = (o(n-1) + r(n-1)) / sqrt 2
        z    = [x; CNN(x)]
        z~_i = sum_j w_ij z'_j,  w_i = softmax over the words j of the other text, of temperature F(z_i) . F(z'_j)
        o    = G([G1([z; z~]); G2([z; z - z~]); G3([z; z * z~])])

    followed by v, the largest value of each feature over a text, and dense layers over [v1; v2; v1 * v2; v1 - v2].
    (The paper prints r(n) = o(n-1) + o(n-2).) The logit is the difference of the logits of the two classes, so that
    its binary cross-entropy is the softmax cross-entropy of the paper.
    """

    def __init__(self, config: Re2Config, embedding: nn.Embedding) -> None:
        """Initialize random parameters over given word vectors."""
        super().__init__()
        self.embedding = embedding
        self.dropout = config.dropout
        width = embedding.embedding_dim
        self.blocks = nn.ModuleList(
            _Block(config, width if number == 0 else config.width + width) for number in range(config.blocks)
        )
        self.hidden = _dense(4 * config.width, config.width)
        self.classes = _dense(config.width, _N_CLASSES, activated=False)

    def forward(self, first: Sequence[DocumentWords], second: Sequence[DocumentWords]) -> Tensor:
        """See `PairModel.forward`."""
        (a, mask_a), (b, mask_b) = (self._embed(side) for side in (first, second))
        words_a, words_b = a, b
        residual_a, residual_b = a, b = self.blocks[0](a, b, mask_a, mask_b)
        for number, block in enumerate(self.blocks[1:]):
            if number:
                residual_a, residual_b = (a + residual_a) / math.sqrt(2), (b + residual_b) / math.sqrt(2)
            a, b = block(torch.cat([residual_a, words_a], -1), torch.cat([residual_b, words_b], -1), mask_a, mask_b)
        v1, v2 = (rows.masked_fill(~mask, float("-inf")).amax(1) for rows, mask in ((a, mask_a), (b, mask_b)))
        features = torch.cat([v1, v2, v1 * v2, v1 - v2], -1)
        hidden = self.hidden(dropout(features, self.dropout, self.training))
        logits: Tensor = self.classes(dropout(hidden, self.dropout, self.training))
        return logits[:, 1] - logits[:, 0]

    def _embed(self, documents: Sequence[DocumentWords]) -> tuple[Tensor, Tensor]:
        """Word vectors (B, A, E), and (B, A, 1) bool, True where a word is real."""
        ids, mask = pad_words(documents, self.device)
        return dropout(self.embedding(ids), self.dropout, self.training), mask.unsqueeze(-1)


class _Block(nn.Module):
    """Encoder, alignment and fusion, with the same parameters for both texts."""

    def __init__(self, config: Re2Config, width: int) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.convolutions = nn.ModuleList(
            _convolution(width if number == 0 else config.width, config.width)
            for number in range(config.encoder_layers)
        )
        seen = width + config.width
        self.projection = _dense(seen, config.width)
        self.temperature = nn.Parameter(torch.tensor(1 / math.sqrt(config.width)))
        self.fusions = nn.ModuleList(_dense(2 * seen, config.width) for _ in range(3))
        self.fused = _dense(3 * config.width, config.width)

    def forward(self, a: Tensor, b: Tensor, mask_a: Tensor, mask_b: Tensor) -> tuple[Tensor, Tensor]:
        """(B, A, width) and (B, C, width), with masks (B, A, 1) and (B, C, 1), to (B, A, H) and (B, C, H)."""
        a, b = (torch.cat([rows, self._encode(rows, mask)], -1) for rows, mask in ((a, mask_a), (b, mask_b)))
        projected_a, projected_b = (self.projection(dropout(rows, self.dropout, self.training)) for rows in (a, b))
        similar = projected_a @ projected_b.mT * self.temperature  # (B, A, C)
        aligned_a = similar.masked_fill(~mask_b.mT, float("-inf")).softmax(2) @ b
        aligned_b = similar.masked_fill(~mask_a, float("-inf")).softmax(1).mT @ a
        return self._fuse(a, aligned_a), self._fuse(b, aligned_b)

    def _encode(self, rows: Tensor, mask: Tensor) -> Tensor:
        for number, convolution in enumerate(self.convolutions):
            rows = rows.masked_fill(~mask, 0.0)
            if number:
                rows = dropout(rows, self.dropout, self.training)
            rows = convolution(rows.mT).mT
        return dropout(rows, self.dropout, self.training)

    def _fuse(self, rows: Tensor, aligned: Tensor) -> Tensor:
        beside = (aligned, rows - aligned, rows * aligned)
        parts = [layer(torch.cat([rows, other], -1)) for layer, other in zip(self.fusions, beside, strict=True)]
        fused: Tensor = self.fused(dropout(torch.cat(parts, -1), self.dropout, self.training))
        return fused


def _dense(n_in: int, n_out: int, *, activated: bool = True) -> nn.Module:
    layer = nn.Linear(n_in, n_out)
    nn.init.normal_(layer.weight, std=math.sqrt((2 if activated else 1) / n_in))
    nn.init.zeros_(layer.bias)
    return nn.Sequential(weight_norm(layer), nn.GELU("tanh")) if activated else weight_norm(layer)


def _convolution(n_in: int, n_out: int) -> nn.Module:
    layer = nn.Conv1d(n_in, n_out, _KERNEL, padding=_KERNEL // 2)
    nn.init.normal_(layer.weight, std=math.sqrt(2 / (n_in * _KERNEL)))
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return nn.Sequential(weight_norm(layer), nn.GELU("tanh"))
