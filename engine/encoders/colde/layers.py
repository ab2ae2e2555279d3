"""The configuration of a CoLDE, and its torch modules around the backbone: position tables, attention, projection.

CoLDE is the Contrastive Long Document Encoder of Jha et al. (2022, TKDD, "Supervised
Contrastive Learning for Interpretable Long-Form Document Matching"; arXiv:2108.09190).

Letters in shapes: N sections, n chunks of a section (padded to the most in the batch),
H width of a state, A width of an aggregated chunk, D width of a vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, scaled_dot_product_attention
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from engine.encoders.encoder import Pooling, Variant
from engine.errors import EncoderError

N_SECTION_IDS = 8  # rows of the table of section numbers
N_CHUNK_IDS = 64  # rows of the table of chunk numbers
RELEASED_CHUNKS = 10  # chunks of a text that is read at once; the authors' code drops the rest
_MOST_CHUNKS = {Variant.PAPER: N_CHUNK_IDS, Variant.RELEASED: RELEASED_CHUNKS, Variant.FIXED: 16}


class Freeze(StrEnum):
    """The parameters of the backbone that keep their values in training."""

    NONE = "none"
    ALL_BUT_LAST = "all_but_last"  # all but those of the last layer and the pooler


@dataclass(frozen=True, slots=True)
class ColdeConfig:
    """Sizes and choices of one CoLDE.

    In `paper` and `released` a section, or a document that is read unsplit, is cut into chunks
    of 512 tokens (510 and the special ones), and a chunk ends where it is full: headings inside
    do not end it. `released` follows InterDigitalInc/CoLDE at commit 81d8617: section and chunk
    numbers are added to token ids, there is no attention, one forward LSTM is as wide as the
    backbone, and ten chunks are read of each section in training and of each document. It was
    trained with `Freeze.ALL_BUT_LAST`. That code also shuffles the chunks of every document and
    lets the LSTM run on over padding. Neither is repeated here. `fixed` follows the paper, but keeps
    sentences whole, ends chunks at headings, so that each is a part of one section, and uses no
    chunk numbers that were never trained.

    Raises:
        EncoderError: a value is out of its range.
    """

    variant: Variant = Variant.FIXED
    n_sections: int = 2  # S, sections of a document in training; with 1, documents stay whole
    chunk_tokens: int = 510  # lowered to what the backbone can read at once
    max_chunks: int | None = None  # most of a section in training; 10 in `released`, 16 in `fixed`, 64 in `paper`
    heads: int = 4
    lstm_width: int = 256  # per direction
    projection_width: int = 256  # D
    temperature: float = 0.5  # of the loss
    dropout: float = 0.1
    pooling: Pooling = Pooling.CLS  # `cls` goes through a pooler, tanh(W x + b): the backbone's, or one of our own
    without_lstm: bool = False  # ablation: the mean of the chunks, and no attention
    without_positions: bool = False  # ablation: no section and chunk numbers
    freeze: Freeze = Freeze.NONE

    def __post_init__(self) -> None:
        if self.max_chunks is None:
            # The paper has no limit; its documents have no more chunks than there are chunk numbers.
            object.__setattr__(self, "max_chunks", _MOST_CHUNKS.get(self.variant))
        choices: dict[str, type[StrEnum]] = {"variant": Variant, "pooling": Pooling, "freeze": Freeze}
        for name, kind in choices.items():
            if getattr(self, name) not in list(kind):
                raise EncoderError(f"{name} {str(getattr(self, name))!r} is none of {', '.join(kind)}")
        for name, highest in (("n_sections", N_SECTION_IDS), ("max_chunks", N_CHUNK_IDS)):
            if not 1 <= getattr(self, name) <= highest:
                raise EncoderError(f"{name} is {getattr(self, name)}; it must be from 1 to {highest}")
        for name in ("chunk_tokens", "heads", "lstm_width", "projection_width"):
            if getattr(self, name) < 1:
                raise EncoderError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not self.temperature > 0:
            raise EncoderError(f"temperature is {self.temperature}; it must be above 0")
        if not 0 <= self.dropout < 1:
            raise EncoderError(f"dropout is {self.dropout}; it must lie in [0, 1)")

    @property
    def training_chunks(self) -> int:
        """Most chunks of a section in training: `max_chunks`, as it was resolved."""
        assert self.max_chunks is not None
        return self.max_chunks

    @property
    def runs_over_headings(self) -> bool:
        """True where a chunk ends only when it is full."""
        return self.variant != Variant.FIXED

    @property
    def has_attention(self) -> bool:
        """True where chunks attend to those of the next section."""
        return self.variant != Variant.RELEASED and not self.without_lstm

    @property
    def has_tables(self) -> bool:
        """True where section and chunk numbers are embedded."""
        return self.variant != Variant.RELEASED and not self.without_positions

    @property
    def shifts_ids(self) -> bool:
        """True where section and chunk numbers are added to token ids instead."""
        return self.variant == Variant.RELEASED and not self.without_positions


class Positions(nn.Module):
    """E_sec[p] + E_chunk[q], added to the word embeddings of every token of a chunk.

    Section 3.1 of the paper. It prints the formula as a sum over all p, q and r, but
    means one sum of three embeddings for each p, q and r.

    A section number above the S of training is read as the last one. `largest` is the
    highest chunk number that was seen in training: with `clamp` the further chunks of a
    longer document share it, rather than add rows that were never trained.
    """

    def __init__(self, width: int, n_sections: int, *, clamp: bool) -> None:
        super().__init__()
        self.sections = nn.Embedding(N_SECTION_IDS, width)
        self.chunks = nn.Embedding(N_CHUNK_IDS, width)
        for table in (self.sections, self.chunks):
            nn.init.normal_(table.weight, std=0.02)
        self.n_sections = n_sections
        self.clamp = clamp
        self.largest: Tensor
        self.register_buffer("largest", torch.zeros((), dtype=torch.int64))

    def forward(self, sections: Tensor, chunks: Tensor) -> Tensor:
        """Embed section numbers p (N,) and chunk numbers q (N,), both from 0: (N, H)."""
        chunks = chunks.clamp(max=N_CHUNK_IDS - 1)
        if self.training:
            self.largest.copy_(torch.maximum(self.largest, chunks.max()))
        elif self.clamp:
            chunks = torch.minimum(chunks, self.largest)
        embedded: Tensor = self.sections(sections.clamp(max=self.n_sections - 1)) + self.chunks(chunks)
        return embedded


class ChunkAttention(nn.Module):
    """Multi-headed attention between chunks.

    Vaswani et al. (2017, arXiv:1706.03762), with softmax(Q K^T / sqrt(d_k)) V for each
    head, d_k = H / heads; the same as CoLDE, section 3.2.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise EncoderError(f"states {width} wide cannot be shared by {heads} heads; choose heads that divide it")
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, queries: Tensor, keys: Tensor, key_mask: Tensor) -> Tensor:
        """Let query chunks attend to key chunks (N, m, H), of which the mask (N, m) has one or more in each row."""
        # Without padding no mask is passed: the memory of attention is then linear in m.
        mask = None if key_mask.all() else key_mask[:, None, None]
        heads = scaled_dot_product_attention(
            self._split(self.query(queries)), self._split(self.key(keys)), self._split(self.value(keys)), mask
        )
        out: Tensor = self.out(heads.transpose(1, 2).flatten(2))
        return out

    def weights(self, queries: Tensor, keys: Tensor) -> Tensor:
        """The attention of query chunks (n, H) over key chunks (m, H): (n, m), the mean over heads; rows sum to 1."""
        query, key = self._split(self.query(queries)[None]), self._split(self.key(keys)[None])
        logits = query @ key.mT / query.shape[-1] ** 0.5  # (1, heads, n, m)
        alpha: Tensor = logits.softmax(dim=-1).mean(dim=(0, 1))
        return alpha

    def _split(self, rows: Tensor) -> Tensor:
        return rows.reshape(*rows.shape[:2], self.heads, -1).transpose(1, 2)  # (N, heads, n, d_k)


class ColdeLayers(nn.Module):
    """All parameters of a CoLDE except those of its backbone.

        a_q = MHA(g_q, keys and values: the chunks of the next section)
        h_q = BiLSTM(LN(g_q + a_q)) at q
        c_q = unit(W h_q + b),  z = unit(W [forwards at the last q; backwards at the first] + b)

    The paper specifies neither how attention is joined (residual and LayerNorm here), nor
    that vectors are scaled to unit length (its code does so).
    """

    def __init__(self, width: int, config: ColdeConfig, *, own_pooler: bool = False) -> None:
        """Make layers for a backbone of a width, with random parameters, and a pooler if the backbone has none.

        Raises:
            EncoderError: the width cannot be shared by the heads.
        """
        super().__init__()
        clamp = config.variant == Variant.FIXED
        self.positions = Positions(width, config.n_sections, clamp=clamp) if config.has_tables else None
        self.pooler = nn.Linear(width, width) if own_pooler else None
        self.attention = ChunkAttention(width, config.heads) if config.has_attention else None
        self.norm = nn.LayerNorm(width) if config.has_attention else None
        self.lstm: nn.LSTM | None = None
        aggregated = width
        if not config.without_lstm and config.variant == Variant.RELEASED:
            self.lstm = nn.LSTM(width, width, batch_first=True)
        elif not config.without_lstm:
            self.lstm = nn.LSTM(width, config.lstm_width, batch_first=True, bidirectional=True)
            aggregated = 2 * config.lstm_width
        self.projection = nn.Linear(aggregated, config.projection_width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, states: Tensor, mask: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """From chunk states to the vectors of sections and chunks.

        Args:
            states: g (N, n, H).
            mask: (N, n) bool, True where a chunk is real: the first ones of each row, at least one.
            keys: (N,) int64, the section that each section attends to; itself for an unsplit document.

        Returns:
            z (N, D) and c (N, n, D), unit rows; c is zero where padded.
        """
        states = self.dropout(states)
        if self.attention is not None and self.norm is not None:
            states = self.norm(states + self.attention(states, states[keys], mask[keys]))
        chunks, sections = self._aggregate(states, mask)
        return self._project(sections), self._project(chunks) * mask.unsqueeze(-1)

    def _aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(N, n, A) for each chunk, and (N, A) for each section."""
        lengths = mask.sum(dim=1)
        if self.lstm is None:
            return states, (states * mask.unsqueeze(-1)).sum(dim=1) / lengths.unsqueeze(-1)
        packed = pack_padded_sequence(states, lengths.cpu(), batch_first=True, enforce_sorted=False)
        outputs, (last, _) = self.lstm(packed)
        chunks, _ = pad_packed_sequence(outputs, batch_first=True, total_length=mask.shape[1])
        return chunks, last.transpose(0, 1).flatten(1)  # (directions, N, width) -> (N, A)

    def _project(self, rows: Tensor) -> Tensor:
        return normalize(self.projection(self.dropout(rows)).float(), dim=-1)
