"""The OpenAPI description: requests come from pydantic, results from the JSON Schema of the contract."""

from __future__ import annotations

from typing import Any

from engine.report.contract import result_schema

_REF = "#/components/schemas/"
_TEXT: dict[str, Any] = {"type": "string"}
_SCALAR: dict[str, Any] = {"type": ["string", "number", "boolean"]}
_OPTIONAL: dict[str, Any] = {"type": ["string", "null"]}
_COUNT: dict[str, Any] = {"$ref": f"{_REF}count"}
_HIT_FIELDS = ("id", "title", "source", "metadata", "coverage", "has_vectors")


def _object(**properties: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"type": "object", "required": list(properties), "properties": properties}


def _list(items: dict[str, Any], **about: str) -> dict[str, Any]:
    return {"type": "array", "items": items, **about}


def _more(base: str, **properties: Any) -> dict[str, Any]:  # noqa: ANN401
    """A schema with further properties."""
    return {"allOf": [{"$ref": f"{_REF}{base}"}], **_object(**properties)}


def response(name: str) -> dict[int | str, dict[str, Any]]:
    """The responses of a route: one schema for success, one for all errors."""
    error = {"description": "An error.", "content": {"application/json": {"schema": {"$ref": f"{_REF}error"}}}}
    found = {"description": "Success.", "content": {"application/json": {"schema": {"$ref": f"{_REF}{name}"}}}}
    return {200: found, 422: error, "default": error}


def add_contract(description: dict[str, Any]) -> dict[str, Any]:
    """Add the schemas of results, documents and errors to a description that FastAPI made."""
    schemas = description.setdefault("components", {}).setdefault("schemas", {})
    own = _moved(result_schema()["$defs"])
    of_hit = own["hit"]["properties"]
    sections = _list({"$ref": f"{_REF}document_section"})
    outline = _object(id=_TEXT, title=_TEXT, sections=sections)
    schemas |= own | {
        "error": _object(
            error=_object(
                code=_TEXT | {"description": "Stays the same between versions."},
                message=_TEXT | {"description": "What does not fit."},
                next=_TEXT | {"description": "What to do."},
            )
        ),
        "ready": _object(status={"const": "ready"}),
        "listed_document": _object(**{name: of_hit[name] for name in _HIT_FIELDS}),
        "document_section": _more(
            "section", path=_list(_TEXT, description="Headings above, its own last."), n_joined=_COUNT
        ),
        "documents": _object(
            n_documents=_COUNT | {"description": "On all pages."},
            offset=_COUNT,
            documents=_list({"$ref": f"{_REF}listed_document"}),
        ),
        "document": _more("listed_document", sections=sections, text=_TEXT),
        "matrix": _object(query=outline, target=outline, cosines=of_hit["section_matrix"]),
        "index": _object(
            name=_TEXT,
            documents=_COUNT,
            documents_with_vectors=_COUNT,
            encoder=_OPTIONAL,
            language=_OPTIONAL,
            max_bytes=_COUNT | {"description": "Of the body of a request."},
            fields=_list(
                _object(
                    name=_TEXT,
                    types=_list(_TEXT, description="Several where documents differ."),
                    n_documents=_COUNT,
                    examples=_list(_SCALAR, description="Of numbers the least and the greatest."),
                )
            ),
        ),
        "values": _object(field=_TEXT, values=_list(_object(value=_SCALAR, documents=_COUNT))),
    }
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    return description


def _moved(value: Any) -> Any:  # noqa: ANN401
    """The same schema, with references into the components of OpenAPI."""
    if isinstance(value, dict):
        return {
            key: inner.replace("#/$defs/", _REF) if key == "$ref" and isinstance(inner, str) else _moved(inner)
            for key, inner in value.items()
        }
    return [_moved(inner) for inner in value] if isinstance(value, list) else value
