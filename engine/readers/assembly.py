"""Puts text and headings together into a `Document`; the last step of every reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import PurePath
from types import MappingProxyType

from engine.document import LEFT_OUT, Document, Heading, MetadataValue
from engine.errors import DocumentError
from engine.readers.encoding import printable
from engine.readers.limits import check_text
from engine.segmentation import divide

MAX_HEADING_CHARS = 300  # a longer one is a paragraph that was styled as a heading


def assemble(
    text: str,
    headings: Iterable[Heading],
    *,
    doc_id: str,
    source: str,
    title: str = "",
    metadata: Mapping[str, MetadataValue] | None = None,
    pages: tuple[int, ...] = (),
    left_out: Mapping[str, int] = MappingProxyType({}),
) -> Document:
    """Check a text and divide it at its headings.

    Args:
        text: as `Document.text` will be.
        headings: any order; offsets into `text`.
        doc_id: the corpus's own name of the document.
        source: where it was read from; names a document without a title.
        title: "" where the document has none.
        metadata: values for filters.
        pages: offset of each page.
        left_out: counts of what the reader left out of the text, by kind; added to the metadata where above 0.

    Raises:
        DocumentError: there is no text, or too much.
    """
    check_text(text)
    text = printable(text)
    if not text.strip():
        raise DocumentError("it holds no text")
    named = (replace(heading, title=one_line(heading.title)) for heading in headings)
    return Document(
        doc_id=printable(doc_id),
        title=one_line(title) or printable(stem(source)),
        text=text,
        sections=divide(text, named),
        metadata={printable(key): _printable_value(value) for key, value in (metadata or {}).items()}
        | {f"{LEFT_OUT}{kind}": n_left_out for kind, n_left_out in left_out.items() if n_left_out > 0},
        source=printable(source),
        pages=pages,
    )


def one_line(text: str) -> str:
    """Runs of white space become one space."""
    return " ".join(printable(text).split())


def stem(source: str) -> str:
    """The file name without folder, ".gz" and suffix."""
    return PurePath(without_gz(PurePath(source).name)).stem


def without_gz(name: str) -> str:
    """A file name as it is after unpacking."""
    return name[:-3] if name.lower().endswith(".gz") else name


def _printable_value(value: MetadataValue) -> MetadataValue:
    if isinstance(value, list):
        return [printable(item) if isinstance(item, str) else item for item in value]
    return printable(value) if isinstance(value, str) else value


class Blocks:
    """Text that grows block by block, for formats in which the file is not the text itself."""

    def __init__(self) -> None:
        self.headings: list[Heading] = []
        self._parts: list[str] = []
        self._size = 0

    @property
    def text(self) -> str:
        """All blocks so far."""
        return "".join(self._parts)

    @property
    def size(self) -> int:
        """Characters so far; the next block starts after it and its separator."""
        return self._size

    def add(self, block: str, separator: str = "\n\n") -> int:
        """Append a block, unless it is blank; returns the offset at which it starts."""
        block = block.strip("\n")
        if not block.strip():
            return self._size
        if self._size:
            self._append(separator)
        start = self._size
        self._append(block)
        return start

    def add_heading(self, title: str, level: int) -> None:
        """Append a heading line; a title over `MAX_HEADING_CHARS` is appended as a paragraph."""
        title = one_line(title)
        if not title:
            return
        start = self.add(title)
        if len(title) <= MAX_HEADING_CHARS:
            self.headings.append(Heading(title, level, start))

    def _append(self, part: str) -> None:
        self._parts.append(part)
        self._size += len(part)
