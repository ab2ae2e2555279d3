"""The first tokens of a document through one backbone, compared by cosine: what S-BERT and S-LONG have in common.

Letters in shapes: N documents, L tokens of the longest, D width of a vector.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from benchmarks.baselines.pair_model import CosineHead, SiameseModel
from engine.document import Document
from engine.encoders.backbone.backbone import Backbone

_TOKEN_BUDGET = 8192  # of one pass, padding counted


class FirstTokens(SiameseModel[list[int]]):
    """A backbone, pooled as it says; or by a layer over its hidden states."""

    def __init__(self, backbone: Backbone, *, pooler: nn.Module | None = None) -> None:
        """Take over a backbone with its weights.

        Args:
            backbone: in float32, for its weights are trained.
            pooler: from hidden states (N, L, D) to (N, D); None for the backbone's own `pooling`.
        """
        super().__init__()
        self.backbone = backbone
        self.model: nn.Module = backbone.model
        self.pooler = pooler
        self.head = CosineHead()
        unused = getattr(backbone.model, "pooler", None)
        if pooler is None and unused is not None:
            unused.requires_grad_(False)  # else it counts as learned, and no gradient reaches it

    def encode(self, documents: Sequence[list[int]]) -> Tensor:
        """See `SiameseModel.encode`: (N, D)."""
        if self.pooler is None:
            return self.backbone.pool(documents, _TOKEN_BUDGET)
        pooler = self.pooler

        def pool(hidden: Tensor, _: Tensor) -> Tensor:
            pooled: Tensor = pooler(hidden)
            return pooled

        return self.backbone.read(documents, _TOKEN_BUDGET, pool)


def first_tokens(document: Document, backbone: Backbone, max_tokens: int) -> list[int]:
    """The ids of the first tokens of a document's text, without special tokens.

    Args:
        document: of any length.
        backbone: with the tokenizer; what it can read at once is a limit too.
        max_tokens: special tokens counted.
    """
    most = min(max_tokens - backbone.tokenizer.n_special, backbone.max_tokens)
    return backbone.tokenize([document.text])[0][0][:most]
