"""Converts metadata filters from dicts to the language of `engine.store.where`. Writes no SQL.

    {"year": {">=": 2019, "<": 2024}, "venue": ["ACL", "EMNLP"]}
    year >= 2019 and year < 2024 and venue in ('ACL', 'EMNLP')

All keys must match. A key has a value, a list of values of which one must match, None if the key must
be missing, or operators:

    =  !=  <  <=  >  >=     $eq  $ne  $lt  $lte  $gt  $gte      a value
    in  not in              $in  $nin                           a list of values
    like  exists            $like  $exists                      a pattern; True or False

`$and` and `$or` take a list of filters, `$not` takes one. A value is text, a number, True, False, or a
date, which is compared as text in ISO format.
"""

from __future__ import annotations

import datetime
import math
import reprlib
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from typing import Any, NoReturn, TypeGuard

from engine.errors import QueryError

_LARGE = 2**63  # integers from here on are floats, as the catalog reads them
_MOST_NESTED = 12  # nested filters; each takes two levels of brackets in the text
_SIGNS = {"$eq": "=", "$ne": "!=", "$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">=", "==": "=", "<>": "!="}
_SIGNS |= {sign: sign for sign in ("=", "!=", "<", "<=", ">", ">=")}
_NAMES = {"$in": "in", "$nin": "not in", "$like": "like", "$exists": "exists"}
_NAMES |= {name: name for name in ("in", "not in", "like", "exists")}
_EXAMPLE = '{"year": {">=": 2019}, "venue": ["ACL", "EMNLP"]}'
_SHORT = reprlib.Repr()  # shortens filters in messages, whatever their depth and length
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60
_OF_OTHERS = ("must", "should", "must_not")  # keys with which other programs join conditions


def where_text(where: Mapping[str, Any]) -> str | None:
    """A filter in the language of `engine.store.where`; None for an empty one, which keeps all documents.

    Raises:
        QueryError: a key is not a text, an operator is not known, or a value cannot be compared.
    """
    return _Writer(where).filter(where) if where else None


class _Writer:
    """Writes one filter; holds the whole filter for error messages, and the current depth."""

    def __init__(self, where: Mapping[str, Any]) -> None:
        self._where = where
        self._depth = 0

    def filter(self, where: object) -> str:
        """All keys of one mapping."""
        if not isinstance(where, Mapping) or not where:
            self._fail(f"{_short(where)} is not a filter: a dict of keys and values")
        self._depth += 1
        if self._depth > _MOST_NESTED:
            self._fail(f"at most {_MOST_NESTED} filters inside each other")
        terms = [self._term(key, value) for key, value in where.items()]
        self._depth -= 1
        return " and ".join(terms)

    def _term(self, key: object, value: object) -> str:
        if not isinstance(key, str) or not key:
            self._fail(f"the key {_short(key)} is not a text")
        if key in ("$and", "$or"):
            return self._joined(key, value)
        if key == "$not":
            return f"not ({self.filter(value)})"
        if key.startswith("$"):
            self._fail(f"{key!r} joins no filters; known are $and, $or, $not")
        if key in _OF_OTHERS and _is_list(value) and value and all(isinstance(one, Mapping) for one in value):
            self._fail(f"{key!r} joins no filters; use $and, $or, $not")
        return self._condition(key, value)

    def _joined(self, key: str, value: object) -> str:
        if not _is_list(value) or not value:
            self._fail(f"{key!r} takes a list of filters, not {_short(value)}")
        return "(" + f" {key[1:]} ".join(f"({self.filter(one)})" for one in value) + ")"

    def _condition(self, key: str, value: object) -> str:
        if isinstance(value, Mapping):
            if not value:
                self._fail(f"no operator at {key!r}")
            return " and ".join(self._operation(key, sign, operand) for sign, operand in value.items())
        if value is None:
            return f"not {_quoted(key)} exists"
        if _is_list(value):
            return f"{_quoted(key)} in {self._values(key, value)}"
        return f"{_quoted(key)} = {self._value(key, value)}"

    def _operation(self, key: str, sign: object, operand: object) -> str:
        quoted = _quoted(key)
        if not isinstance(sign, str) or sign not in _SIGNS.keys() | _NAMES.keys():
            self._fail(f"{_short(sign)} at {key!r} is not an operator; known: = != < <= > >= in, not in, like, exists")
        if sign in _SIGNS:
            compared = _SIGNS[sign]
            if operand is None and compared in ("=", "!="):
                return f"not {quoted} exists" if compared == "=" else f"{quoted} exists"
            return f"{quoted} {compared} {self._value(key, operand)}"
        name = _NAMES[sign]
        if name == "exists":
            if not isinstance(operand, bool):
                self._fail(f"'exists' at {key!r} takes True or False, not {_short(operand)}")
            return f"{quoted} exists" if operand else f"not {quoted} exists"
        if name == "like":
            if not isinstance(operand, str):
                self._fail(f"'like' at {key!r} takes a text with % for any characters, not {_short(operand)}")
            return f"{quoted} like {_text(operand)}"
        if not _is_list(operand):
            self._fail(f"{sign!r} at {key!r} takes a list, not {_short(operand)}")
        return f"{'not ' if name == 'not in' else ''}{quoted} in {self._values(key, operand)}"

    def _values(self, key: str, values: Collection[object]) -> str:
        if not values:
            self._fail(f"the list at {key!r} is empty; name a value, or leave {key!r} out")
        return f"({', '.join(self._value(key, value) for value in values)})"

    def _value(self, key: str, value: object) -> str:
        value = _plain(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return str(value) if abs(value) < _LARGE else self._number(key, _as_float(value))
        if isinstance(value, float):
            return self._number(key, value)
        if isinstance(value, str):
            return _text(value)
        if _is_list(value):
            self._fail(f"{_short(value)} at {key!r} is a list; compare it with 'in' or 'not in'")
        self._fail(f"{_short(value)} at {key!r} is {type(value).__name__}; compare with text, a number, True or False")

    def _number(self, key: str, value: float) -> str:
        if not math.isfinite(value):
            self._fail(f"{value} at {key!r} cannot be compared")
        # Without an exponent, and with a point: an integer of that many digits would be read as another number.
        digits = format(Decimal(repr(value)), "f")
        return digits if "." in digits else f"{digits}.0"

    def _fail(self, reason: str) -> NoReturn:
        raise QueryError(f"filter {_short(self._where)}: {reason}; for example: {_EXAMPLE}")


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


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _short(value: object) -> str:
    try:
        return _SHORT.repr(value)
    except ValueError:  # an integer of thousands of digits
        return f"<{type(value).__name__}>"
