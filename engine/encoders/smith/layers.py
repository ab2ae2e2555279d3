"""The torch modules of SMITH (Yang et al. 2020, arXiv:2004.12297): token ids to blocks, blocks to documents.

Letters in shapes: N blocks, L tokens of a block (padded), B documents, n blocks
of a document (padded), H width of a state, D width of a vector.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from transformers import BertConfig, BertModel
from transformers.models.bert.modeling_bert import BertEncoder

from engine.encoders.backbone.model_folder import load_model
from engine.encoders.encoder import Variant
from engine.encoders.smith.config import Activation, Combination, SmithConfig
from engine.errors import EncoderError

_INITIAL_STD = 0.02
_WORDS = "embeddings.word_embeddings.weight"
# Tables that can be copied in part: ours can have fewer rows, never more.
_TABLES = (_WORDS, "embeddings.position_embeddings.weight")
_HALF = math.sqrt(0.5)


class SentenceEncoder(nn.Module):
    """Reads each block by itself.

        p = tanh(W_p T[CLS] + b),  h = unit(relu(W_s p + b_s))

    with T the output of BERT. The paper names a dense layer without ReLU; the
    released code has a ReLU, and so does ours. MatchBERT has no such layer: h = unit(p).
    """

    def __init__(self, config: SmithConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.bert: Any = BertModel(_bert_config(config, "sentence", vocabulary_size))
        self.dense = nn.Linear(config.width, config.width) if config.is_hierarchical else None

    def forward(
        self,
        ids: Tensor,  # (N, L) int64
        mask: Tensor | None,  # (N, L) bool, True where a token is real; None where all are
    ) -> tuple[Tensor, Tensor]:
        """Contextual tokens (N, L, H), and h (N, H) float32, unit rows."""
        output = self.bert(input_ids=ids, attention_mask=None if mask is None else mask.long())
        pooled: Tensor = output[1]
        if self.dense is not None:
            pooled = torch.relu(self.dense(pooled))
        return output[0], normalize(pooled.float(), dim=-1)


class DocumentEncoder(nn.Module):
    """Reads the blocks of a document together.

        C = BERT(dropout(LN(h + position))),  d = tanh(W_dp C + b)

    There is no token for the document: its vector is that of its first block.
    Positions are learned, as in the released code.
    """

    def __init__(self, config: SmithConfig) -> None:
        super().__init__()
        self.positions = nn.Embedding(config.document_positions, config.width)
        self.norm = nn.LayerNorm(config.width, eps=1e-12)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder: Any = BertEncoder(_bert_config(config, "document", vocabulary_size=1))  # it has no words
        self.pooler = nn.Linear(config.width, config.width)

    def forward(
        self,
        blocks: Tensor,  # (B, n, H), before positions
        mask: Tensor,  # (B, n) bool, True where a block is real
    ) -> Tensor:
        """Contextual blocks C, (B, n, H)."""
        n = blocks.shape[1]
        placed = blocks.to(self.norm.weight.dtype) + self.positions.weight[:n]
        # Without padding no mask is passed: attention then takes its faster path.
        attended = None if mask.all() else mask[:, None, None, :].expand(-1, -1, n, -1)
        contextual: Tensor = self.encoder(self.dropout(self.norm(placed)), attention_mask=attended)[0]
        return contextual

    def attention(
        self,
        blocks: Tensor,  # (n, H), of one document, before positions
    ) -> list[Tensor]:
        """The attention of each block to every block, in each layer: (n, n), the mean over heads, rows sum to 1.

        The fused attention of `forward` returns no weights, so softmax_j(<q_i, k_j> / sqrt(d_k)) is computed here.
        """
        hidden = self.norm(blocks.to(self.norm.weight.dtype) + self.positions.weight[: len(blocks)])[None]
        found = []
        for layer in self.encoder.layer:
            own = layer.attention.self
            query, key = (
                part(hidden).unflatten(-1, (own.num_attention_heads, -1)).transpose(1, 2).float()
                for part in (own.query, own.key)
            )  # (1, heads, n, d_k)
            found.append((query @ key.mT / query.shape[-1] ** 0.5).softmax(dim=-1).mean(dim=(0, 1)))
            hidden = layer(hidden)
        return found


def rollout(attention: Sequence[Tensor]) -> Tensor:
    """How much of each output of a transformer comes from each of its inputs, if attention alone mixed them.

    Attention rollout of Abnar & Zuidema (2020, arXiv:2005.00928), with half of every layer passed on unchanged, as
    its residual connection does:

        R = A'_L ... A'_1,   A'_l = (A_l + I) / 2

    Args:
        attention: of each layer from the first, (n, n), rows sum to 1.

    Returns:
        (n, n), rows sum to 1.
    """
    rolled = torch.eye(len(attention[0]), device=attention[0].device)
    for weights in attention:
        rolled = (weights + torch.eye(len(weights), device=weights.device)) / 2 @ rolled
    return rolled


class BlockAttention(nn.Module):
    """Weights of blocks: a = softmax_i(v . tanh(W h_i + b)); the paper prints it without tanh and b."""

    def __init__(self, config: SmithConfig) -> None:
        super().__init__()
        self.is_printed = config.variant is Variant.PAPER
        self.projection = nn.Linear(config.width, config.width, bias=not self.is_printed)
        self.context = nn.Parameter(torch.zeros(config.width))

    def forward(self, blocks: Tensor, mask: Tensor) -> Tensor:
        """(B, n) that sum to 1 over the real blocks."""
        projected: Tensor = self.projection(blocks.to(self.context.dtype))
        if not self.is_printed:
            projected = torch.tanh(projected)
        scores = (projected @ self.context).float()
        return scores.masked_fill(~mask, float("-inf")).softmax(-1)


class SmithModule(nn.Module):
    """All parameters of a SMITH, drawn from a seed.

    A normal of deviation 0.02, cut at two deviations, with biases 0 and norms 1, but Glorot-uniform for the two dense
    layers that the released code leaves to TensorFlow's default, and for the attention's vector.
    """

    def __init__(self, config: SmithConfig, vocabulary_size: int, *, pad_id: int = 0, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.pad_id = pad_id
        with torch.random.fork_rng(devices=[]):  # transformers draws parameters, which are drawn again below
            self.sentence = SentenceEncoder(config, vocabulary_size)
            self.document = DocumentEncoder(config) if config.is_hierarchical else None
            # A list of one layer or none, as in the parameter names of saved encoders.
            self.heads = nn.ModuleList(nn.Linear(config.width, config.width) for _ in range(config.is_hierarchical))
            attends = config.combination is Combination.ATTENTION
            self.attention = BlockAttention(config) if attends else None
        self._initialize(torch.Generator().manual_seed(seed))

    def _initialize(self, generator: torch.Generator) -> None:
        limit = 2 * _INITIAL_STD
        for part in self.modules():
            if isinstance(part, nn.Linear | nn.Embedding):
                nn.init.trunc_normal_(part.weight, std=_INITIAL_STD, a=-limit, b=limit, generator=generator)
            if isinstance(part, nn.Linear) and part.bias is not None:
                nn.init.zeros_(part.bias)
            if isinstance(part, nn.LayerNorm):
                nn.init.ones_(part.weight)
                nn.init.zeros_(part.bias)
        for layer in (self.sentence.dense, *self.heads):
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight, generator=generator)
        if self.attention is not None:
            limit = math.sqrt(3 / self.config.width)
            nn.init.uniform_(self.attention.context, -limit, limit, generator=generator)

    def blocks(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """First stage; see `SentenceEncoder.forward`."""
        blocks: tuple[Tensor, Tensor] = self.sentence(ids, mask)
        return blocks

    def padding_block(self) -> Tensor:
        """(H,), the vector that the released code reads where a document has no block.

        The mask of that code lowers the attention to all tokens equally, so it masks nothing.
        """
        device = self.sentence.bert.device
        ids = torch.full((1, self.config.block_tokens), self.pad_id, device=device)
        return self.blocks(ids, None)[1][0]

    def documents(self, blocks: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Second stage.

            v_i = unit(W_d tanh(W_dp C_i + b) + b_d),  E = v_1

        `released` has a ReLU before `unit`. With a combination, g is the sum, mean or attended sum
        of the h_i, and vectors are

            paper, released: document unit([g; E]), block unit([h_i; v_i])
            fixed:           document [unit(g); E] / sqrt 2, block [h_i; v_i] / sqrt 2

        so that in `fixed` each half has the same weight, and sum and mean are equal. In
        `released` g runs over `max_blocks` blocks, missing ones included, as in its
        code. That code then takes the raw product of [g; E], which an index of unit
        vectors cannot represent.

        Args:
            blocks: (B, n, H) float32, unit rows, padded along n; n = 1 without a document encoder.
            mask: (B, n) bool, True where a block is real; the first block of each document is real.

        Returns:
            The documents (B, D) and their blocks (B, n, D), float32, unit rows; rows of padded blocks are undefined.
        """
        if self.document is None:
            return blocks[:, 0], blocks
        rows = self._head(self.document(blocks, mask))
        if self.config.combination is Combination.NORMAL:
            return rows[:, 0], rows
        beside = self._beside(blocks, mask)
        chunks = torch.cat([blocks, rows], -1) * _HALF
        if self.config.variant is Variant.FIXED:
            return torch.cat([normalize(beside, dim=-1), rows[:, 0]], -1) * _HALF, chunks
        return normalize(torch.cat([beside, rows[:, 0]], -1), dim=-1), chunks

    def block_weights(self, blocks: Tensor) -> Tensor:
        """How much attention the vector of a document pays to each of its blocks.

        E is the output at the first block, so its weights are R_1 of `rollout`. Where g is concatenated, with a_i
        the weights of its sum (1 / n for sum and mean),

            w_i = lambda a_i + (1 - lambda) R_1i

        and lambda the share of g in the squared length of the document vector: 1/2 in `fixed`. Weights of the
        padding that `released` reads are left out of a, which then sums to 1 over the real blocks.

        Attention weights are not contributions: a block that is attended to may change the vector little (Jain &
        Wallace 2019, arXiv:1902.10186). Neither the values that are attended to nor the dense layers count here.

        Args:
            blocks: (n, H) float32, unit rows, of one document.

        Returns:
            (n,) float32, at least 0, sum 1.
        """
        assert self.document is not None
        attended = rollout(self.document.attention(blocks))[0]
        if self.config.combination is Combination.NORMAL:
            return attended
        mask = torch.ones((1, len(blocks)), dtype=torch.bool, device=blocks.device)
        beside = torch.full_like(attended, 1 / len(blocks))
        if self.attention is not None:
            beside = self.attention(blocks[None], mask)[0]
        document = self.documents(blocks[None], mask)[0][0]
        share = document[: self.config.width].square().sum() / document.square().sum()
        return share * beside + (1 - share) * attended

    def _head(self, contextual: Tensor) -> Tensor:
        assert self.document is not None
        rows: Tensor = self.heads[0](torch.tanh(self.document.pooler(contextual)))
        if self.config.final_activation is Activation.RELU:
            rows = torch.relu(rows)
        return normalize(rows.float(), dim=-1)

    def _beside(self, blocks: Tensor, mask: Tensor) -> Tensor:
        """(B, H): g in `documents`."""
        if self.config.variant is Variant.RELEASED:
            blocks, mask = self._with_padding(blocks, mask)
        if self.attention is not None:
            attended = (self.attention(blocks, mask).unsqueeze(-1) * blocks).sum(1)
            return nn.functional.dropout(attended, self.config.dropout, self.training)
        total = (blocks * mask.unsqueeze(-1)).sum(1)
        return total if self.config.combination is Combination.SUM else total / mask.sum(1, keepdim=True)

    def _with_padding(self, blocks: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        padding = self.padding_block()
        real = torch.where(mask.unsqueeze(-1), blocks, padding)
        missing = padding.expand(len(blocks), self.config.max_blocks - blocks.shape[1], -1)
        whole = torch.cat([real, missing], 1)
        return whole, torch.ones_like(whole[..., 0], dtype=torch.bool)


def _bert_config(config: SmithConfig, part: Literal["sentence", "document"], vocabulary_size: int) -> Any:  # noqa: ANN401
    return BertConfig(
        vocab_size=vocabulary_size,
        hidden_size=config.width,
        num_hidden_layers=getattr(config, f"{part}_layers"),
        num_attention_heads=getattr(config, f"{part}_heads"),
        intermediate_size=getattr(config, f"{part}_ffn"),
        max_position_embeddings=getattr(config, f"{part}_positions"),
        hidden_act="gelu_pytorch_tanh",
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.dropout,
        pad_token_id=None,  # else the row of the padding token would stay zero
        attn_implementation="sdpa",
    )


@torch.no_grad()
def take_over(bert: Any, folder: Path, *, words_alone: bool = False) -> None:  # noqa: ANN401
    """Copy every parameter of a BERT's folder, or the word embeddings alone, into a `BertModel` of the same sizes.

    Position and word tables can be shorter here; a pooler that the folder does not
    hold keeps its own parameters. Folders of transformers mostly specify the exact GELU;
    ours is the approximate one that BERT was trained with (they differ by 1e-3).

    Raises:
        EncoderError: the folder holds no BERT, or one of other sizes.
    """
    model, missing = load_model(folder, torch.float32, what="a BERT")
    if model.config.model_type != "bert":
        raise EncoderError(f"{folder} holds a {model.config.model_type}, weights are taken over from a bert alone")
    own: dict[str, Tensor] = bert.state_dict()
    published = {name: value for name, value in model.state_dict().items() if name not in missing}
    if words_alone:
        published = {_WORDS: published[_WORDS]}
    unknown = sorted(published.keys() - own.keys())
    lacking = sorted(name for name in own.keys() - published.keys() if "pooler" not in name and not words_alone)
    if unknown or lacking:
        raise EncoderError(
            f"{folder} does not have the layers of this encoder: {(unknown or lacking)[0]} is only in one of the two; "
            "configure as many layers as it has"
        )
    for name, value in published.items():
        rows = len(own[name]) if name in _TABLES else len(value)
        if value[:rows].shape != own[name].shape:
            raise EncoderError(
                f"{name} of {folder} has shape {tuple(value.shape)}, this encoder needs {tuple(own[name].shape)}; "
                "configure its sizes"
            )
        own[name].copy_(value[:rows])
