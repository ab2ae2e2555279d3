"""Numbers before headings: "2.3 Foo", "A.1 Bar", "IV. METHODS", "Section 3", "§ 4". Pure functions of a line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Numbers of one kind are in one sequence."""

    DECIMAL = "decimal"
    LETTER = "letter"
    ROMAN = "roman"
    NAMED = "named"


@dataclass(frozen=True, slots=True)
class Numbered:
    """A line that looks like a numbered heading."""

    kind: Kind
    number: tuple[int, ...]  # () where only the word before the number counts
    level: int
    title: str  # without the number; may be "" for `Kind.NAMED`


_DECIMAL = re.compile(r"(?P<number>\d{1,2}(?:\.\d{1,3}){0,5})(?P<dot>\.?)[ \t]{1,4}(?P<title>\S.*)$")
_LETTER = re.compile(r"(?P<number>[A-Z](?:\.\d{1,3}){1,5}|[A-Z](?=\.))(?P<dot>\.?)[ \t]{1,4}(?P<title>\S.*)$")
_ROMAN = re.compile(r"(?P<number>[IVX]{1,6})\.[ \t]{1,4}(?P<title>\S.*)$")
_NAMES = {
    "book": 1, "part": 1, "title": 1, "appendix": 1, "annex": 1, "schedule": 1,
    "chapter": 2, "section": 3, "article": 3, "rule": 3, "clause": 3, "§": 3, "§§": 3,
}  # fmt: skip
_NAMED = re.compile(
    rf"(?P<name>{'|'.join(sorted(_NAMES, key=len, reverse=True))})\s{{0,3}}"
    r"(?P<number>(?:\d+[a-z]?(?:\.\d+)*|[IVXLC]+|[A-Z])\b)"
    r"(?:[ \t]*(?P<mark>[.:)\u2013\u2014-])?[ \t]*(?P<title>\S.*)?)$",
    re.IGNORECASE,
)
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_MAX_TITLE_CHARS, _MAX_TITLE_WORDS = 100, 14
_SMALL_WORDS = frozenset([
    "a", "an", "and", "as", "at", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with",
])  # fmt: skip
_CONTENTS_LINE = re.compile(r"(?:\.[ \t]?){3}[ \t]*+(?:\d+|[ivxlc]+)?\s*$|(?<!\s)\s{2,}+\d+\s*$|\t\d+\s*$|…\s*\d+\s*$")
_SENTENCE_BORDER = re.compile(r"[^\W\d_]{3}[.;]\s+[A-Z]\w+ \w|\s\d+[.)]\s")
_COLUMNS = re.compile(r"\S(?:\s{4,}|\t)\S")


def parse(line: str) -> Numbered | None:
    """Parse the number of a line; None where the line alone does not look like a heading."""
    line = line.strip()
    if not line or len(line) > 2 * _MAX_TITLE_CHARS or is_contents_line(line) or _COLUMNS.search(line):
        return None
    return _named(line) or _roman(line) or _decimal(line) or _lettered(line)


def is_contents_line(line: str) -> bool:
    """Whether it is a line of a table of contents: leaders, or a page number at its end."""
    last = line.rstrip()[-1:]
    return (last.isdigit() or last in ".ivxlc") and _CONTENTS_LINE.search(line) is not None


def could_be_title(title: str) -> bool:
    """Whether these words look like a title, not like a sentence or a list item."""
    if len(title) > _MAX_TITLE_CHARS or len(title.split()) > _MAX_TITLE_WORDS:
        return False
    if title[-1] in ".,;:" or not any(char.isalpha() for char in title):
        return False
    return _SENTENCE_BORDER.search(title) is None


def _is_numbered_title(title: str) -> bool:
    """Like `could_be_title`, but a full stop can end a title whose words, small ones aside, are capitalised."""
    if not title.endswith(".") or title.endswith(".."):
        return could_be_title(title)
    words = [word for word in re.findall(r"[^\W\d_]+", title.replace("'s", "")) if word not in _SMALL_WORDS]
    return could_be_title(title[:-1]) and all(word[0].isupper() for word in words)


def _starts_title(title: str) -> bool:
    first = title.lstrip("\"'\u201c\u2018(`*<[")[:1]
    return first.isupper() or (first.isalpha() and not first.islower())


def _decimal(line: str) -> Numbered | None:
    match = _DECIMAL.match(line)
    if match is None:
        return None
    number = tuple(int(part) for part in match["number"].split("."))
    title = match["title"]
    starts = _starts_title(title) or (len(number) > 1 and bool(match["dot"]) and title[0].islower())
    if not starts or not _is_numbered_title(title):
        return None
    return Numbered(Kind.DECIMAL, number, len(number), title)


def _lettered(line: str) -> Numbered | None:
    match = _LETTER.match(line)
    if match is None or not _starts_title(match["title"]) or not _is_numbered_title(match["title"]):
        return None
    letter, *rest = match["number"].split(".")
    if not rest and len(match["title"]) < 3:
        return None
    number = (ord(letter) - ord("A") + 1, *(int(part) for part in rest))
    return Numbered(Kind.LETTER, number, len(number), match["title"])


def _roman(line: str) -> Numbered | None:
    match = _ROMAN.match(line)
    if match is None or not _starts_title(match["title"]) or not _is_numbered_title(match["title"]):
        return None
    return Numbered(Kind.ROMAN, (roman_value(match["number"]),), 1, match["title"])


def roman_value(digits: str) -> int:
    """The value of a roman number up to 399, in letters of any case."""
    values = [_ROMAN_DIGITS[digit] for digit in digits.upper()]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))


def _named(line: str) -> Numbered | None:
    match = _NAMED.match(line)
    if match is None or line[0].islower():
        return None
    title = match["title"] or ""
    if title and not (_starts_title(title) and could_be_title(title)):
        return None
    name = match["name"].lower()
    if title and match["mark"] is None and name not in ("§", "§§") and not line[: match.end("name")].isupper():
        return None  # "Section 3 Title" is as often the start of a sentence
    return Numbered(Kind.NAMED, (), _NAMES[name], title)


_NUMERALS = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_MAX_ROMAN = 4_000


def numeral(number: int, form: str) -> str:
    """A number in the form of the first one of a list: "1", "a", "A", "i" or "I"."""
    if form in "iI" and 0 < number < _MAX_ROMAN:
        text = ""
        for value, digits in _NUMERALS:
            text += digits * (number // value)
            number %= value
    elif form in "aA" and 0 < number < _MAX_ROMAN:
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)  # after z come aa, bb
    else:
        return str(number)
    return text.upper() if form.isupper() else text
