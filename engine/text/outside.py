"""Text from outside (titles, names, texts, file names) made safe for a terminal, a log, CSV, XML and Word files."""

from __future__ import annotations

import json
import re
from typing import Any

REPLACEMENT = "\ufffd"
# Control characters, marks that turn the direction of what follows, lone surrogates, and what XML does not allow.
_UNSAFE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_BREAKS = re.compile("\r\n|[\t\n\x0b\x0c\r\x1c-\x1e\x85\u2028\u2029]")
_ALL_BREAKS_BUT_NEWLINE = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# `json.dumps` leaves these as they are; some terminals obey them, and some programs end a line at them.
_ESCAPED = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def safe(text: str, *, lines: bool = False) -> str:
    """A text that can do nothing but be read: what a terminal or XML would obey or refuse becomes U+FFFD.

    Line breaks and tabs become blanks; with `lines` they stay, every line break as a newline.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _ALL_BREAKS_BUT_NEWLINE.sub("\n", text) if lines else _BREAKS.sub(" ", text)
    return _UNSAFE.sub(REPLACEMENT, text)


def json_text(value: Any, *, indent: int | None = None) -> str:  # noqa: ANN401
    """A value as JSON, without loss: what a terminal would obey is escaped as \\uXXXX."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", written)
