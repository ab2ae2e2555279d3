"""The fields of `Request` as annotated types of pydantic, for bodies of HTTP and tools of MCP. Needs no FastAPI."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from engine.search.request import Parameter, parameters

MOST_NAMES = 1_000  # doc_ids, or weights
DocId: TypeAlias = Annotated[str, Field(min_length=1, max_length=4_096)]
Filter: TypeAlias = Annotated[str, Field(max_length=65_536)] | dict[str, Any] | None


def served_parameters(names: Collection[str] = ()) -> list[Parameter]:
    """The fields that a client can set: some by name, by default all but the constants of the score."""
    return [
        parameter
        for parameter in parameters()
        if not parameter.about.is_constant and (not names or parameter.name in names)
    ]


def request_fields(names: Collection[str] = (), **settings: Mapping[str, object]) -> dict[str, tuple[Any, Any]]:
    """Type and default of each field, as `pydantic.create_model` takes them.

    Args:
        names: of the fields, by default all that a client can set.
        settings: of a field where they differ: `default` and `most`.
    """
    return {
        parameter.name: _field(parameter, settings.get(parameter.name, {})) for parameter in served_parameters(names)
    }


def _field(parameter: Parameter, settings: Mapping[str, object]) -> tuple[Any, Any]:
    about = parameter.about
    default: Any = settings.get("default", parameter.default)
    most: Any = settings.get("most", about.most if about.most_served is None else about.most_served)
    kind: Any = parameter.kind
    if parameter.name == "where":
        kind = Filter
    elif about.choices:
        kind = Literal[about.choices]
        if parameter.kind is float:
            kind = Annotated[float, Field(ge=about.least, le=most)] | kind
    if parameter.kind is tuple:
        kind, default = (list[kind] if about.choices else list[DocId]), list(default)
    elif parameter.kind in (int, float) and not about.choices:
        kind = Annotated[kind, Field(ge=about.least, le=most)]
    elif parameter.kind is Mapping:
        kind = dict[str, float]
    if isinstance(default, StrEnum):
        default = str(default)
    if parameter.is_optional and parameter.name != "where":
        kind = kind | None
    longest = MOST_NAMES if parameter.kind in (tuple, Mapping) else None
    return Annotated[kind, Field(description=about.text, max_length=longest)], default
