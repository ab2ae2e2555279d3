"""Networks that compute, from the chunk vectors of two documents, a value to add to their joint score; 0 at first.

Letters in shapes: T targets of one query, n chunks of the query, m chunks of a target (padded), D width of a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, normalize

from engine.encoders.colde.layers import ChunkAttention

_N_KERNELS, _WIDTH = 11, 0.1
_SCALE = 4.0  # factor of unit vectors before a dense layer


@dataclass(frozen=True)
class Pairs:
    """A query and its targets."""

    query: Tensor  # (n, D) chunks, unit rows
    targets: Tensor  # (T, m, D) chunks, unit rows
    mask: Tensor  # (T, m) bool, True where a chunk is real
    means: Tensor  # (T + 1, D) whitened means, unit rows: of the query, then of the targets
    scores: Tensor  # (T,) joint scores
    components: Tensor  # (T, 4)


class Reranker(nn.Module):
    """Computes for each target the value to add to its joint score, in units of the temperature of the softmax."""

    def forward(self, pairs: Pairs) -> Tensor:
        """(T,) values to add, in units of the temperature."""
        raise NotImplementedError


class Weights(Reranker):
    """w . sqrt(components): the weights of the joint score, trained again."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = _zeros(nn.Linear(4, 1, bias=False))

    def forward(self, pairs: Pairs) -> Tensor:  # noqa: D102
        return self.out(10 * pairs.components.sqrt())[..., 0]  # type: ignore[no-any-return]


class Mixture(Reranker):
    """Two layers over the components, their roots, the joint score and the number of chunks of both."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(11, 32)
        self.out = _zeros(nn.Linear(32, 1))

    def forward(self, pairs: Pairs) -> Tensor:  # noqa: D102
        sizes = pairs.mask.sum(1).float()
        lengths = torch.stack([sizes.log(), torch.full_like(sizes, len(pairs.query)).log()], 1)
        features = [10 * pairs.components, 10 * pairs.components.sqrt(), 10 * pairs.scores[:, None], lengths]
        return self.out(gelu(self.inner(torch.cat(features, 1))))[..., 0]  # type: ignore[no-any-return]


class Vectors(Reranker):
    """Two layers over |u - v| and u * v of whitened means, the head of SBERT without its classes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(2 * width, 64)
        self.out = _zeros(nn.Linear(64, 1))

    def forward(self, pairs: Pairs) -> Tensor:  # noqa: D102
        one, others = pairs.means[:1], pairs.means[1:]
        compared = torch.cat([(one - others).abs(), len(one[0]) ** 0.5 * one * others], 1)
        return self.out(gelu(self.inner(_SCALE * compared)))[..., 0]  # type: ignore[no-any-return]


class Kernels(Reranker):
    """K-NRM (Xiong et al. 2017) over cosines of chunks: log sums of 11 kernels, the mean over query chunks."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.centres: Tensor
        self.register_buffer("centres", torch.linspace(0.0, 1.0, _N_KERNELS))
        self.out = _zeros(nn.Linear(_N_KERNELS, 1))

    def forward(self, pairs: Pairs) -> Tensor:  # noqa: D102
        cosines = pairs.query @ pairs.targets.mT  # (T, n, m)
        near = torch.exp(-((cosines[..., None] - self.centres) ** 2) / (2 * _WIDTH**2)) * pairs.mask[:, None, :, None]
        return self.out(near.sum(2).add(1e-3).log().mean(1) / 3)[..., 0]  # type: ignore[no-any-return]


class ColdeAttention(Reranker):
    """CoLDE's attention a from the chunks of the query to those of the target, compared with the query chunks q.

    [q; a; |q - a|; q * a] of each query chunk goes through two layers; the result is the mean over query chunks.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = ChunkAttention(width, 4)
        self.inner = nn.Linear(4 * width, 64)
        self.out = _zeros(nn.Linear(64, 1))

    def forward(self, pairs: Pairs) -> Tensor:  # noqa: D102
        query = (_SCALE * pairs.query).expand(len(pairs.targets), -1, -1)
        found = normalize(self.attention(query, _SCALE * pairs.targets, pairs.mask) + pairs.query, dim=-1) * _SCALE
        compared = torch.cat([query, found, (query - found).abs(), query * found], -1)
        return self.out(gelu(self.inner(compared)).mean(1))[..., 0]  # type: ignore[no-any-return]


class BestChunks(Reranker):
    """Two layers over each query chunk, its best chunk in the target and their cosine, weighted by a learned gate."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(2 * width + 1, 64)
        self.out = _zeros(nn.Linear(64, 1))
        self.gate = _zeros(nn.Linear(64, 1))

    def forward(self, pairs: Pairs) -> Tensor:  # noqa: D102
        cosines = (pairs.query @ pairs.targets.mT).masked_fill(~pairs.mask[:, None], -1.0)
        best, at = cosines.max(2)  # (T, n)
        found = pairs.targets.gather(1, at[..., None].expand(-1, -1, pairs.targets.shape[2]))
        one = pairs.query.expand_as(found)
        read = torch.cat(
            [_SCALE * (one - found).abs(), _SCALE * one * found * one.shape[-1] ** 0.5 / 4, 5 * best[..., None]], -1
        )
        inner = gelu(self.inner(read))
        weights = self.gate(inner)[..., 0].softmax(1)
        return (weights * self.out(inner)[..., 0]).sum(1)  # type: ignore[no-any-return]


RERANKERS: Mapping[str, Callable[[int], Reranker]] = {
    "weights": Weights,
    "mixture": Mixture,
    "vectors": Vectors,
    "kernels": Kernels,
    "best chunks": BestChunks,
    "colde attention": ColdeAttention,
}


def _zeros(layer: nn.Linear) -> nn.Linear:
    for weight in layer.parameters():
        nn.init.zeros_(weight)
    return layer
