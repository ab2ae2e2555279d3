"""Finds the headings of a PDF among its lines: by its outline, or else by type and numbers. Pure functions."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from engine.readers.pdf_layout import body_size, joined, pitch_of
from engine.readers.pdf_lines import Line, without_note_marks
from engine.text.headings import (
    LineKind,
    could_be_title,
    is_contents_line,
    is_part_of_opinion,
    names_court,
    parse,
    roman_value,
)

_Style: TypeAlias = tuple[float, bool]  # size, bold
OutlineEntry: TypeAlias = tuple[str, int, int]  # title; level, of which 1 is the outermost; page, from 0

_LARGER = 1.08  # times the body size
_SAME_SIZE = 0.05  # times the body size
_TITLE = 1.15  # times the body size
_TOP_LINES = 6  # of a first page; a title is among them
_MIN_TITLE_WORDS = 3  # of a title in the type of other headings
_MAX_LINES = 3
_MAX_CHARS = 200
_CAPTION = re.compile(r"(?:fig(?:ure)?|tab(?:le)?|algorithm|listing|theorem|lemma|proof|definition)\b", re.IGNORECASE)
_NUMBER = re.compile(r"(?:chapter|section|part|appendix)?(?:[0-9ivx]{0,6}|[a-z][0-9]{0,4})")  # optional on either side
_WORD = re.compile(r"[^\W\d_]{3,}|[\u3040-\u9fff\uac00-\ud7a3]")  # in scripts without spaces, characters count
_UNNUMBERED = re.compile(
    r"(?:abstract|references|bibliography|acknowledge?ments?|appendix|appendices)[ :.]*", re.IGNORECASE
)  # headings that outlines leave out, and that are often set like the body
_FILED = re.compile(
    r"(?:filed|received|entered|lodged|copy|original|draft|confidential|sealed|certified|(?:un)?published"
    r"|(?:not )?for publication|approved|do not (?:cite|publish))\b.{0,40}$",
    re.IGNORECASE,
)  # stamps
_COVER = re.compile(
    r"downloaded (?:by|from)|download date|(?:original|suggested) citation|cit(?:ation for|e) (?:the |this )?"
    r"(?:published|article|version|paper|item)|document version|manuscript draft|stable url|reprint from"
    r"|author[\u2019']?s? (?:produced|accepted|final|manuscript|version)|accepted (?:version|manuscript)"
    r"|version of record|link to publication|permanent .{0,8}(?:url|link)|repository|terms of use|hal id"
    r"|brought to you by",
    re.IGNORECASE,
)  # on the page that a repository or a publisher puts before a paper
_COVERED_PAGES, _LINES_OF_TITLE, _LEAST_COVERED = 3, 5, 4  # pages behind a cover; lines, and words, of a title there
_FIGURE_CAPTION = re.compile(r"fig(?:ure|\.)?\s*\d", re.IGNORECASE)  # those of tables are above, after a heading
_MAX_LABELS = 30  # lines between a label of a figure and its caption
_NARROW = 0.6  # times the width of body text
_PRIVATE_USE = re.compile(r"[\ue000-\uf8ff]")
_OPENING = "\"'\u201c\u2018\u00ab(\u00a7[\u00bf\u00a1"
_SHARE_IN_WORDS = 0.5
_MAX_CENTRED = 80  # characters of a line of a heading that only its place shows
_SAME_MIDDLE = 0.06  # times the width of body text
_SHORT = 0.75  # times the width of body text
_BARE = re.compile(r"(?:[IVX]{1,6}|[A-Z])\.?")
_ROMAN, _LETTERED, _MIN_ROMAN = re.compile(r"([IVX]{1,5})\. [A-Z]{3}"), re.compile(r"([A-Z])\. [A-Z]"), 2
_NOT_CAPITALISED = re.compile(r"[\d@,;:=*\u2020]|\b(?:and|by)\b [A-Z]\w+ [A-Z]\w+$")
_SMALL = frozenset("a an and as at by for from in into of on or the to under upon with v. vs. et al.".split())
_OPENING_HEADING = re.compile(
    r"(?:(?:factual |procedural )?(?:background|history)|introduction|facts"
    r"|(?:statement|summary|overview|nature|facts) of|preliminary|jurisdiction|parties|opinion|order|findings"
    r"|the facts)\b",
    re.IGNORECASE,
)
_MAX_COMPARISONS = 200_000  # of entries with lines; a real outline needs a few thousand
_OUTLINE_SHARE = 0.6  # of the outline must be found in the text; otherwise it is of another document


@dataclass(frozen=True, slots=True)
class HeadingLines:
    """Lines `first` to `stop` (exclusive) are a heading."""

    first: int
    stop: int
    level: int


def by_outline(lines: Sequence[Line], outline: Sequence[OutlineEntry]) -> list[HeadingLines]:
    """The lines that the outline names; none where too few entries are found."""
    pages: dict[int, list[int]] = {}
    for number, line in enumerate(lines):
        pages.setdefault(line.page, []).append(number)
    keys = [_key(line.text) for line in lines]
    found: list[HeadingLines] = []
    n_left = _MAX_COMPARISONS
    for title, level, page in outline:
        places = [*pages.get(page, []), *pages.get(page + 1, [])]  # the mark can be before a page break
        places = places[bisect_left(places, found[-1].stop if found else 0) :][: max(0, n_left)]
        match = next((heading for place in places if (heading := _named_at(keys, place, title, level))), None)
        n_left -= places.index(match.first) + 1 if match else len(places)
        if match is not None:
            found.append(match)
    return found if len(outline) > 1 and len(found) >= _OUTLINE_SHARE * len(outline) else []


def _named_at(keys: Sequence[str], place: int, title: str, level: int) -> HeadingLines | None:
    wanted, seen = _key(title), ""
    for stop in range(place + 1, min(place + _MAX_LINES, len(keys)) + 1):
        seen += keys[stop - 1]
        longer, shorter = (seen, wanted) if len(seen) > len(wanted) else (wanted, seen)
        n_more = len(longer) - len(shorter)
        is_from_first = longer is wanted or n_more < len(keys[place])  # else the line is a formula above
        if shorter and is_from_first and longer.endswith(shorter) and _NUMBER.fullmatch(longer, 0, n_more):
            return HeadingLines(place, stop, level)
    return None


def _key(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def with_unnumbered(
    outlined: Sequence[HeadingLines], typed: Sequence[HeadingLines], lines: Sequence[Line]
) -> list[HeadingLines]:
    """The headings of an outline, with headings such as "References", which outlines seldom name."""
    counts = Counter(heading.level for heading in outlined)
    level = min((one for one, n_headings in counts.items() if n_headings > 1), default=min(counts))
    taken = {number for heading in outlined for number in range(heading.first, heading.stop)}
    added = [
        HeadingLines(heading.first, heading.stop, level)
        for heading in typed
        if _is_unnumbered(_text(lines, range(heading.first, heading.stop))) and heading.first not in taken
    ]
    return sorted([*outlined, *added], key=lambda heading: heading.first)


def by_type(lines: Sequence[Line]) -> tuple[str, list[HeadingLines]]:
    """The title, and the headings: larger or bolder than the body, numbered capitals, or known words ("References").

    The level is that of the number; unnumbered headings have the level of numbered
    ones in the same type, or else the rank of their type (by size, then bold). Known
    words have level 1 if headings are numbered, but none in their type.
    """
    size = body_size(lines)
    groups = _without_labels(lines, list(_groups(lines, size)), size)
    lettered = _lettered(lines, groups, pitch_of(lines, size))
    groups = sorted([*groups, *lettered], key=lambda group: group.start)
    title = _title(lines, groups, size)
    groups = [
        group
        for group in groups
        if group is not title and not (group.start < _TOP_LINES and _FILED.match(_text(lines, group)))
    ]
    if any(is_part_of_opinion(_text(lines, group)) for group in groups):
        groups = [group for group in groups if not names_court(_text(lines, group))]
    levels = _levels(lines, groups)
    headings = [
        HeadingLines(group.start, group.stop, level + (group in lettered))
        for group, level in zip(groups, levels, strict=True)
    ]
    return (without_note_marks(_text(lines, title)) if title else ""), headings


def title_behind_cover(lines: Sequence[Line]) -> str:
    """The title that is on the cover page of a repository or a publisher, and again on a page behind; "" without."""
    cover = " ".join(line.text for line in lines if line.page == 0)
    if not _COVER.search(cover):
        return ""
    seen = _key(cover)
    for page in range(1, _COVERED_PAGES + 1):
        top = [line for line in lines if line.page == page][: 4 * _TOP_LINES]
        largest = max((line.size for line in top), default=0.0)  # authors and institutes can be on both pages too
        for first, line in enumerate(top):
            text = line.text
            for following in top[first + 1 : first + _LINES_OF_TITLE]:
                longer = joined(text, following.text, frozenset())
                if following.size != line.size or _key(longer) not in seen:
                    break
                text = longer
            is_title = not text[0].islower() and ". " not in text and len(text) <= _MAX_CHARS and text[-1] not in ",;"
            is_title &= line.size == largest and len(_WORD.findall(text)) >= _LEAST_COVERED
            if is_title and _key(text) in seen:
                return text.rstrip(".*")
    return ""


def _groups(lines: Sequence[Line], size: float) -> Iterator[range]:
    """Groups of neighbouring lines, each a heading."""
    pitch = pitch_of(lines, size)
    is_bold_rare = _share_of_bold(lines, size) < 0.25
    centred = _centred(lines, size, pitch)
    start = 0
    while start < len(lines):
        stop = start + 1
        stands_out = _stands_out(lines[start], size, is_bold_rare)
        while stands_out and stop < len(lines) and _continues(lines[stop - 1], lines[stop], size, is_bold_rare):
            stop += 1
        if stands_out and stop - start <= _MAX_LINES and _is_heading(lines, range(start, stop), size, pitch):
            yield range(start, stop)
        elif start in centred:
            stop = centred[start]
            yield range(start, stop)
        start = stop


def _centred(lines: Sequence[Line], size: float, pitch: float) -> dict[int, int]:
    """Where headings begin and stop that only their place shows.

    They are short lines in the middle of the column, apart from the line above and over a full line of text: in
    capitals, roman numbers and letters in order, or capitalised words with space below too.
    """
    widths = sorted(line.right - line.left for line in lines if abs(line.size - size) <= _SAME_SIZE * size)
    width = widths[3 * len(widths) // 4] if widths else 0.0
    found: dict[int, int] = {}
    bare: dict[int, int] = {}
    seen_text = False
    number = 0
    while number < len(lines):
        stop = number
        while stop < min(len(lines), number + _MAX_LINES) and _is_short(lines, number, stop, width, size):
            stop += 1
        if stop == number or stop == len(lines):
            seen_text |= lines[number].right - lines[number].left > _NARROW * width
            number += 1
            continue
        group, after = lines[number:stop], lines[stop]
        text = " ".join(line.text for line in group)
        is_bare = _BARE.fullmatch(text) is not None
        is_typed = pitch > 1.8 * size and lines[number - 1].text[-1] in '.:?"\u201d)'  # typescript
        if not _is_apart(lines, number, pitch) and not (is_typed and _is_in_capitals(text)):
            pass
        elif is_part_of_opinion(text) and len(group) == 1:
            found[number] = stop
        elif is_bare and _BARE.fullmatch(after.text) and _is_centred(group, after, width):
            bare[number] = stop  # "I" over "A"
        elif _is_over_text(group, after, width):
            is_far = group[-1].y - after.y > 1.2 * pitch
            if is_bare:
                bare[number] = stop
            elif _is_in_capitals(text) or (
                is_far and number and _is_capitalised(text) and (seen_text or _OPENING_HEADING.match(text))
            ):
                found[number] = stop
        number = stop
    return found | {place: bare[place] for place in _in_order([(place, lines[place].text) for place in bare])}


def _lettered(lines: Sequence[Line], groups: Sequence[range], pitch: float) -> list[range]:
    """The headings "A. Data" below groups "II. METHODS", which journals set in the size of the text.

    They have space above and below and capitalised words, and their letters are in order.
    """
    places = [(group.start, match[1]) for group in groups if (match := _ROMAN.match(_text(lines, group)))]
    if len(places) < _MIN_ROMAN:
        return []
    taken = {number for group in groups for number in group}
    found = dict[int, range]()
    for number, line in enumerate(lines):
        if number in taken or not (match := _LETTERED.match(line.text)) or not _is_apart(lines, number, pitch):
            continue
        stop = number + 1
        while stop < min(len(lines), number + _MAX_LINES) and not _is_apart(lines, stop, pitch):
            stop += 1
        words = _text(lines, range(number, stop)).split()[1:]
        is_title = all(word[0].isupper() or word.lower() in _SMALL for word in words) and words[-1][-1] not in ".,;:"
        if is_title and stop < len(lines) and _is_apart(lines, stop, pitch) and _is_wording(" ".join(words)):
            found[number] = range(number, stop)
            places.append((number, match[1]))
    return [found[place] for place in _in_order(sorted(places)) if place in found]


def _is_short(lines: Sequence[Line], first: int, place: int, width: float, size: float) -> bool:
    line, before = lines[place], lines[place - 1]
    if place > first and not (
        (line.page, line.size, line.is_bold) == (before.page, before.size, before.is_bold)
        and 0 < before.y - line.y < 1.7 * max(size, line.size)
        and abs(line.left + line.right - before.left - before.right) < 2 * _SAME_MIDDLE * width
    ):
        return False
    return line.right - line.left < _SHORT * width and len(line.text) <= _MAX_CENTRED and not line.text[0].islower()


def _is_over_text(group: Sequence[Line], after: Line, width: float) -> bool:
    return (
        after.right - after.left > _NARROW * width
        and not after.text.isupper()
        and all(line.left > after.left + 0.1 * width for line in group)
        and _is_centred(group, after, width)
        and group[-1].text[-1] not in ",;"
    )


def _is_centred(group: Sequence[Line], after: Line, width: float) -> bool:
    shift = group[0].left + group[0].right - after.left - after.right
    return after.page == group[-1].page and abs(shift) < 2 * _SAME_MIDDLE * width


def _is_apart(lines: Sequence[Line], number: int, pitch: float) -> bool:
    before, line = lines[number - 1], lines[number]
    return number == 0 or before.page != line.page or before.y - line.y > 1.2 * pitch or before.y < line.y


def _is_in_capitals(text: str) -> bool:
    return text.isupper() and _WORD.search(text) is not None and _FILED.match(text) is None


def _is_capitalised(text: str) -> bool:
    """Whether the words, small ones aside, have capitals, and no mark or number hints at a name or a formula."""
    if _NOT_CAPITALISED.search(text) or _CAPTION.match(text) or _FILED.match(text) or not _is_wording(text):
        return False
    return all(word[0].isupper() or word.lower() in _SMALL for word in text.split()) and could_be_title(text)


def _in_order(places: Sequence[tuple[int, str]]) -> Iterator[int]:
    """The places of numbers that count up by one: roman ones from I, letters from A below each of them."""
    texts = [text.rstrip(".") for _, text in places]
    if "II" not in texts and "B" not in texts:
        return
    roman = letter = 0
    for (place, _), text in zip(places, texts, strict=True):
        if set(text) <= set("IVX") and roman_value(text) == roman + 1:
            roman, letter = roman + 1, 0
            yield place
        elif text == chr(ord("A") + letter):
            letter += 1
            yield place


def _without_labels(lines: Sequence[Line], groups: Sequence[range], size: float) -> list[range]:
    """Leave out the labels of figures; a title may have a figure below its authors."""
    body = [line for line in lines if abs(line.size - size) <= _SAME_SIZE * size] or lines
    width = median(line.right - line.left for line in body) if groups else 0.0
    return [
        group
        for group in groups
        if group.start < _TOP_LINES
        or parse(text := _text(lines, group)) is not None
        or _is_unnumbered(text)
        or not _is_label(lines, group, width)
    ]


def _is_label(lines: Sequence[Line], group: range, width: float) -> bool:
    """Whether only narrow lines are between a group of lines and the caption of a figure below."""
    last = lines[group.stop - 1]
    for line in lines[group.stop : group.stop + _MAX_LABELS + 1]:
        if line.page != last.page:
            return False
        if _FIGURE_CAPTION.match(line.text):
            return line.y < last.y  # else the caption is in another column
        if line.right - line.left >= _NARROW * width:
            return False
    return False


def _stands_out(line: Line, size: float, is_bold_rare: bool) -> bool:
    if line.size >= _LARGER * size or (line.is_bold and is_bold_rare and line.size > 0.95 * size):
        return True
    if _is_unnumbered(line.text):
        return True
    numbered = parse(line.text)
    return numbered is not None and numbered.title.isupper() and len(numbered.title) > 3


def _is_unnumbered(text: str) -> bool:
    return text[0].isupper() and _UNNUMBERED.fullmatch(text) is not None


def _continues(before: Line, line: Line, size: float, is_bold_rare: bool) -> bool:
    is_same = (line.size, line.page) == (before.size, before.page)
    is_same &= line.is_bold == before.is_bold or line.size >= _TITLE * size  # titles mix type
    is_near = 0 <= before.y - line.y < 1.7 * line.size
    is_one = _is_unnumbered(before.text) or _is_unnumbered(line.text)  # is a heading by itself
    return is_same and is_near and not is_one and _stands_out(line, size, is_bold_rare) and parse(line.text) is None


def _is_heading(lines: Sequence[Line], group: range, size: float, pitch: float) -> bool:
    line, text = lines[group.start], _text(lines, group)
    is_large = line.size >= _TITLE * size
    if len(text) > _MAX_CHARS or not _is_wording(text) or _CAPTION.match(text) or is_contents_line(text):
        return False
    is_known = _is_unnumbered(text)
    is_numbered = line.is_bold and (text[0] == "\u00a7" or parse(text.rstrip(".")) is not None)
    ends_open = text[-1] in ",;" or (text[-1] == "." and not (is_large or is_known or is_numbered))
    if ends_open or (text[0].islower() and not is_large):
        return False
    if line.cells and not is_large and parse(text) is None:  # a row of a table
        return False
    before = lines[group.start - 1] if group.start else None
    if before is None or before.page != line.page or line.size >= _LARGER * size:
        return True
    is_close = 0 <= before.y - line.y < 1.15 * pitch
    return not is_close or (is_numbered and before.text[-1] in ".!?" and not before.is_bold)


def _is_wording(text: str) -> bool:
    """Whether a text is made of words and numbers; a formula has signs and single letters."""
    if not (text[0].isalnum() or text[0] in _OPENING) or _PRIVATE_USE.search(text):
        return False
    in_words = sum(map(len, _WORD.findall(text)))
    return in_words >= 3 and in_words >= _SHARE_IN_WORDS * sum(not char.isspace() for char in text)


def _share_of_bold(lines: Sequence[Line], size: float) -> float:
    body = [line for line in lines if abs(line.size - size) < _SAME_SIZE * size]
    return sum(len(line.text) for line in body if line.is_bold) / max(1, sum(len(line.text) for line in body))


def _title(lines: Sequence[Line], groups: Sequence[range], size: float) -> range | None:
    """The group that is the title; None without one.

    The largest group of the first page, if over `_TITLE` times the body size, is the title where no other group is as
    large, or where it is at the very top. If it is not that large, the first group is the title where it is at the
    very top, in a type that no other group has. Otherwise the title is the last heading above the first text.
    """
    front = [group for group in groups if lines[group.start].page == 0 and _may_be_title(lines, group)]
    if not front:
        return None
    largest = max(front, key=lambda group: (lines[group.start].size, -group.start))
    if lines[largest.start].size > _TITLE * size:
        n_as_large = sum(lines[group.start].size >= lines[largest.start].size for group in groups)
        is_title = n_as_large == 1 or _is_first_of_words(lines, largest)
        return largest if is_title else _last_above_text(lines, groups, size)
    styles = Counter(_style(lines[group.start]) for group in groups)
    is_only = styles[_style(lines[front[0].start])] == 1 and len(groups) > 1
    is_title = is_only and _is_first_of_words(lines, front[0])
    return front[0] if is_title else _last_above_text(lines, groups, size)


def _last_above_text(lines: Sequence[Line], groups: Sequence[range], size: float) -> range | None:
    """The last heading of several words above all text in the size of the body, or a larger one.

    Official papers print office, place and file number above their subject, all in the type of their headings.
    """
    in_groups = {number: group for group in groups for number in group}
    title = None
    for number, line in enumerate(lines):
        group = in_groups.get(number)
        if line.page > 0 or (group is None and line.size > (1 - _SAME_SIZE) * size):
            return title
        if group is not None and _is_of_words(_text(lines, group)):
            title = group
    return title


def _style(line: Line) -> _Style:
    return line.size, line.is_bold


def _may_be_title(lines: Sequence[Line], group: range) -> bool:
    """Whether a group can be the title: a numbered heading or one such as "Abstract" only at the very top."""
    text = _text(lines, group)
    is_at_top = group.start < _TOP_LINES
    return not _FILED.match(text) and (is_at_top or (parse(text) is None and not _is_unnumbered(text)))


def _is_first_of_words(lines: Sequence[Line], group: range) -> bool:
    """Whether a group among others in the same type is a title: at the top, without a number, of several words."""
    return group.start < _TOP_LINES and _is_of_words(_text(lines, group))


def _is_of_words(text: str) -> bool:
    return parse(text) is None and len(_WORD.findall(text)) >= _MIN_TITLE_WORDS


def _levels(lines: Sequence[Line], groups: Sequence[range]) -> list[int]:
    styles = [_style(lines[group.start]) for group in groups]
    numbers = [parse(_text(lines, group)) for group in groups]
    of_style: dict[_Style, Counter[int]] = {}
    for style, numbered in zip(styles, numbers, strict=True):
        if numbered is not None and numbered.kind is not LineKind.NAMED:
            of_style.setdefault(style, Counter())[numbered.level] += 1
    ranks = {style: rank for rank, style in enumerate(sorted(set(styles), reverse=True), start=1)}
    levels = []
    for style, numbered, group in zip(styles, numbers, groups, strict=True):
        text = _text(lines, group)
        if of_style and style not in of_style and _is_unnumbered(text):
            levels.append(1)  # a known word among numbered headings
        elif numbered is not None and numbered.kind is not LineKind.NAMED:
            levels.append(numbered.level)
        else:
            is_letter = _BARE.fullmatch(text) is not None and not set(text) <= set("IVX.")
            levels.append(is_letter + (of_style[style].most_common(1)[0][0] if style in of_style else ranks[style]))
    return levels


def _text(lines: Sequence[Line], group: range) -> str:
    return " ".join(lines[number].text for number in group)
