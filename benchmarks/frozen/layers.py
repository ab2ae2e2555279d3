"""Layers that compute, from the chunk vectors of a document, a vector to add to their mean; it is 0 before training.

With m the mean of all chunks, and c_i at most 32 of them, the vector of a document is d = m + f(c_1, ..., c_n).

Letters in shapes: B documents, n chunks of a document (padded), D width of a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, normalize

from engine.encoders.colde.config import ColdeConfig
from engine.encoders.colde.layers import ColdeLayers
from engine.encoders.smith.config import SmithConfig
from engine.encoders.smith.layers import DocumentEncoder

MAX_CHUNKS = 32  # of a document, evenly spaced if it has more
_SCALE = 4.0  # factor of unit vectors before a dense layer, since their entries are near D^-1/2
_N_TOPICS, _TOPIC_WIDTH = 16, 24


class DocumentLayer(nn.Module):
    """f, the vector that is added to the mean of the chunks."""

    def forward(
        self,
        chunks: Tensor,  # (B, n, D) float32, unit rows
        mask: Tensor,  # (B, n) bool, True where a chunk is real
    ) -> Tensor:
        """(B, D) vectors to add to the means."""
        raise NotImplementedError


class Linear(DocumentLayer):
    """f = W mean_i c_i."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = _zeros(nn.Linear(width, width, bias=False))

    def forward(self, chunks: Tensor, mask: Tensor) -> Tensor:  # noqa: D102
        added: Tensor = self.out(_mean(chunks, mask))
        return added


class TwoLayers(DocumentLayer):
    """f = W gelu(V mean_i c_i)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 256)
        self.out = _zeros(nn.Linear(256, width))

    def forward(self, chunks: Tensor, mask: Tensor) -> Tensor:  # noqa: D102
        added: Tensor = self.out(gelu(self.inner(_SCALE * _mean(chunks, mask))))
        return added


class Attention(DocumentLayer):
    """f = sum_i (a_i - 1/n) c_i, a = softmax(v . tanh(W c_i + b)), the attention of HAN (Yang et al. 2016)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 64)
        self.context = nn.Parameter(torch.zeros(64))

    def forward(self, chunks: Tensor, mask: Tensor) -> Tensor:  # noqa: D102
        return _weighted(torch.tanh(self.inner(_SCALE * chunks)) @ self.context, chunks, mask)


class Gate(DocumentLayer):
    """f of `Attention`, with a the softmax of two layers over the chunk, its position and its cosine to the mean."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width + 3, 64)
        self.out = _zeros(nn.Linear(64, 1))

    def forward(self, chunks: Tensor, mask: Tensor) -> Tensor:  # noqa: D102
        count = mask.sum(1, keepdim=True)
        order = torch.arange(chunks.shape[1]).expand_as(mask)
        likeness = (chunks * normalize(_mean(chunks, mask), dim=-1)[:, None]).sum(-1)
        features = torch.stack([order / count - 0.5, torch.exp(-order / 2), 5 * (likeness - 0.7)], -1)
        inner = gelu(self.inner(torch.cat([_SCALE * chunks, features * mask[..., None]], -1)))
        return _weighted(self.out(inner)[..., 0], chunks, mask)


class Smith(DocumentLayer):
    """f = W mean_i C_i, with C the outputs of the second transformer of SMITH for the chunks.

    SMITH uses only the output at its first block as the vector of a document.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        sizes = SmithConfig(
            width=width, max_blocks=MAX_CHUNKS, document_layers=2, document_heads=4, document_ffn=2 * width
        )
        self.encoder = DocumentEncoder(sizes)
        self.out = _zeros(nn.Linear(width, width))

    def forward(self, chunks: Tensor, mask: Tensor) -> Tensor:  # noqa: D102
        added: Tensor = self.out(_mean(self.encoder(chunks, mask), mask))
        return added


class Colde(DocumentLayer):
    """f = W z, with z the output of CoLDE's attention between chunks and BiLSTM."""

    def __init__(self, width: int) -> None:
        super().__init__()
        sizes = ColdeConfig(n_sections=1, lstm_width=64, projection_width=128, without_positions=True)
        self.layers = ColdeLayers(width, sizes)
        self.out = _zeros(nn.Linear(sizes.projection_width, width))

    def forward(self, chunks: Tensor, mask: Tensor) -> Tensor:  # noqa: D102
        documents, _ = self.layers(_SCALE * chunks, mask, torch.arange(len(chunks)))
        added: Tensor = self.out(documents)
        return added


class Topics(DocumentLayer):
    """f = W [t_1; ...; t_16], with t_k the mean of the chunks, weighted by their shares of topic k, projected to 24.

    Topics are centres, trained with the other parameters. TDE's topic model reads words, which are not available here.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.centres = nn.Parameter(0.05 * torch.randn(_N_TOPICS, width))
        self.narrow = nn.Linear(width, _TOPIC_WIDTH, bias=False)
        self.out = _zeros(nn.Linear(_N_TOPICS * _TOPIC_WIDTH, width))

    def forward(self, chunks: Tensor, mask: Tensor) -> Tensor:  # noqa: D102
        shares = (10 * chunks @ normalize(self.centres, dim=-1).T).softmax(-1) * mask[..., None]
        of_topics = shares.mT @ self.narrow(_SCALE * chunks) / (shares.sum(1)[..., None] + 0.5)
        added: Tensor = self.out(of_topics.flatten(1))
        return added


LAYERS: Mapping[str, Callable[[int], DocumentLayer]] = {
    "linear": Linear,
    "two layers": TwoLayers,
    "attention": Attention,
    "gate": Gate,
    "smith": Smith,
    "colde": Colde,
    "topics": Topics,
}


def _mean(chunks: Tensor, mask: Tensor) -> Tensor:
    return (chunks * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


def _weighted(logits: Tensor, chunks: Tensor, mask: Tensor) -> Tensor:
    weights = logits.masked_fill(~mask, float("-inf")).softmax(1)
    return (weights[..., None] * chunks).sum(1) - _mean(chunks, mask)


def _zeros(layer: nn.Linear) -> nn.Linear:
    for weight in layer.parameters():
        nn.init.zeros_(weight)
    return layer
