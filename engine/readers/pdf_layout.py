"""Paragraphs, columns, running heads, line numbers and initials of PDF pages. Pure functions of lines."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from statistics import median
from typing import TypeAlias

from engine.readers.pdf_lines import (
    MAX_GAP,
    MAX_OVERLAP,
    MIN_INITIAL,
    RAISED_SIZE,
    SOFT_HYPHEN,
    WORD_GAP,
    Line,
    is_raised,
)
from engine.readers.text import CONTENT, STAMP
from engine.text.cleaning import CUT_NUMBER, hyphen_of, is_unspaced, raised
from engine.text.headings import is_part_of_opinion, parse, roman_value

_HYPHENS = "-\u00ad\u2010"
_SENTENCE_END = re.compile(r"[.!?:][\"'\u201d\u2019)\]]*$")
_BULLET = re.compile(r"[\u2022\u25e6\u25aa\u2023\u2219*\u2013-]\s")
_ITEM = re.compile(r"\(?[a-z0-9]{1,2}[.)]\s")
_BEFORE_ITEM = ".!?:;,"
_WORD, _CUT_WORD = re.compile(r"[^\W\d_]+"), re.compile(r"([^\W\d_]+)[-\u00ad\u2010]$")
_LONGEST = 80  # characters of a word, and of what is beside a border of lines


def body_size(lines: Iterable[Line]) -> float:
    """The type size in which most characters are set."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def joined(left: str, right: str, known: frozenset[str]) -> str:
    """Join a line with the next one of its paragraph, with the hyphen between them where `hyphen_of` keeps it."""
    if is_unspaced(left[-1], right[0]):
        return left + right
    if left[-1] not in "-\u00ad\u2010":
        return f"{left} {right}"
    before = left[-_LONGEST:]
    head, tail = _CUT_WORD.search(before), _WORD.match(right)
    if head is None or tail is None:
        return left + right if CUT_NUMBER.search(f"{before}\n{right[:_LONGEST]}") else f"{left} {right}"
    is_of_three = before[: head.start()].endswith("-") or right[tail.end() :].startswith("-")
    return f"{left[:-1]}{hyphen_of(head[1], tail.group(), known, is_of_three=is_of_three)}{right}"


_HANGUL = re.compile("[\uac00-\ud7a3]")
_LEAST_FULL = 12  # times the type size; a shorter line is no full one
_LEAST_SPACED = 0.2  # of the lines of Hangul, where spaces show which lines end with a word


def inside_words(lines: Sequence[Line]) -> frozenset[int]:
    """The numbers of lines of Hangul that end inside a word: no space is behind them, and one is behind others."""
    ends = [number for number, line in enumerate(lines[:-1]) if _HANGUL.match(line.text[-1])]
    n_spaced = sum(lines[number].has_space for number in ends)
    if n_spaced < _LEAST_SPACED * len(ends):
        return frozenset()
    pairs = ((number, lines[number], lines[number + 1]) for number in ends if not lines[number].has_space)
    return frozenset(
        number for number, line, following in pairs
        if line.size == following.size and _HANGUL.match(following.text)
        and line.right > min(following.right, line.left + following.right - following.left) - line.size
        and line.right - line.left > _LEAST_FULL * line.size
    )  # fmt: skip


def starts_paragraph(before: Line, line: Line, pitch: float, right_edge: float) -> bool:
    """Whether a line starts a paragraph after the line before it."""
    if line.size != before.size and abs(line.size - before.size) > 0.15 * before.size:
        return True
    is_sentence_end = _SENTENCE_END.search(before.text) is not None
    is_short = before.right < right_edge - 4 * before.size
    if _BULLET.match(line.text) or (_ITEM.match(line.text) and (is_short or before.text[-1] in _BEFORE_ITEM)):
        return True
    drop = before.y - line.y
    if line.page != before.page or drop < -pitch:
        return is_sentence_end and (is_short or not line.text[0].islower())
    if drop > 1.45 * pitch:
        return True
    is_indented = line.left > before.left + 0.7 * line.size and drop > 0.5 * pitch
    is_hanging = line.left < before.left - 0.7 * line.size
    return (is_sentence_end and (is_short or is_indented)) or (is_short and is_hanging and not line.text[0].islower())


def breaks_line(before: Line, right_edge: float) -> bool:
    """Whether the line before ends early: verse, code, a table; the break is kept."""
    return before.text[-1] not in _HYPHENS and before.right < before.left + 0.6 * (right_edge - before.left)


def pitch_of(lines: Sequence[Line], size: float) -> float:
    """The usual distance of two lines of body text."""
    drops = [
        a.y - b.y
        for a, b in pairwise(lines)
        if a.page == b.page and a.size == b.size == size and 0.5 * size < a.y - b.y < 3 * size
    ]
    return median(drops) if drops else 1.2 * size


_MIN_COLUMN_LINES = 5  # lines that start at one place make a column
_MIN_SHARE = 0.05  # of the lines of the page
_MIN_WIDTH = 0.15  # of the text of the page; cells of a table are narrower
_SHARE_ENDING = 0.8  # of the lines of a column end before the next column
_SAME_COLUMN = 3.0  # points
_FULL = 0.9  # of the lines end at or before the edge


def right_edges(lines: Sequence[Line]) -> list[float]:
    """For each line, the right edge of the full lines of its column, in points."""
    edges: list[float] = []
    for _, page in groupby(lines, key=lambda line: line.page):
        edges.extend(_column_edges(list(page)))
    return edges


def column_starts(page: Sequence[Line]) -> list[float]:
    """Left edges of the columns of a page, from left to right; at least one."""
    lefts = sorted(line.left for line in page)
    width = max(line.right for line in page) - lefts[0]
    starts = [lefts[0]]
    following = 0
    while following < len(lefts):
        place, first = lefts[following], following
        following = bisect_right(lefts, place + _SAME_COLUMN)  # starts that are close together are one place
        if (
            following - first < max(_MIN_COLUMN_LINES, _MIN_SHARE * len(page))
            or place - starts[-1] < _MIN_WIDTH * width
        ):
            continue
        inside = [line.right for line in page if starts[-1] - _SAME_COLUMN <= line.left < place - _SAME_COLUMN]
        if sum(right <= place for right in inside) >= _SHARE_ENDING * len(inside):
            starts.append(place)
    return starts


def _column_edges(page: Sequence[Line]) -> list[float]:
    starts = column_starts(page)
    columns = [bisect_right(starts, line.left + _SAME_COLUMN) - 1 for line in page]
    ends: dict[int, list[float]] = {}
    for number, line in enumerate(page):
        if _is_wide(line, columns[number], starts):
            columns[number] = len(starts)  # lines across columns have an edge of their own
        ends.setdefault(columns[number], []).append(line.right)
    edges = {column: sorted(rights)[int(_FULL * (len(rights) - 1))] for column, rights in ends.items()}
    return [edges[column] for column in columns]


def _is_wide(line: Line, column: int, starts: Sequence[float]) -> bool:
    return column + 1 < len(starts) and line.right > starts[column + 1] + _SAME_COLUMN


_MIN_PAGES = 3  # repetition on fewer pages is not counted
_NEAR_PAGES = 6  # a head that names the chapter repeats within this many pages
_EDGE_LINES = 2  # at the top and at the bottom of a page; a page number can be alone there
_MIN_HEADED_LINES = 4  # a slide of three lines has no running heads of its own
_MAX_EDGE_LINES = 4  # where heads or feet have several lines
_MAX_CHARS = 150
_STAMP_SIZE = 3.0  # times the body size
_LARGEST = 1.3  # times the body size; a larger line is a heading
_PAGE_NUMBER_LINE = re.compile(
    r"[-\u2013\u2014\s]*(?:[Pp](?:age|AGE)\s+)?(?:\d{1,4}|[ivxlc]{1,7}|[IVXLC]{2,7})"
    r"(?:\s*(?:of|/)\s*\d{1,4})?[-\u2013\u2014\s]*$"
)
_OF_PAGE = re.compile(
    r"^(?:\d{1,4}|[ivxlc]{1,7})\s+(?=\D)|(?<=[^\d\s])\s+(?:\d{1,4}|[ivxlc]{1,7})$"
)  # beside the words of a running head
_PAGE_OF = re.compile(r"\b[Pp](?:age|AGE|\.)\s?(\d{1,4})\b")
_MAX_DIGITS = 9  # also of the stamps that number the pages of a production
_ROMAN = re.compile(r"[ivxlc]{1,7}")
_EdgePlace: TypeAlias = tuple[str, float, int]  # mask, size, height on the page
_PageNumber: TypeAlias = tuple[bool, int, int]  # is Arabic, number minus index of the page, height on the page


def without_running_heads(lines: Sequence[Line]) -> list[Line]:
    """Leave out running heads and page numbers.

    A line at the edge of a page is left out if its words and numbers repeat at the same
    height on pages nearby, and it stands apart from the body or in another type; or if it
    starts or ends with a number that counts with the pages; or if it is one of the
    outermost lines and is nothing but a page number. A line in large type whose number
    counts stays. The name of a part of an opinion stays where it is new. A stamp of
    electronic filing is left out wherever it stands.
    """
    size = body_size(lines)
    largest = _LARGEST * size
    pages = [list(group) for _, group in groupby(lines, key=lambda line: line.page)]
    stamps = [[line for line in page if line.size > _STAMP_SIZE * size] for page in pages]  # watermarks, and titles
    edges = [
        [*_edges(page, _MAX_EDGE_LINES), *stamped]
        for page, stamped in zip(pages, stamps, strict=True)
        if len(page) >= _MIN_HEADED_LINES
    ]
    least = min(_MIN_PAGES, max(2, len(pages) - 1))
    repeated = _repeated(edges, least)
    counting = _counting([_edges(page, _MAX_EDGE_LINES) or page for page in pages], least)
    kept: list[Line] = []
    part = ""
    for page, stamped in zip(pages, stamps, strict=True):
        edge = [*(_edges(page, _MAX_EDGE_LINES) or page), *stamped]
        outermost = {id(line) for line in _edges(page, _EDGE_LINES)}
        dropped = {
            id(line)
            for line in edge
            if (not line.is_note and (line.page, _place(line)) in repeated and _is_apart(line, page, size))
            or (line.size <= largest and id(line) in outermost and _is_page_number(line.text))
            or (line.size <= largest and counting & _page_numbers(line))
        }
        dropped -= {id(line) for line in page if CONTENT.match(line.text)}
        dropped |= {id(line) for line in page if STAMP.match(line.text)}
        name = next((line for line in _edges(page, _EDGE_LINES + 1, 2) if is_part_of_opinion(line.text)), None)
        if name is not None:
            dropped = dropped - {id(name)} if name.text != part else dropped | {id(name)} if dropped else dropped
            part = name.text
        kept.extend(line for line in page if id(line) not in dropped)
    return kept


def _is_page_number(text: str) -> bool:
    """Whether a line is nothing but the number of a page, or of two pages side by side."""
    two = re.fullmatch(r"(\d{1,4})\s+(\d{1,4})", text)
    return _PAGE_NUMBER_LINE.match(text) is not None or (two is not None and int(two[2]) - int(two[1]) == 1)


def _edges(page: Sequence[Line], n_lines: int, per_edge_line: int = _MIN_HEADED_LINES) -> list[Line]:
    """The lines at the edges of a page, by height: pdfium can list a footer first."""
    by_place = sorted(page, key=lambda line: -line.y)
    n_lines = min(n_lines, len(page) // per_edge_line)
    return by_place[:n_lines] + by_place[len(page) - n_lines :]


def _is_apart(line: Line, page: Sequence[Line], size: float) -> bool:
    """Whether a line is in another type than the body, or further from the other lines than these are."""
    if abs(line.size - size) > 0.02 * size:
        return True
    heights = sorted({round(other.y) for other in page}, reverse=True)
    drops = [above - below for above, below in pairwise(heights)]
    if not drops:
        return False
    place = heights.index(round(line.y))
    inner = drops[place] if place < len(drops) / 2 else drops[place - 1]
    return inner > 1.25 * median(drops)


def _place(line: Line) -> _EdgePlace:
    """A key for equal lines; the size separates a title from a running head of its words."""
    words = _OF_PAGE.sub("", line.text)
    is_head = 2 * sum(map(str.isupper, words.split())) > len(words.split())  # notes have other words beside a number
    return (words if is_head else line.text).casefold(), line.size, round(line.y)


def _repeated(edges: Sequence[Sequence[Line]], least: int) -> set[tuple[int, _EdgePlace]]:
    """Page and place of the edge lines with words that are on `least` pages nearby."""
    of_place: dict[_EdgePlace, list[int]] = defaultdict(list)
    for edge in edges:
        for place in {_place(line) for line in edge}:
            if _WORD.search(place[0]):
                of_place[place].append(edge[0].page)
    return {
        (page, place)
        for place, pages in of_place.items()
        for page in pages
        if bisect_right(pages, page + _NEAR_PAGES) - bisect_left(pages, page - _NEAR_PAGES) >= least
    }


def _counting(edges: Sequence[Sequence[Line]], least: int) -> set[_PageNumber]:
    """Numbers that count with the pages on at least `least` pages, unless they are those of headings."""
    of_number: dict[_PageNumber, list[Line]] = defaultdict(list)
    for line in (line for edge in edges for line in edge):
        for number in _page_numbers(line):
            of_number[number].append(line)
    return {
        number
        for number, lines in of_number.items()
        if len({line.page for line in lines}) >= least and not _are_headings(lines)
    }


def _are_headings(lines: Sequence[Line]) -> bool:
    """Whether lines with numbers that count have a title each, as headings that all begin a page do."""
    titles = [numbered.title.casefold() for line in lines if (numbered := parse(line.text)) is not None]
    return len(titles) == len(lines) == len(set(titles))


def _page_numbers(line: Line) -> set[_PageNumber]:
    """The first and the last word of a line, read as the number of its page."""
    if len(line.text) > _MAX_CHARS or line.is_note:
        return set()
    words = line.text.split()
    words = [words[0], words[-1], *re.findall(r"\d+", f"{words[0]} {words[-1]}"), *_PAGE_OF.findall(line.text)]
    values = {(word.isdecimal(), value) for word in words if (value := _value(word)) is not None}
    return {(is_arabic, value - line.page, round(line.y)) for is_arabic, value in values}


def _value(word: str) -> int | None:
    """The value of an Arabic or a small Roman number; None for another word."""
    if word.isdecimal():
        return int(word) if len(word) <= _MAX_DIGITS else None
    return roman_value(word) if _ROMAN.fullmatch(word) else None


# Printers mark the last lines: S32, R33.
_ALONE = re.compile(r"[A-Z]?(\d{1,4})$")
_BEFORE_TEXT = re.compile(r"[A-Z]?(\d{1,4})\s+(?=\S)")
_AFTER_TEXT = re.compile(r"(?<=\S)\s+[A-Z]?(\d{1,4})$")
_STEPS = (1, 5, 10)
_MAX_SKIPPED = 2  # steps; a formula may hide the number of its line
_MIN_CHAIN = 6  # numbers that count up, on a page
_MIN_CHAIN_OF_STEPS = 4  # if only every fifth or tenth line has a number
_SHARE_OF_NUMBERED_PAGES = 0.5
_SHARE_BESIDE = 0.9  # of the other lines are right of the numbers, or left of them
_LINES_OF_PARAGRAPH = 2.5  # for each number, at least; of pleadings, with double spaces between numbers, two
_MIN_NUMBERED_LINES = 8  # a page with fewer lines is not checked
_SAME_PLACE = 2.0  # points
_MAX_DIGIT = 12.0  # points; a longer number starts at most this much further left


@dataclass(frozen=True, slots=True)
class _Number:
    """A line that is an integer, or starts or ends with one."""

    place: int  # of the line on its page
    value: int
    n_signs: int
    left: float
    where: re.Pattern[str]  # `_ALONE`, `_BEFORE_TEXT` or `_AFTER_TEXT`


def without_line_numbers(lines: Sequence[Line]) -> list[Line]:
    """Leave out line numbers, if half of the pages of enough lines have a column of them in a margin."""
    pages = [list(group) for _, group in groupby(lines, key=lambda line: line.page)]
    chains = [_chain(page) if len(page) >= _MIN_NUMBERED_LINES else [] for page in pages]
    n_full = sum(len(page) >= _MIN_NUMBERED_LINES for page in pages)
    if not n_full or sum(map(bool, chains)) < _SHARE_OF_NUMBERED_PAGES * n_full:
        return list(lines)
    return [line for page, chain in zip(pages, chains, strict=True) for line in _without(page, chain)]


def _without(page: Sequence[Line], chain: Sequence[_Number]) -> Iterable[Line]:
    if not chain:
        return page
    numbered = {number.place: number for number in chain}
    left = min(number.left for number in chain) - _MAX_DIGIT
    right = max((page[number.place].right for number in chain if number.where is _ALONE), default=left) + _SAME_PLACE
    kept = []
    for place, line in enumerate(page):
        number = numbered.get(place)
        if number is None and not (left <= line.left <= line.right <= right and _ALONE.match(line.text)):
            kept.append(line)
        elif number is not None and number.where is _BEFORE_TEXT:
            text = _BEFORE_TEXT.sub("", line.text, count=1)
            kept.append(replace(line, text=text, left=line.text_left, text_left=line.text_left))
        elif number is not None and line.trailing is not None:
            text = _AFTER_TEXT.sub("", line.text)
            kept.append(replace(line, text=text, right=line.trailing[0], trailing=None))
    return kept


def _chain(page: Sequence[Line]) -> list[_Number]:
    """The longest column of numbers in a margin that count up from line to line; [] without one."""
    numbers = [number for place, line in enumerate(page) for number in _numbers(place, line)]
    numbers.sort(key=lambda number: (-page[number.place].y, number.left))
    found: list[_Number] = []
    for step in _STEPS:
        chain = _longest(numbers, page, step)
        if len(chain) >= (_MIN_CHAIN if step == 1 else _MIN_CHAIN_OF_STEPS) and len(chain) > len(found):
            found = chain
    return found if found and not _count_paragraphs(found, page) and _is_beside_text(found, page) else []


def _count_paragraphs(chain: Sequence[_Number], page: Sequence[Line]) -> bool:
    """Whether the numbers are those of paragraphs, as in judgments: each counts, and most lines have none."""
    top, bottom = page[chain[0].place].y, page[chain[-1].place].y
    n_lines = sum(bottom <= line.y <= top for line in page if not _ALONE.match(line.text))
    counts_each = any(following.value - number.value == 1 for number, following in pairwise(chain))
    return counts_each and n_lines > _LINES_OF_PARAGRAPH * len(chain)


def _numbers(place: int, line: Line) -> Iterator[_Number]:
    if match := _ALONE.match(line.text):
        yield _Number(place, int(match[1]), len(line.text), line.left, _ALONE)
        return
    if (match := _BEFORE_TEXT.match(line.text)) and line.text_left > line.left:
        yield _Number(place, int(match[1]), len(match[0].rstrip()), line.left, _BEFORE_TEXT)
    if line.trailing is not None and (match := _AFTER_TEXT.search(line.text)):
        yield _Number(place, int(match[1]), len(match[0].lstrip()), line.trailing[1], _AFTER_TEXT)


def _longest(numbers: Iterable[_Number], page: Sequence[Line], step: int) -> list[_Number]:
    chains: list[list[_Number]] = []
    awaiting: dict[int, list[_Number]] = {}  # chains by their last value
    for number in numbers:
        befores = (awaiting.get(number.value - step * skipped) for skipped in range(1, _MAX_SKIPPED + 2))
        chain = next((before for before in befores if before and _is_below(before[-1], number, page)), None)
        if chain is None:
            chain = []
            chains.append(chain)
        chain.append(number)
        awaiting[number.value] = chain
    return max(chains, key=len, default=[])


def _is_below(before: _Number, number: _Number, page: Sequence[Line]) -> bool:
    if page[before.place].y - page[number.place].y < _SAME_PLACE:
        return False
    if before.n_signs == number.n_signs:
        return abs(before.left - number.left) <= _SAME_PLACE
    return -_SAME_PLACE <= before.left - number.left <= _MAX_DIGIT


def _is_beside_text(chain: Sequence[_Number], page: Sequence[Line]) -> bool:
    """Whether nearly all text is on one side of the numbers, or those of every fifth line are in the gap of columns."""
    numbered = {number.place: number.where for number in chain}
    texts = [
        (line.text_left if numbered.get(place) is _BEFORE_TEXT else line.left,
         line.trailing[0] if numbered.get(place) is _AFTER_TEXT and line.trailing else line.right)
        for place, line in enumerate(page) if not _ALONE.match(line.text)
    ]  # fmt: skip
    left = min(number.left for number in chain)
    sides = [sum(stop <= left + _SAME_PLACE for _, stop in texts), sum(start > left for start, _ in texts)]
    is_stepped = chain[1].value - chain[0].value >= _STEPS[1] and min(sides) >= _MIN_COLUMN_LINES
    return (sum(sides) if is_stepped else max(sides)) >= _SHARE_BESIDE * len(texts)


_INITIAL = re.compile(r"[\"'\u201c\u2018\u00ab]?[^\W\d_]")
_MAX_INITIAL_GAP = 0.6  # times the type beside it
_WORDS_OF_ONE_LETTER, _INITIAL_GAP = "AIO", 0.2  # times the type of the initial; a wider gap is a space
_MAX_INITIALS = 4  # of a page


def with_initials(lines: Sequence[Line]) -> list[Line]:
    """Put initials, which are as high as several lines, before the first of the lines at their right."""
    begun: dict[int, Line] = {}
    used: set[int] = set()
    for _, group in groupby(lines, key=lambda line: line.page):
        page = list(group)
        initials = [line for line in page if _INITIAL.fullmatch(line.text)]
        for initial in sorted(initials, key=lambda line: -line.size)[:_MAX_INITIALS]:
            beside = [line for line in page if _is_beside(initial, line)]
            if beside:
                first = max(beside, key=lambda line: line.y)
                begun[id(first)] = replace(first, text=_with_initial(initial, first, lines), left=initial.left)
                used.add(id(initial))
    return [begun.get(id(line), line) for line in lines if id(line) not in used]


def _is_beside(initial: Line, line: Line) -> bool:
    return (
        line.text[0].isalpha()
        and MIN_INITIAL * line.size <= initial.size
        and -0.1 * initial.size <= line.left - initial.right <= _MAX_INITIAL_GAP * initial.size
        and -0.1 * initial.size <= line.y - initial.y <= initial.size
    )


def _with_initial(initial: Line, line: Line, lines: Iterable[Line]) -> str:
    """The line behind its initial, with a blank where the initial is a word."""
    letter, following = initial.text[-1], line.text.split(maxsplit=1)[0].strip(",.;:").lower()
    if letter not in _WORDS_OF_ONE_LETTER:
        return initial.text + line.text
    words = Counter(word.strip(",.;:").lower() for other in lines for word in other.text.split())
    is_apart, is_whole = words[following] > 1, words[letter.lower() + following] > 0
    is_word = is_apart if is_apart != is_whole else line.left - initial.right > _INITIAL_GAP * initial.size
    return f"{initial.text} {line.text}" if is_word else initial.text + line.text


def with_values(lines: Sequence[Line], values: Iterable[Line]) -> list[Line]:
    """Insert the values of a form behind the lines that are at their left, or else above them."""
    merged = list(lines)
    for value in values:
        behind = [
            place
            for place, line in enumerate(merged)
            if line.y > value.y + value.size or (line.y > value.y - value.size and line.left <= value.left)
        ]
        merged.insert(behind[-1] + 1 if behind else 0, value)
    return merged


_MAX_SHIFT = 0.55  # of the baseline of a superscript, times the type size
_MOST_JOINED = 1_000  # characters
_CLOSING = ",.;:)]"
_READING, _READING_SIZE = re.compile("[\u3041-\u30ff\u3105-\u312f\\s]+"), 0.65  # times the type below
_MAX_BASES = 20
_MIN_RISING, _SHARE_RISING, _WORDS_OF_PROSE = 8, 0.2, 4  # lines of a page, share of them, words of each


def rejoined(lines: Iterable[Line]) -> list[Line]:
    """Join neighbouring lines that share a baseline, with at most the space of a word between them.

    A joined line spans its fragments, and has the baseline and type of the longest.
    """
    joined: list[Line] = []
    longest = 0  # characters of the fragment that gave the last line its type
    for line in lines:
        before = joined[-1] if joined else None
        if before is None or not _continues(before, line):
            joined.append(line)
            longest = len(line.text)
            continue
        gap = line.left - before.right
        is_apart = gap >= WORD_GAP * max(before.size, line.size) and line.text[0] not in _CLOSING
        is_apart = is_apart and not is_unspaced(before.text[-1], line.text[0])
        is_note = before.is_note or (before.text.isdigit() and before.size < RAISED_SIZE * line.size)
        is_apart |= is_note and before.text.isdigit()
        is_mark = not is_apart and is_raised(line.size / before.size, (line.y - before.y) / before.size)
        following = raised(before.text[-8:], line.text) if is_mark else line.text
        text = f"{before.text} {following}" if is_apart else before.text + following
        of_type = line if len(line.text) > longest else before
        longest = max(longest, len(line.text))
        joined[-1] = replace(
            of_type, text=text, left=before.left, right=line.right, text_left=before.text_left, trailing=line.trailing,
            is_note=is_note, has_space=line.has_space,
        )  # fmt: skip
    return joined


def _continues(before: Line, line: Line) -> bool:
    size = max(before.size, line.size)
    return (
        before.page == line.page
        and abs(before.y - line.y) < _MAX_SHIFT * size
        and -MAX_OVERLAP * size <= line.left - before.right <= MAX_GAP * size
        and before.text[-1] != SOFT_HYPHEN
        and len(before.text) < _MOST_JOINED
    )


def readings_of(lines: Sequence[Line]) -> set[int]:
    """The ids of lines of kana in small type, close above other lines."""
    small = [line for line in lines if _READING.fullmatch(line.text)]
    found: set[int] = set()
    by_height = sorted(lines, key=lambda line: line.y) if small else []
    heights = [line.y for line in by_height]
    for line in small:
        lowest = line.y - 1.5 * line.size / _READING_SIZE
        below = by_height[bisect_right(heights, lowest) : bisect_right(heights, line.y - 1)]
        for base in below[-_MAX_BASES:]:
            if line.size <= _READING_SIZE * base.size and line.left < base.right and base.left < line.right:
                found.add(id(line))
    return found


def top_first(lines: list[Line]) -> list[Line]:
    """The lines of a page by columns and heights, where the content stream has them in no order; else as they are."""
    prose = [line for line in lines if len(line.text.split()) >= _WORDS_OF_PROSE]  # labels of figures have any order
    n_rising = sum(_is_over(line, before) and line.y - before.y > 0.6 * line.size for before, line in pairwise(prose))
    by_height = sorted(lines, key=lambda line: -line.y)
    is_stack = all(
        above.y - line.y > 0.6 * min(above.size, line.size) and _is_over(above, line)
        for above, line in pairwise(by_height)
    )
    if not is_stack and n_rising < max(_MIN_RISING, _SHARE_RISING * len(prose)):
        return lines
    starts = column_starts(lines) if lines else []
    ordered: list[Line] = []
    columns: list[list[Line]] = [[] for _ in starts]
    for line in by_height:
        column = bisect_right(starts, line.left + _SAME_COLUMN) - 1
        if _is_wide(line, column, starts):
            ordered += [*(one for side in columns for one in side), line]
            columns = [[] for _ in starts]
        else:
            columns[column].append(line)
    return [*ordered, *(one for side in columns for one in side)]


def _is_over(above: Line, line: Line) -> bool:
    return above.left < line.right and line.left < above.right
