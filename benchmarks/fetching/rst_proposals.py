"""PEPs: reStructuredText below "Name: value" lines, read into sections. Markup that carries no words is removed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.fetching.markdown_proposals import DROPPED
from benchmarks.fetching.parsed import ParsedDocument, SectionBuilder, one_line

_FIELD = re.compile(r"^([\w-]+):[ \t]*(.*(?:\n[ \t]+.*)*)", re.MULTILINE)
_ADORNMENT = re.compile(r"([=\-~^\"'`#*+.:_<>])\1{2,}\s*$")
_TARGET = re.compile(r"\.\. (?:_|\[)")  # a link target or a footnote
_DIRECTIVE = re.compile(
    r"\.\. (?:code|code-block|list-table|note|highlight|image|figure|contents|sectnum|warning|raw)\b"
)
_OPTION = re.compile(r"\s*:[\w-]+:\s*\S*\s*$")
_NUMBER_ROLE = re.compile(r":(?:pep|rfc):`([^`<]*?)\s*(?:<[^`>]*>)?`")
_ROLE = re.compile(r":[a-zA-Z][\w:.+-]*:`~?([^`<]*?)(?:\s*<[^`>]*>)?`")
_LINK = re.compile(r"`([^`<]+?)\s*<[^`>]+>`__?")
_LITERAL = re.compile(r"``([^`]+)``")


def parse_pep(text: str) -> ParsedDocument:
    """Read one PEP. Sections of references, footnotes, history and copyright are left out."""
    preamble, _, body = text.partition("\n\n")
    fields = {name.lower(): one_line(value) for name, value in _FIELD.findall(preamble)}
    builder = SectionBuilder("Preamble")
    lines = body.split("\n")
    place = 0
    while place < len(lines):
        line = lines[place]
        if _is_heading(lines, place):
            builder.paragraph(_plain(builder.take_lines()))
            builder.open(one_line(line))
            builder.is_skipping = bool(DROPPED.fullmatch(one_line(line)))
            place += 2
            continue
        place += 1
        if _ADORNMENT.fullmatch(line) or _OPTION.match(line):
            continue
        if _TARGET.match(line):
            place = _after_indented(lines, place)
        if not line.strip() or _TARGET.match(line) or _DIRECTIVE.match(line):
            builder.paragraph(_plain(builder.take_lines()))
        else:
            builder.line(line.strip())
    builder.paragraph(_plain(builder.take_lines()))
    meta = {name: fields.get(name) for name in ("status", "type", "created")}
    return ParsedDocument(fields.get("title", ""), builder.sections(3), meta)


def _is_heading(lines: Sequence[str], place: int) -> bool:
    """Whether an unindented line has an adornment of enough characters below it."""
    line, below = lines[place], lines[place + 1] if place + 1 < len(lines) else ""
    if not line.strip() or line.startswith(" ") or _ADORNMENT.fullmatch(line):
        return False
    return bool(_ADORNMENT.fullmatch(below)) and len(below.strip()) >= min(len(line.strip()), 4)


def _after_indented(lines: Sequence[str], place: int) -> int:
    while place < len(lines) and lines[place].startswith(" ") and lines[place].strip():
        place += 1
    return place


def _plain(text: str) -> str:
    text = _NUMBER_ROLE.sub(r"PEP \1", text)  # RFC numbers too, as in the recorded corpus
    return one_line(_LITERAL.sub(r"\1", _LINK.sub(r"\1", _ROLE.sub(r"\1", text))))
