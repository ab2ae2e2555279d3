"""A line as spans of text, code, strong and emphasis. Decides no markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class SpanKind(StrEnum):
    """The kinds of span."""

    TEXT = "text"
    CODE = "code"
    STRONG = "strong"
    EMPHASIS = "emphasis"


@dataclass(frozen=True)
class Span:
    """Characters of one kind, without the marks around them."""

    kind: SpanKind
    text: str


_SPAN = re.compile(
    r"`(?P<code>[^`]+)`"
    r"|\*\*(?P<strong>\w[^*]*?)\*\*"
    r"|(?<![\w*])\*(?P<emphasis>[A-Za-z][^*]*[\w.)])\*(?![\w*])"
    r"|(?<!\w)_(?P<underlined>[A-Za-z][^_`]*)_(?!\w)"
    r"|(?<![\w`/)])(?P<word>"
    r"\*{0,2}[A-Za-z]?[\w.]*_[\w.]*\w(?:\(\))?(?![\w(])|[A-Za-z][\w.]*\(\)|\*{1,2}[A-Za-z]\w*)"
)


_KIND_OF_GROUP = {
    "code": SpanKind.CODE,
    "word": SpanKind.CODE,
    "strong": SpanKind.STRONG,
    "emphasis": SpanKind.EMPHASIS,
    "underlined": SpanKind.EMPHASIS,
}


def spans(text: str) -> Iterator[Span]:
    """Split a line into spans; names with an underscore or empty parentheses are code."""
    end = 0
    for match in _SPAN.finditer(text):
        if match.start() > end:
            yield Span(SpanKind.TEXT, text[end : match.start()])
        group = str(match.lastgroup)
        yield Span(_KIND_OF_GROUP[group], match[group].replace("`", ""))
        end = match.end()
    if end < len(text):
        yield Span(SpanKind.TEXT, text[end:])


def plain(text: str) -> str:
    """The line without marks."""
    return "".join(span.text for span in spans(text))
