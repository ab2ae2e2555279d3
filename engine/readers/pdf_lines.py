"""Lines of a PDF page as pdfium orders them, with their place and type. Reads from pdfium, and makes no document."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from ctypes import c_double, c_int, create_string_buffer
from dataclasses import dataclass
from typing import Any, TypeAlias

import pypdfium2.raw as pdfium

from engine.readers.pdf_characters import LINE_END, SOFT_HYPHEN, characters_of, expanded

_TextPage: TypeAlias = Any
_BOLD_WEIGHT = 600  # pdfium estimates the weight of Type 1 fonts from their stems: 400 regular, 700 bold
_BOLD_NAME = re.compile(rb"bold|black|heavy|demi|medi$|cmbx|cmssbx|sfbx|-bd", re.IGNORECASE)
_MAX_FONT_NAME = 128
_LINE = re.compile(rf"[^{LINE_END}{SOFT_HYPHEN}]*(?:[{LINE_END}{SOFT_HYPHEN}]|$)")

# Printers mark the last lines of a page: S32, R33.
_LEADING_NUMBER = re.compile(r"[A-Z]?\d{1,4}\s+(?=\S)")
_TRAILING_NUMBER = re.compile(r"(?<=\S)(\s+)[A-Z]?\d{1,4}\s*$")
_NOTE_MARKS = "\u2217\u2020\u2021\u00a7\u00b6"  # behind a title, in a type of their own
_LEAST_GAP = 0.6  # between a text and a number in the margin, times the type size; a space of the text is narrower


@dataclass(frozen=True, slots=True)
class TrailingNumber:
    """A number at the end of a line, more than a word space after its text; lengths are points."""

    text_right: float  # where the text before it ends
    left: float


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
    trailing: TrailingNumber | None = None


@dataclass(frozen=True, slots=True)
class PageLines:
    """The lines of a page in the order of pdfium."""

    lines: list[Line]
    n_unreadable: int  # characters left out, see `Characters`


def without_note_marks(text: str) -> str:
    """A text without the footnote marks at its end."""
    return text.rstrip(f" {_NOTE_MARKS}")


def lines_of(text_page: _TextPage, page: int) -> PageLines:
    """The lines of a page, without blank lines and without turned stamps along the margin."""
    characters = characters_of(text_page)
    upright: list[Line] = []
    turned: list[Line] = []
    in_order: list[Line] = []
    for line, is_turned in _lines(text_page, characters.text, page):
        (turned if is_turned else upright).append(line)
        in_order.append(line)
    return PageLines(upright if len(upright) >= len(turned) else in_order, characters.n_unreadable)


def _lines(text_page: _TextPage, characters: str, page: int) -> Iterator[tuple[Line, bool]]:
    for match in _LINE.finditer(characters):
        text, start = match.group().rstrip(LINE_END), match.start()
        if text.strip():
            yield _line(text_page, page, text, start), _is_turned(text_page, start + len(text) - len(text.lstrip()))


def _line(text_page: _TextPage, page: int, text: str, start: int) -> Line:
    first = start + len(text) - len(text.lstrip())
    last = start + len(text.rstrip()) - 1
    number = _LEADING_NUMBER.match(text, first - start)
    after_number = start + number.end() if number else first
    last_of_text = max(after_number, start + len(without_note_marks(text)) - 1)
    samples = sorted({after_number, (after_number + last) // 2, last_of_text})
    sizes = sorted(_size(text_page, index) for index in samples)
    left, y = _origin(text_page, first)
    size = round(sizes[len(sizes) // 2], 1)
    return Line(
        text=expanded(text.strip()),
        page=page,
        left=left,
        right=_right(text_page, last),
        y=y,
        size=size,
        is_bold=all(_is_bold(text_page, index) for index in samples),
        text_left=_origin(text_page, after_number)[0] if number else 0.0,
        trailing=_trailing(text_page, text, start, size),
    )


def _trailing(text_page: _TextPage, text: str, start: int, size: float) -> TrailingNumber | None:
    match = _TRAILING_NUMBER.search(text)
    if match is None:
        return None
    text_right = _right(text_page, start + match.start(1) - 1)
    left, _ = _origin(text_page, start + match.end(1))
    return TrailingNumber(text_right, left) if left - text_right >= _LEAST_GAP * size else None


def _is_turned(text_page: _TextPage, index: int) -> bool:
    matrix = pdfium.FS_MATRIX()
    return bool(pdfium.FPDFText_GetMatrix(text_page, index, matrix)) and abs(matrix.b) > abs(matrix.a)


def _size(text_page: _TextPage, index: int) -> float:
    size: float = pdfium.FPDFText_GetFontSize(text_page, index)
    matrix = pdfium.FS_MATRIX()
    if pdfium.FPDFText_GetMatrix(text_page, index, matrix):
        return size * (math.hypot(matrix.b, matrix.d) or 1.0)
    return size


def _is_bold(text_page: _TextPage, index: int) -> bool:
    if pdfium.FPDFText_GetFontWeight(text_page, index) >= _BOLD_WEIGHT:
        return True
    name = create_string_buffer(_MAX_FONT_NAME)
    pdfium.FPDFText_GetFontInfo(text_page, index, name, _MAX_FONT_NAME, c_int())
    return _BOLD_NAME.search(name.value) is not None


def _origin(text_page: _TextPage, index: int) -> tuple[float, float]:
    x, y = c_double(), c_double()
    pdfium.FPDFText_GetCharOrigin(text_page, index, x, y)
    return x.value, y.value


def _right(text_page: _TextPage, index: int) -> float:
    left, right, bottom, top = c_double(), c_double(), c_double(), c_double()
    pdfium.FPDFText_GetCharBox(text_page, index, left, right, bottom, top)
    return right.value
