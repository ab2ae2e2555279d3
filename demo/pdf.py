"""A proposal as PDF, byte for byte the same on every run: no time of day, no random identifier."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial

from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import cm
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Flowable, Frame, ListFlowable, PageTemplate, Paragraph, Preformatted

from demo.blocks import Block, BlockKind, parts
from demo.markup import HTML, Markup
from demo.proposals import Proposal
from demo.spans import SpanKind

_BODY = ParagraphStyle("body", fontName="Times-Roman", fontSize=10.5, leading=13.5, spaceAfter=6)
_TITLE = ParagraphStyle("title", fontName="Helvetica-Bold", fontSize=20, leading=25, spaceAfter=8)
_BYLINE = ParagraphStyle("byline", parent=_BODY, fontName="Times-Italic", spaceAfter=16)
_HEADING = ParagraphStyle(
    "heading", fontName="Helvetica-Bold", fontSize=13, leading=16, spaceBefore=12, spaceAfter=5, keepWithNext=1
)
_CODE = ParagraphStyle("code", fontName="Courier", fontSize=8, leading=10, leftIndent=10, spaceAfter=8)
_BULLET = {BlockKind.BULLETS: "bullet", BlockKind.NUMBERED: "1"}

# The inline markup of Platypus; blocks are flowables, so the templates for them are never used.
_PLATYPUS = Markup(
    escape=HTML.escape,
    escape_code=HTML.escape,
    verbatim=HTML.escape,
    spans={
        SpanKind.CODE: '<font name="Courier" size="9">{}</font>',
        SpanKind.STRONG: "<b>{}</b>",
        SpanKind.EMPHASIS: "<i>{}</i>",
    },
    blocks={},
    items={},
    part=("", ""),
)

# The standard fonts hold Windows-1252 only.
_SPELLED: dict[str, str | int | None] = {
    "≈": "~",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
    "→": "->",
    "\u2212": "-",
    "\u2011": "-",
    "ł": "l",
    "⋅": "·",
    "⊗": "x",
}


def pdf(proposal: Proposal) -> bytes:
    """A4 pages with a title, bold headings, a running head and page numbers."""
    buffer = io.BytesIO()
    document = BaseDocTemplate(
        buffer,
        pagesize=A4,
        invariant=1,
        title=f"{proposal.label}: {proposal.title}",
        author=proposal.series,
        subject=proposal.label,
        keywords=[f"{key}:{value}" for key, value in proposal.metadata.items()],
    )
    frame = Frame(2.5 * cm, 2.2 * cm, A4[0] - 5 * cm, A4[1] - 4.7 * cm, 0, 0, 0, 0)
    document.addPageTemplates(PageTemplate(frames=[frame], onPage=partial(_draw_margins, proposal)))
    document.build(list(_flowables(proposal)))
    return buffer.getvalue()


def _draw_margins(proposal: Proposal, canvas: Canvas, document: BaseDocTemplate) -> None:
    """Page number on every page; the running head from the second on."""
    canvas.setFont("Times-Roman", 9)
    canvas.drawCentredString(A4[0] / 2, 1.3 * cm, str(document.page))
    if document.page > 1:
        canvas.drawString(2.5 * cm, A4[1] - 1.7 * cm, proposal.label)
        canvas.drawRightString(A4[0] - 2.5 * cm, A4[1] - 1.7 * cm, _spelled(proposal.title))


def _flowables(proposal: Proposal) -> Iterator[Flowable]:
    yield Paragraph(_inline(proposal.title), _TITLE)
    yield Paragraph(proposal.byline, _BYLINE)
    for part in parts(proposal):
        yield Paragraph(_inline(part.heading), _HEADING)
        for block in part.blocks:
            yield from _block_flowables(block)


def _block_flowables(block: Block) -> Iterator[Flowable]:
    if block.kind is BlockKind.PARAGRAPH:
        yield Paragraph(_inline(block.lines[0]), _BODY)
    elif bullet := _BULLET.get(block.kind):
        items = [Paragraph(_inline(line), _BODY) for line in block.lines]
        yield ListFlowable(items, bulletType=bullet, bulletFontSize=9)
    else:
        yield Preformatted(_spelled("\n".join(block.lines)), _CODE, maxLineLength=90)


def _inline(text: str) -> str:
    return _PLATYPUS.inline(_spelled(text))


def _spelled(text: str) -> str:
    """The text in the characters of the standard fonts.

    Raises:
        UnicodeEncodeError: a character is neither in the fonts nor in the table above.
    """
    spelled = text.translate(str.maketrans(_SPELLED))
    spelled.encode("cp1252")
    return spelled
