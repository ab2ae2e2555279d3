"""Lines of a PDF page as pdfium orders them, with their place and type. Knows pdfium, not documents."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from ctypes import c_double, c_int, create_string_buffer
from dataclasses import dataclass
from typing import Any, TypeAlias

import pypdfium2.raw as pdfium

_TextPage: TypeAlias = Any
_BOLD_WEIGHT = 600  # pdfium estimates the weight of Type 1 fonts from their stems: 400 regular, 700 bold
_BOLD_NAME = re.compile(rb"bold|black|heavy|demi|medi$|cmbx|cmssbx|sfbx|-bd", re.IGNORECASE)
_MAX_FONT_NAME = 128
_SOFT_HYPHEN = "\u00ad"
_HYPHEN_CODE = 2  # stands for a hyphen at the end of a line and for the end of that line
_LINE_ENDS = frozenset([0x0A, 0x0D, _HYPHEN_CODE])


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


def lines_of(text_page: _TextPage, page: int) -> list[Line]:
    """Lines in the order in which pdfium gives them, without blank ones and stamps along the margin."""
    upright: list[Line] = []
    turned: list[Line] = []
    for line, is_turned in _lines(text_page, page):
        (turned if is_turned else upright).append(line)
    return upright if len(upright) >= len(turned) else [line for line, _ in _lines(text_page, page)]


def _lines(text_page: _TextPage, page: int) -> Iterator[tuple[Line, bool]]:
    characters: list[str] = []
    start = 0
    n_characters = pdfium.FPDFText_CountChars(text_page)
    for index in range(n_characters + 1):
        code = pdfium.FPDFText_GetUnicode(text_page, index) if index < n_characters else 0x0A
        if code not in _LINE_ENDS:
            characters.append(_character(code))
            continue
        if code == _HYPHEN_CODE:
            characters.append(_SOFT_HYPHEN)
        text = "".join(characters)
        if text.strip():
            yield _line(text_page, page, text, start), _is_turned(text_page, start + len(text) - len(text.lstrip()))
        characters, start = [], index + 1


def _character(code: int) -> str:
    return chr(code) if 32 <= code < 0xD800 or 0xE000 <= code <= 0x10FFFF else " "


def _line(text_page: _TextPage, page: int, text: str, start: int) -> Line:
    first = start + len(text) - len(text.lstrip())
    last = start + len(text.rstrip()) - 1
    samples = sorted({first, (first + last) // 2, last})
    sizes = sorted(_size(text_page, index) for index in samples)
    left, y = _origin(text_page, first)
    return Line(
        text=text.strip(),
        page=page,
        left=left,
        right=_right(text_page, last),
        y=y,
        size=round(sizes[len(sizes) // 2], 1),
        is_bold=all(_is_bold(text_page, index) for index in samples),
    )


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
