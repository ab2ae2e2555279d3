"""Parts of a document that `longmatch show` prints: sections by number or heading, and pages."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.errors import QueryError
from engine.text.document import Document, section_label
from engine.text.spans import Span

_N_NAMED = 3  # headings that an error suggests


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a text, and its place in the document."""

    span: Span
    text: str
    place: dict[str, Any]  # for JSON: section and heading, or page


def section_texts(document: Document, wanted: str) -> list[Passage]:
    """The section with a number, or the sections with a heading: a long section has several parts.

    Args:
        document: document with the sections.
        wanted: a number from 1, a heading, or a part of a heading; case does not matter. A heading that is a number
            is found if no section has that number.

    Raises:
        QueryError: there is no such section, or several headings contain the words.
    """
    n = len(document.sections)
    if wanted.isdecimal() and 1 <= int(wanted) <= n:
        return [_section(document, int(wanted) - 1)]
    headings = [section.heading for section in document.sections]
    folded = wanted.casefold().strip()
    found = [place for place, heading in enumerate(headings) if heading.casefold() == folded]
    found = found or [place for place, heading in enumerate(headings) if folded and folded in heading.casefold()]
    names = list(dict.fromkeys(headings[place] for place in found))
    if len(names) > 1:
        listed = ", ".join(f"{place + 1} {headings[place]!r}" for place in found[:_N_NAMED])
        more = ", …" if len(found) > _N_NAMED else ""
        raise QueryError(f"{len(names)} headings contain {wanted!r}: {listed}{more}; name one by its number")
    if not found:
        known = [heading for heading in headings if heading]
        similar = difflib.get_close_matches(wanted, known, _N_NAMED, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, similar))}?" if similar else "list them: longmatch show INDEX ID"
        raise QueryError(f"no section {wanted!r} among {n} in {document.doc_id}; {hint}")
    return [_section(document, place) for place in found]


def page_text(document: Document, page: int) -> Passage:
    """The text of a page.

    Args:
        document: document with pages.
        page: page number, from 1.

    Raises:
        QueryError: there is no such page.
    """
    starts = document.pages
    if not starts:
        raise QueryError(f"{document.doc_id} has no pages, as its format has none; show a section: --section N")
    if page > len(starts):
        raise QueryError(f"{document.doc_id} has no page {page}; name one from 1 to {len(starts)}")
    stop = starts[page] if page < len(starts) else len(document.text)
    span = Span(starts[page - 1], stop)
    return Passage(span, document.text[span.start : span.stop], {"page": page})


def passage_text(passages: Sequence[Passage], as_json: bool) -> str:
    """Passages one after another, as they are in the text, or as JSON."""
    if as_json:
        rows = [{**one.place, "start": one.span.start, "end": one.span.stop, "text": one.text} for one in passages]
        return json.dumps(rows, ensure_ascii=False)
    return "".join(one.text for one in passages).rstrip("\n")


def _section(document: Document, place: int) -> Passage:
    section = document.sections[place]
    where = {"section": place + 1, "heading": section_label(document, place)}
    return Passage(Span(section.start, section.stop), document.text[section.start : section.stop], where)
