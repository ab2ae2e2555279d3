"""A document cut into its sentences or its claims, each a section of its own. Encodes and scores nothing.

Contributions are exact by section, so a document that is cut this way is scored by sentence or by claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from engine.errors import QueryError
from engine.text.document import Document
from engine.text.segmentation import sentence_starts
from engine.text.spans import Section, Span

_LEAST_CHARACTERS = 30  # a shorter sentence is joined with the next one
_CLAIMS = re.compile(
    r"^\W*(?:(?:patent\s+)?claims?|(?:what\s+(?:is|i|we)|[iw]e?)\s+claim(?:ed)?(?:\s+is)?|the\s+invention\s+claimed\s+is"
    r"|(?:patent)?ansprüche|revendications|reivindicaciones|rivendicazioni|conclusies|権利要求書?|特許請求の範囲|权利要求书?|청구범위)\W*$",
    re.IGNORECASE,
)
_CLAIMS_LINE = re.compile(
    r"^[ \t]{0,40}(?:(?:what\s(?:is|i|we)|i|we)\sclaim(?:ed)?(?:\sis)?|the\sinvention\sclaimed\sis)[ \t]?:[ \t]{0,9}$",
    re.IGNORECASE | re.MULTILINE,
)
_CLAIM = re.compile(
    r"^[ \t]*(?:\*\*)?(?:(?:claim|anspruch|revendication)[ \t]+)?(\d{1,3})[ \t]*\\?[.):](?:\*\*)?[ \t]+(?=\S)",
    re.IGNORECASE | re.MULTILINE,
)


class Unit(StrEnum):
    """The part of a document that a row of a chart represents."""

    SECTION = "section"
    SENTENCE = "sentence"
    CLAIM = "claim"


@dataclass(frozen=True, slots=True)
class Divided:
    """A document whose sections are units, and which of them are rows of a chart."""

    document: Document
    rows: tuple[int, ...]  # numbers of sections


def divide_by(document: Document, unit: Unit) -> Divided:
    """Cut a document into units.

    Args:
        document: its text stays as it is.
        unit: with claims, all other sections stay as they are and are not rows.

    Raises:
        QueryError: claims are requested, but no section has numbered claims.
    """
    if unit is Unit.SECTION:
        return Divided(document, tuple(range(len(document.sections))))
    if unit is Unit.SENTENCE:
        sections = tuple(_sentences(document))
        return Divided(replace(document, sections=sections), tuple(range(len(sections))))
    return _by_claim(document)


def _sentences(document: Document) -> Iterator[Section]:
    for section in document.sections:
        starts = [section.start + start for start in sentence_starts(document.text[section.start : section.stop])]
        begin = section.start
        for stop in [*starts[1:], section.stop]:
            is_last = stop == section.stop
            if is_last or len(document.text[begin:stop].strip()) >= _LEAST_CHARACTERS:
                yield Section("", section.path, begin, stop)
                begin = stop


def _by_claim(document: Document) -> Divided:
    sections: list[Section] = []
    rows: list[int] = []
    for section in document.sections:
        line = None if _is_claims(section) else _CLAIMS_LINE.search(document.text, section.start, section.stop)
        is_there = line is not None or _is_claims(section)
        start = section.start if line is None else line.end()
        claims = list(_claims(document.text, replace(section, start=start))) if is_there else []
        if not claims:
            sections.append(section)
            continue
        if claims[0][1].start > section.start:
            sections.append(replace(section, stop=claims[0][1].start))
        for number, span in claims:
            rows.append(len(sections))
            sections.append(Section(f"Claim {number}", (*section.path, f"Claim {number}"), span.start, span.stop))
    if not rows:
        raise QueryError(
            f"{document.doc_id} has no section of numbered claims among {len(document.sections)}; "
            "its heading must be 'Claims': take --by section or --by sentence"
        )
    return Divided(replace(document, sections=tuple(sections)), tuple(rows))


def _is_claims(section: Section) -> bool:
    return any(_CLAIMS.match(heading) for heading in (*section.path, section.heading))


def _claims(text: str, section: Section) -> Iterator[tuple[int, Span]]:
    """Claims with their numbers, which rise by one: another number at the start of a line is text."""
    found: list[tuple[int, int]] = []
    for match in _CLAIM.finditer(text, section.start, section.stop):
        number = int(match[1])
        if not found or number == found[-1][0] + 1:
            found.append((number, match.start()))
    for at, (number, start) in enumerate(found):
        yield number, Span(start, found[at + 1][1] if at + 1 < len(found) else section.stop)
