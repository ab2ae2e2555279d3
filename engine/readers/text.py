"""Plain text: the lines of a file, without what pages had around its words and inside its sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import islice, pairwise

from engine.errors import DocumentError
from engine.readers import left_out as reasons
from engine.readers.encoding import decode
from engine.readers.fields import case_fields, case_name, dated, split_names, typed_scalar
from engine.text.cleaning import (
    joined_words,
    regex,
    without_deleted,
    without_encoded,
    without_gaps,
    without_invisible,
    without_readings,
)
from engine.text.document import Document, MetadataValue, Unreadable, assemble
from engine.text.headings import (
    NAMES,
    could_be_title,
    find_headings,
    is_contents_line,
    is_part_of_opinion,
    names_part,
    parse,
    roman_value,
)

_APS = regex(r"^PATN[ \t]*\n(?:[^\n]*\n)*?WKU[ \t]+\w", re.MULTILINE)  # maybe behind the head of a weekly file
_ENTRIES = regex(r"\s*(?:PMID- ?\d|TY  - [A-Z]|FN [^\n]*\nVR \d)")
_TITLE_OF_PATENT = regex(  # on a front page
    r"^[ \t]*[(\[]54[)\]][ \t]*(?:(?:Title|Bezeichnung|Titre)[ \t]*:)?[ \t]*"
    r"(\S[^\n]*(?:\n(?![ \t]*(?:[(\[]\d\d[)\]]|\n))[^\n]+){0,2})",
    re.MULTILINE,
)
_HEAD_CHARS = 4_000
_PAGE_NUMBER = regex(r"\W*(?:page\s+)?(?:\d{1,4}|[ivxlc]{1,7})(?:\s*(?:of|/)\s*\d{1,4})?\W*$", re.IGNORECASE)
_NUMBER = regex(r"\d+")
_ENDS_OPEN = regex(r"[^\W\d_][,;]?$|,$|[-\u2010\u00ad¬]$")
_PART = regex(rf"\W*(?:canto|letter|act|scene|lecture|exhibit|claim|question|{'|'.join(NAMES)})\s*0\W*$")
_SET_APART = regex(
    r"\W{0,3}(?P<first>\d{1,4})[\])-]?(?: {3,}|\t)\S.*|.*\S(?: {3,}|\t)\W{0,3}(?P<last>\d{1,4})[\])-]?"
    r"|(?:.*\W)?page[ \t]+(?P<page>\d{1,4})(?:[ \t]+of[ \t]+\d+)?\W*|\W*(?P<bare>\d{1,4}|[ivxlc]{1,7})\W*",
    re.IGNORECASE,
)
CONTENT = regex(  # answers and notes, which repeat as heads do
    r"\W*(?:\d{1,3}[.)]?\s+)?(?:[aq][.:]\s|id\.|ibid\b|yes\b|no\b[.,]|(?:answer|question|m(?:r|s|rs)\. \w{1,40}"
    r"|the (?:court|witness|clerk|deponent|interpreter|reporter)):)"
    r"|[*\u2020\u2021]\s?[^\W\d_]"
    r"|\d{1,3}[.)]?\s+(?:(?:but )?see\b|cf\.|accord\b|[^\n]{1,80}(?:\b(?:supra|infra)\b|, at \d{1,4}\.$))",
    re.IGNORECASE,
)
_NAMED_PAGE = regex(
    r"[ \t=\u2013\u2014-]*\[?page \d{1,4}(?: of \d{1,4})?\]?[ \t=\u2013\u2014-]*|[ \t]*-+ ?\d{1,4} ?-+[ \t]*"
    r"|\S.*(?<!\s)\s{4,}+\[page \d{1,4}\]\s*",
    re.IGNORECASE,
)
STAMP = regex(  # of electronic filing: a case, and two fields with their numbers
    r"(?:Appellate\s|USCA\w{0,4}\s)?(?:Case|Appeal):?\s*#?\s*\d[\w:.-]{3,30},?\s"
    r"(?:[^\n]{0,80}?\b(?:Document|Doc|Filed|(?:Dkt)?Entry(?: ID| Number)?|Page(?:ID)?|Pg|ID)[.:]?\s?#?:?\s?\d){2}"
    r"[^\n]{0,60}$",
    re.IGNORECASE,
)
_WORDS_OF_PROSE = 8
_LINE_NUMBER = regex(r"(?P<feed>\f?)[ \t]{0,16}(?P<number>\d{1,2})(?:[ \t]{2,4}|[ \t]{5,}(?=\S)|[ \t]*$)")
_LEAST_NUMBERED, _SHARE_NUMBERED = 20, 0.7  # lines of a page, and of all lines
_MIN_PAGES = 3  # repetition on fewer pages is not counted
_EDGE_LINES = 4  # at the top and at the bottom of a page
_MAX_HEAD_CHARS = 150
_LEAST_APART = 8  # lines between two heads of a text without form feeds, on average
_MOST_HEADS = 0.5  # of the lines of such a text; more are its content
_SHARE_OF_PAGES = 0.6  # for heads without a number that counts
_SHARE_COUNTING = 0.3
_SHARE_INTERRUPTING = 0.3  # of the heads of a text without form feeds interrupt a sentence


@dataclass(frozen=True, slots=True)
class RunningText:
    """A text without the furniture of its pages."""

    text: str
    pages: tuple[int, ...]  # where each begins; empty without form feeds
    n_heads: int  # lines that were left out, and marks of pages inside sentences
    n_numbers: int = 0  # of lines


_STARRED = regex(r"\*\d|\u2605\d|\[[Pp]g")  # much faster than the whole pattern
_STAR = regex(
    r"(?P<cut>(?:-|(?<![ \t\n]))[ \t\n]*+|)(?:(?P<bold>\*\*)?\[(?:\*{1,2}|[Pp]g\.? )(?P<marked>\d{1,4})\](?(bold)\*\*)"
    r"|\u2605(?P<star>\d{1,4})(?!\d)|(?<![\w*])\*(?P<bare>\d{1,4})(?![\w*]|\.\s))"
    r"(?P<after>[ \t\n]*)"
)
_HYPHENS = ("-", "\u00ad", "\u2010", "¬")
_PAGE_TAG = regex(r"^<PAGE>[ \t]*\d*[ \t]*\n", re.MULTILINE)  # in filings of the SEC
_STRUCK_OVER = regex(r".\x08(?!_)|\x08_|\x1b\[[\d;?]{0,20}[A-Za-z]")  # by a printer or a terminal


def without_star_pages(text: str) -> tuple[str, int]:
    """Leave out the numbers of printed pages, as "[*4]", "*4" or "[Pg 4]", in text that has them in order."""
    marks = list(_STAR.finditer(text)) if len(_STARRED.findall(text)) > 1 else []
    numbers = [int(next(filter(None, match.group("marked", "star", "bare")))) for match in marks]
    if len(marks) < 2 or not _rises(numbers):
        return text, 0

    def joined(match: re.Match[str]) -> str:
        if match["cut"].startswith("-") and text[match.end() : match.end() + 1].islower():
            return ""
        return max(match["cut"].lstrip("-"), match["after"], key=lambda blank: (blank.count("\n"), blank))

    return _STAR.sub(joined, text), len(marks)


def running_text(text: str) -> RunningText:
    """Leave out running heads and page numbers, and join the sentences and words that pages and lines cut."""
    text = _STRUCK_OVER.sub("", text) if "\x08" in text or "\x1b" in text else text
    text = _PAGE_TAG.sub("\f", text).removeprefix("\f") if "<PAGE>" in text else text
    text, n_stars = without_star_pages(without_gaps(without_invisible(text)))
    if "\n" not in text and "\f" not in text:
        return RunningText(text, (), n_stars)
    text, n_numbers = _without_line_numbers(text)
    pages = [page.split("\n") for page in text.split("\f")]
    stamped = [{place for place, line in enumerate(page) if STAMP.match(line.strip())} for page in pages]
    pages = [_closed_up(page, stamps) if stamps else page for page, stamps in zip(pages, stamped, strict=True)]
    n_lines = sum(map(len, (*pages, *stamped)))
    pages = _without_heads(pages) if len(pages) > 1 else pages
    pages = pages if len(pages) >= _MIN_PAGES else [_without_interruptions(page) for page in pages]
    n_heads = n_lines - sum(map(len, pages))
    starts = [0]
    parts: list[str] = []
    size = n_joined = 0
    for number, page in enumerate(pages):
        part = joined_words("\n".join(page))
        if number:
            before = parts[-1].rstrip()
            is_cut = before[-1:] in _HYPHENS and before[-2:-1].isalpha()  # a word, with no head above its rest
            if (n_heads or is_cut) and _goes_on(before[-3:], part):
                n_joined += 1
                size -= len(parts[-1]) - len(before)
                parts[-1] = before
                part = "\n" + part.lstrip()
            else:
                part = "\f" + part
            starts.append(size + 1)
        parts.append(part)
        size += len(part)
    joined = "".join(parts)
    if len(pages) > 1 and (n_heads or n_joined):
        whole = joined_words(joined, was_set=True)
        if len(whole) != len(joined):  # words that a page cuts
            starts = [round(start * len(whole) / max(1, len(joined))) for start in starts]
            joined = whole
    return RunningText(joined, tuple(starts) if len(pages) > 1 else (), n_heads + n_stars, n_numbers)


def _without_line_numbers(text: str) -> tuple[str, int]:
    """Leave out the numbers of the lines of filings and transcripts, which start again on each page."""
    lines = re.split(r"\n|(?<=[^\n])(?=\f)", text)
    found = {place: match for place, line in enumerate(lines) if (match := _LINE_NUMBER.match(line))}
    runs: list[list[int]] = []
    for place, match in found.items():
        if int(match["number"]) == 1:
            runs.append([place])
        elif runs and int(match["number"]) == len(runs[-1]) + 1:
            runs[-1].append(place)
    first_lines = {run[0] for run in runs[1:]} if "\f" not in text else ()
    runs = [run for run in runs if len(run) >= _LEAST_NUMBERED]
    numbered = [place for run in runs for place in run]
    n_shown = sum(1 for line in lines if line.strip())
    if len(runs) < 2 or len(numbered) < _SHARE_NUMBERED * n_shown:
        return text, 0
    for place in numbered:
        feed = "\f" if place in first_lines else found[place]["feed"]
        lines[place] = feed + lines[place][found[place].end() :]
    return "\n".join(lines).replace("\n\f", "\f"), len(numbered)


def _without_heads(pages: Sequence[list[str]]) -> list[list[str]]:
    """Leave out lines at the edges of pages that count with the pages, or that repeat on most of them beside such.

    The name of a part of an opinion stays where it stands for the first time.
    """
    tops = [_edge(page, range(len(page))) for page in pages]
    feet = [_edge(page, range(len(page) - 1, -1, -1)) for page in pages]
    lines = {page[at] for page, *edges in zip(pages, tops, feet, strict=True) for edge in edges for at in edge}
    masked = {line: _mask(line) for line in lines}
    sides = [(edges, _repeated(pages, edges, masked), _counting(pages, edges)) for edges in (tops, feet)]
    kept = []
    part = ""
    for number, page in enumerate(pages):
        dropped: set[int] = set()
        for edges, masks, counting in sides:
            edge = edges[number]
            last = max((at for at, place in enumerate(edge) if masked[page[place]] in masks), default=-1)
            dropped |= {place for at, place in enumerate(edge) if masked[page[place]] in masks or (
                at <= last and _PAGE_NUMBER.match(page[place]) is not None)}  # fmt: skip
            if edge and number in counting:
                dropped.add(edge[0])
        place, before = _place_of_part(page, dropped), part
        part = page[place].strip().casefold() if place >= 0 else ""
        if dropped:
            dropped = dropped | {place} if part == before else dropped - {place}
        kept.append([line for at, line in enumerate(page) if at not in dropped])
    return kept


def _place_of_part(page: Sequence[str], dropped: set[int]) -> int:
    """Where the name of the part of the text stands, under the running head of a page if it has one; -1 without."""
    for place in islice((place for place, line in enumerate(page) if line.strip()), _EDGE_LINES + 1):
        title = page[place].strip()
        if is_part_of_opinion(title):
            return place if _stands_alone(page, place) else -1
        if dropped and place > min(dropped) and place not in dropped:
            is_name = could_be_title(title) and page[place].startswith("      ") and not re.search(r"[\d?!]", title)
            return place if is_name and _stands_alone(page, place) else -1
    return -1


def _stands_alone(page: Sequence[str], place: int) -> bool:
    return not any(page[beside].strip() for beside in (place - 1, place + 1) if 0 <= beside < len(page))


def _counting(pages: Sequence[Sequence[str]], edges: Sequence[Sequence[int]]) -> frozenset[int]:
    """Pages whose outermost line stands alone with a number set apart that rises with the pages, be they only two."""
    values: dict[int, int] = {}
    by_mask: dict[str, list[int]] = {}
    over_parts: set[int] = set()
    for number, (page, edge) in enumerate(zip(pages, edges, strict=True)):
        line = page[edge[0]].strip() if edge and _stands_alone(page, edge[0]) else ""
        match = _SET_APART.fullmatch(line) if len(line) <= _MAX_HEAD_CHARS else None
        if match is None and len(line.split()) > 3 and line.split()[-1] == str(number + 1):
            match = _NUMBER.search(line, line.rindex(" "))
        mask = _mask(line) if match is not None else ""
        if match is not None and not (_PART.match(mask) or CONTENT.match(mask)):
            page_number = match[match.lastindex or 0]
            values[number] = int(page_number) if page_number.isdecimal() else roman_value(page_number)
            by_mask.setdefault(mask, []).append(number)
            if _place_of_part(page, {edge[0]}) > edge[0]:
                over_parts.add(number)
    found = over_parts | {number for first in values for number in (first, first + 1, first + 2)
             if all(values.get(first + step) == values[first] + step for step in (1, 2))}  # fmt: skip
    for numbers in by_mask.values():
        n_rising = sum(values[b] - values[a] == b - a for a, b in pairwise(numbers))
        if n_rising and n_rising >= _SHARE_OF_PAGES * (len(numbers) - 1):
            found.update(numbers)
    return frozenset(found)


def _edge(page: Sequence[str], places: range) -> list[int]:
    """The outermost lines that are not blank."""
    shown = [place for place in places if page[place].strip()] if len(page) > 1 else []
    return shown[: min(_EDGE_LINES, max(1, len(shown) // 3))]


def _repeated(
    pages: Sequence[Sequence[str]], edges: Sequence[Sequence[int]], masked: Mapping[str, str]
) -> frozenset[str]:
    """Masks of the lines at one edge that are furniture: by their numbers, or by their places on most pages."""
    counts: Counter[str] = Counter()
    counting: Counter[tuple[str, int]] = Counter()
    apart: Counter[str] = Counter()
    for number, (page, edge) in enumerate(zip(pages, edges, strict=True)):
        counts.update({masked[page[place]] for place in edge if len(page[place].strip()) <= _MAX_HEAD_CHARS})
        for line in (page[place] for place in edge):
            values = {int(value) - number for value in _NUMBER.findall(line) if len(value) < 6}
            counting.update((masked[line], value) for value in values)
    n_full = sum(1 for edge in edges if edge)
    enough = max(_MIN_PAGES, n_full * _SHARE_COUNTING)
    by_number = {mask for (mask, _), n_pages in counting.items() if n_pages >= enough}
    most = max(_MIN_PAGES, n_full * _SHARE_OF_PAGES)
    for page, edge in zip(pages, edges, strict=True):
        for place in edge:
            sides = page[:place][::-1], page[place + 1 :]  # lines of the same head are passed over
            beside = (
                next((line for line in side if _is_prose(line) or counts[_mask(line)] < most), "text") for side in sides
            )
            is_apart = any(
                not line.strip() or (_PAGE_NUMBER.match(line) and _mask(line) in by_number) for line in beside
            )
            apart[masked[page[place]]] += is_apart
    by_place = {mask for mask, n_pages in counts.items() if n_pages >= most and apart[mask] >= 0.9 * n_pages}
    found = {mask for mask in by_number | by_place if not (_PART.match(mask) or CONTENT.match(mask))}
    return frozenset(found - {mask for line, mask in masked.items() if mask in found and _is_prose(line)})


def _is_prose(line: str) -> bool:
    """Whether a line is of a sentence: many words, most of them in small letters, without a gap."""
    words = line.split()
    n_small = sum(word[0].islower() for word in words)
    return len(words) >= _WORDS_OF_PROSE and n_small > 0.6 * len(words) and "   " not in line.strip()


def _mask(line: str) -> str:
    return _NUMBER.sub("0", " ".join(line.split())).casefold()


def _without_interruptions(lines: Sequence[str]) -> list[str]:
    """Leave out the running heads of a text without form feeds: they count up, and they interrupt sentences."""
    places: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        ends = line.strip(" \t[]-")
        if (
            ends
            and len(line) <= _MAX_HEAD_CHARS
            and (ends[0].isdigit() or ends[-1].isdigit())
            and (_NAMED_PAGE.fullmatch(line) or not _is_prose(line))
        ):
            places.setdefault(_mask(line), []).append(place)
    dropped: set[int] = set()
    for found in places.values():
        is_sparse = _MIN_PAGES <= len(found) <= len(lines) / _LEAST_APART
        if is_sparse and _counts_up([lines[place] for place in found]):
            blocks = _with_neighbours(lines, found)
            n_inside = sum(_interrupts(lines, block) for block in blocks)
            is_named = sum(_NAMED_PAGE.fullmatch(lines[place]) is not None for place in found) > 0.8 * len(found)
            is_bare = all(len(block) == 1 for block in blocks) and lines[found[0]].strip().isdigit()
            share = 2 * _SHARE_INTERRUPTING if is_bare else _SHARE_INTERRUPTING
            if is_named or n_inside >= max(1, share * len(found)):
                dropped.update(place for block in blocks for place in block)
    has_text = [bool(line.strip()) for line in lines]
    are_heads = 0 < sum(has_text[place] for place in dropped) < _MOST_HEADS * sum(has_text)
    return _closed_up(lines, dropped) if are_heads else list(lines)


def _closed_up(lines: Sequence[str], dropped: set[int]) -> list[str]:
    """The lines that stay; of the blank lines around a dropped one, none stay inside a sentence and one elsewhere."""
    kept: list[str] = []
    is_gap = False
    for place, line in enumerate(lines):
        if place in dropped:
            is_gap = True
            while kept and not kept[-1].strip():
                kept.pop()
        elif is_gap and line.strip():
            is_gap = False
            kept += [line] if not kept or _goes_on(kept[-1], line) else ["", line]
        elif not is_gap:
            kept.append(line)
    return kept


def _counts_up(lines: Sequence[str]) -> bool:
    """Whether one number of the lines rises by one or two from line to line."""
    rows = [[int(value) for value in _NUMBER.findall(line) if len(value) < 6] for line in lines]
    n_columns = min(map(len, rows), default=0)
    columns = ([row[column] for row in rows if row] for column in (*range(n_columns), -1))
    return any(len(values) >= _MIN_PAGES and _rises(values) for values in columns)


def _rises(values: Sequence[int]) -> bool:
    """Whether numbers rise by one or two from each to the next, with few exceptions."""
    return sum(0 < b - a <= 2 for a, b in pairwise(values)) >= 0.8 * (len(values) - 1)


def _with_neighbours(lines: Sequence[str], found: Sequence[int]) -> list[list[int]]:
    """Counting lines, each with the lines that repeat at the same distance from most of them."""
    blocks = [[place] for place in found]
    for step in (-1, 1):
        for offset in range(step, step * 2 * _EDGE_LINES + step, step):
            masks = [_mask(lines[place + offset]) if 0 <= place + offset < len(lines) else "" for place in found]
            mask, n_equal = Counter(masks).most_common(1)[0]
            if n_equal < _SHARE_OF_PAGES * len(found) or _is_prose(mask) or CONTENT.match(mask):
                break
            for block, place, own in zip(blocks, found, masks, strict=True):
                if mask and own == mask:
                    block.append(place + offset)
    return [sorted(block) for block in blocks]


def _interrupts(lines: Sequence[str], block: Sequence[int]) -> bool:
    before = next((lines[place] for place in range(block[0] - 1, -1, -1) if lines[place].strip()), "")
    after = next((lines[place] for place in range(block[-1] + 1, len(lines)) if lines[place].strip()), "")
    return _goes_on(before, after)


def _goes_on(before: str, after: str) -> bool:
    """Whether a sentence goes on from one text to another."""
    return _ENDS_OPEN.search(before.rstrip()) is not None and after.lstrip()[:1].islower()


_FIELD = regex(r"([A-Z][A-Za-z-]{1,30}):[ \t]+(\S.*)")
_MOST_ABOVE = 20_000
_BOOK, _BOOK_FIELD = regex("Project Gutenberg"), regex(r"^(Title|Author|Language): (\S.*)", re.MULTILINE)
_BOOK_STARTS, _BOOK_ENDS = (
    regex(rf"^\*\*\* ?{border} OF (?:THE|THIS) PROJECT GUTENBERG[^\n]*", re.MULTILINE | re.IGNORECASE)
    for border in ("START", "END")
)
_PATENT_NUMBER = regex(r"(?:Patent:? |Publication:? )?[A-Z]{2}[ -]?[\d,/ -]{6,20}(?: ?[A-Z]\d?)?")
_COLUMNS = regex(r"\S(?: {3,}|\t)\S")
AUTHORS = ("author", "authors")


def read(data: bytes, doc_id: str, source: str) -> Document | Iterator[Document | Unreadable]:
    """Read plain text; a form feed ends a page.

    Running heads and page numbers are left out, and words that a line break cuts are
    joined. A first block of `Name: value` lines, as PEPs and mails have, is metadata under
    names in lower case, and stays in the text. The title is its Title or Subject, or
    the parties of a court paper, or the first block of one or two short lines without the
    marks of a sentence, else the file's name.
    """
    decoded, n_encoded = without_encoded(decode(data))
    if decoded.startswith("{\\rtf"):
        raise DocumentError("it is RTF; save it as .docx or .odt")
    if _APS.search(decoded, 0, 1_000):
        from engine.readers.patents import read_aps  # few texts are patents

        return read_aps(decoded, doc_id, source)
    if _ENTRIES.match(decoded):
        from engine.readers.bibliography import read_entries  # and few are bibliographies

        return read_entries(decoded, doc_id, source)
    if _CUE.search(decoded, 0, 1_000):
        return _read_cues(decoded, doc_id, source)
    return read_plain(decoded, n_encoded, doc_id, source)


_CUE = regex(
    r"^[ \t]*(?:\d{1,3}:)?\d{1,2}:\d\d[.,]\d{1,3}[ \t]+-->[ \t]+(?:\d{1,3}:)?\d{1,2}:\d\d[.,]\d{1,3}[^\n]*\n?",
    re.MULTILINE,
)
_VOICE = regex(r"<v(?:\.[\w.]{1,50})?[ \t]+(?P<name>[^<>\n]{1,100})>")
_CUE_MARKS = regex(r"<rt>[^<\n]{0,100}</rt>|</?[A-Za-z\d][^<>\n]{0,200}>|\{\\[^{}\n]{0,100}\}")
_TURN = regex(r"(?:[-\u2013\u2014]|>>)\s?\S")
_CUE_BLOCKS = {
    "WEBVTT": reasons.FRONT_MATTER,
    "NOTE": reasons.COMMENT_WORDS,
    **dict.fromkeys(["STYLE", "REGION"], reasons.RAW),
}


def _read_cues(decoded: str, doc_id: str, source: str) -> Document:
    """Read subtitles (WebVTT, SRT): the lines without numbers, times and marks; a change of the speaker is a paragraph.

    Lines that roll up, and so are in two cues, are written once.
    """
    left_out: Counter[str] = Counter()
    lines: list[str] = []
    shown: list[str] = []
    title = speaker = ""
    for block in re.split(r"\n(?:[ \t]*\n)+", decoded.strip()):
        cue, first = _CUE.search(block), block.partition("\n")[0]
        kind = first.partition(" ")[0]
        if cue is None and kind in _CUE_BLOCKS:
            title = first.removeprefix("WEBVTT").strip(" \t-") if kind == "WEBVTT" else title
            left_out[_CUE_BLOCKS[kind]] += len(block.split()) - (len(first.split()) if kind == "WEBVTT" else 1)
            continue
        left_out[reasons.CUES] += cue is not None
        for line in block[cue.end() if cue else 0 :].split("\n"):
            voice = _VOICE.search(line)
            name = voice["name"].strip() if voice else speaker
            text = " ".join(unescape(_CUE_MARKS.sub("", line)).split())
            if not text or text in shown[-2:]:
                continue
            shown.append(text)
            if name != speaker or _TURN.match(text):
                lines.append("")
            lines.append(f"{name}: {text}" if name != speaker else text)
            speaker = name
    text = joined_words("\n".join(lines).strip("\n"))
    return assemble(text, [], doc_id=doc_id, source=source, title=title, metadata={}, left_out=left_out)


def read_plain(decoded: str, n_encoded: int, doc_id: str, source: str) -> Document:
    """Read a text that is in no form of its own."""
    decoded, n_readings = without_readings(decoded)
    decoded, n_deleted = without_deleted(decoded)
    above, book = _book_of(decoded)
    running = running_text(book)
    text = running.text
    fields = header_fields(above or text)
    case = case_name(text)
    title = fields.pop("title", "") or fields.pop("subject", "") or case or _title(text)
    metadata = (case_fields(text) if case else {}) | metadata_of(fields)
    return assemble(
        text,
        find_headings(text),
        doc_id=doc_id,
        source=source,
        title=title,
        metadata=metadata,
        pages=running.pages,
        left_out={
            reasons.RUNNING_HEADS: running.n_heads,
            reasons.LINE_NUMBERS: running.n_numbers,
            reasons.ENCODED: n_encoded,
            reasons.READINGS: n_readings,
            reasons.DELETED: n_deleted,
            reasons.PAGE_FRAME: len(decoded.split()) - len(book.split()) if above else 0,
        },
    )


def _book_of(text: str) -> tuple[str, str]:
    """What Project Gutenberg writes above a book, and the book without its license; "" above another text."""
    start = _BOOK_STARTS.search(text, 0, _MOST_ABOVE)
    end = _BOOK_ENDS.search(text, start.end()) if start else None
    return (text[: start.start()], text[start.end() : end.start()]) if start and end else ("", text)


def header_fields(text: str, field: re.Pattern[str] = _FIELD) -> dict[str, str]:
    """The fields of a first block in which every line is `Name: value` or continues the line before.

    `field` matches such a line, with the name and the value as groups. Names are in lower case; empty where the text
    has no such block of two fields or more.
    """
    fields: dict[str, str] = {}
    if _BOOK.search(text, 0, 200):
        return {match[1].lower(): match[2] for match in _BOOK_FIELD.finditer(text, 0, 4_000)}
    name = ""
    for line in re.split(r"\n[ \t]*\n", text[:4000].lstrip("\n"), maxsplit=1)[0].split("\n"):
        if match := field.fullmatch(line):
            name = match[1].lower()
            fields[name] = match[2].strip()
        elif name and line.startswith((" ", "\t")):
            fields[name] += " " + line.strip()
        else:
            return {}
    return fields if len(fields) > 1 else {}


def metadata_of(fields: Mapping[str, str]) -> dict[str, MetadataValue]:
    """The fields of a header as metadata: names of authors in a list, a date in ISO form."""
    metadata: dict[str, MetadataValue] = {
        name: typed_scalar(value) for name, value in fields.items() if name not in AUTHORS
    }
    names = [name for field in AUTHORS for name in split_names(fields.get(field, ""))]
    return metadata | dated(fields.get("date", "")) | ({"authors": [*names]} if names else {})


def _title(text: str) -> str:
    """The first block that could be a title; only blocks of columns, as in RFCs, or numbers of patents can be above."""
    if named := _TITLE_OF_PATENT.search(text, 0, _HEAD_CHARS):
        return " ".join(named[1].split())
    for block in re.split(r"\n[ \t]*\n\s*", text[:_HEAD_CHARS].strip("\n\f "))[:3]:
        lines = [line for line in block.split("\n") if re.search(r"\w", line)]
        if len(lines) in (1, 2) and not _COLUMNS.search(block.strip()):
            title = " ".join(line.strip(" \t#*=") for line in lines)
            if names_part(title) or is_contents_line(lines[0]) or ((number := parse(title)) and not number.title):
                continue
            if _PATENT_NUMBER.fullmatch(title):
                continue
            return title if could_be_title(title) else ""
        if not all(_COLUMNS.search(line.strip()) for line in lines[:1]):
            return ""
    return ""
