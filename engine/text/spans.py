"""Parts of a text as offsets: spans, headings, sections, chunks, and the share of a text that was read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of `Document.text`, `stop` exclusive."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading as a reader found it; its section runs from `start` to the next heading."""

    title: str
    level: int  # 1 is the outermost
    start: int  # offset of the heading's own line in the text


@dataclass(frozen=True, slots=True)
class Section:
    """A headed part of a document, its heading line included.

    Sections follow each other without gaps and cover the whole text, so that
    nothing of a document is outside every section.
    """

    heading: str  # "" where the document has none here
    path: tuple[str, ...]  # headings above it, outermost first; ends with its own
    start: int
    stop: int
    n_merged: int = 1  # headed parts that were joined here because they were tiny
    part: int = 1  # this section is part 1 .. n_parts of one that was huge
    n_parts: int = 1


@dataclass(frozen=True, slots=True)
class Chunk:
    """A window of tokens that is encoded as one vector.

    Windows end where sections end, except in encoders that follow a paper whose windows run across sections.
    """

    section: int  # position in the document, from 0, of the section in which the window begins
    start: int
    stop: int
    n_tokens: int  # without the special tokens


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a document the encoder read; for a query, how much of it was searched with."""

    tokens_read: int
    tokens_total: int
    chunks_pooled: int = 1  # most neighbouring chunks that one vector of a very long query represents

    @property
    def share(self) -> float:
        """In [0, 1]; 1 for a document without tokens."""
        return self.tokens_read / self.tokens_total if self.tokens_total else 1.0
