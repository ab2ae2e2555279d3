"""Documents made in memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import docx

Print: TypeAlias = tuple[str, float, float, float, bool]  # text, x, y, size, bold
MakePdf: TypeAlias = Callable[..., bytes]


def pdf_bytes(pages: Iterable[Sequence[Print]], outline: Sequence[tuple[str, int]] = (), title: str = "") -> bytes:
    """A PDF of lines of Helvetica; `outline` gives titles and their pages."""
    objects = ["", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"]
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>")
    kids = []
    for lines in pages:
        content = "".join(
            f"BT /F{2 if bold else 1} {size} Tf 1 0 0 1 {x} {y} Tm ({_escaped(text)}) Tj ET\n"
            for text, x, y, size, bold in lines
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R "
            "/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>"
        )
        kids.append(len(objects))
    first = len(objects) + 2
    if outline:
        last = first + len(outline) - 1
        objects.append(f"<< /Type /Outlines /First {first} 0 R /Last {last} 0 R /Count {len(outline)} >>")
    for number, (name, page) in enumerate(outline):
        following = f"/Next {first + number + 1} 0 R" if number + 1 < len(outline) else ""
        objects.append(f"<< /Title ({name}) /Parent {first - 1} 0 R {following} /Dest [{kids[page]} 0 R /Fit] >>")
    objects[0] = "<< /Type /Catalog /Pages 2 0 R" + (f" /Outlines {first - 1} 0 R" if outline else "") + " >>"
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(f'{kid} 0 R' for kid in kids)}] /Count {len(kids)} >>"
    objects.append(f"<< /Title ({_escaped(title)}) >>")
    return _file(objects)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def _file(objects: Sequence[str]) -> bytes:
    out = io.BytesIO(b"")
    out.write(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(out.tell())
        out.write(f"{number} 0 obj\n{body}\nendobj\n".encode("cp1252"))
    start = out.tell()
    entries = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size, info = len(objects) + 1, len(objects)
    trailer = f"trailer << /Size {size} /Root 1 0 R /Info {info} 0 R >>\nstartxref\n{start}\n%%EOF\n"
    out.write(f"xref\n0 {size}\n0000000000 65535 f \n{entries}{trailer}".encode())
    return out.getvalue()


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
