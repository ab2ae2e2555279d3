"""The configuration of a CoLDE: variant, sizes, ablations. Values alone; no parameters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

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
        choices: tuple[tuple[str, type[StrEnum]], ...] = (
            ("variant", Variant),
            ("pooling", Pooling),
            ("freeze", Freeze),
        )
        for name, kind in choices:
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
