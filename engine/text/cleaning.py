"""Makes a text fit to store: newlines, characters that no store accepts, and the limit on its size."""

from __future__ import annotations

import re

from engine.errors import DocumentError

MAX_DOCUMENT_BYTES = 32 * 2**20  # the text of one document, in UTF-8
_FORBIDDEN = re.compile("[\x00\ud800-\udfff]")


def clean(text: str) -> str:
    """Normalise newlines; NUL and lone surrogates, which no store accepts, become U+FFFD."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return printable(text)


def printable(text: str) -> str:
    """Replace NUL and lone surrogates by U+FFFD; the length does not change."""
    return _FORBIDDEN.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Runs of white space become one space."""
    return " ".join(printable(text).split())


# Han, kana and their signs.
_UNSPACED = "\u3001-\u3029\u3030-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003ffff"
_UNSPACED_CHAR = re.compile(f"[{_UNSPACED}]")
_UNSPACED_BREAK = re.compile(f"(?<=[{_UNSPACED}])[ \\t]*\\n\\s*(?=[{_UNSPACED}])")
_ROMAN = re.compile(r"(?:^|(?<![^\W\d_]))[IVXLCDM]+$")


def is_unspaced(before: str, after: str) -> bool:
    """Whether two characters belong to scripts that have no spaces between words."""
    return _UNSPACED_CHAR.match(before) is not None and _UNSPACED_CHAR.match(after) is not None


def joined_lines(text: str) -> str:
    """Join lines that break between two characters of a script without spaces."""
    return text if text.isascii() else _UNSPACED_BREAK.sub("", text)


def raised(before: str, text: str) -> str:
    """A superscript behind other text: "^12", but the letters of "1st" as they are."""
    mark = text.strip()
    if not before.strip():
        return f"{text} " if mark.isalnum() else text
    if before[-1].isspace() or not mark[:1].isalnum():
        return text
    if mark.isalpha() and (
        (len(mark) > 1 and not mark.isupper()) or before[-1].isdigit() or (mark in "aeo" and _ROMAN.search(before))
    ):
        return text
    return f"^{text.lstrip()}"


def check_text(text: str) -> None:
    """Refuse a text over `MAX_DOCUMENT_BYTES`.

    Raises:
        DocumentError: the text is too large.
    """
    if len(text) * 4 <= MAX_DOCUMENT_BYTES:
        return
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_DOCUMENT_BYTES:
        raise too_large("text", f"{size:,}", MAX_DOCUMENT_BYTES)


def too_large(what: str, size: str, limit: int) -> DocumentError:
    """The error for something of `size` bytes where `limit` are allowed."""
    return DocumentError(f"the {what} is {size} bytes, the limit is {limit:,}; split it into several documents")
