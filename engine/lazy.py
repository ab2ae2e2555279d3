"""Frozen values with fields that are computed on first access. Knows nothing about the values."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

Value = TypeVar("Value", bound="Deferred")


class Deferred:
    """Base of a frozen dataclass with slots whose fields can be computed on first access.

    Such a value has the same class as one whose fields were all given. It compares, prints,
    copies and pickles in the same way, and code that reads it sees no difference.
    """

    __slots__ = ("_make",)

    if not TYPE_CHECKING:  # a misspelt field stays an error to mypy

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401
            # Python calls this only for attributes that are not set: a field still to be computed, or no field at all.
            make = _pending(self)
            if make is not None and name in type(self).__dataclass_fields__:
                for field, value in make().items():
                    object.__setattr__(self, field, value)
                with suppress(AttributeError):  # another thread made the same values meanwhile
                    object.__delattr__(self, "_make")
            return object.__getattribute__(self, name)


def deferred(kind: type[Value], make: Callable[[], Mapping[str, Any]], /, **given: object) -> Value:
    """Make a value whose remaining fields are computed when one of them is first read.

    Args:
        make: returns the remaining fields by name; it is released afterwards, with everything that it refers to.
    """
    value = object.__new__(kind)
    for field, given_value in given.items():
        object.__setattr__(value, field, given_value)
    object.__setattr__(value, "_make", make)
    return value


def _pending(value: Deferred) -> Callable[[], Mapping[str, Any]] | None:
    try:
        make: Callable[[], Mapping[str, Any]] = object.__getattribute__(value, "_make")
    except AttributeError:
        return None
    return make
