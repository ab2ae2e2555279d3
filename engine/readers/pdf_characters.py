"""Characters of a PDF page, one for each index of pdfium. Decodes TeX fonts that have no Unicode map."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from ctypes import c_int, c_void_p, cast, create_string_buffer
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import pypdfium2.raw as pdfium

_TextPage: TypeAlias = Any

LINE_END = "\n"
SOFT_HYPHEN = "\u00ad"
_LINE_END_CODES = frozenset([0x0A, 0x0D])
_HYPHEN_CODE = 2  # stands for a hyphen at the end of a line and for the end of that line
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
_SYMBOL_FONT = re.compile(rb"(?:^|\+)(?:cmsy|cmex|cmbsy|msam|msbm|lasy|stmary|wasy)", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{3,}")
_ENOUGH = 20  # a font with fewer characters, digits aside, counts as readable
_SHARE_IN_WORDS = 0.5
_MAX_FONT_NAME = 128


@dataclass(frozen=True, slots=True)
class Characters:
    """The characters of a page."""

    text: str  # one character for each index of pdfium; `LINE_END` and `SOFT_HYPHEN` end a line
    n_unreadable: int  # characters left out, because their font has no usable Unicode map


def characters_of(text_page: _TextPage) -> Characters:
    """Decode the characters of a page; a character that cannot be decoded becomes a blank.

    pdfium returns the bare code of a character whose font has no Unicode map. Such a
    code is a letter in some fonts, the number of a shape in others. A font counts as
    readable if most of its characters are in words.
    """
    codes = [pdfium.FPDFText_GetUnicode(text_page, index) for index in range(pdfium.FPDFText_CountChars(text_page))]
    unmapped = _unmapped(text_page, codes)
    characters = [_character(code) for code in codes]
    of_font: dict[int, list[int]] = defaultdict(list)
    for index in unmapped:
        of_font[_font_key(text_page, index)].append(index)
    for indices in of_font.values():
        table = _table(codes[index] for index in indices)
        for index in indices:
            characters[index] = table.get(codes[index]) or _printable(codes[index])
    n_unreadable = 0
    in_words = _in_words("".join(characters)) if of_font else frozenset()
    for indices in of_font.values():
        if _is_symbol_font(text_page, indices[0]) or not _is_readable(characters, indices, in_words):
            n_unreadable += sum(not characters[index].isspace() or codes[index] < 32 for index in indices)
            for index in indices:
                characters[index] = " "
    return Characters("".join(characters), n_unreadable)


def expanded(text: str) -> str:
    """Write the ligatures of `characters_of` as letters, as pdfium writes those of mapped fonts."""
    for ligature, letters in zip(_LIGATURES, ("ff", "fi", "fl", "ffi", "ffl"), strict=True):
        text = text.replace(ligature, letters)
    return text


def _unmapped(text_page: _TextPage, codes: Sequence[int]) -> list[int]:
    """Indices of characters without a Unicode map; none where only letters and digits lack one."""

    def is_unmapped(index: int) -> bool:
        return bool(pdfium.FPDFText_HasUnicodeMapError(text_page, index) == 1)

    signs = (index for index, code in enumerate(codes) if not (code == 32 or _printable(code).isalnum()))
    return [index for index in range(len(codes)) if is_unmapped(index)] if any(map(is_unmapped, signs)) else []


def _character(code: int) -> str:
    if code in _LINE_END_CODES:
        return LINE_END
    return SOFT_HYPHEN if code == _HYPHEN_CODE else _T1.get(code) or _printable(code)


def _printable(code: int) -> str:
    return chr(code) if 32 <= code < 0xD800 or 0xE000 <= code <= 0x10FFFF else " "


def _table(codes: Iterable[int]) -> Mapping[int, str]:
    """The TeX encoding of a font, by the codes of its ligatures."""
    balance = sum((0x0B <= code <= 0x0F) - (0x1B <= code <= 0x1F) for code in codes)
    return _OT1 if balance > 0 else _T1


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
    shown = pdfium.FPDFText_GetTextObject(text_page, index)
    font = pdfium.FPDFTextObj_GetFont(shown) if shown else None
    return (cast(font, c_void_p).value or 0) if font else 0


def _is_symbol_font(text_page: _TextPage, index: int) -> bool:
    name = create_string_buffer(_MAX_FONT_NAME)
    pdfium.FPDFText_GetFontInfo(text_page, index, name, _MAX_FONT_NAME, c_int())
    return _SYMBOL_FONT.search(name.value) is not None
