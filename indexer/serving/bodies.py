"""Request bodies as pydantic models, which check types and ranges, and the OpenAPI description of requests and results.

Requests come from pydantic, results from the JSON Schema of the contract.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Annotated, Any, TypeAlias

from fastapi import UploadFile
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from engine.report.contract import result_schema
from engine.text.cleaning import MAX_DOCUMENT_BYTES
from indexer.request_fields import DocId, request_fields
from indexer.serving.settings import MOST_SECTIONS, MOST_TOGETHER

MOST_LISTED, MOST_OFFSET, LONGEST_FIELD = 1_000, 1_000_000, 1_024

# With a limit, pydantic refuses characters that are not Unicode, such as half of a surrogate pair.
Text: TypeAlias = Annotated[str, Field(max_length=MAX_DOCUMENT_BYTES)]
Listed: TypeAlias = Annotated[int, Field(ge=0, le=MOST_LISTED)]
SECTIONS_TEXT = f"Sections of the query, and section pairs, of each hit; null for all, up to {MOST_LISTED:,}."


class Body(BaseModel):
    """A request whose fields are all known, of their types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SectionBody(Body):
    """A section of a document."""

    heading: Text = ""
    text: Text = ""
    level: int = Field(1, ge=1, le=100)
    kind: Annotated[str, Field(max_length=LONGEST_FIELD)] = Field("", description='As "claims", for weights.')


class DocumentBody(Body):
    """A document as JSON: a text, or sections."""

    id: DocId | None = None
    title: Text | None = None
    text: Text | None = None
    sections: Annotated[list[SectionBody], Field(max_length=MOST_SECTIONS)] | None = None

    @model_validator(mode="after")
    def _holds_text(self) -> DocumentBody:
        if (self.text is None) == (self.sections is None):
            raise ValueError("give either text or sections")
        return self


class QueryBody(Body):
    """A document to search or to compare with, in one of three forms."""

    text: Text | None = Field(None, description="The whole text; its headings are found.")
    document: DocumentBody | None = None
    doc_id: DocId | None = Field(None, description="A document of the index.")

    @model_validator(mode="after")
    def _is_one(self) -> QueryBody:
        named = [name for name in ("text", "document", "doc_id") if getattr(self, name) is not None]
        if len(named) != 1:
            raise ValueError(f"give one of text, document and doc_id, not {' and '.join(named) or 'none'}")
        return self


_FIELDS: Any = create_model("RequestFields", __base__=Body, **request_fields())  # type: ignore[call-overload]


class Parameters(_FIELDS):  # type: ignore[misc]
    """How to search, the fields of `Request`; and how much of a result to return."""

    sections: Listed | None = Field(3, description=SECTIONS_TEXT)


Queries: TypeAlias = Annotated[list[QueryBody], Field(max_length=MOST_TOGETHER)]


class SearchBody(QueryBody, Parameters):
    """A search with a text, a document or a document of the index, or with several of them as one query."""

    also: Queries = Field([], description="Further documents that hits are to be like.")
    unlike: Queries = Field([], description="Documents that hits are to be unlike.")


class SearchForm(Parameters):
    """A search with a file, as `multipart/form-data`."""

    model_config = ConfigDict(extra="forbid", strict=False)

    file: UploadFile = Field(description="Any format that `longmatch index` reads, recognised by its suffix.")


_COMPARE_FIELDS: Any = create_model("CompareFields", **request_fields(("skip", "weights")))  # type: ignore[call-overload]


class CompareParameters(_COMPARE_FIELDS):  # type: ignore[misc]
    """How to compare; the names are those of a search."""

    sections: Listed | None = Field(None, description=SECTIONS_TEXT)


class CompareBody(CompareParameters, Body):
    """Two documents; the second is scored as a hit of a search with the first."""

    query: QueryBody
    target: QueryBody


class CompareForm(CompareParameters):
    """Two files, as `multipart/form-data`."""

    model_config = ConfigDict(extra="forbid")

    query: UploadFile
    target: UploadFile


_REF = "#/components/schemas/"


def response(name: str) -> dict[int | str, dict[str, Any]]:
    """The responses of a route: one schema for success, one for all errors."""
    error = {"description": "An error.", "content": {"application/json": {"schema": {"$ref": f"{_REF}error"}}}}
    success = {"description": "Success.", "content": {"application/json": {"schema": {"$ref": f"{_REF}{name}"}}}}
    return {200: success, 422: error, "default": error}


def add_contract(description: dict[str, Any]) -> dict[str, Any]:
    """Add the schemas of results, documents and errors to a description that FastAPI made."""
    schemas = description.setdefault("components", {}).setdefault("schemas", {})
    described = json.loads(
        files("indexer.serving").joinpath("templates", "api.schema.json").read_text(encoding="utf-8")
    )
    schemas |= _moved(result_schema()["$defs"] | described["$defs"])
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
