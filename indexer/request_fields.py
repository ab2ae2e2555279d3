"""The fields of `Request` as annotated types of pydantic, for bodies of HTTP and tools of MCP. Needs no FastAPI."""

import json
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field

from engine.errors import QueryError
from engine.search.request import Parameter, Request, parameters, parse_weights

MOST_NAMES = 1_000  # doc_ids, or weights
DocId: TypeAlias = Annotated[str, Field(min_length=1, max_length=4_096)]
Filter: TypeAlias = Annotated[str, Field(max_length=65_536)] | dict[str, Any] | None


_SERVED = {parameter.name: parameter for parameter in parameters() if not parameter.about.is_constant}


def request_fields(names: Collection[str] = (), **settings: Mapping[str, object]) -> dict[str, tuple[Any, Any]]:
    """Type and default of each field, as `pydantic.create_model` takes them.

    Args:
        names: of the fields, by default all but the constants of the score.
        settings: of a field where they differ: `default` and `most`.
    """
    return {name: _field(_SERVED[name], settings.get(name, {})) for name in names or _SERVED}


def request_of(body: BaseModel) -> Request:
    """The search of a body with such fields, besides others."""
    return Request.of(**{name: getattr(body, name) for name in type(body).model_fields if name in _SERVED})


def _field(parameter: Parameter, settings: Mapping[str, object]) -> tuple[Any, Any]:
    about = parameter.about
    default: Any = settings.get("default", parameter.default)
    most: Any = settings.get("most", about.most if about.most_served is None else about.most_served)
    kind: Any = parameter.kind
    if parameter.name == "where":
        kind = Filter
    elif about.choices:
        kind = Literal[tuple(map(str, about.choices))]  # errors show members of an enumeration as Python does
        if parameter.kind is float:
            kind = Annotated[float, Field(ge=about.least, le=most)] | kind
    if parameter.kind is tuple:
        kind, default = (list[kind] if about.choices else list[DocId]), list(default)
    elif parameter.kind in (int, float) and not about.choices:
        kind = Annotated[kind, Field(ge=about.least, le=most)]
    elif parameter.kind is Mapping:
        kind = Annotated[dict[str, float], Field(max_length=MOST_NAMES), BeforeValidator(_weights)]
    if isinstance(default, StrEnum):
        default = str(default)
    if parameter.is_optional and parameter.name != "where":
        kind = kind | None
    longest = MOST_NAMES if parameter.kind is tuple else None
    return Annotated[kind, Field(description=about.text, max_length=longest)], default


def _weights(given: object) -> object:
    """Weights of a form or of a model, as JSON or as "claims=3,abstract=0"; pydantic checks any other value."""
    if isinstance(given, list):
        given = ",".join(map(str, given))
    if not isinstance(given, str):
        return given
    if given.lstrip().startswith("{"):
        return json.loads(given)
    try:
        return parse_weights(given)
    except QueryError as error:
        raise ValueError(str(error)) from error
