"""What changed from one document to another: a word diff. Scores nothing.

Equal paragraphs are aligned in order, and the words between them are compared. A section that a comparison pairs with a
section elsewhere has moved: the two are compared by themselves.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from engine.report.lines import Line, Run, Style, columns, cut, cut_text, line
from engine.report.page import render
from engine.result import Result
from engine.scoring.parts import pair_columns
from engine.text.document import Document, section_label
from engine.text.segmentation import Span
from engine.words.languages import UNSPACED

_WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]|(?P<paragraph>\n\s*\n)")
_MARKUP = re.compile(  # of headings, rules below heads of tables, and borders of tables
    r"^[ \t]*(?:#{1,6}[ \t]+|\|?(?:[ \t]*:?-{3,}:?[ \t]*\|?)+[ \t]*$|\|[ \t]*)|[ \t]*\|[ \t]*$", re.MULTILINE
)
_EMPHASIS = re.compile(r"\*\*(?=\w)|(?<=\w)\*\*")
_WITH_SPACE = re.compile(r"\s*\S+\s*|\s+")
_LEAST_COMMON = 0.5  # of the words of a section that has moved
_ISLAND, _LEAST_AROUND = 2, 3  # so few equal words between two changes of so many words count as changed
_CONTEXT = 8  # words shown before and after a change
_MOST_SHOWN = 60  # words of one change in a terminal
_MOST_PRODUCT = 5_000_000  # of the words of two texts that are compared without the heuristics of difflib
_SIGNS = {Style.DELETED: ("[-", "-]"), Style.INSERTED: ("{+", "+}")}
_INDENT = 7


class _Word(NamedTuple):
    text: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Change:
    """Text of the query that the target has not, and text that the target has in its place; one can be empty."""

    query: Span
    target: Span


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes, in the order of the target."""

    query: Document
    target: Document
    changes: tuple[Change, ...]
    n_moved: int  # sections

    @property
    def summary(self) -> str:
        """The changes in one line."""
        sides = [
            (self.query.text, [change.query for change in self.changes]),
            (self.target.text, [change.target for change in self.changes]),
        ]
        deleted, inserted = (
            sum(word.text[0].isalnum() for span in spans for word in _words(text, span.start, span.stop))
            for text, spans in sides
        )
        n_sections = len({number for number, _ in self.by_section()})
        moved = f", {self.n_moved} moved" if self.n_moved else ""
        gone = f", {self.n_deleted} deleted" if self.n_deleted else ""
        sections = f"{n_sections} of {len(self.target.sections)} sections changed{moved}{gone}"
        return f"{sections}; words: {deleted:,} deleted, {inserted:,} inserted"

    @property
    def n_deleted(self) -> int:
        """The sections of the query that are deleted as a whole."""
        text = self.query.text
        whole = {(part.start, part.start + len(text[part.start : part.stop].rstrip())) for part in self.query.sections}
        deleted = [change.query for change in self.changes if change.target.start == change.target.stop]
        return sum((span.start, span.stop) in whole for span in deleted)

    def by_section(self) -> Iterator[tuple[int, list[Change]]]:
        """The sections of the target in which text changed, with their changes."""
        starts = [section.start for section in self.target.sections]
        number = {change: max(0, bisect_right(starts, change.target.start) - 1) for change in self.changes}
        for section, changes in groupby(self.changes, number.__getitem__):
            yield section, list(changes)


def changes_of(result: Result) -> Changes:
    """The changes from the query of a comparison to its only hit."""
    (hit,) = result.hits
    query, target = result.query, hit.document
    words = [[_words(side.text, part.start, part.stop) for part in side.sections] for side in (query, target)]
    moved = _moved(result, words)
    flow = [
        [word for number, section in enumerate(side) if number not in {pair[at] for pair in moved} for word in section]
        for at, side in enumerate(words)
    ]
    changes = list(_diff(*flow))
    for mine, theirs in moved:
        changes += _diff(words[0][mine], words[1][theirs])
    parts = [part for change in changes for part in _in_sections(change, query, target)]
    return Changes(query, target, tuple(sorted(parts, key=lambda change: change.target.start)), len(moved))


def _in_sections(change: Change, query: Document, target: Document) -> Iterator[Change]:
    """A change, cut where a section of the target begins, or, where text is deleted alone, one of the query."""
    if change.target.start == change.target.stop:
        starts = [{part.start for part in side.sections} for side in (query, target)]
        before = change.target.start - 1  # in the section before, where its last words are deleted
        is_between = change.target.start in starts[1] and target.text[before : before + 1].isspace()
        for deleted in _cut(query, change.query):
            is_last = is_between and deleted.start not in starts[0]
            yield Change(deleted, Span(before, before) if is_last else change.target)
        return
    deleted = change.query
    for inserted in _cut(target, change.target):
        yield Change(deleted, inserted)
        deleted = Span(deleted.stop, deleted.stop)


def _cut(document: Document, span: Span) -> Iterator[Span]:
    """The parts of a span in each section, without the white space at their ends."""
    starts = [part.start for part in document.sections]
    inside = starts[bisect_right(starts, span.start) : bisect_left(starts, span.stop)]
    for start, stop in pairwise([span.start, *inside, span.stop]):
        yield Span(start, start + len(document.text[start:stop].rstrip()))


def _words(text: str, start: int, stop: int) -> list[_Word]:
    return [
        _Word("\n" if match["paragraph"] else match.group(), *match.span())
        for match in _WORD.finditer(text, start, stop)
    ]


def _moved(result: Result, words: Sequence[Sequence[Sequence[_Word]]]) -> list[tuple[int, int]]:
    """The section pairs out of order: each the best pair of both sections, with half of their words in common."""
    pairs = pair_columns(result.hits[0].breakdown.pairs)
    best: list[tuple[int, int]] = []
    seen: tuple[set[int], set[int]] = (set(), set())
    for pair in zip(pairs.query_sections.tolist(), pairs.target_sections.tolist(), strict=True):
        if not any(number in side for number, side in zip(pair, seen, strict=True)):
            old, new = (Counter(word.text for word in side[at]) for side, at in zip(words, pair, strict=True))
            if 2 * (old & new).total() >= _LEAST_COMMON * (old.total() + new.total()):
                best.append(pair)
        for number, side in zip(pair, seen, strict=True):
            side.add(number)
    best.sort()
    places = [theirs for _, theirs in best]
    in_order = SequenceMatcher(None, places, sorted(places), autojunk=False)
    in_place = {block.a + step for block in in_order.get_matching_blocks() for step in range(block.size)}
    return [pair for at, pair in enumerate(best) if at not in in_place]


def _diff(mine: Sequence[_Word], theirs: Sequence[_Word]) -> Iterator[Change]:
    """The changes between two texts: first by paragraph, then by word in those that differ."""
    paragraphs = [_paragraphs(side) for side in (mine, theirs)]
    texts = [[tuple(word.text for word in paragraph) for paragraph in side] for side in paragraphs]
    matcher = SequenceMatcher(None, texts[0], texts[1], autojunk=False)
    for tag, first, stop, other_first, other_stop in matcher.get_opcodes():
        if tag != "equal":
            places = [sum(map(len, side[:begin])) for side, begin in zip(paragraphs, (first, other_first), strict=True)]
            sizes = sum(map(len, paragraphs[0][first:stop])), sum(map(len, paragraphs[1][other_first:other_stop]))
            yield from _word_diff(mine, theirs, places, sizes)


def _paragraphs(words: Sequence[_Word]) -> list[list[_Word]]:
    """The words by paragraph, each with the break after it."""
    paragraphs: list[list[_Word]] = [[]]
    for word in words:
        paragraphs[-1].append(word)
        if word.text == "\n":
            paragraphs.append([])
    return paragraphs


def _word_diff(
    mine: Sequence[_Word], theirs: Sequence[_Word], places: Sequence[int], sizes: tuple[int, int]
) -> Iterator[Change]:
    """The changes between stretches of two texts; long changes that only an `_ISLAND` of words divides are one."""
    stretches = [
        [word.text for word in side[at : at + size]]
        for side, at, size in zip((mine, theirs), places, sizes, strict=True)
    ]
    merged: list[list[int]] = []
    matcher = SequenceMatcher(None, stretches[0], stretches[1], autojunk=sizes[0] * sizes[1] > _MOST_PRODUCT)
    for tag, *edges in matcher.get_opcodes():
        if tag == "equal":
            continue
        is_near = bool(merged) and edges[0] - merged[-1][1] <= _ISLAND
        if is_near and min(_size(edges), _size(merged[-1])) >= _LEAST_AROUND:
            merged[-1][1::2] = edges[1::2]
        else:
            merged.append(list(edges))
    for first, stop, other_first, other_stop in merged:
        change = Change(
            _span(mine, places[0] + first, places[0] + stop),
            _span(theirs, places[1] + other_first, places[1] + other_stop),
        )
        if change.query.start < change.query.stop or change.target.start < change.target.stop:
            yield change


def _size(edges: Sequence[int]) -> int:
    return max(edges[1] - edges[0], edges[3] - edges[2])


def _span(words: Sequence[_Word], first: int, stop: int) -> Span:
    """The words from `first` to `stop` without breaks of paragraphs at the ends."""
    while first < stop and words[first].text == "\n":
        first += 1
    while first < stop and words[stop - 1].text == "\n":
        stop -= 1
    if first < stop:
        return Span(words[first].start, words[stop - 1].stop)
    place = words[first].start if first < len(words) else words[-1].stop if words else 0
    return Span(place, place)


def changes_dict(changes: Changes) -> list[dict[str, Any]]:
    """The changes in the form of `result.schema.json`."""
    return [
        {
            "section": section,
            "deleted": [change.query.start, change.query.stop],
            "inserted": [change.target.start, change.target.stop],
        }
        for section, own in changes.by_section()
        for change in own
    ]


def changes_lines(changes: Changes, *, width: int) -> list[Line]:
    """The changed sections with each change between some words; deletions and insertions have signs and colours."""
    lines = [cut(line("     ", Run(changes.summary, Style.TITLE)), width)]
    for section, own in changes.by_section():
        lines += [(), cut(line("     ", Run(section_label(changes.target, section), Style.TITLE)), width)]
        lines += _wrapped(map(_signed, runs_of(changes, section, own)), width)
    return lines


def _signed(run: Run) -> Run:
    before, after = _SIGNS.get(run.style, ("", ""))
    words = run.text.split(" ")
    is_long = before and len(words) > _MOST_SHOWN
    shown = f"{' '.join(words[: _MOST_SHOWN // 2])} … {' '.join(words[-_CONTEXT:])}" if is_long else run.text
    return Run(f"{before}{shown}{after}", run.style)


def _wrapped(runs: Iterable[Run], width: int) -> Iterator[Line]:
    """Runs as lines, broken between words, or anywhere in scripts without spaces."""
    own, room = [Run(" " * _INDENT)], width - _INDENT
    for run in runs:
        for word in _WITH_SPACE.findall(run.text):
            while word:
                part = word
                if columns(word.rstrip()) > room:
                    is_whole = len(own) > 1 and columns(word.rstrip()) <= width - _INDENT
                    part = "" if is_whole else cut_text(word, room)
                own += [Run(part, run.style)] if part.strip() or (part and len(own) > 1) else []
                room -= columns(part)
                word = word[len(part) :].lstrip()
                if word:
                    yield _ended(own)
                    own, room = [Run(" " * _INDENT)], width - _INDENT
    yield _ended(own)


def _ended(runs: Sequence[Run]) -> Line:
    return line(*runs[:-1], Run(runs[-1].text.rstrip(), runs[-1].style))


def runs_of(changes: Changes, section: int, own: Sequence[Change]) -> Iterator[Run]:
    """The changes of a section in their order, with some unchanged words around each."""
    text, whole = changes.target.text, changes.target.sections[section]
    last, is_first = whole.start, True
    for change in own:
        yield Run(_around(text[last : change.target.start], is_first=is_first, is_last=False))
        for style, document, span in (
            (Style.DELETED, changes.query, change.query),
            (Style.INSERTED, changes.target, change.target),
        ):
            if span.start < span.stop:
                yield Run(" ".join(_prose(document.text[span.start : span.stop]).split()), style)
        is_deleted = change.target.start == change.target.stop
        if is_deleted and changes.query.text[change.query.stop : change.query.stop + 1].isspace():
            yield Run(" ")  # after the deleted words, where the target has none
        last, is_first = max(last, change.target.stop), False
    yield Run(_around(text[last : whole.stop], is_first=False, is_last=True))


def _prose(text: str) -> str:
    """A text without signs of Markdown for headings, tables and emphasis; a text of signs alone stays."""
    prose = _EMPHASIS.sub("", _MARKUP.sub("", text))
    return prose if prose.strip() else text


def _around(text: str, *, is_first: bool, is_last: bool) -> str:
    """Unchanged text as its words that are next to a change."""
    words = _prose(text).split()
    head, tail = [] if is_first else words[:_CONTEXT], [] if is_last else words[-_CONTEXT:]
    is_whole = len(words) <= len(head) + len(tail)
    shown = " ".join(words) if is_whole else " … ".join((" ".join(head), " ".join(tail))).strip()
    lead = " " if not is_first and text[:1].isspace() else ""
    trail = " " if not is_last and words and text[-1:].isspace() else ""
    return f"{lead}{shown}{trail}"


def changes_html(changes: Changes, *, command: str = "") -> str:
    """One offline file."""
    sections = [
        (section_label(changes.target, section), list(runs_of(changes, section, own)))
        for section, own in changes.by_section()
    ]
    return render("changes.html", changes=changes, sections=sections, command=command)
