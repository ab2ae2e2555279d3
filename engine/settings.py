"""Settings as fields of dataclasses: each has a default, a range and a sentence that says what it means."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, ClassVar, Union, get_args, get_origin

from engine.errors import EngineError, TrainingError

_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers that a setting may have; None leaves an end open."""

    least: float | None = None
    above: float | None = None
    below: float | None = None
    most: float | None = None

    def __contains__(self, value: float) -> bool:
        return (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
            and (self.most is None or value <= self.most)
        )

    def __str__(self) -> str:
        if self.least is not None and self.most is not None:
            return f"from {self.least:g} to {self.most:.10g}"
        ends = {"at least": self.least, "above": self.above, "below": self.below, "at most": self.most}
        return " and ".join(f"{words} {end:g}" for words, end in ends.items() if end is not None)


COUNT = Range(least=1)
FROM_ZERO = Range(least=0)
SEED = Range(least=0, most=2**32 - 1)  # of numpy
ABOVE_ZERO = Range(above=0)
PROBABILITY = Range(least=0, most=1)
SHARE = Range(least=0, below=1)


def setting(default: Any, meaning: str, within: Range | None = None) -> Any:  # noqa: ANN401
    """A field with a default, its meaning in one sentence, and its range if it is a number."""
    described = {"meaning": meaning, "range": within}
    if isinstance(default, Mapping):
        return field(default_factory=lambda: default, metadata=described)
    return field(default=default, metadata=described)


@dataclass(frozen=True)
class Checked:
    """Settings whose numbers and choices are checked; None is always allowed.

    Raises:
        EngineError: the `error` of the class; a number is outside of its range, or a choice is none.
    """

    error: ClassVar[type[EngineError]] = TrainingError

    def __post_init__(self) -> None:
        for attribute in fields(self):
            value, within = getattr(self, attribute.name), attribute.metadata.get("range")
            if within is not None and value is not None and (value not in within or abs(value) == math.inf):
                wanted = "finite" if value in within else within
                raise self.error(f"{attribute.name} is {value}; it must be {wanted}")
            if isinstance(attribute.default, StrEnum) and value not in list(type(attribute.default)):
                raise self.error(f"{attribute.name} is {value!r:.80}, none of {', '.join(type(attribute.default))}")


def parse(name: str, text: str, kind: Any) -> object:  # noqa: ANN401
    """The value of a setting that is given as text: "none", a number, true or false, a choice, or several of them."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if NoneType in kinds and text.lower() == "none":
        return None
    kind = next(member for member in kinds if member is not NoneType)
    several = get_args(kind)  # of a mapping to weights, or of a set
    try:
        if len(several) == 2:
            pairs = (item.partition("=") for item in text.split(","))
            return {several[0](key.strip()): float(weight or 1) for key, _, weight in pairs}
        if several:
            return frozenset(several[0](item.strip()) for item in text.replace("+", ",").split(","))
        return _TRUTH[text.lower()] if kind is bool else kind(text)
    except (ValueError, KeyError):
        raise TrainingError(f"{name} cannot be {text!r}; give {_choices(kind, several)}") from None


def _choices(kind: Any, several: tuple[Any, ...]) -> str:  # noqa: ANN401
    if several:
        form = "{}=WEIGHT" if len(several) == 2 else "{}"
        return f"some of {', '.join(form.format(choice.value) for choice in several[0])}, separated by commas"
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return ", ".join(kind)
    return "true or false" if kind is bool else "a whole number" if kind is int else "a number"


def shown_value(value: object) -> str:
    """The value of a setting as text, which `parse` reads."""
    match value:
        case bool():
            return str(value).lower()
        case Mapping():
            return ",".join(
                f"{key}={weight:g}" if isinstance(weight, float) else f"{key}={weight}" for key, weight in value.items()
            )
        case frozenset():
            return ",".join(sorted(map(str, value)))
    return "none" if value is None else str(value)
