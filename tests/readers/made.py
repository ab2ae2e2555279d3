"""Documents made in memory."""

import io
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import docx

from engine.readers import read_bytes
from engine.text.document import Document
from tests.readers.made_pdf import HELVETICA, escaped, pdf_of_contents

Print: TypeAlias = tuple[str, float, float, float, bool]  # text, x, y, size, bold
MakePdf: TypeAlias = Callable[..., bytes]


def pdf_bytes(pages: Iterable[Sequence[Print]], outline: Sequence[tuple[str, int]] = (), title: str = "") -> bytes:
    """A PDF of lines of Helvetica; `outline` gives titles and their pages."""
    contents = (
        "".join(
            f"BT /F{2 if bold else 1} {size} Tf 1 0 0 1 {x} {y} Tm ({escaped(text)}) Tj ET\n"
            for text, x, y, size, bold in lines
        )
        for lines in pages
    )
    fonts, bold = b"/F1 3 0 R /F2 4 0 R", HELVETICA.replace(b"Helvetica", b"Helvetica-Bold")
    encoded = (content.encode("cp1252") for content in contents)
    return pdf_of_contents(encoded, more=[bold], outline=outline, fonts=fonts, title=title)


def docx_bytes(parts: Iterable[tuple[str, str]], title: str = "") -> bytes:
    """A Word document of (style, text) paragraphs."""
    word = docx.Document()
    word.core_properties.title = title
    word.core_properties.author = ""
    for style, text in parts:
        word.add_paragraph(text, style=style)
    out = io.BytesIO()
    word.save(out)
    return out.getvalue()


def documents_of(name: str, data: str | bytes) -> list[Document]:
    """The documents of a file, all of which can be read."""
    found = list(read_bytes(data.encode() if isinstance(data, str) else data, name))
    assert all(isinstance(one, Document) for one in found), found
    return found  # type: ignore[return-value]


def document_of(name: str, data: str | bytes) -> Document:
    """The only document of a file."""
    (document,) = documents_of(name, data)
    return document
