"""The OpenAPI description: requests come from pydantic, results from the JSON Schema of the contract."""

from __future__ import annotations

from typing import Any

from engine.report.contract import result_schema

_REF = "#/components/schemas/"
_ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "next"],
            "properties": {
                "code": {"type": "string", "description": "Stays the same between versions."},
                "message": {"type": "string", "description": "What does not fit."},
                "next": {"type": "string", "description": "What to do."},
            },
        }
    },
}
_SECTION: dict[str, Any] = {
    "allOf": [{"$ref": f"{_REF}section"}],
    "required": ["path"],
    "properties": {
        "path": {"type": "array", "items": {"type": "string"}, "description": "Headings above, its own last."}
    },
}
_SECTIONS: dict[str, Any] = {"type": "array", "items": {"$ref": f"{_REF}document_section"}}
_HIT_FIELDS = ("id", "title", "source", "metadata", "coverage", "has_vectors")
_OUTLINE: dict[str, Any] = {
    "type": "object",
    "required": ["id", "title", "sections"],
    "properties": {"id": {"type": "string"}, "title": {"type": "string"}, "sections": _SECTIONS},
}


def response(name: str) -> dict[int | str, dict[str, Any]]:
    """The responses of a route: one schema for success, one for all errors."""
    error = {"description": "An error.", "content": {"application/json": {"schema": {"$ref": f"{_REF}error"}}}}
    found = {"description": "Success.", "content": {"application/json": {"schema": {"$ref": f"{_REF}{name}"}}}}
    return {200: found, 422: error, "default": error}


def add_contract(description: dict[str, Any]) -> dict[str, Any]:
    """Add the schemas of results, documents and errors to a description that FastAPI made."""
    schemas = description.setdefault("components", {}).setdefault("schemas", {})
    own = _moved(result_schema()["$defs"])
    entry: dict[str, Any] = {"type": "object", "required": list(_HIT_FIELDS)}
    entry["properties"] = {name: own["hit"]["properties"][name] for name in _HIT_FIELDS}
    listing = {
        "type": "object",
        "required": ["n_documents", "offset", "documents"],
        "properties": {
            "n_documents": {"$ref": f"{_REF}count", "description": "On all pages."},
            "offset": {"$ref": f"{_REF}count"},
            "documents": {"type": "array", "items": {"$ref": f"{_REF}listed_document"}},
        },
    }
    whole = {
        "allOf": [{"$ref": f"{_REF}listed_document"}],
        "required": ["sections", "text"],
        "properties": {"sections": _SECTIONS, "text": {"type": "string"}},
    }
    matrix = {
        "type": "object",
        "required": ["query", "target", "cosines"],
        "properties": {"query": _OUTLINE, "target": _OUTLINE, "cosines": own["hit"]["properties"]["section_matrix"]},
    }
    ready = _object(status={"const": "ready"})
    made = {"ready": ready, "listed_document": entry, "documents": listing, "document": whole, "matrix": matrix}
    schemas |= own | made | _catalog_schemas() | {"document_section": _SECTION, "error": _ERROR}
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    return description


def _catalog_schemas() -> dict[str, Any]:
    """What `GET /v1/index` and `GET /v1/values` return."""
    count, text, scalar = {"$ref": f"{_REF}count"}, {"type": "string"}, {"type": ["string", "number", "boolean"]}
    optional = {"type": ["string", "null"]}
    field = _object(
        name=text,
        types={"type": "array", "items": text, "description": "Several where documents differ."},
        n_documents=count,
        examples={"type": "array", "items": scalar, "description": "Of numbers the least and the greatest."},
    )
    index = _object(
        name=text,
        documents=count,
        documents_with_vectors=count,
        encoder=optional,
        language=optional,
        max_bytes={**count, "description": "Of the body of a request."},
        fields={"type": "array", "items": field},
    )
    value = _object(value=scalar, documents=count)
    return {"index": index, "values": _object(field=text, values={"type": "array", "items": value})}


def _object(**properties: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"type": "object", "required": list(properties), "properties": properties}


def _moved(value: Any) -> Any:  # noqa: ANN401
    """The same schema, with references into the components of OpenAPI."""
    if isinstance(value, dict):
        return {
            key: inner.replace("#/$defs/", _REF) if key == "$ref" and isinstance(inner, str) else _moved(inner)
            for key, inner in value.items()
        }
    return [_moved(inner) for inner in value] if isinstance(value, list) else value
