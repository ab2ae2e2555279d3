"""A document cut into sentences, claims or elements of claims, each a section of its own. Encodes and scores nothing.

Contributions are exact by section, so a document that is cut this way is scored by sentence, claim or element.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby

from engine.errors import QueryError
from engine.text.document import Document
from engine.text.segmentation import Section, Span, sentence_starts

_LEAST_CHARACTERS = 30  # a shorter sentence is joined with the next one
_WORD = r"(?:claims?|anspruch|ansprüche|revendications?|請求項|权利要求|청구항)"
_HEADING = (
    r"(?:(?:(?:patent|amended|(?:in\s)?the)\s)?claims?(?:\(s\))?(?:\s\([^()\n]{1,40}\))?|(?:what\s(?:is|i|we)|[iw]e?)\s(?:hereby\s)?claim(?:ed)?(?:\sis)?"
    r"|(?:[iw]e?)\sclaim\sas\s(?:my|our)\sinvention|the\sinvention\sclaimed\sis"
    r"|(?:that\swhich|it)\sis\sclaimed|listing\sof\sclaims"
    r"|(?=[^\n:]{0,160}\bclaim(?:s|ed)?\b)[^\n:]{1,200}(?=:\W*$)"  # of any words, with a colon behind it
    r"|\w{0,12}ansprüche|revendications|reivindica(?:ciones|ções)|rivendicazioni|conclusies|patentkrav|krav|patenttivaatimukset|vaatimukset"
    r"|zastrzeżenia(?:\spatentowe)?|patentov\w{1,4}\snárok\w{1,3}|istemler|формула\s(?:изобретения|винаходу)|権利要求書?|特許請求の範囲|权利要求书?|(?:특허)?청구(?:의\s)?범위|申請專利範圍|權利要求書?)"
)
_CLAIMS = re.compile(rf"^\W*{_HEADING}\W*$", re.IGNORECASE)
_CLAIMS_LINE = re.compile(
    rf"^[ \t#*【]{{0,40}}{_HEADING}[ \t:*】]{{0,9}}$|^(?=[ \t]{{0,9}}claim 1[.:])", re.IGNORECASE | re.MULTILINE
)
# The number of a claim, or the first and the last number of cancelled claims: "3-5. (canceled)".
_CLAIM = re.compile(
    rf"^[ \t#>-]*(?:\*\*)?[(\[【]?(?:{_WORD}[ \t]*|c(?=\d+\]))?"
    r"(\d{1,3})\.?(?:[ \t]*[-–—][ \t]*(\d{1,3}))?[ \t]*"
    r"(?:(?:\\?[.):、．：]-?|[\]】]|[ \t][-–—](?=[ \t]))(?:\*\*)?(?:\s+(?=\S)|(?=[\u3040-\u9fff]|(?-i:[A-Z])))"
    r"|(?=\((?:cancel|withdraw|original|currently|previously|new\b)))"
    rf"|^#*[ \t]*{_WORD}[ \t]+(\d{{1,3}})[ \t]*$\s*",
    re.IGNORECASE | re.MULTILINE,
)
# An element ends at a semicolon, at a blank line and after the words that close the preamble; "wherein" begins one.
_BORDER = re.compile(
    r"(?P<list>;(?:[ \t]*(?:and|or|und|oder|et|ou)\b(?!/),?)?|\n[ \t]*\n)"
    r"|(?P<preamble>\b(?:compris(?:ing|es?)|consist(?:ing|s)(?:\s+essentially)?\s+of|includ(?:ing|es)|contain(?:ing|s)"
    r"|having|characteri[sz]ed\s+(?:in\s+that|by)|the\s+improvement\s+(?:comprising|wherein)"
    r"|umfass(?:end|t)|aufweisend|enthaltend|bestehend\s+aus|dadurch\s+gekennzeichnet,?\s+dass|gekennzeichnet\s+durch"
    r"|caractérisée?\s+(?:en\s+ce\s+que|par)|comprenant)\b)(?:\s+(?:(?:the|die|les)\s+)?(?:following\s+|folgenden?\s+)?"
    r"(?:steps(?:\s+of)?|Schritte|étapes(?:\s+suivantes)?)\b)?(?P<colon>[ \t]*[:;])?,?"
    r"|,\s*(?=(?P<clause>wherein|whereby|wobei|worin|dans\s+lequel|dans\s+laquelle)\b)",
    re.IGNORECASE,
)
_CITES_CLAIM = re.compile(r"\b(?:claims?|anspr(?:uch|üche[n]?)|revendications?)\s+\d", re.IGNORECASE)
# Up to three letters, or words that open a limitation, on a line of their own are joined with the next one.
_OPENING = re.compile(
    r"(?:[\W\d_]*[^\W\d_]){0,3}[\W\d_]*|\W*(?:wherein|whereby|where|in\s+which|wobei|worin)\W*", re.IGNORECASE
)


class Unit(StrEnum):
    """The part of a document that a row of a chart represents."""

    SECTION = "section"
    SENTENCE = "sentence"
    CLAIM = "claim"
    ELEMENT = "element"


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
    return _by_claim(document, by_element=unit is Unit.ELEMENT)


def _sentences(document: Document) -> Iterator[Section]:
    for section in document.sections:
        starts = [section.start + start for start in sentence_starts(document.text[section.start : section.stop])]
        begin = section.start
        for stop in [*starts[1:], section.stop]:
            is_last = stop == section.stop
            if is_last or len(document.text[begin:stop].strip()) >= _LEAST_CHARACTERS:
                yield Section("", section.path, begin, stop)
                begin = stop


def _by_claim(document: Document, *, by_element: bool) -> Divided:
    sections: list[Section] = []
    rows: list[int] = []
    for section in _whole(document.sections):
        line = None if _is_claims(section) else _CLAIMS_LINE.search(document.text, section.start, section.stop)
        is_there = line is not None or _is_claims(section)
        start = section.start if line is None else line.end()
        claims = list(_claims(document.text, replace(section, start=start))) if is_there else []
        if not claims:
            sections.append(section)
            continue
        if claims[0][1].start > section.start:
            sections.append(replace(section, stop=claims[0][1].start))
        for name, span, begin in claims:
            spans = _elements(document.text, span, begin) if by_element else [span]
            for number, part in enumerate(spans, start=1):
                label = name if len(spans) == 1 else f"{name}.{number}"
                rows.append(len(sections))
                sections.append(Section(label, (*section.path, label), part.start, part.stop))
    if not rows:
        raise QueryError(
            f"{document.doc_id} has no numbered claims below a heading such as 'Claims'; "
            "take --by section or --by sentence"
        )
    return Divided(replace(document, sections=tuple(sections)), tuple(rows))


def _whole(sections: Iterable[Section]) -> Iterator[Section]:
    """The sections; sections of claims that follow each other as one, so that no claim is cut."""
    for is_claims, group in groupby(sections, _is_claims):
        own = list(group)
        yield from [replace(own[0], stop=own[-1].stop, part=1, n_parts=1)] if is_claims else own


def _is_claims(section: Section) -> bool:
    return any(_CLAIMS.match(heading) for heading in (*section.path, section.heading))


def _claims(text: str, section: Section) -> Iterator[tuple[str, Span, int]]:
    """Claims with their names, and where the text after their numbers begins.

    The numbers rise by one: another number at the start of a line is text.
    """
    found: list[tuple[str, int, int]] = []
    last = None
    matches = list(_CLAIM.finditer(text, section.start, section.stop))
    is_counted = {match[1] for match in matches} == {"1"}  # a list of Markdown, which its reader numbers
    for at, match in enumerate(matches, 1):
        first = at if is_counted else int(match[1] or match[3])
        if last is None or first == last + 1:
            last = int(match[2] or first)
            found.append((f"Claim {first}" if last == first else f"Claims {first}–{last}", *match.span()))
    for at, (name, start, begin) in enumerate(found):
        yield name, Span(start, found[at + 1][1] if at + 1 < len(found) else section.stop), begin


def _elements(text: str, claim: Span, begin: int) -> list[Span]:
    """The preamble of a claim and its limitations; a reference to another claim stays with the first limitation."""
    starts, has_preamble = [claim.start], False
    for border in _BORDER.finditer(text, begin, claim.stop):
        before = text[starts[-1] : border.end()]
        if border["list"]:
            is_border = before.count("(") <= before.count(")")
        else:
            is_border = _CITES_CLAIM.search(before) is None
            if border["preamble"]:
                is_border &= border["colon"] is not None or not has_preamble
                has_preamble = True
        if is_border and not _OPENING.fullmatch(before) and text[border.end() : claim.stop].strip():
            starts.append(border.end())
    return [Span(start, stop) for start, stop in zip(starts, [*starts[1:], claim.stop], strict=True)]
