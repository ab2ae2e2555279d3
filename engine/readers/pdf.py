"""PDF: running text in pdfium's reading order, page by page. Reads the text layer; does no OCR."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pypdfium2
import pypdfium2.raw as pdfium

from engine.document import Document, Heading, MetadataValue
from engine.errors import DocumentError
from engine.readers.assembly import assemble
from engine.readers.limits import MAX_DOCUMENT_BYTES, too_large
from engine.readers.pdf_headings import HeadingLines, OutlineEntry, by_outline, by_type
from engine.readers.pdf_layout import (
    body_size,
    breaks_line,
    joined,
    pitch_of,
    right_edges,
    starts_paragraph,
    vocabulary,
    without_running_heads,
)
from engine.readers.pdf_lines import Line, lines_of

_Pdf: TypeAlias = Any
_ONE_AT_A_TIME = threading.Lock()  # pdfium may not be called from two threads
_MAX_PARAGRAPH_CHARS = 8_000
_MAX_OUTLINE = 5_000
_NO_TITLE = re.compile(r"microsoft |untitled|slide \d|.*\.(?:docx?|tex|dvi|pdf|indd|qxd|rtf|ps)$|\S+$", re.IGNORECASE)


@dataclass(slots=True)
class _Extract:
    """What pdfium finds in a file."""

    lines: list[Line] = field(default_factory=list)
    outline: list[OutlineEntry] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    n_pages: int = 0
    damaged_pages: list[int] = field(default_factory=list)  # from 1, as people count


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read the text layer of a PDF.

    Running heads and page numbers are left out, hyphenated words and paragraphs are
    put together. Pages that cannot be read are listed in the metadata "damaged_pages".

    Raises:
        DocumentError: encrypted, damaged, without a text layer, or too large.
    """
    with _ONE_AT_A_TIME:
        extract = _extract(data)
    if not extract.lines:
        raise DocumentError(
            f"its {extract.n_pages} pages have no text layer (scanned?); run OCR first, e.g. ocrmypdf IN.pdf OUT.pdf"
        )
    lines = without_running_heads(extract.lines) or extract.lines
    title, headings = by_type(lines)
    headings = by_outline(lines, extract.outline) or headings
    flow = _Flow(lines)
    flow.write({heading.first: heading for heading in headings})
    told = extract.properties.get("Title", "").strip()
    return assemble(
        flow.text,
        flow.headings,
        doc_id=doc_id,
        source=source,
        title=told if told and not _NO_TITLE.match(told) else title,
        metadata=_metadata(extract),
        pages=flow.pages(extract.n_pages),
    )


def _metadata(extract: _Extract) -> dict[str, MetadataValue]:
    fields: dict[str, MetadataValue] = {
        "authors": [name for name in re.split(r"\s*;\s*", extract.properties.get("Author", "").strip()) if name],
        "keywords": extract.properties.get("Keywords", ""),
        "n_pages": extract.n_pages,
        "damaged_pages": [*extract.damaged_pages],
    }
    return {key: value for key, value in fields.items() if value}


def _extract(data: bytes) -> _Extract:
    pdf = _open(data)
    try:
        extract = _Extract(n_pages=len(pdf), properties=pdf.get_metadata_dict(skip_empty=True))
        size = 0
        for page in range(extract.n_pages):
            try:
                lines = _page_lines(pdf, page)
            except pypdfium2.PdfiumError:
                extract.damaged_pages.append(page + 1)
                continue
            extract.lines.extend(lines)
            size += sum(len(line.text) for line in lines)
            if size > MAX_DOCUMENT_BYTES:
                raise too_large("text", f"more than {MAX_DOCUMENT_BYTES:,}", MAX_DOCUMENT_BYTES)
        extract.outline = _outline(pdf)
        return extract
    finally:
        pdf.close()


def _open(data: bytes) -> _Pdf:
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium.FPDF_ERR_PASSWORD:
            raise DocumentError("it is encrypted; save it without a password, e.g. qpdf --decrypt") from error
        raise DocumentError("it is not a PDF, or a damaged one; try to repair it, e.g. with qpdf") from error


def _page_lines(pdf: _Pdf, number: int) -> list[Line]:
    page = pdf[number]
    try:
        text_page = page.get_textpage()
        try:
            return lines_of(text_page, number)
        finally:
            text_page.close()
    finally:
        page.close()


def _outline(pdf: _Pdf) -> list[OutlineEntry]:
    entries: list[OutlineEntry] = []
    for bookmark in pdf.get_toc():
        target = bookmark.get_dest()
        page = target.get_index() if target else None
        if page is not None and len(entries) < _MAX_OUTLINE:
            entries.append(OutlineEntry(bookmark.get_title(), bookmark.level + 1, page))
    return entries


class _Flow:
    """Text that grows line by line; holds the paragraph that is being joined."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.headings: list[Heading] = []
        self._lines = lines
        self._known = vocabulary(lines)
        self._pitch = pitch_of(lines, body_size(lines))
        self._edges = right_edges(lines)
        self._done: list[str] = []
        self._size = 0
        self._paragraph = ""
        self._page_starts: dict[int, int] = {}

    @property
    def text(self) -> str:
        """All that was written."""
        return "".join(self._done)

    def pages(self, n_pages: int) -> tuple[int, ...]:
        """Offset of each page; a page without text starts where the next one does."""
        starts, following = [], self._size
        for page in reversed(range(n_pages)):
            following = self._page_starts.get(page, following)
            starts.append(following)
        return (0, *reversed(starts[:-1])) if starts else ()

    def write(self, headings: dict[int, HeadingLines]) -> None:
        """Write all lines; `headings` by the number of their first line."""
        stop = 0
        for number in range(len(self._lines)):
            heading = headings.get(number)
            if heading is not None:
                title = " ".join(self._lines[place].text for place in range(number, heading.stop))
                self._end_paragraph()
                self.headings.append(Heading(title.replace("\u00ad", ""), heading.level, self._size))
                stop = heading.stop
            elif number >= stop and (number == stop or self._starts_paragraph(number)):
                self._end_paragraph()
            self._append(number)
        self._end_paragraph(last=True)

    def _starts_paragraph(self, number: int) -> bool:
        before, line = self._lines[number - 1], self._lines[number]
        if len(self._paragraph) > _MAX_PARAGRAPH_CHARS:
            return True
        return starts_paragraph(before, line, self._pitch, self._edges[before.page])

    def _append(self, number: int) -> None:
        line = self._lines[number]
        if not self._paragraph:
            self._paragraph = line.text
        elif breaks_line(self._lines[number - 1], self._edges[self._lines[number - 1].page]):
            self._paragraph += "\n" + line.text
        else:
            self._paragraph = joined(self._paragraph, line.text, self._known)
        self._page_starts.setdefault(line.page, self._size + len(self._paragraph) - len(line.text))

    def _end_paragraph(self, last: bool = False) -> None:
        if self._paragraph:
            part = self._paragraph.replace("\u00ad", "-") + ("" if last else "\n\n")
            self._done.append(part)
            self._size += len(part)
            self._paragraph = ""
