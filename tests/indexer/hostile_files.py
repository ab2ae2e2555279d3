"""Small or well compressed files on which a reader without limits would spend too much time or memory."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable

from tests.readers.made_pdf import HELVETICA, _file, pdf_of_contents, stream
from tests.readers.test_docx_parts import word_of

_WORDS = b"Pumps move water from the lower to the upper basin. "
_SHOWN = b"BT /F1 10 Tf 72 700 Td (%s) Tj ET\n" % _WORDS


def _deflated(data: bytes, times: int = 1) -> bytes:
    """A stream object whose data are deflated `times` times."""
    for _ in range(times):
        data = zlib.compress(data, 1)
    filters = b"/FlateDecode " * times
    return b"<< /Length %d /Filter [%s] >>\nstream\n%s\nendstream" % (len(data), filters, data)


def _pdf(content: bytes, more: bytes = b"", *others: bytes, n_pages: int = 1) -> bytes:
    """One page, listed `n_pages` times; `others` are objects from 6 on, `more` belongs to the page's resources."""
    pages = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b"4 0 R " * n_pages, n_pages)
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> "
    return _file([b"<< /Type /Catalog /Pages 2 0 R >>", pages, HELVETICA, page + more + b" >> >>", content, *others])


def _form(content: bytes, drawn: bytes = b"") -> bytes:
    resources = b"/Resources << /Font << /F1 3 0 R >> /XObject << %s >> >>" % drawn
    return b"<< /Type /XObject /Subtype /Form /BBox [0 0 612 792] %s /Length %d >>\nstream\n%s\nendstream" % (
        resources,
        len(content),
        content,
    )


def _forms_in_forms(n_levels: int) -> bytes:
    forms = [
        _form(b"/A Do /A Do\n", b"/A %d 0 R" % (7 + level)) if level < n_levels - 1 else _form(_SHOWN)
        for level in range(n_levels)
    ]
    return _pdf(stream(_SHOWN + b"/A Do"), b"/XObject << /A 6 0 R >>", *forms)


def _nested_tables(depth: int, n_cells: int) -> str:
    cell = "<w:tc><w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc>"
    start = f"<w:tbl><w:tr>{cell * n_cells}<w:tc>"
    return start * depth + "<w:p/>" + "</w:tc></w:tr></w:tbl>" * depth


def _styles(n_styles: int) -> str:
    return "".join(
        f'<w:style w:type="paragraph" w:styleId="s{number}"><w:name w:val="s{number}"/>'
        f'<w:basedOn w:val="s{number - 1}"/></w:style>'
        for number in range(n_styles)
    )


_PARAGRAPH = "<w:p><w:r><w:t>Water.</w:t></w:r></w:p>"
FILES: dict[str, Callable[[], bytes]] = {
    "environments.tex": lambda: rb"\newenvironment{t}{\begin{T}}{\end{T}}" b"\n" * 14 + _WORDS,
    "definitions.tex": lambda: b"".join(rb"\def\a%d{x}" % n + b"\n" for n in range(8_000)) + _WORDS,
    "open_sections.tex": lambda: rb"\section{" * 8_000 + _WORDS,
    "macros.tex": lambda: (rb"\emph{water} and \textbf{pumps} $x^2$ \cite{a} " + _WORDS) * 10_000,
    "form_of_itself.pdf": lambda: _pdf(
        stream(_SHOWN + b"/A Do"), b"/XObject << /A 6 0 R >>", _form(_SHOWN + b"/A Do", b"/A 6 0 R")
    ),
    "forms_12_levels.pdf": lambda: _forms_in_forms(12),
    "forms_24_levels.pdf": lambda: _forms_in_forms(24),
    "huge_stream.pdf": lambda: _pdf(_deflated(b" " * 6 * 10**8)),
    "stream_deflated_twice.pdf": lambda: _pdf(_deflated(b" " * 6 * 10**8, 2)),
    "many_characters.pdf": lambda: _pdf(_deflated(_SHOWN * 250_000)),
    "many_pages.pdf": lambda: _pdf(stream(_SHOWN), n_pages=20_000),
    "outline.pdf": lambda: pdf_of_contents([_SHOWN] * 3, outline=[b"Pumps move water"] * 5_000),
    "nested_tables.docx": lambda: word_of(_nested_tables(80, 200)),
    "styles.docx": lambda: word_of('<w:p><w:pPr><w:pStyle w:val="s7999"/></w:pPr></w:p>' + _PARAGRAPH, _styles(8_000)),
    "much_xml.docx": lambda: word_of(_PARAGRAPH * 3_000_000),
    "empty_paragraphs.docx": lambda: word_of("<w:p/>" * 3_000_000),
    "nested_lists.json": lambda: b'{"id": "a", "text": "water", "x": [%s]}' % b",".join([b"[[[[1]]]]"] * 100_000),
    "deep_lists.json": lambda: b'{"id": "a", "text": "water", "x": %s}' % (b"[" * 100_000 + b"]" * 100_000),
    "sections.json": lambda: json.dumps({"id": "a", "sections": [{"heading": "", "text": "a"}] * 900_000}).encode(),
    "blank_lines.jsonl.gz": lambda: gzip.compress(b"\n" * 60_000_000 + b'{"id": "a", "text": "water"}\n', 1),
    "newlines.txt": lambda: b"\n" * 30_000_000 + _WORDS,
    "numbered.txt": lambda: b"".join(b"%d. Pump\n\n" % n for n in range(1_800_000)),
    "headings.md": lambda: b"#\n" * 2_000_000 + _WORDS,
    "list.md": lambda: b"- a\n" * 1_000_000,
    "front_matter.md": lambda: b"---\n" + b"a: b\n" * 800_000,
    "attributes.html": lambda: b"<p %s>water</p>" % b" ".join(b"a%d='1'" % n for n in range(80_000)),
    "cells.html": lambda: b"<table><tr>%s</tr></table>" % (b"<td>1" * 80_000),
    "breaks.html": lambda: b"<br>" * 8_000_000 + _WORDS,
    "elements.xml": lambda: b"<article><body><p>water</p>%s</body></article>" % (b"<p/>" * 8_000_000),
    "cells.xml": lambda: b"<article><body><table><tr>%s</tr></table></body></article>" % (b"<td>1</td>" * 80_000),
}
