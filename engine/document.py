"""What a document is: text, headed sections, offsets. Frozen values; nothing here reads a file.

All offsets count characters of `Document.text`, the text as a reader gave it,
so `document.text[start:stop]` is always exactly what is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from engine.deferred import Deferred

Scalar: TypeAlias = str | int | float | bool | None
MetadataValue: TypeAlias = Scalar | list[Scalar]


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
    """A window of tokens, cut from one section, that is encoded as one vector."""

    section: int  # position in the document, from 0
    start: int
    stop: int
    n_tokens: int  # without the special tokens


@dataclass(frozen=True, slots=True)
class Document(Deferred):
    """A document that was read, whole.

    One that comes from an index unpacks its text and sections when they are first
    read. `pages` holds the offset at which each page starts, for formats that have pages.
    """

    doc_id: str
    title: str
    text: str = field(repr=False)
    sections: tuple[Section, ...] = field(repr=False)
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    source: str = ""  # where it was read from, for people
    pages: tuple[int, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a document the encoder read, and of a query, how much was asked."""

    tokens_read: int
    tokens_total: int
    chunks_pooled: int = 1  # neighbouring chunks that one vector of a very long query stands for, at most

    @property
    def share(self) -> float:
        """In [0, 1]; 1 for a document without tokens."""
        return self.tokens_read / self.tokens_total if self.tokens_total else 1.0
