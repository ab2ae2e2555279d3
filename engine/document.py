"""A document and its parts: text, headed sections, offsets. Frozen values; reads no file.

All offsets count characters of `Document.text`, the text that a reader returned,
so `document.text[start:stop]` is always exactly the text shown.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from engine.errors import DocumentError
from engine.lazy import Deferred

Scalar: TypeAlias = str | int | float | bool | None
MetadataValue: TypeAlias = Scalar | list[Scalar]
LEFT_OUT = "left_out_"  # metadata fields that count what a reader left out, as "left_out_figures"
KIND = "kind."  # metadata fields that list the headings of sections of a kind, as "kind.claims"
_TITLE_CHARS = 60  # most characters of a title that is the beginning of the text


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
class Document(Deferred):
    """A whole document, as it was read.

    A document from an index unpacks its text and sections when they are first
    accessed. `pages` holds the offset at which each page starts, for formats that have pages.
    """

    doc_id: str
    title: str
    text: str = field(repr=False)
    sections: tuple[Section, ...] = field(repr=False)
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    source: str = ""  # where the document was read from, for display
    pages: tuple[int, ...] = field(default=(), repr=False)

    @classmethod
    def from_text(
        cls,
        text: str,
        *,
        title: str = "",
        metadata: Mapping[str, MetadataValue] | None = None,
        doc_id: str | None = None,
    ) -> Document:
        """Make a document from a text; its headings are found as in a text file.

        Args:
            text: the whole text; newlines become "\\n", characters that cannot be stored U+FFFD.
            title: by default the beginning of the text. It is shown, and not added to the text.
            metadata: values for filters.
            doc_id: by default `text_id` of title and text, so that the same text always has the same doc_id.

        Raises:
            DocumentError: there is no text, or too much; or an argument has another type.
        """
        for name, value in (("text", text), ("title", title), ("doc_id", "" if doc_id is None else doc_id)):
            if not isinstance(value, str):
                raise DocumentError(f"{name} is {type(value).__name__}, not str; convert it: str({name})")
        # Readers make documents, so they cannot be imported above.
        from engine.readers.assembly import assemble
        from engine.readers.encoding import clean
        from engine.readers.headings import find_headings

        text = clean(text)
        return assemble(
            text,
            find_headings(text),
            doc_id=text_id(title, text) if doc_id is None else doc_id,
            source="",
            title=title or text_title(text),
            metadata=metadata,
        )

    @property
    def left_out(self) -> dict[str, int]:
        """The number of parts that the reader left out of the text, by kind ("figures"); see `engine.readers.left_out`.

        Counts are metadata, so that they are stored, shown and can be filtered by: `left_out_figures > 0`.
        """
        return {
            field.removeprefix(LEFT_OUT): value
            for field, value in self.metadata.items()
            if field.startswith(LEFT_OUT) and isinstance(value, int)
        }

    def page_numbers(self, span: Span) -> tuple[int, ...]:
        """The pages that a span of the text touches, counted from 1; empty for a format without pages."""
        if not self.pages:
            return ()
        first = bisect_right(self.pages, span.start)
        last = bisect_right(self.pages, max(span.start, span.stop - 1))
        return tuple(range(max(1, first), max(1, last) + 1))

    def _repr_html_(self) -> str:
        # The view shows documents, so it cannot be imported above.
        from engine.report.document_html import document_html

        return document_html(self)


def text_id(title: str, text: str) -> str:
    """A doc_id for a text that comes without one: the first 16 hexadecimal digits of a SHA-256."""
    encoded = f"{title}\0{text}".encode("utf-8", "replace")
    return f"text-{hashlib.sha256(encoded).hexdigest()[:16]}"


def text_title(text: str) -> str:
    """The first words of a text: its first line, cut between words at 60 characters."""
    line = " ".join(text.lstrip()[: 20 * _TITLE_CHARS].partition("\n")[0].split())
    if len(line) <= _TITLE_CHARS:
        return line
    cut = line.rfind(" ", _TITLE_CHARS // 2, _TITLE_CHARS)
    return line[: cut if cut > 0 else _TITLE_CHARS - 1] + "…"


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
