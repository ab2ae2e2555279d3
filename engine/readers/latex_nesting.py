"""Finds where braces, environments and arguments of LaTeX source close, in time linear in its length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MAX_DEPTH = 40  # the converter is recursive; deeper groups lose their braces and keep their text

_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_NESTING = re.compile(r"\\(?:begin|end)[ \t]*\{[^{}\\\n]{1,60}\}|\\.|[{}]|\$\$?", re.DOTALL)
_ENVIRONMENT = re.compile(r"\\(begin|end)[ \t]*\{(.*)\}", re.DOTALL)
_CLOSERS = {"}": "{", r"\)": r"\(", r"\]": r"\["}
_OPENERS = frozenset(_CLOSERS.values())
_COMMAND = re.compile(r"\\(?:[A-Za-z@]+|.)", re.DOTALL)
_BLANKS = re.compile(r"[ \t]*\n?[ \t]*")
_BRACKET = re.compile(r"\\.|[\[\]{}]", re.DOTALL)
_MAX_BRACKET_CHARS = 500  # of an optional argument
_PARAMETERS = re.compile(r"(?:[^{}\\\n]|\\[^{}\n]){0,200}(?=\{)")
_PARENTHESES = re.compile(r"\([^()\n]{0,50}\)")
_LENGTH = r"[-+]?(?:\d{1,9}\.?\d{0,9}|\.\d{1,9})[ \t]*(?:(?:true)?(?:pt|em|ex|cm|mm|in|sp|pc|bp|mu|fill?)(?![A-Za-z]))?"
_LENGTHS = re.compile(
    rf"[ \t]*=?[ \t]*(?:{_LENGTH}|-?\\[A-Za-z@]{{1,40}})(?:[ \t]*(?:plus|minus)[ \t]*{_LENGTH}){{0,2}}"
)
_PATTERNS = {"p": _PARAMETERS, "(": _PARENTHESES, "d": _LENGTHS}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a command: `text[start:stop]` without its braces, and `end` after them."""

    start: int
    stop: int
    end: int


def closing_braces(text: str) -> dict[int, int]:
    """Map the offset of each opening brace to that of its closing brace; unclosed braces are left out."""
    closing: dict[int, int] = {}
    waiting: list[int] = []
    for match in _BRACE.finditer(text):
        if match.group() == "{":
            waiting.append(match.start())
        elif match.group() == "}" and waiting:
            closing[waiting.pop()] = match.start()
    return closing


def group_at(text: str, start: int, closing: Mapping[int, int]) -> Argument:
    """The group that opens at `start`; one that is never closed ends with its line."""
    stop = closing.get(start)
    if stop is not None:
        return Argument(start + 1, stop, stop + 1)
    stop = text.find("\n", start)
    stop = len(text) if stop < 0 else stop
    return Argument(start + 1, stop, stop)


def arguments(text: str, start: int, signature: str, closing: Mapping[int, int]) -> Iterator[Argument]:
    """Find the arguments after a command, until one is missing.

    Args:
        text: LaTeX source.
        start: one past the command.
        signature: one letter for each argument: "*" a star, "o" an optional argument,
            "m" a group or a command, "p" the parameters of `\\def`, "=" an equals sign, "l" a
            command or a character, "(" text in parentheses, "d" a length that is assigned.
            A missing "m", "p", "l" or "d" ends the list; any other is empty.
        closing: the result of `closing_braces`.
    """
    for kind in signature:
        found = _argument(text, start, kind, closing)
        if found is None:
            if kind in "mpld":
                return
            found = Argument(start, start, start)
        yield found
        start = found.end


def _argument(text: str, start: int, kind: str, closing: Mapping[int, int]) -> Argument | None:
    if kind in _PATTERNS:
        match = _PATTERNS[kind].match(text, start)
        return Argument(start, match.end(), match.end()) if match else None
    blanks = _BLANKS.match(text, start)
    start = blanks.end() if blanks else start
    first = text[start : start + 1]
    if kind in "*=":
        return Argument(start, start + 1, start + 1) if first == kind else None
    if kind == "o":
        return _optional(text, start, closing) if first == "[" else None
    if first == "{" and start in closing:
        return group_at(text, start, closing)
    command = _COMMAND.match(text, start)
    if command is not None:
        return Argument(start, command.end(), command.end())
    return Argument(start, start + 1, start + 1) if kind == "l" and first else None


def _optional(text: str, start: int, closing: Mapping[int, int]) -> Argument | None:
    place, depth, limit = start, 0, start + _MAX_BRACKET_CHARS
    while (match := _BRACKET.search(text, place, limit)) is not None:
        place, token = match.end(), match.group()
        if token == "}":
            return None
        if token == "{":
            if match.start() not in closing:
                return None
            place = closing[match.start()] + 1
        depth += {"[": 1, "]": -1}.get(token, 0)
        if token == "]" and depth == 0:
            return Argument(start + 1, match.start(), place)
    return None


def balanced(text: str) -> str:
    """Leave out braces, `\\begin`, `\\end` and formula delimiters that have no partner or nest too deeply.

    Where a group and an environment cross each other, the converter retries, which takes
    exponential time.
    """
    found = list(_NESTING.finditer(text))
    dropped = set(_unpaired([match.group() for match in found]))
    parts, start = [], 0
    for number in sorted(dropped):
        parts.append(text[start : found[number].start()])
        start = found[number].end()
    return "".join([*parts, text[start:]])


def _unpaired(tokens: list[str]) -> Iterator[int]:
    """Numbers of the tokens that have no partner, or that nest too deeply."""
    waiting: list[tuple[int, str]] = []
    n_waiting: Counter[str] = Counter()
    for number, token in enumerate(tokens):
        opens, closes = _roles(token, waiting[-1][1] if waiting else "")
        if opens:
            waiting.append((number, opens))
            n_waiting[opens] += 1
        elif closes and not n_waiting[closes]:
            yield number
        elif closes:
            while True:
                opener, name = waiting.pop()
                n_waiting[name] -= 1
                if name == closes:
                    break
                yield opener
            if len(waiting) >= MAX_DEPTH:
                yield from (opener, number)
    yield from (number for number, _ in waiting)


def _roles(token: str, innermost: str) -> tuple[str, str]:
    """The opener that a token is, and the opener that it closes; "" for none."""
    if token in _CLOSERS:
        return "", _CLOSERS[token]
    if token in _OPENERS:
        return token, ""
    if token.startswith("$"):
        return ("", token) if token == innermost else (token, "")
    environment = _ENVIRONMENT.fullmatch(token)
    if environment is None:
        return "", ""
    name = rf"\begin{{{environment[2]}}}"
    return (name, "") if environment[1] == "begin" else ("", name)
