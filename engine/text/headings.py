"""Finds the headings of plain text. Precision first: a sentence or a list item must not become one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from engine.text.centred import centred_headings, is_part_of_opinion, names_court
from engine.text.numbering import Kind, Numbered, could_be_title, is_contents_line, parse
from engine.text.spans import Heading

_RULE = re.compile(r"([=\-~^\"'`#*+:._])\1{2,}[ \t]*$")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*+\n){4,}+")  # possessive: no memory for each line
_DIGITS = re.compile(r"\d+")
_COLUMNS = re.compile(r"\S(?:\s{3,}|\t)\S")
_CAPITALS = re.compile(
    r"(?=.*[^\W\d_]{4})[^\W\d_](?:: |[^\W_]|[ .,?!&()/'\"\u2018\u2019\u2013-])*"
)  # no formula, no code
_KNOWN = frozenset([
    "abstract", "introduction", "background", "summary", "overview", "motivation", "preface", "foreword", "conclusion",
    "conclusions", "discussion", "methods", "method", "methodology", "results", "evaluation", "experiments",
    "references", "bibliography", "acknowledgements", "acknowledgments", "appendix", "contents", "specification",
    "rationale", "limitations", "glossary", "claims", "description", "beschreibung", "patentansprüche", "ansprüche",
    "zusammenfassung", "einleitung", "revendications", "résumé", "reivindicaciones", "syllabus",
])  # fmt: skip
_ENOUGH_RULED = 3  # a text with this many underlined headings uses no other kind
_RUNNING_HEAD = 3  # a line that occurs this often, digits aside, is no heading
_MAX_NUMBERED = 50_000  # headings of one text
_MAX_INDENT, _MAX_CHARS = 3, 120


@dataclass(frozen=True, slots=True)
class _Line:
    """A line with a blank one above it."""

    text: str
    start: int
    below: str
    is_outdented: bool  # starts left of the text below it

    @property
    def has_space_below(self) -> bool:
        return not self.below.strip()

    @property
    def opens_body(self) -> bool:
        """Whether there is space below the line, or a new sentence that cannot continue it."""
        below = self.below.strip()
        return not below or (below[0].isupper() and not below.isupper() and len(self.text) * 4 < len(below) * 3)


def names_part(title: str) -> bool:
    """Whether a title is that of a part of many documents, such as "Abstract" or "Beschreibung"."""
    return title.strip(" :").lower() in _KNOWN


def find_headings(text: str) -> list[Heading]:
    """Find headings that are underlined, numbered, in capitals, of known words, outdented, or centred."""
    lines, starts = _lines(text)
    ruled = list(_ruled(lines, starts))
    if len(ruled) >= _ENOUGH_RULED:
        return ruled
    taken = {heading.start for heading in ruled}
    candidates = [line for line in _candidates(lines, starts) if line.start not in taken]
    numbered = list(_in_sequence(_without_lists(_numbered(candidates), text)))
    taken |= {heading.start for heading in numbered}
    plain = _plain((line for line in candidates if line.start not in taken), lines)
    centred = centred_headings(text)
    if any(is_part_of_opinion(heading.title) for heading in centred):
        plain = (heading for heading in plain if not names_court(heading.title))
    flush = [*ruled, *numbered, *plain]
    taken = {heading.start for heading in flush}
    others = [heading for heading in centred if heading.start not in taken]
    return sorted([*flush, *others], key=lambda heading: heading.start)


def _lines(text: str) -> tuple[list[str], list[int]]:
    """The lines and their offsets; a run of more than three blank lines is cut to three."""
    lines: list[str] = []
    starts: list[int] = []
    place = 0
    for stop, after in [*(match.span() for match in _BLANK_LINES.finditer(text)), (len(text), len(text))]:
        block = text[place:stop].split("\n")
        starts.extend(accumulate((len(line) + 1 for line in block[:-1]), initial=place))
        lines += block
        if after > stop:
            lines += [""] * 3
            starts += [stop + 1] * 3
        place = after
    return lines, starts


def _ruled(lines: Sequence[str], starts: Sequence[int]) -> Iterator[Heading]:
    """Titles underlined, and maybe overlined, with one character; as in reStructuredText, first uses set the levels."""
    levels: dict[tuple[str, bool], int] = {}
    for number in range(1, len(lines)):
        match = _RULE.match(lines[number])
        title = lines[number - 1].strip()
        if match is None or not title or _RULE.match(title) or not could_be_title(title):
            continue
        above = lines[number - 2].rstrip() if number > 1 else ""
        is_overlined = bool(above) and above == lines[number].rstrip()
        if (above.strip() and not is_overlined) or (lines[number - 1][0].isspace() and not is_overlined):
            continue
        if not 0.6 * len(title) <= len(match.group().rstrip()) <= 2 * len(title) + 20:
            continue
        level = levels.setdefault((match.group(1), is_overlined), len(levels) + 1)
        yield Heading(title, level, starts[number - 2 if is_overlined else number - 1])


def _candidates(lines: Sequence[str], starts: Sequence[int]) -> Iterator[_Line]:
    is_indented = _share(lines, lambda line: line.startswith("  ")) > 0.6
    for number, line in enumerate(lines):
        is_first = not number or not lines[number - 1].strip() or line.startswith("\f")
        if not is_first or not line.strip() or len(line) > _MAX_CHARS:
            continue
        indent = len(line) - len(line.lstrip(" \f"))
        if indent > _MAX_INDENT or line.strip()[0] in "|+>-*":
            continue
        body = next((below for below in lines[number + 1 : number + 4] if below.strip()), "")
        below = lines[number + 1] if number + 1 < len(lines) else ""
        yield _Line(line, starts[number], below, is_indented and indent == 0 and body.startswith("  "))


def _numbered(candidates: Iterable[_Line]) -> list[tuple[_Line, Numbered]]:
    """Numbered lines; none if there are over `_MAX_NUMBERED`, which must be the items of a list."""
    found: list[tuple[_Line, Numbered]] = []
    for line in candidates:
        numbered = parse(line.text)
        if numbered is not None and line.opens_body:
            found.append((line, numbered))
            if len(found) > _MAX_NUMBERED:
                return []
    return found


def _without_lists(pairs: list[tuple[_Line, Numbered]], text: str) -> list[tuple[_Line, Numbered]]:
    """Leave out neighbours of one level with nothing between them: they are the items of a list or of contents."""
    in_list = [False] * len(pairs)
    for place, ((line, a), (after, b)) in enumerate(pairwise(pairs)):
        between = text[line.start + len(line.text) : after.start]
        if not between.strip() and a.kind is b.kind and a.level == b.level:
            in_list[place] = in_list[place + 1] = True
    return [pair for pair, is_item in zip(pairs, in_list, strict=True) if not is_item]


def _in_sequence(found: Iterable[tuple[_Line, Numbered]]) -> Iterator[Heading]:
    """Keep numbers that continue the last number of their kind; numbers of lists and citations seldom do."""
    last: dict[Kind, tuple[int, ...]] = {}
    for line, numbered in found:
        kind, level = numbered.kind, numbered.level
        if kind is Kind.NAMED:
            if level < 3:
                last.clear()
        elif not _goes_on(last, numbered):
            continue
        else:
            if kind is Kind.ROMAN:
                last.pop(Kind.LETTER, None)
            last[kind] = numbered.number
            level += kind is Kind.LETTER and Kind.ROMAN in last
        yield Heading(line.text.strip(), level, line.start)


def _goes_on(last: dict[Kind, tuple[int, ...]], numbered: Numbered) -> bool:
    if numbered.kind is Kind.LETTER and len(numbered.number) == 1 and not last:
        return False  # "A. Cooper"
    before = last.get(numbered.kind, (-1,))
    return before < numbered.number and numbered.number[0] <= max(before[0], 0) + 3


def _plain(candidates: Iterable[_Line], lines: Sequence[str]) -> Iterator[Heading]:
    is_shouted = _share(lines, str.isupper) > 0.3
    found = [line for line in candidates if _is_plain_heading(line, is_shouted)]
    if not found:
        return
    wanted = {_mask(line.text) for line in found}
    repeats = Counter(mask for line in lines if len(line) <= _MAX_CHARS and (mask := _mask(line)) in wanted)
    for line in found:
        if repeats[_mask(line.text)] < _RUNNING_HEAD:
            yield Heading(line.text.strip(), 1, line.start)


def _mask(line: str) -> str:
    return _DIGITS.sub("0", line.strip())


def _is_plain_heading(line: _Line, is_shouted: bool) -> bool:
    title = line.text.strip()
    if is_part_of_opinion(title):
        return line.has_space_below
    if is_contents_line(title) or _COLUMNS.search(title) or not could_be_title(title):
        return False
    if names_part(title):
        return line.opens_body
    if title.isupper():
        return not is_shouted and line.opens_body and _CAPITALS.fullmatch(title) is not None
    return line.is_outdented and line.has_space_below and title[0].isupper()


def _share(lines: Sequence[str], is_so: Callable[[str], bool]) -> float:
    """The share of characters that are in lines for which `is_so` holds."""
    return sum(len(line) for line in lines if is_so(line)) / max(1, sum(len(line) for line in lines))
