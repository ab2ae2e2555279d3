"""Metadata filters: `family = 'pep' and year >= 2019`, parsed here and bound as parameters, never pasted into SQL.

    filter     := either ('or' either)*
    either     := term ('and' term)*
    term       := 'not' term | '(' filter ')' | comparison
    comparison := key ('=' | '!=' | '<' | '<=' | '>' | '>=') value
                | key 'in' '(' value (',' value)* ')'
                | key 'like' value | key 'exists'

A key is a metadata key, or `doc_id`, `title`, `source`; quote it in backticks if
it is not a plain word, and double a backtick in it. A value is 'text', "text", a number,
true or false. Where the metadata value is a list, a comparison holds if it holds for
an element; a missing key satisfies no comparison but `!=`.

Filters given as a dict are written in this language by `engine.store.where_mapping`.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, not_, or_, select

from engine.errors import QueryError
from engine.store.catalog import DocumentRow

_TOKEN = re.compile(
    r"(?:(?P<text>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")|(?P<quoted>`(?:[^`]|``)+`)|(?P<number>-?\d+(?:\.\d+)?(?![\w.-]))"
    r"|(?P<sign><=|>=|!=|<>|==|=|<|>|\(|\)|,)|(?P<word>[\w][\w.:-]*))"
)
_SPACE = re.compile(r"\s*")
_MAX_DEPTH = 30  # nested brackets and nots; this parser and SQLite recurse through them
_MAX_COMPARISONS = 200
_MAX_VALUES = 30_000  # SQLite binds 32,766 in some builds
_LARGEST_INT = 2**63 - 1
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COLUMNS = {"doc_id": DocumentRow.doc_id, "title": DocumentRow.title, "source": DocumentRow.source}
_RESERVED = frozenset({"and", "or", "not", "in", "like", "exists", "true", "false"})


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def parse_where(where: str) -> ColumnElement[bool]:
    """Turn a filter into a condition on the documents table.

    Raises:
        QueryError: it does not parse; the message points at the place.
    """
    return _Parser(where).parse()


def compared_keys(where: str) -> list[str]:
    """The metadata keys that a filter compares with a value, in their order, each once.

    Keys that are only tested with `exists` are not among them, nor are `doc_id`, `title` and `source`.

    Raises:
        QueryError: it does not parse; the message points at the place.
    """
    parser = _Parser(where)
    parser.parse()
    return [key for key in dict.fromkeys(parser.compared) if key not in _COLUMNS]


def has_key(key: str) -> ColumnElement[bool]:
    """A condition on the documents table: the metadata have a value under a key."""
    return _any_element(key, None)


def json_path(key: str) -> str:
    """The path of a metadata key for SQLite, which compares the key as it is written in the JSON."""
    return "$." + json.dumps(key, ensure_ascii=False)


class _Parser:
    def __init__(self, where: str) -> None:
        self.where = where
        self.position = 0
        self.tokens: list[_Token] = []
        self.tokens = list(self._tokens())
        self.depth = self.n_comparisons = self.n_values = 0
        self.compared: list[str] = []  # keys, in their order

    def _tokens(self) -> Iterator[_Token]:
        at = 0
        while (at := self._after_space(at)) < len(self.where):
            match = _TOKEN.match(self.where, at)
            if match is None:
                raise self._error("a key, value or operator", at)
            assert match.lastgroup is not None
            yield _Token(match.lastgroup, match.group(match.lastgroup), match.start(match.lastgroup))
            at = match.end()

    def _after_space(self, at: int) -> int:
        match = _SPACE.match(self.where, at)
        return match.end() if match else at

    def _error(self, expected: str, at: int | None = None) -> QueryError:
        token = self._peek()
        place = at if at is not None else (token.at if token else len(self.where))
        found = repr(self.where[place : place + 20]) if place < len(self.where) else "its end"
        return QueryError(
            f"filter {self.where!r}: expected {expected} at character {place + 1}, found {found}; "
            "for example: family = 'pep' and year >= 2019"
        )

    def parse(self) -> ColumnElement[bool]:
        condition = self._filter()
        if self._peek() is not None:
            raise self._error("'and', 'or' or the end")
        return condition

    def _peek(self) -> _Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def _take_if(self, *texts: str) -> str | None:
        token = self._peek()
        if token is not None and token.kind in ("word", "sign") and token.text.lower() in texts:
            self.position += 1
            return token.text.lower()
        return None

    def _filter(self) -> ColumnElement[bool]:
        terms = [self._either()]
        while self._take_if("or"):
            terms.append(self._either())
        return or_(*terms)

    def _either(self) -> ColumnElement[bool]:
        terms = [self._term()]
        while self._take_if("and"):
            terms.append(self._term())
        return and_(*terms)

    def _term(self) -> ColumnElement[bool]:
        if self._take_if("not"):
            return not_(self._deeper(self._term))
        if self._take_if("("):
            condition = self._deeper(self._filter)
            self._expect(")")
            return condition
        return self._comparison()

    def _deeper(self, parse: Callable[[], ColumnElement[bool]]) -> ColumnElement[bool]:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self._error(f"at most {_MAX_DEPTH} brackets or nots inside each other")
        condition = parse()
        self.depth -= 1
        return condition

    def _expect(self, sign: str) -> None:
        if not self._take_if(sign):
            raise self._error(repr(sign))

    def _key(self) -> str:
        token = self._peek()
        if token is None or token.kind not in ("word", "quoted") or token.text.lower() in _RESERVED:
            raise self._error("a metadata key")
        self.position += 1
        return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text

    def _value(self) -> str | int | float:
        self.n_values += 1
        if self.n_values > _MAX_VALUES:
            raise self._error(f"at most {_MAX_VALUES} values")
        token = self._peek()
        if token is not None and token.kind == "text":
            self.position += 1
            quote = token.text[0]
            return token.text[1:-1].replace(quote * 2, quote)
        if token is not None and token.kind == "number":
            self.position += 1
            return _number(token.text)
        if word := self._take_if("true", "false"):
            return int(word == "true")  # as SQLite reads JSON
        raise self._error("a value ('text', a number, true or false)")

    def _comparison(self) -> ColumnElement[bool]:
        self.n_comparisons += 1
        if self.n_comparisons > _MAX_COMPARISONS:
            raise self._error(f"at most {_MAX_COMPARISONS} comparisons (many values go into one 'in (...)')")
        key = self._key()
        if self._take_if("exists"):
            return _any_element(key, None)
        self.compared.append(key)
        if self._take_if("in"):
            return _any_element(key, self._membership())
        if self._take_if("like"):
            pattern = self._value()
            return _any_element(key, lambda column: column.like(str(pattern)))
        if self._take_if("!=", "<>"):
            unwanted = self._value()
            return not_(_any_element(key, lambda column: column == unwanted))
        sign = self._take_if(*_COMPARE)
        if sign is None:
            raise self._error("one of = != < <= > >= in like exists")
        value = self._value()
        return _any_element(key, lambda column: _COMPARE[sign](column, value))

    def _membership(self) -> Callable[[Any], Any]:
        self._expect("(")
        values = [self._value()]
        while self._take_if(","):
            values.append(self._value())
        self._expect(")")
        return lambda column: column.in_(values)


def _number(text: str) -> int | float:
    """Parse a number; an integer too large for SQLite becomes a float, as no such integer is stored."""
    is_whole = "." not in text and len(text) < 21 and abs(int(text)) <= _LARGEST_INT
    return int(text) if is_whole else float(text)


def _any_element(key: str, test: Callable[[Any], Any] | None) -> ColumnElement[bool]:
    """True where some element of the metadata value (a scalar is one element) passes the test."""
    if key in _COLUMNS:
        return _COLUMNS[key].is_not(None) if test is None else test(_COLUMNS[key])
    elements = func.json_each(DocumentRow.meta, json_path(key)).table_valued("value", "type", joins_implicitly=True)
    rows = select(1).select_from(elements).where(elements.c.type != "null")
    return exists(rows if test is None else rows.where(test(elements.c.value)))
