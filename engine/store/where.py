"""Metadata filters: `family = 'pep' and year >= 2019`, parsed here and bound as parameters, never pasted into SQL.

    filter     := either ('or' either)*
    either     := term ('and' term)*
    term       := 'not' term | '(' filter ')' | comparison
    comparison := key ('=' | '!=' | '<' | '<=' | '>' | '>=') value
                | key 'not'? ('in' '(' value (',' value)* ')' | 'like' value | 'exists' | 'before' value)
                | 'cites' text

A key is a metadata key, or `doc_id`, `title`, `source`; quote it in backticks if
it is not a plain word, and double a backtick in it. A value is 'text', "text", a number,
true or false. Where the metadata value is a list, a comparison holds if it holds for
an element; a missing key satisfies no comparison but `!=` and `not`. A number is compared with a
text that is a number as numbers; with any other text it is neither equal nor in an order.
`before` compares dates: 2019, '2019-06' or '2019-06-01', of which the value of the filter counts as its first day and
a metadata value as its last, so that what passes is certainly before. A time after the day does not matter, and other
metadata values do not pass. `cites '347 U.S. 483'` holds for documents whose text cites the work, in any spelling.

Filters given as a dict are converted to this language:

    {"year": {">=": 2019, "<": 2024}, "venue": ["ACL", "EMNLP"]}
    year >= 2019 and year < 2024 and venue in ('ACL', 'EMNLP')

All keys must match. A key has a value, a list of values of which one must match, None if the key must
be missing, or operators:

    =  !=  <  <=  >  >=     $eq  $ne  $lt  $lte  $gt  $gte      a value
    in  not in              $in  $nin                           a list of values
    like  exists            $like  $exists                      a pattern; True or False

`$and` and `$or` take a list of filters, `$not` takes one, and `$cites` a work. A value is text, a number, True,
False, or a date, which is compared as text in ISO format.
"""

from __future__ import annotations

import datetime
import json
import math
import re
import reprlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any, TypeAlias, TypeGuard, TypeVar

from engine.errors import QueryError
from engine.text.cleaning import regex

_TOKEN = regex(
    r"\s*(?:(?P<text>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")|(?P<quoted>`(?:[^`]|``)+`)|(?P<number>-?\d+(?:\.\d+)?(?![\w.-]))"
    r"|(?P<sign><=|>=|!=|<>|==|=|<|>|\(|\)|,)|(?P<word>[\w][\w.:-]*))"
)
_NEGATED = ("in", "like", "exists", "before")  # comparisons that "not" may precede, as in SQL
_MAX_DEPTH = 26  # nested brackets and nots; this parser and SQLite recurse through them
_MAX_COMPARISONS = 200
_MAX_VALUES = 30_000  # SQLite binds 32,766 in some builds
_LARGEST_INT = 2**63 - 1  # larger ones are floats, as the catalog reads them
_NUMERAL = regex(r"-?\d+(?:\.\d+)?")
_DATE = regex(r"\d{4}(-\d\d(-\d\d)?)?", re.ASCII)
_DATE_GLOBS = ["-".join(["[0-9]" * 4, *["[0-9]" * 2] * n]) for n in range(3)]
_LAST_DAY = "9999-12-31"
DATE_FIELDS = ("date", "published", "publication_date", "created", "year")  # of metadata, the first one counts
_COLUMNS = ("doc_id", "title", "source")
_RESERVED = frozenset({"and", "or", "not", "in", "like", "exists", "true", "false"})


_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Work:
    """A cited work among the parameters of a condition; the ids of the documents that cite it are bound, as JSON."""

    name: str


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of SQL on the documents table."""

    sql: str
    values: tuple[Any, ...] = ()  # of its parameters

    def negated(self) -> Condition:
        """The opposite condition."""
        return Condition(f"NOT ({self.sql})", self.values)


_Value: TypeAlias = str | int | float
_Test: TypeAlias = Callable[[str, str], Condition]  # of the SQL for the value and the type of an element


def _joined(word: str, conditions: list[Condition]) -> Condition:
    if len(conditions) == 1:
        return conditions[0]
    sql = f" {word} ".join(condition.sql for condition in conditions)
    values = tuple(chain.from_iterable(condition.values for condition in conditions))
    return Condition(f"({sql})" if word == "OR" else sql, values)


def parse_where(where: str) -> Condition:
    """Turn a filter into a condition on the documents table."""
    return _Parser(where).parse()


def compared_values(where: str) -> list[tuple[str, list[_Value]]]:
    """The metadata keys that a filter compares, and with which values, in their order; none of `!=`, a pattern or date.

    Keys that are only tested with `exists` are not among them, nor are `doc_id`, `title` and `source`.
    """
    parser = _Parser(where)
    parser.parse()
    return [(key, values) for key, values in parser.compared if key not in _COLUMNS]


def has_key(key: str, values: Collection[_Value] = ()) -> Condition:
    """A condition on the documents table: the metadata have a value under a key, of a kind that compares with one."""
    is_number = [_as_number(value) is not None for value in values]
    is_text = [isinstance(value, str) for value in values]

    def test(column: str, kind: str) -> Condition:
        kinds = [f"{kind} != 'text' OR {_is_numeric(column)}"] * any(is_number) + [f"{kind} = 'text'"] * any(is_text)
        return Condition(f"({' OR '.join(kinds)})")

    return _any_element(key, test if values else None)


def json_path(key: str) -> str:
    """The path of a metadata key for SQLite, which compares the key as it is written in the JSON."""
    return "$." + json.dumps(key, ensure_ascii=False)


class _Parser:
    def __init__(self, where: str) -> None:
        self.where = where
        self.tokens: list[tuple[str, str, int]] = []  # kind, text and place, the last token first
        self.tokens = [*self._tokens()][::-1]
        self.depth = self.n_comparisons = self.n_values = 0
        self.compared: list[tuple[str, list[_Value]]] = []  # keys with values, in their order

    def _tokens(self) -> Iterator[tuple[str, str, int]]:
        at, end = 0, len(self.where.rstrip())
        while at < end:
            match = _TOKEN.match(self.where, at)
            if match is None or match.lastgroup is None:
                raise self._error("a key, value or operator", len(self.where) - len(self.where[at:].lstrip()))
            yield match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)
            at = match.end()

    def _error(self, expected: str, at: int | None = None) -> QueryError:
        place = self._next()[2] if at is None else at
        found = repr(self.where[place : place + 20]) if place < len(self.where) else "its end"
        return QueryError(
            f"filter {self.where!r}: expected {expected} at character {place + 1}, found {found}; "
            "for example: family = 'pep' and year >= 2019"
        )

    def parse(self) -> Condition:
        condition = self._filter()
        if self.tokens:
            raise self._error("'and', 'or' or the end")
        return condition

    def _next(self) -> tuple[str, str, int]:
        return self.tokens[-1] if self.tokens else ("", "", len(self.where))

    def _take_if(self, *texts: str) -> str | None:
        kind, text, _ = self._next()
        if kind not in ("word", "sign") or text.lower() not in texts:
            return None
        self.tokens.pop()
        return text.lower()

    def _expect(self, sign: str) -> None:
        if not self._take_if(sign):
            raise self._error(repr(sign))

    def _listed(self, take: Callable[[], _Item], separator: str) -> list[_Item]:
        items = [take()]
        while self._take_if(separator):
            items.append(take())
        return items

    def _filter(self) -> Condition:
        return _joined("OR", self._listed(self._either, "or"))

    def _either(self) -> Condition:
        return _joined("AND", self._listed(self._term, "and"))

    def _term(self) -> Condition:
        if self._take_if("not"):
            return self._deeper(self._term).negated()
        if self._take_if("("):
            condition = self._deeper(self._filter)
            self._expect(")")
            return condition
        return self._comparison()

    def _deeper(self, parse: Callable[[], Condition]) -> Condition:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self._error(f"at most {_MAX_DEPTH} brackets or nots inside each other")
        condition = parse()
        self.depth -= 1
        return condition

    def _key(self) -> str:
        kind, text, _ = self._next()
        if kind not in ("word", "quoted") or text.lower() in _RESERVED:
            raise self._error("a metadata key")
        self.tokens.pop()
        return text[1:-1].replace("``", "`") if kind == "quoted" else text

    def _value(self) -> _Value:
        self.n_values += 1
        if self.n_values > _MAX_VALUES:
            raise self._error(f"at most {_MAX_VALUES} values")
        kind, text, _ = self._next()
        if kind in ("text", "number"):
            self.tokens.pop()
            return _number(text) if kind == "number" else text[1:-1].replace(text[0] * 2, text[0])
        if word := self._take_if("true", "false"):
            return int(word == "true")  # as SQLite reads JSON
        raise self._error("a value ('text', a number, true or false)")

    def _cited(self) -> str | None:
        """The work behind the word "cites"; None where that word is a key, or another one follows."""
        word, text = self._next(), self.tokens[-2] if len(self.tokens) > 1 else ("", "", 0)
        if (word[0], word[1].lower(), text[0]) != ("word", "cites", "text"):
            return None
        from engine.references.extraction import named_works  # compiles patterns, which few filters need

        self.tokens.pop()
        if not named_works(work := str(self._value())):
            self.tokens.append(text)
            raise self._error("a case, law, patent, paper, RFC or standard, as '347 U.S. 483'")
        return work

    def _comparison(self) -> Condition:
        self.n_comparisons += 1
        if self.n_comparisons > _MAX_COMPARISONS:
            raise self._error(f"at most {_MAX_COMPARISONS} comparisons (many values go into one 'in (...)')")
        if (work := self._cited()) is not None:
            return Condition("id IN (SELECT value FROM json_each(?))", (Work(work),))
        key = self._key()
        if self._take_if("not"):
            if self._next()[1].lower() not in _NEGATED:
                raise self._error(f"one of {' '.join(_NEGATED)}")
            return self._tested(key).negated()
        return self._tested(key)

    def _tested(self, key: str) -> Condition:
        if self._take_if("exists"):
            return has_key(key)
        values: list[_Value] = []
        self.compared.append((key, values))
        if self._take_if("!=", "<>"):
            return _any_element(key, _comparing("=", [self._value()])).negated()
        return _any_element(key, self._test(values))

    def _test(self, values: list[_Value]) -> _Test:
        """The test of a comparison, whose values are added to a list unless they are a pattern or a date."""
        if self._take_if("in"):
            self._expect("(")
            values += self._listed(self._value, ",")
            self._expect(")")
            return _comparing("IN", values)
        if self._take_if("like"):
            pattern = str(self._value())
            return lambda column, _: Condition(f"{column} LIKE ?", (pattern,))
        if self._take_if("before"):
            token = self._next()
            if (day := first_day(str(self._value()))) is None:
                self.tokens.append(token)
                raise self._error("a date, as 2019, '2019-06' or '2019-06-01'")
            return _before(day)
        sign = self._take_if("=", "==", "<", "<=", ">", ">=")
        if sign is None:
            raise self._error(f"one of = != < <= > >= not {' '.join(_NEGATED)}")
        values.append(self._value())
        return _comparing(sign, values)


def _comparing(sign: str, values: list[_Value]) -> _Test:
    """A comparison of an element with values; a text and a number are compared as numbers, or not at all."""
    texts = [value for value in values if isinstance(value, str)]
    numbers = [number for number in map(_as_number, values) if number is not None]
    of_text, of_number = (
        f"{sign} ?" if bound and sign != "IN" else f"IN ({', '.join('?' * len(bound))})" for bound in (texts, numbers)
    )

    def test(column: str, kind: str) -> Condition:
        as_numbers = f"{_is_numeric(column)} AND CAST({column} AS FLOAT) {of_number}"
        of_texts = f"{kind} = 'text' AND ({column} {of_text} OR {as_numbers})"
        return Condition(f"({of_texts} OR {kind} != 'text' AND {column} {of_number})", (*texts, *numbers, *numbers))

    return test


def first_day(date: str) -> str | None:
    """The first day of a date in ISO format that may lack day and month; None where it is no date."""
    if not _DATE.fullmatch(date):
        return None
    try:
        return datetime.date.fromisoformat(f"{date}-01-01"[:10]).isoformat()
    except ValueError:
        return None


def _before(day: str) -> _Test:
    def test(column: str, _kind: str) -> Condition:
        date = f"substr(CAST({column} AS TEXT), 1, 10)"
        is_date = " OR ".join(f"{date} GLOB '{digits}'" for digits in _DATE_GLOBS)
        return Condition(f"({is_date}) AND {date} || '-99' < ?", (day,))  # after all days of a year or a month

    return test


def cut_off(before: str) -> tuple[tuple[str, ...], str]:
    """The fields that may hold the date, and the day, of "2019-06-01" or "priority_date=2019-06-01"."""
    field, _, day = before.rpartition("=")
    return (field,) if field else DATE_FIELDS, day


def before_text(before: str) -> str:
    """The filter of the documents that are dated before a day, by the first field of a cut-off that holds a date."""
    fields, day = cut_off(before)
    text = ""
    for key in map(_quoted, reversed(fields)):
        text = f"{key} before '{day}'" + (f" or not {key} before '{_LAST_DAY}' and ({text})" if text else "")
    return text


def dated_text(before: str) -> str:
    """The filter of the documents that have a date in one of the fields of a cut-off."""
    return " or ".join(f"{_quoted(key)} before '{_LAST_DAY}'" for key in cut_off(before)[0])


def _as_number(value: _Value) -> int | float | None:
    if not isinstance(value, str):
        return value
    return _number(value) if _NUMERAL.fullmatch(value) else None


def _is_numeric(column: str) -> str:
    """Whether a text is a number, for SQLite."""
    return f"{column} GLOB '*[0-9]*' AND {column} NOT GLOB '*[^0-9.]*' AND {column} NOT GLOB '*.*.*'"


def _number(text: str) -> int | float:
    """Parse a number; an integer too large for SQLite becomes a float, as no such integer is stored."""
    is_whole = "." not in text and len(text) < 21 and abs(int(text)) <= _LARGEST_INT
    return int(text) if is_whole else float(text)


def _any_element(key: str, test: _Test | None) -> Condition:
    """True where some element of the metadata value (a scalar is one element) passes the test."""
    if key in _COLUMNS:
        of_column = Condition(f"{key} IS NOT NULL") if test is None else test(key, "'text'")
        return Condition(f"({of_column.sql})", of_column.values)
    elements = "EXISTS (SELECT 1 FROM json_each(metadata, ?) WHERE type != 'null'"
    if test is None:
        return Condition(f"{elements})", (json_path(key),))
    condition = test("value", "type")
    return Condition(f"{elements} AND {condition.sql})", (json_path(key), *condition.values))


_MOST_NESTED = 12  # nested filters; each takes two levels of brackets in the text
_OPERATORS = {"$eq": "=", "$ne": "!=", "$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">=", "==": "=", "<>": "!="}
_OPERATORS |= {"$in": "in", "$nin": "not in", "$like": "like", "$exists": "exists"}
_OPERATORS |= {name: name for name in ("=", "!=", "<", "<=", ">", ">=", "in", "not in", "like", "exists")}
_EXAMPLE = '{"year": {">=": 2019}, "venue": ["ACL", "EMNLP"]}'
_SHORT = reprlib.Repr()  # shortens filters in messages, whatever their depth and length
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60
_OF_OTHERS = ("must", "should", "must_not")  # keys with which other programs join conditions


def filter_text(where: object) -> str | None:
    """A filter in the language above from a text, a dict or its JSON; None for no filter."""
    if isinstance(where, str) and where.lstrip().startswith("{"):
        try:
            where = json.loads(where)
        except ValueError as error:
            raise QueryError(f"the filter is not JSON ({error}); pass an object, or a text as: year >= 2019") from error
    if where is None or isinstance(where, str):
        return where or None
    if isinstance(where, Mapping):
        return where_text(where)
    raise QueryError(f"the filter is {type(where).__name__}; pass a dict or a text, as {{'year': {{'>=': 2019}}}}")


def where_text(where: Mapping[str, Any]) -> str | None:
    """A filter in the language of `engine.store.where`; None for an empty one, which keeps all documents."""
    try:
        return _filter(where) if where else None
    except _Refused as error:
        raise QueryError(f"filter {_short(where)}: {error}; for example: {_EXAMPLE}") from None


class _Refused(Exception):
    """The reason why a dict is no filter."""


def _filter(where: object, depth: int = 1) -> str:
    """All keys of one mapping."""
    if not isinstance(where, Mapping) or not where:
        raise _Refused(f"{_short(where)} is not a filter: a dict of keys and values")
    if depth > _MOST_NESTED:
        raise _Refused(f"at most {_MOST_NESTED} filters inside each other")
    return " and ".join(_term(key, value, depth + 1) for key, value in where.items())


def _term(key: object, value: object, depth: int) -> str:
    if not isinstance(key, str) or not key:
        raise _Refused(f"the key {_short(key)} is not a text")
    if key in ("$and", "$or"):
        if not _is_list(value) or not value:
            raise _Refused(f"{key!r} takes a list of filters, not {_short(value)}")
        return "(" + f" {key[1:]} ".join(f"({_filter(item, depth)})" for item in value) + ")"
    if key == "$not":
        return f"not ({_filter(value, depth)})"
    if key == "$cites" and isinstance(value, str):
        return f"cites {_value_text(key, value)}"
    if key.startswith("$"):
        raise _Refused(f"{key!r} joins no filters; known are $and, $or, $not, and $cites with a text")
    if key in _OF_OTHERS and _is_list(value) and value and all(isinstance(item, Mapping) for item in value):
        raise _Refused(f"{key!r} joins no filters; use $and, $or, $not")
    if isinstance(value, Mapping):
        if not value:
            raise _Refused(f"no operator at {key!r}")
        return " and ".join(_operation(key, sign, operand) for sign, operand in value.items())
    return _operation(key, "in" if _is_list(value) else "=", value)


def _operation(key: str, name: object, operand: object) -> str:
    quoted, operator = _quoted(key), _OPERATORS.get(name) if isinstance(name, str) else None
    if operator is None:
        raise _Refused(f"{_short(name)} at {key!r} is not an operator; known: = != < <= > >= in, not in, like, exists")
    if operator in ("=", "!=") and operand is None:
        operator, operand = "exists", operator == "!="
    if operator == "exists":
        if not isinstance(operand, bool):
            raise _Refused(f"'exists' at {key!r} takes True or False, not {_short(operand)}")
        return f"{quoted} exists" if operand else f"not {quoted} exists"
    if operator == "like" and not isinstance(operand, str):
        raise _Refused(f"'like' at {key!r} takes a text with % for any characters, not {_short(operand)}")
    if operator not in ("in", "not in"):
        return f"{quoted} {operator} {_value_text(key, operand)}"
    if not _is_list(operand):
        raise _Refused(f"{name!r} at {key!r} takes a list, not {_short(operand)}")
    if not operand:
        raise _Refused(f"the list at {key!r} is empty; name a value, or leave {key!r} out")
    values = ", ".join(_value_text(key, value) for value in operand)
    return f"{'not ' if operator == 'not in' else ''}{quoted} in ({values})"


def _value_text(key: str, value: object) -> str:
    value = _plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, int) and abs(value) <= _LARGEST_INT:
        return str(value)
    if isinstance(value, int | float):
        return _digits(key, value)
    if _is_list(value):
        raise _Refused(f"{_short(value)} at {key!r} is a list; compare it with 'in' or 'not in'")
    raise _Refused(f"{_short(value)} at {key!r} is {type(value).__name__}; compare with text, a number, True or False")


def _digits(key: str, value: float) -> str:
    """A float without an exponent, and with a point: an integer of so many digits would be read as another number."""
    try:
        value = float(value)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise _Refused(f"{value} at {key!r} cannot be compared")
    digits = format(Decimal(repr(value)), "f")
    return digits if "." in digits else f"{digits}.0"


def _plain(value: object) -> object:
    """NumPy scalars and dates as the types that metadata hold."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    item: Callable[[], object] | None = getattr(value, "item", None)
    return item() if item is not None and not getattr(value, "ndim", 0) else value


def _is_list(value: object) -> TypeGuard[Collection[object]]:
    return isinstance(value, list | tuple | set | frozenset)


def _quoted(key: str) -> str:
    return "`" + key.replace("`", "``") + "`"


def _short(value: object) -> str:
    try:
        return _SHORT.repr(value)
    except ValueError:  # an integer of thousands of digits
        return f"<{type(value).__name__}>"
