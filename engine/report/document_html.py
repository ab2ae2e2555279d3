"""A document as HTML for notebooks: its text, section by section. Every text is escaped."""

from __future__ import annotations

from html import escape

from engine.text.document import Document, section_label
from engine.text.spans import Span

_MOST_SECTIONS = 200
_OPENING = 160  # characters of a section that are shown
_STYLE = (
    "<style>.longmatch-document{font-family:system-ui,sans-serif;font-size:14px;line-height:1.4;max-width:72em}"
    ".longmatch-document .quiet{opacity:.65}.longmatch-document table{border-collapse:collapse}"
    ".longmatch-document td,.longmatch-document th{vertical-align:top;text-align:left;padding:.2em .8em .2em 0}"
    "</style>"
)


def document_html(document: Document) -> str:
    """Title, id, source and metadata, and a table of the sections with their length, pages and first words."""
    names = [escape(document.doc_id)]
    if document.source and document.source != document.doc_id:
        names.append(escape(document.source))
    size = f"{len(document.text):,} characters in {len(document.sections):,} sections"
    pages = f" on {len(document.pages):,} pages" if document.pages else ""
    metadata = "".join(f"<br>{escape(name)}: {escape(_shown(value))}" for name, value in document.metadata.items())
    shown = range(min(len(document.sections), _MOST_SECTIONS))
    rows = "".join(_section(document, position) for position in shown)
    n_hidden = len(document.sections) - len(shown)
    rest = f"<p class='quiet'>{n_hidden:,} more sections</p>" if n_hidden else ""
    page = "<th>pages</th>" if document.pages else ""
    return (
        f"<div class='longmatch-document'>{_STYLE}<p><b>{escape(document.title)}</b> "
        f"<span class='quiet'>{', '.join(names)}; {size}{pages}{metadata}</span></p>"
        f"<table><thead><tr><th></th><th>section</th><th>characters</th>{page}<th>begins</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>{rest}</div>"
    )


def _section(document: Document, position: int) -> str:
    section = document.sections[position]
    pages = document.page_numbers(Span(section.start, section.stop))
    page = f"<td>{pages[0]}{f'-{pages[-1]}' if len(pages) > 1 else ''}</td>" if pages else ""
    opening = " ".join(document.text[section.start : min(section.stop, section.start + _OPENING)].split())
    return (
        f"<tr><td>{position}</td><td>{escape(section_label(document, position))}</td>"
        f"<td>{section.stop - section.start:,}</td>{page}<td class='quiet'>{escape(opening)}</td></tr>"
    )


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
