"""Lines of a PDF page as pdfium orders them, with place and type, from its characters. Makes no document."""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ctypes import c_double, c_int, c_ushort, c_void_p, cast, create_string_buffer
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from operator import itemgetter
from re import Match
from statistics import median
from types import MappingProxyType
from typing import Any, TypeAlias

import pypdfium2.raw as pdfium

from engine.text.cleaning import RIGHT_TO_LEFT, as_read, has_both_directions, is_unspaced, without_gaps

_TextPage: TypeAlias = Any

LINE_END = "\n"
SOFT_HYPHEN = "\u00ad"
_LINE_END_CODES = frozenset([0x0A, 0x0D])
_HYPHEN_CODE = 2  # stands for a hyphen at the end of a line and for the end of that line
_OTHER_CODE = 0xFFFE  # in a text that is read at once, for that hyphen and for a character without a code
_LIGATURES = "\ufb00\ufb01\ufb02\ufb03\ufb04"  # ff, fi, fl, ffi, ffl
_T1: Mapping[int, str] = MappingProxyType(
    dict(zip(range(0x10, 0x17), "\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014", strict=True))
    | {0x19: "\u0131"}
    | dict(zip(range(0x1B, 0x20), _LIGATURES, strict=True))
)
_OT1: Mapping[int, str] = MappingProxyType(
    dict(zip(range(0x0B, 0x10), _LIGATURES, strict=True))
    | {0x10: "\u0131", 0x22: "\u201d", 0x5C: "\u201c", 0x7B: "\u2013", 0x7C: "\u2014"}
    | dict(zip(range(0x19, 0x20), "\u00df\u00e6\u0153\u00f8\u00c6\u0152\u00d8", strict=True))
)
_8R: Mapping[int, str] = MappingProxyType(  # of PostScript fonts in TeX
    dict(zip((0x13, 0x02, 0x03, 0x14, 0x15), _LIGATURES, strict=True))
    | dict(zip((0x11, 0x1E, *range(0x91, 0x98)), "\u0131`\u2018\u2019\u201c\u201d\u2022\u2013\u2014", strict=True))
)
_JOINER = "\u2060"  # in the place of half a sign; `expanded` leaves it out
_BLANK = "".join(filter(str.isspace, map(chr, range(0x3001)))) + _JOINER
_SYMBOL_FONT = re.compile(rb"(?:^|\+)(?:cmsy|cmex|cmbsy|msam|msbm|lasy|stmary|wasy)", re.IGNORECASE)
_ACCENTS: Mapping[str, str] = MappingProxyType(
    dict(zip("\u00b4`\u02c6~\u02dc\u00a8\u00af\u02d8\u02d9\u02da\u02c7\u00b8\u02db\u02dd", (
        "\u0301\u0300\u0302\u0303\u0303\u0308\u0304\u0306\u0307\u030a\u030c\u0327\u0328\u030b"), strict=True))
)  # fmt: skip
_FURTHEST = 120  # characters between an accent and its letter, which pdfium can read in front of it
_WORD = re.compile(r"[^\W\d_]{3,}")
_ENOUGH = 20  # a font with fewer characters, digits aside, counts as readable
_SHARE_IN_WORDS = 0.5
_MAX_FONT_NAME = 128
_LEAST_SIZE, _WINDOW = 0.3, 20  # of print; bitmaps have dots of 72/300 points; characters
_LOW, _SHARE_LOW = frozenset("acemnorsuvwxz"), 0.45  # letters without ascenders, and their height of the size
_VOWELS = "aeiouy\u00e6\u0153\u00f8\u0131"
_SHARE_VOWELS, _LEAST_LETTERS, _LEAST_USUAL = 0.16, 200, 16  # of letters of a page of print; letters; of the alphabet


def characters_of(text_page: _TextPage) -> tuple[str, int]:
    """The characters of a page, and how many of them cannot be decoded; such a character becomes a blank.

    The text has one character for each index of pdfium; `LINE_END` and `SOFT_HYPHEN` end a line.
    pdfium returns the bare code of a character whose font has no Unicode map. Such a
    code is a letter in some fonts, the number of a shape in others. A font counts as
    readable if most of its characters are in words.
    """
    codes = _codes(text_page)
    unmapped = _unmapped(text_page, codes)
    character_of = {code: _character(code) for code in set(codes)}
    characters = [*map(character_of.__getitem__, codes)]
    returns = [index for index, code in enumerate(codes[:-1]) if code == 0x0D and codes[index + 1] != 0x0A]
    for index in returns:  # old bitmap fonts name the shape of "c" by the number CR, which Ghostscript maps to U+000D
        left, right = _sides(text_page, index)
        if right > left and not pdfium.FPDFText_IsGenerated(text_page.raw, index):
            characters[index] = "c"
    of_font: dict[int, list[int]] = defaultdict(list)
    for index in unmapped:
        of_font[_font_key(text_page, index)].append(index)
    for indices in of_font.values():
        table = _table(codes[index] for index in indices)
        for index in indices:
            characters[index] = table.get(codes[index]) or _printable(codes[index])
    _pair_surrogates(text_page, codes, characters)
    _order_leftward(text_page, characters)
    n_unreadable = codes.count(0)
    in_words = _in_words("".join(characters)) if of_font else frozenset()
    for indices in of_font.values():
        is_symbol_font = _SYMBOL_FONT.search(_font_name(text_page, indices[0])) is not None
        if is_symbol_font or not _is_readable(characters, indices, in_words):
            n_unreadable += sum(not characters[index].isspace() or codes[index] < 32 for index in indices)
            for index in indices:
                characters[index] = " "
    _compose_accents(text_page, characters)
    return "".join(characters), n_unreadable


def _codes(text_page: _TextPage) -> list[int]:
    """The codes of the characters of a page, read at once where pdfium leaves none of them out of a text."""
    n_characters = pdfium.FPDFText_CountChars(text_page.raw)
    units = (c_ushort * (n_characters + 1))()
    is_whole = pdfium.FPDFText_GetText(text_page.raw, 0, n_characters, units) == n_characters + 1
    codes: list[int] = units[:n_characters]
    for index, code in enumerate(codes) if not is_whole or _OTHER_CODE in codes else ():
        if not is_whole or code == _OTHER_CODE:
            codes[index] = pdfium.FPDFText_GetUnicode(text_page.raw, index)
    return codes


def _compose_accents(text_page: _TextPage, characters: list[str]) -> None:
    """Write a letter and the accent that is printed over it, a sign of its own in fonts of TeX, as one letter."""
    accents = set(characters) & _ACCENTS.keys()
    for index in [index for index, character in enumerate(characters) if character in accents] if accents else ():
        left, right, (_, y), size = *_sides(text_page, index), _origin(text_page, index), _size(text_page, index)
        for at in sorted(range(index - _FURTHEST, index + _FURTHEST), key=lambda place: abs(place - index)):
            letter = characters[at] if 0 <= at < len(characters) else ""
            start, stop = _sides(text_page, at) if letter.isalpha() and letter not in _ACCENTS else (0.0, 0.0)
            if start < (left + right) / 2 < stop and abs(_origin(text_page, at)[1] - y) < _SHIFT * size:
                base = {"\u0131": "i", "\u0237": "j"}.get(letter, letter)
                composed = unicodedata.normalize("NFC", base + _ACCENTS[characters[index]])
                if len(composed) == 1:
                    characters[at] = composed
                    _take_out(text_page, characters, index)
                break


def _take_out(text_page: _TextPage, characters: list[str], index: int) -> None:
    """Take out a sign, and the spaces beside it that pdfium made up where the words around it are not apart."""
    first, last = index - 1, index + 1
    while first >= 0 and characters[first] in (" ", _JOINER):
        first -= 1
    while last < len(characters) and characters[last] in (" ", _JOINER):
        last += 1
    characters[first + 1 : last] = _JOINER * (last - first - 1)
    is_inside = first >= 0 and last < len(characters) and LINE_END not in (characters[first], characters[last])
    gap = _origin(text_page, last)[0] - _right(text_page, first) if is_inside else math.inf
    if gap >= WORD_GAP * _size(text_page, index):
        characters[last - 1] = " "


def _pair_surrogates(text_page: _TextPage, codes: Sequence[int], characters: list[str]) -> None:
    """Write signs beyond the first plane, which pdfium gives in halves; one that a font maps to itself twice is one."""
    last: tuple[str, tuple[float, float]] | None = None
    halves = {code for code in set(codes) if 0xD800 <= code < 0xDC00}
    for index in [index for index, code in enumerate(codes[:-1]) if code in halves] if halves else ():
        if not 0xDC00 <= codes[index + 1] < 0xE000:
            continue
        sign = chr(0x10000 + (codes[index] - 0xD800 << 10) + codes[index + 1] - 0xDC00)
        is_double, last = (sign, _origin(text_page, index)) == last, (sign, _origin(text_page, index))
        characters[index : index + 2] = [_JOINER if is_double else sign, _JOINER]


def _order_leftward(text_page: _TextPage, characters: list[str]) -> None:
    """Put the letters of words from right to left in their order.

    pdfium leaves some words as they are seen, and reverses the letters of a ligature with the line, unless each letter
    has a box of its own.
    """
    letters = {sign for sign in set(characters) if "\u0590" <= sign <= "\u08ff" and not sign.isdecimal()}
    start = 0
    for index in range(len(characters) + 1) if letters else ():
        if index < len(characters) and characters[index] in letters:
            continue
        if index - start > 1:
            word = [(_origin(text_page, at), _right(text_page, at), characters[at]) for at in range(start, index)]
            word = word[::-1] if word[0][0][0] < word[-1][0][0] else word
            groups = [list(group) for _, group in groupby(word, key=itemgetter(0))]
            ordered = (sorted(group[::-1], key=itemgetter(1), reverse=True) for group in groups)
            characters[start:index] = [letter for group in ordered for *_, letter in group]
        start = index + 1


_PIECE = re.compile(rf"[^{LINE_END}{SOFT_HYPHEN}]+")
_JOINED = "\v"  # in the place of what pdfium has between pieces of a line


def _with_pieces_joined(text_page: _TextPage, characters: str) -> str:
    """Join the pieces of lines from right to left, which pdfium ends behind each run of glyphs."""
    joined = list(characters)
    pieces = _PIECE.finditer(characters) if RIGHT_TO_LEFT.search(characters) else ()
    for before, piece in pairwise(piece for piece in pieces if piece.group().strip()):
        between = range(before.end(), piece.start())
        is_leftward = RIGHT_TO_LEFT.search(before.group()) or RIGHT_TO_LEFT.search(piece.group())
        if is_leftward and all(characters[at] == LINE_END for at in between):
            (left, right, y, size), (start, stop, height, _) = (_extent(text_page, one) for one in (before, piece))
            if abs(y - height) < _SHIFT * size and max(start - right, left - stop) < _CELL_GAP * size:
                joined[before.end() : piece.start()] = _JOINED * len(between)
    return "".join(joined)


def _extent(text_page: _TextPage, piece: Match[str]) -> tuple[float, float, float, float]:
    """The left and right edges, the height and the type size of a piece of a line."""
    places = [at for at, sign in enumerate(piece.group(), piece.start()) if not sign.isspace()]
    left, right = min(_origin(text_page, at)[0] for at in places), max(_right(text_page, at) for at in places)
    return left, right, _origin(text_page, places[0])[1], _size(text_page, places[0])


def expanded(text: str) -> str:
    """Write the ligatures of `characters_of` as letters, as pdfium writes those of mapped fonts, and signs whole."""
    for ligature, letters in zip(_LIGATURES, ("ff", "fi", "fl", "ffi", "ffl"), strict=True):
        text = text.replace(ligature, letters)
    return text.replace(_JOINER, "")


def _unmapped(text_page: _TextPage, codes: Sequence[int]) -> list[int]:
    """Indices of characters without a Unicode map; none where only letters and digits lack one."""
    page, is_unmapped = text_page.raw, pdfium.FPDFText_HasUnicodeMapError
    are_signs = {code for code in set(codes) if not (code == 32 or _printable(code).isalnum())}
    if not any(is_unmapped(page, index) == 1 for index, code in enumerate(codes) if code in are_signs):
        return []
    return [index for index in range(len(codes)) if is_unmapped(page, index) == 1]


def _character(code: int) -> str:
    if code in _LINE_END_CODES:
        return LINE_END
    return SOFT_HYPHEN if code == _HYPHEN_CODE else _T1.get(code) or _printable(code)


def _printable(code: int) -> str:
    return chr(code) if 32 <= code < 0xD800 or 0xE000 <= code <= 0x10FFFF else " "


def _table(codes: Iterable[int]) -> Mapping[int, str]:
    """The TeX encoding of a font, by the codes of its ligatures."""
    counts = Counter(codes)
    balance = sum(counts[code] for code in range(0x0B, 0x10)) - sum(counts[code] for code in range(0x1B, 0x1E))
    is_8r = 0 < counts[0x02] + counts[0x03] < 0.1 * sum(counts[code] for code in range(ord("a"), ord("{")))
    return _OT1 if balance > 0 else _8R if is_8r and not balance else _T1


def _in_words(text: str) -> frozenset[int]:
    """Places of the letters in words of at least three letters, of which at most half are ligatures."""
    places: list[int] = []
    for match in _WORD.finditer(text):
        word = match.group()
        if sum(letter in _LIGATURES for letter in word) * 2 <= len(word):
            places.extend(range(match.start(), match.end()))
    return frozenset(places)


def _is_readable(characters: Sequence[str], indices: Sequence[int], in_words: frozenset[int]) -> bool:
    judged = [index for index in indices if not characters[index].isdigit() and characters[index] != " "]
    n_blank = sum(characters[index] == " " for index in indices)
    if len(judged) + n_blank < _ENOUGH:
        return True
    is_mostly_blank = n_blank > 0.6 * len(indices)  # codes of control characters that TeX does not use
    return not is_mostly_blank and sum(index in in_words for index in judged) >= _SHARE_IN_WORDS * len(judged)


def _font_key(text_page: _TextPage, index: int) -> int:
    """A number that identifies the font of a character; 0 without a font."""
    shown = pdfium.FPDFText_GetTextObject(text_page.raw, index)
    font = pdfium.FPDFTextObj_GetFont(shown) if shown else None
    return (cast(font, c_void_p).value or 0) if font else 0


def _font_name(text_page: _TextPage, index: int) -> bytes:
    name = create_string_buffer(_MAX_FONT_NAME)
    pdfium.FPDFText_GetFontInfo(text_page.raw, index, name, _MAX_FONT_NAME, c_int())
    return name.value


_BOLD_WEIGHT = 600  # pdfium estimates the weight of Type 1 fonts from their stems: 400 regular, 700 bold
_BOLD_NAME = re.compile(rb"bold|black|heavy|demi|medi$|cmbx|cmssbx|sfbx|-bd", re.IGNORECASE)
_LINE = re.compile(rf"[^{LINE_END}{SOFT_HYPHEN}]*(?:[{LINE_END}{SOFT_HYPHEN}]|$)")

# Printers mark the last lines of a page: S32, R33.
_LEADING_NUMBER = re.compile(r"[A-Z]?\d{1,4}\s+(?=\S)")
_TRAILING_NUMBER = re.compile(r"(?<=\S)(\s+)[A-Z]?\d{1,4}\s*$")
_NOTE_MARKS = "\u2217\u2020\u2021\u00a7\u00b6"  # behind a title, in a type of their own
_DIGITS_BEHIND = re.compile(r"(?<=[^\s_(\[{])(?:(?<!\d\d)\d{1,3}|[-\u2212\u2013]\d{1,3})")  # "10-3" can be 10^-3
_MARK_BEHIND = re.compile(r"(?<=[^\W\d_]{2})[a-z](?:,[a-z\d])*(?![^\W_])")  # of an institute, behind an author
_GLUED_MARK = re.compile(r"^(\d{1,3})(?=[^\W\d_])")
_MIN_ROWS = 8  # lines with a gap that make two columns
_MIN_ROWS_OF_PROSE, _WORDS_OF_PROSE = 4, 4  # fewer lines do where each has words enough on both sides
_MIN_SWAPPED = 4  # lines of each of two columns that are not in order
_GUTTER, _GUTTER_SHIFT = 1.2, 6.0  # its least width, times the type size; and points by which its edge varies
_MAX_COLUMNS, _MOST_EMPTY = 6, 0.5  # share of a column behind the usual line; cells of a table leave more
_Gap: TypeAlias = tuple[float, float, int]  # its edges, and its index on the page
_CAPITAL, MIN_INITIAL = re.compile(r"(?<!\S)[^\W\d_a-z](?!\S)"), 1.6  # times the type beside it
_SHIFT = 0.3  # of a baseline, times the type size
_SHARE_OF_FULL = 0.7  # of the width of the widest line
_CELL_GAP = 1.5  # times the type size
_SPACED_OUT = re.compile(r"(?:[^\W\d_]{1,2} ){5,40}[^\W\d_]{1,2}")  # letters apart, "WE" by kerning
_UNIT, _MIRRORED = re.compile(r"[()\[\]]|[^\s()\[\]]+"), dict(zip("()[]", ")(][", strict=True))
_MISPLACED = re.compile("(?<!\\S)[)\\]](?=[\u0590-\u08ff])|(?<=[\u0590-\u08ff])[(\\[](?!\\w)")  # brackets
_MIN_SIDE_WORDS = 2
RAISED_SIZE, _RAISED = 0.85, 0.15  # times the type size
_HIGH = 0.25  # times the type size: a superscript in whatever type
MAX_GAP, MAX_OVERLAP = 1.0, 0.3  # times the type size; the space between columns is wider
WORD_GAP = 0.15  # times the type size; a smaller gap is not a space
_LEAST_GAP = 0.6  # between a text and a number in the margin, times the type size; a space of the text is narrower


@dataclass(frozen=True, slots=True)
class Line:
    """A line of print; lengths are points, `y` grows upwards."""

    text: str
    page: int
    left: float
    right: float
    y: float  # of the baseline
    size: float  # of the type, as it appears
    is_bold: bool
    text_left: float = 0.0  # where the text after a leading number starts; 0 without such a number
    trailing: tuple[float, float] | None = None  # where text ends before a number in the margin, and where that starts
    has_space: bool = field(default=False, compare=False, repr=False)  # behind its text
    is_note: bool = field(default=False, compare=False, repr=False)  # begins with a small number, as notes do
    start: int = field(default=0, compare=False, repr=False)  # its characters, by their indices on the page
    stop: int = field(default=0, compare=False, repr=False)
    cells: tuple[str, ...] = field(default=(), compare=False, repr=False)  # between wide gaps, of few lines
    is_turned: bool = field(default=False, compare=False, repr=False)  # by a quarter, as stamps along the margin are


def n_mapped_wrongly(lines: Iterable[Line]) -> int:
    """The number of Latin letters of a page whose fonts map them to others, as hardly any vowels show; 0 elsewhere."""
    counts = Counter("".join(line.text for line in lines).lower())
    letters = {sign: count for sign, count in counts.items() if "a" <= sign < "\u0250" and sign.isalpha()}
    n_letters = sum(letters.values())
    n_usual = sum(count * 100 > n_letters for count in letters.values())  # few in sequences, codes and tables
    n_vowels = sum(count for sign, count in letters.items() if unicodedata.normalize("NFD", sign)[0] in _VOWELS)
    is_wrong = n_letters >= _LEAST_LETTERS and n_usual >= _LEAST_USUAL and n_vowels < _SHARE_VOWELS * n_letters
    return n_letters if is_wrong else 0


def without_note_marks(text: str) -> str:
    """A text without the footnote marks at its end."""
    return text.rstrip(f" {_NOTE_MARKS}")


def lines_of(text_page: _TextPage, page: int, *, is_laid: bool = False) -> tuple[list[Line], list[str], int]:
    """The lines of a page, without blank lines; turned stamps along the margin and slanted ones, which are left out.

    The number is that of the characters left out, see `characters_of`.
    `is_laid` is for columns of vertical writing that were turned into lines.
    """
    characters, n_unreadable = characters_of(text_page)
    characters = _with_pieces_joined(text_page, characters)
    rows = list(_lines(text_page, characters, page, is_laid=is_laid))
    rows = split_rows(text_page, _with_notes_apart(text_page, rows, characters), characters)
    upright = [line for line in rows if not line.is_turned]
    if 2 * len(upright) < len(rows):
        return rows, [], n_unreadable
    stamps = [line for line in rows if line.is_turned and not _is_label(text_page, line, upright)]
    ids = set(map(id, stamps))
    return [line for line in rows if id(line) not in ids], [line.text for line in stamps], n_unreadable


def _is_label(text_page: _TextPage, line: Line, upright: Sequence[Line]) -> bool:
    """Whether a turned line belongs to the text, as heads of columns do; stamps are beside it, large or slanted."""
    few = len(upright) // 20
    left, right = sorted(one.left for one in upright)[few], sorted(one.right for one in upright)[-1 - few]
    is_large = line.size > MIN_INITIAL * median(one.size for one in upright)
    return left < line.left < right and not is_large and not _is_slanted(text_page, line.start)


_NOTE_SIZE, _NOTE_PITCH = 0.92, 1.8  # of a side note: times the type of the text at most, and of its lines
_IN_NOTE, _SAME_SIZE = re.compile(r"[^\W\d_](?!\d)"), 0.5  # words; points
_LEAST_NOTES = 2  # lines of side notes of a page that stand at the same place
_SHARE_OUTSIDE = 0.9  # of the other lines of a page end before its side notes


def _with_notes_apart(text_page: _TextPage, rows: list[Line], characters: str) -> list[Line]:
    """Put each side note of an act, which pdfium joins to the lines beside it, before the line at which it begins."""
    parts = _joined_notes(text_page, rows, characters)
    for is_right in (True, False):
        ours = {at: (text, note) for at, (text, note) in parts.items() if (note.left > text.left) == is_right}
        if not ours:
            continue
        edge = median(note.left for _, note in ours.values())
        ours = {at: pair for at, pair in ours.items() if abs(pair[1].left - edge) < _GUTTER_SHIFT}
        notes = [note for _, note in ours.values()]
        alone = [
            at for at, line in enumerate(rows) if at not in parts and abs(line.left - edge) < _GUTTER_SHIFT
            and any(abs(line.size - note.size) < _SAME_SIZE for note in notes)
        ]  # fmt: skip
        others = [line for at, line in enumerate(rows) if at not in parts and at not in alone]
        others += [text for text, _ in ours.values()]
        end = max((note.right for note in notes), default=edge)
        n_outside = sum(line.right <= edge if is_right else line.left >= end for line in others)
        if len(ours) + len(alone) >= _LEAST_NOTES and n_outside >= _SHARE_OUTSIDE * len(others):
            return _placed(rows, ours, alone)
    return rows


def _joined_notes(text_page: _TextPage, rows: Sequence[Line], characters: str) -> dict[int, tuple[Line, Line]]:
    """The text and the note of each row that has words in smaller type behind or before a gap, by its place."""
    parts: dict[int, tuple[Line, Line]] = {}
    for at, line in enumerate(rows):
        sizes = _size(text_page, line.start), _size(text_page, line.stop - 1)
        if line.is_turned or min(sizes) > _NOTE_SIZE * max(sizes) or RIGHT_TO_LEFT.search(line.text):
            continue
        is_behind = sizes[1] < sizes[0]
        for match in re.finditer(" ", characters[line.start : line.stop]):
            place = line.start + match.start()
            gap = _origin(text_page, place + 1)[0] - _right(text_page, place - 1)
            if -line.size < gap < _LEAST_GAP * line.size:  # else wide, or back to the left
                continue
            beside = _size(text_page, place - 1), _size(text_page, place + 1)
            if (beside[1] < beside[0]) == is_behind and min(beside) <= _NOTE_SIZE * max(beside):
                left, right = _halves(text_page, line, characters, place)
                text, note = (left, right) if is_behind else (right, left)
                if _IN_NOTE.search(note.text):
                    parts[at] = text, note
    return parts


def _placed(rows: Sequence[Line], parts: Mapping[int, tuple[Line, Line]], alone: Sequence[int]) -> list[Line]:
    """The rows without their notes, and the lines of each note before the first line beside it."""
    notes = [(note, at) for at, (_, note) in parts.items()] + [(rows[at], at) for at in alone]
    begins: dict[int, list[Line]] = {}
    last, first = None, 0
    for note, at in sorted(notes, key=lambda pair: -pair[0].y):
        if last is None or last.y - note.y > _NOTE_PITCH * note.size:
            first = at
        begins.setdefault(first, []).append(note)
        last = note
    placed: list[Line] = []
    for at, line in enumerate(rows):
        placed += begins.get(at, ())
        if at not in alone:
            placed.append(parts[at][0] if at in parts else line)
    return placed


def split_rows(text_page: _TextPage, rows: list[Line], characters: str, most: int = _MAX_COLUMNS) -> list[Line]:
    """Give the columns of a page, whose content goes row by row, their lines back, and put the left column first.

    A gap at the same place of most wide lines, with words enough on both of its sides, is a gutter; the cells of a
    table have fewer words.
    """
    gaps: dict[int, list[_Gap]] = {}  # of each wide line
    if len(rows) >= _MIN_ROWS_OF_PROSE and most > 1:
        left, right = min(line.left for line in rows), max(line.right for line in rows)
        least = 0.55 * (right - left)
        wide = [at for at, line in enumerate(rows) if not line.is_turned and line.right - line.left > least]
        for number, at in enumerate(wide):
            if number == _MIN_ROWS and len(gaps) < _MIN_ROWS // 2:
                break
            if found := _gaps_between_words(text_page, rows[at], characters):
                gaps[at] = found
    parts = (part for at, found in gaps.items() for part in _between(rows[at], found, characters))
    is_prose = all(_has_words(part, _WORDS_OF_PROSE) for part in parts)  # cells of most tables have fewer
    least = _MIN_ROWS_OF_PROSE if is_prose else _MIN_ROWS
    if len(gaps) < least:
        gutter, laced = _laced(rows)
        if not laced or most < 2:
            return _left_first(rows)
        split = {at: gap for at, found in gaps.items() for gap in found if abs(gap[1] - gutter) < _GUTTER_SHIFT}
        return list(_by_columns(text_page, rows, split, gutter, characters, most - 1, laced))
    enough = max(least, 0.6 * len(gaps))
    for gutter in _gutters(gaps.values(), enough):
        split = {
            at: gap for at, found in gaps.items() for gap in found[::-1]
            if gap[0] < gutter + _GUTTER_SHIFT and gap[1] > gutter - 0.1
        }  # fmt: skip
        if len(split) >= enough:
            if median(gutter - gap[0] for gap in split.values()) > _MOST_EMPTY * (gutter - left):
                return rows
            others = {
                at: gap for at, line in enumerate(rows)
                if at not in split and not line.is_turned and line.left < gutter < line.right
                for gap in _gaps(text_page, line, characters) if gutter - 0.1 < gap[1] < gutter + _GUTTER_SHIFT
            }  # fmt: skip
            return list(_by_columns(text_page, rows, split | others, gutter, characters, most - 1))
    return rows


def _laced(rows: Sequence[Line]) -> tuple[float, frozenset[int]]:
    """Where the right of two columns starts whose lines follow each other in turn, and the places of these lines.

    Their lines do not share baselines, and are full, other than the cells of a table; no places without such columns.
    """
    pairs = [
        (at, max(before.left, line.left)) for at, (before, line) in enumerate(pairwise(rows), 1)
        if abs(before.y - line.y) < 1.5 * line.size and (before.right < line.left or line.right < before.left)
        and not line.is_turned
    ]  # fmt: skip
    starts = sorted(start for _, start in pairs)
    gutter = starts[len(starts) // 2] if starts else 0.0
    places = frozenset(place for at, start in pairs if abs(start - gutter) < _GUTTER_SHIFT for place in (at - 1, at))
    lines = [rows[place] for place in places]
    for column in ([one for one in lines if one.right < gutter], [one for one in lines if one.left >= gutter - 1]):
        widths = sorted(line.right - line.left for line in column)
        least = _MIN_ROWS_OF_PROSE if all(_has_words(line.text, _WORDS_OF_PROSE) for line in column) else _MIN_ROWS
        if len(column) < least or widths[len(widths) // 3] < _SHARE_OF_FULL * widths[-1]:
            return gutter, frozenset()
    return gutter, places


def _gutters(gaps: Iterable[list[_Gap]], enough: float) -> Iterator[float]:
    """Where text starts behind gaps of enough lines, from left to right."""
    stops = sorted(gap[1] for found in gaps for gap in found)
    last = -math.inf
    for at, stop in enumerate(stops):
        if stop > last + _GUTTER_SHIFT and bisect_right(stops, stop + _GUTTER_SHIFT) - at >= enough:
            last = stop
            yield stop


def _left_first(rows: list[Line]) -> list[Line]:
    """Put left columns that the content stream has behind right ones before them."""
    if 2 * sum(line.is_turned for line in rows) > len(rows):
        return rows
    for _ in range(_MAX_COLUMNS):
        rows = _with_one_left_first(rows)
    return rows


def _with_one_left_first(rows: list[Line]) -> list[Line]:
    for at in range(_MIN_SWAPPED, len(rows) - _MIN_SWAPPED + 1):
        before, line = rows[at - 1], rows[at]
        if not (line.y > before.y + before.size and line.right < before.left) or RIGHT_TO_LEFT.search(line.text):
            continue
        start, stop = at, at
        edge = min(row.left for row in rows[at - _MIN_SWAPPED : at])
        while start and rows[start - 1].left >= edge:
            start -= 1
        while stop < len(rows) and rows[stop].right < edge:
            stop += 1
        top, last = rows[start].y, rows[stop - 1].y
        overlap = min(top, line.y) - max(before.y, last)
        if min(at - start, stop - at) >= _MIN_SWAPPED and overlap > 0.5 * min(line.y - last, top - before.y):
            return [*rows[:start], *rows[at:stop], *rows[start:at], *rows[stop:]]
    return rows


def _gaps(text_page: _TextPage, line: Line, characters: str) -> list[_Gap]:
    """The spaces of a line that are wider than a word space."""
    places = (line.start + match.start() for match in re.finditer(" ", characters[line.start : line.stop]))
    gaps = [(_right(text_page, place - 1), _origin(text_page, place + 1)[0], place) for place in places]
    if RIGHT_TO_LEFT.search(line.text):
        width = text_page.page.get_width()
        ends = ((_origin(text_page, place - 1)[0], _right(text_page, place + 1), place) for _, _, place in gaps)
        gaps = [(width - right, width - left, place) for right, left, place in ends]
    return [gap for gap in gaps if gap[1] - gap[0] >= _LEAST_GAP * line.size]


def _gaps_between_words(text_page: _TextPage, line: Line, characters: str) -> list[_Gap]:
    """The spaces of a line that are far wider than a word space and have words on both sides."""
    found = [gap for gap in _gaps(text_page, line, characters) if gap[1] - gap[0] >= _GUTTER * line.size]
    has_words = map(_has_words, _between(line, found, characters))
    return [gap for gap, both in zip(found, pairwise(has_words), strict=True) if all(both)]


def _between(line: Line, gaps: Iterable[_Gap], characters: str) -> list[str]:
    """The texts of a line between its gaps."""
    borders = [line.start, *(place for _, _, place in gaps), line.stop]
    return [characters[start:stop] for start, stop in pairwise(borders)]


def _has_words(side: str, least: int = _MIN_SIDE_WORDS) -> bool:
    return len(side.split()) >= least or sum(is_unspaced(sign, sign) for sign in side) >= 3 * least


def _by_columns(
    text_page: _TextPage,
    rows: Sequence[Line],
    split: Mapping[int, _Gap],
    gutter: float,
    characters: str,
    most: int,
    laced: frozenset[int] = frozenset(),
) -> Iterator[Line]:
    lefts: list[Line] = []
    rights: list[Line] = []

    def both() -> list[Line]:
        return [row for side in (lefts, rights) for row in split_rows(text_page, side, characters, most)]

    for at, line in enumerate(rows):
        if at in split:
            left, right = _halves(text_page, line, characters, split[at][2])
            lefts.append(left)
            rights.append(right)
        elif (lefts or rights or at in laced) and line.left >= gutter - _GUTTER_SHIFT:
            rights.append(line)
        elif (lefts or rights or at in laced) and line.right < gutter:
            lefts.append(line)
        else:
            yield from (*both(), line)
            lefts, rights = [], []
    yield from both()


def _halves(text_page: _TextPage, line: Line, characters: str, place: int) -> tuple[Line, Line]:
    """The parts of a line on both sides of a space."""
    left = _line(text_page, line.page, characters[line.start : place], line.start)
    return left, _line(text_page, line.page, characters[place + 1 : line.stop], place + 1)


def _lines(text_page: _TextPage, characters: str, page: int, *, is_laid: bool) -> Iterator[Line]:
    for match in _LINE.finditer(characters):
        text, start = match.group().rstrip(LINE_END), match.start()
        for first, stop, is_turned in _runs(text_page, text, start, is_laid=is_laid) if text.strip(_BLANK) else ():
            yield replace(_line(text_page, page, text[first:stop], start + first), is_turned=is_turned)


def _runs(text_page: _TextPage, text: str, start: int, *, is_laid: bool) -> Iterator[tuple[int, int, bool]]:
    """The parts of a line that are turned, upright, initials or on other baselines: pdfium can join such words."""
    ends = (start + len(text) - len(text.lstrip(_BLANK)), start + len(text.rstrip(_BLANK)) - 1)
    turned = [not is_laid and _is_turned(text_page, end) for end in ends]
    heights = [_origin(text_page, end)[1] for end in ends]
    is_level = abs(heights[0] - heights[1]) < _SHIFT * _size(text_page, ends[0]) or all(turned)
    if turned[0] == turned[1] and is_level and not _CAPITAL.search(text):
        yield 0, len(text), turned[0]
        return
    words = list(re.finditer(r"\S" if is_laid else r"\S+", text))
    places = [start + word.start() for word in words]
    least = MIN_INITIAL * min(_size(text_page, place) for place in places)
    kinds = [
        (
            not is_laid and _is_turned(text_page, place),
            len(word.group()) == 1 and word.group().isalpha() and _size(text_page, place) > least,
        )
        for word, place in zip(words, places, strict=True)
    ]
    begun = [
        at for at, kind in enumerate(kinds)
        if not at or kind != kinds[at - 1]
        or (not kind[0] and _is_elsewhere(text_page, start + words[at - 1].end() - 1, places[at]))
    ]  # fmt: skip
    for at, following in pairwise([*begun, len(words)]):
        yield words[at].start(), words[following - 1].end(), kinds[at][0]


def _is_elsewhere(text_page: _TextPage, before: int, index: int) -> bool:
    """Whether a character is on another baseline than the one before it, and no script beside it."""
    (left, y), size = _origin(text_page, index), _size(text_page, index)
    is_far = not -MAX_OVERLAP * size < left - _right(text_page, before) < MAX_GAP * size
    return is_far and abs(y - _origin(text_page, before)[1]) > _SHIFT * size


def _line(text_page: _TextPage, page: int, text: str, start: int) -> Line:
    first = start + len(text) - len(text.lstrip(_BLANK))
    last = start + len(text.rstrip(_BLANK)) - 1
    number = _LEADING_NUMBER.match(text, first - start)
    after_number = start + number.end() if number else first
    last_of_text = max(after_number, start + len(without_note_marks(text)) - 1)
    has_brackets = RIGHT_TO_LEFT.search(text) is not None and not _MIRRORED.keys().isdisjoint(text)
    if has_both_directions(text) or _JOINED in text or has_brackets:
        shown = expanded(as_read(_words_in_sight(text_page, text, start)))
    else:
        shown = expanded(_with_raised_marks(text_page, text, start, with_letters=page == 0).strip())
        shown = (_SPACED_OUT.fullmatch(shown) and _words_by_gaps(text_page, text, start)) or shown
    samples = sorted({after_number, (after_number + last) // 2, last_of_text})
    sizes = sorted(_size(text_page, index) for index in samples)
    (left, y), right = _origin(text_page, first), _right(text_page, last)
    if right < left and RIGHT_TO_LEFT.search(shown):  # as if it ran from left to right
        width = text_page.page.get_width()
        left, right = width - _right(text_page, first), width - _origin(text_page, last)[0]
    if RIGHT_TO_LEFT.search(shown):
        shown = _MISPLACED.sub(lambda sign: _MIRRORED[sign.group()], shown)
    size = round(sizes[len(sizes) // 2], 1)
    is_note = shown[0].isdigit() and _size(text_page, first) < RAISED_SIZE * size
    is_bold = all(_is_bold(text_page, index) for index in samples)
    return Line(
        text=without_gaps(_GLUED_MARK.sub(r"\1 ", shown) if is_note else shown),
        page=page,
        left=left,
        right=right,
        y=y,
        size=size,
        is_bold=is_bold,
        text_left=_origin(text_page, after_number)[0] if number else 0.0,
        trailing=_trailing(text_page, text, start, size),
        has_space=pdfium.FPDFText_GetUnicode(text_page.raw, last + 1) == ord(" "),
        is_note=is_note,
        start=first,
        stop=last + 1,
        cells=_cells(text_page, text, start, size) if is_bold or page == 0 else (),
    )


def _words_in_sight(text_page: _TextPage, text: str, start: int) -> Iterator[str]:
    """The words of a line from left to right; pdfium puts brackets between words in both directions beside others."""
    places = [(start + unit.start(), start + unit.end() - 1, unit.group()) for unit in _UNIT.finditer(text)]
    units = sorted((min(_origin(text_page, place)[0] for place in unit[:2]), *unit) for unit in places)
    pieces = [text.count(_JOINED, 0, first - start) for _, first, *_ in units]
    word: list[str] = []
    for at, (_, first, last, unit) in enumerate(units):
        word.append(unit)
        following, _, _, other = units[at + 1] if at + 1 < len(units) else (math.inf, 0, 0, "")
        gap = following - max(_right(text_page, first), _right(text_page, last))
        is_of_piece = not other or pieces[at] == pieces[at + 1]
        if gap >= WORD_GAP * _size(text_page, first) or (is_of_piece and not {unit, other} & {*_MIRRORED}):
            if any(map(RIGHT_TO_LEFT.search, word)):
                yield "".join(reversed(word))
            elif not any(map(str.isalpha, word)) and not has_both_directions(text):
                yield "".join(_MIRRORED.get(one, one) for one in reversed(word))
            else:  # its brackets may be mirrored
                yield re.sub(r"^[)\]]|[(\[]$", lambda sign: _MIRRORED[sign.group()], "".join(word))
            word = []


def _with_raised_marks(text_page: _TextPage, text: str, start: int, *, with_letters: bool) -> str:
    """A line with a sign before digits, and maybe letters, that are raised behind a word or a number."""
    parts, done = [], 0
    marks = [*_DIGITS_BEHIND.finditer(text), *(_MARK_BEHIND.finditer(text) if with_letters else [])]
    for match in sorted(marks, key=Match.start):
        origins = [_origin(text_page, start + place) for place in range(match.start() - 1, match.end())]
        shifts = [height - y if x > left + 0.5 else 0.0 for (left, y), (x, height) in pairwise(origins)]
        for place, shift in enumerate(shifts if max(shifts) > 0.5 else (), match.start()):
            is_sign = place == match.start() and not text[place].isalnum()
            size = _size(text_page, start + place - 1)
            share = _size(text_page, start + place) / size
            if (is_sign or text[place].isalnum()) and (share < RAISED_SIZE or is_raised(share, shift / size)):
                if shift > 0.5:
                    parts += [text[done:place], "^"]
                    done = place
                break
            if is_sign or (place > match.start() and not (match.group().isdigit() and text[place - 1].isdigit())):
                break
    return "".join([*parts, text[done:]])


def _words_by_gaps(text_page: _TextPage, text: str, start: int) -> str:
    """The words of a line whose letters are evenly spaced out, with wider gaps between words; "" for another line."""
    places = [at for at, sign in enumerate(text) if not sign.isspace()]
    gaps = [_origin(text_page, start + b)[0] - _right(text_page, start + a) for a, b in pairwise(places)]
    wide = 1.5 * median(gaps)
    words = "".join(text[at] + " " * (gap > wide) for at, gap in zip(places, [*gaps, 0], strict=True)).split()
    is_even = min(gaps) > wide / 3 and len(words) > 1 and len(places) >= 3 * len(words)
    return " ".join(words) if is_even else ""


def is_raised(share: float, shift: float) -> bool:
    """Whether type is raised: its size and the shift of its baseline are shares of the size of the type beside."""
    return (share < RAISED_SIZE and shift > _RAISED) or (share <= 1 and shift > _HIGH)


def _cells(text_page: _TextPage, text: str, start: int, size: float) -> tuple[str, ...]:
    """The texts of a line between gaps far wider than a space; () without such a gap."""
    borders = [
        place
        for place in (match.start() for match in re.finditer(" ", text.rstrip()))
        if place and _origin(text_page, start + place + 1)[0] - _right(text_page, start + place - 1) > _CELL_GAP * size
    ]
    return tuple(expanded(text[a:b].strip()) for a, b in pairwise([0, *borders, len(text)])) if borders else ()


def _trailing(text_page: _TextPage, text: str, start: int, size: float) -> tuple[float, float] | None:
    match = _TRAILING_NUMBER.search(text) if text.rstrip()[-1:].isdecimal() else None
    if match is None:
        return None
    text_right = _right(text_page, start + match.start(1) - 1)
    left, _ = _origin(text_page, start + match.end(1))
    return (text_right, left) if left - text_right >= _LEAST_GAP * size else None


# What pdfium writes into; no two threads may call it.
_MATRIX, _X, _Y, _BOX = pdfium.FS_MATRIX(), c_double(), c_double(), tuple(c_double() for _ in range(4))


def _is_turned(text_page: _TextPage, index: int) -> bool:
    is_known = pdfium.FPDFText_GetMatrix(text_page.raw, index, _MATRIX)
    return bool(is_known) and abs(_MATRIX.b) > 0.5 * abs(_MATRIX.a)


def _is_slanted(text_page: _TextPage, index: int) -> bool:
    matrix = pdfium.FS_MATRIX()
    return bool(pdfium.FPDFText_GetMatrix(text_page.raw, index, matrix)) and abs(matrix.a) > 0.1 * abs(matrix.b)


def _size(text_page: _TextPage, index: int) -> float:
    size: float = pdfium.FPDFText_GetFontSize(text_page.raw, index)
    if pdfium.FPDFText_GetMatrix(text_page.raw, index, _MATRIX):
        size *= math.hypot(_MATRIX.b, _MATRIX.d) or 1.0
    return size if size > _LEAST_SIZE else _size_of_ink(text_page, index) or size


def _size_of_ink(text_page: _TextPage, index: int) -> float:
    """The size of type whose font has its own units, as bitmaps of TeX have, by the letters around; 0 without any."""
    heights = []
    for at in range(max(0, index - _WINDOW), index + _WINDOW):
        code = pdfium.FPDFText_GetUnicode(text_page.raw, at)
        if chr(code) in _LOW and pdfium.FPDFText_GetCharBox(text_page.raw, at, *_BOX):
            heights.append(_BOX[3].value - _BOX[2].value)
    return round(2 * median(heights) / _SHARE_LOW) / 2 if heights else 0.0


def _is_bold(text_page: _TextPage, index: int) -> bool:
    weight: int = pdfium.FPDFText_GetFontWeight(text_page.raw, index)
    return weight >= _BOLD_WEIGHT or _BOLD_NAME.search(_font_name(text_page, index)) is not None


def _origin(text_page: _TextPage, index: int) -> tuple[float, float]:
    is_known = pdfium.FPDFText_GetCharOrigin(text_page.raw, index, _X, _Y)
    return (_X.value, _Y.value) if is_known else (0.0, 0.0)


def _right(text_page: _TextPage, index: int) -> float:
    return _sides(text_page, index)[1]


def _sides(text_page: _TextPage, index: int) -> tuple[float, float]:
    """The left and the right edge of the ink of a character."""
    is_known = pdfium.FPDFText_GetCharBox(text_page.raw, index, *_BOX)
    return (_BOX[0].value, _BOX[1].value) if is_known else (0.0, 0.0)
