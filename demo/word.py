"""A proposal as DOCX, byte for byte the same on every run: its dates are the proposal's own."""

from __future__ import annotations

import io
import zipfile
from datetime import datetime

from docx import Document
from docx.shared import Pt
from docx.text.paragraph import Paragraph
from docx.text.run import Run

from demo.blocks import BlockKind, parts
from demo.proposals import Proposal
from demo.spans import SpanKind, plain, spans

_RUN_STYLE = {SpanKind.STRONG: "bold", SpanKind.EMPHASIS: "italic"}
_PARAGRAPH_STYLE = {BlockKind.PARAGRAPH: "Normal", BlockKind.BULLETS: "List Bullet", BlockKind.NUMBERED: "List Number"}


def docx(proposal: Proposal) -> bytes:
    """A Word document with Title, Heading 1, list and code paragraphs."""
    document = Document()
    document.add_paragraph(plain(proposal.title), style="Title")
    document.add_paragraph(proposal.byline, style="Subtitle")
    for part in parts(proposal):
        document.add_paragraph(plain(part.heading), style="Heading 1")
        for block in part.blocks:
            if style := _PARAGRAPH_STYLE.get(block.kind):
                for line in block.lines:
                    _add_line(document.add_paragraph(style=style), line)
            else:
                _set_courier(document.add_paragraph(style="No Spacing").add_run("\n".join(block.lines)), 8)
    properties = document.core_properties
    properties.title, properties.subject = proposal.title, proposal.label
    properties.author, properties.last_modified_by, properties.comments = proposal.series, "", ""
    properties.keywords = ", ".join(f"{key}:{value}" for key, value in proposal.metadata.items())
    properties.created = properties.modified = datetime.fromisoformat(proposal.created)
    buffer = io.BytesIO()
    document.save(buffer)
    return _without_times(buffer.getvalue())


def _add_line(paragraph: Paragraph, line: str) -> None:
    for span in spans(line):
        run = paragraph.add_run(span.text)
        if span.kind is SpanKind.CODE:
            _set_courier(run, 9)
        elif style := _RUN_STYLE.get(span.kind):
            setattr(run, style, True)


def _set_courier(run: Run, size: float) -> None:
    run.font.name, run.font.size = "Courier New", Pt(size)


def _without_times(archive: bytes) -> bytes:
    """The same zip with every member at the earliest time that a zip can hold."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in sorted(old.namelist(), key=lambda name: (name != "[Content_Types].xml", name)):
            member = zipfile.ZipInfo(name)  # 1980-01-01
            member.compress_type, member.create_system = zipfile.ZIP_DEFLATED, 3
            new.writestr(member, old.read(name))
    return buffer.getvalue()
