"""Request bodies as pydantic models, which check types and ranges and describe the API in OpenAPI."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import UploadFile
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from engine.errors import QueryError
from engine.search.allowance import CANDIDATES
from engine.search.section_weights import parse_weights
from engine.store.where import where_text
from engine.text.cleaning import MAX_DOCUMENT_BYTES

Kind: TypeAlias = Literal["references", "acknowledgements", "appendix", "boilerplate"]
MOST_HITS, MOST_OFFSET, MOST_CANDIDATES, MOST_LISTED = 1_000, 1_000_000, 1_000, 1_000
_MOST_NAMES = 1_000
_OF_RANKINGS = frozenset(["k", "offset", "weights", "diversify", "min_pair", "exact", "matrix"])
_LONGEST_ID, _LONGEST_FILTER, LONGEST_FIELD = 4_096, 65_536, 1_024

DocId: TypeAlias = Annotated[str, Field(min_length=1, max_length=_LONGEST_ID)]
# With a limit, pydantic refuses characters that are not Unicode, such as half of a surrogate pair.
Text: TypeAlias = Annotated[str, Field(max_length=MAX_DOCUMENT_BYTES)]
Listed: TypeAlias = Annotated[int, Field(ge=0, le=MOST_LISTED)]
Offset: TypeAlias = Annotated[int, Field(ge=0, le=MOST_OFFSET)]
_SKIP_TEXT = "Kinds of sections that take no part in the score, of the query and of documents."
_WEIGHTS_TEXT = 'Weights of sections of the query, by heading, kind or number: {"claims": 3, "abstract": 0}.'
SECTIONS_TEXT = "Section pairs of each hit; null for all."


class SectionBody(BaseModel):
    """A section of a document."""

    model_config = ConfigDict(extra="forbid", strict=True)

    heading: Text = ""
    text: Text = ""
    level: int = Field(1, ge=1, le=100)
    kind: Annotated[str, Field(max_length=LONGEST_FIELD)] = Field("", description='As "claims", for weights.')


class DocumentBody(BaseModel):
    """A document as JSON: a text, or sections."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: DocId | None = None
    title: Text | None = None
    text: Text | None = None
    sections: list[SectionBody] | None = None

    @model_validator(mode="after")
    def _holds_text(self) -> DocumentBody:
        if (self.text is None) == (self.sections is None):
            raise ValueError("give either text or sections")
        return self


class Query(BaseModel):
    """A document to search or to compare with, in one of three forms."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: Text | None = Field(None, description="The whole text; its headings are found.")
    document: DocumentBody | None = None
    doc_id: DocId | None = Field(None, description="A document of the index.")

    @model_validator(mode="after")
    def _is_one(self) -> Query:
        given = [name for name in ("text", "document", "doc_id") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of text, document and doc_id, not {' and '.join(given) or 'none'}")
        return self


class Parameters(BaseModel):
    """How to search; the names and defaults are those of `longmatch query`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    k: int = Field(10, ge=1, le=MOST_HITS, description="Hits.")
    offset: Offset = Field(0, description="Hits to leave out first, for pages.")
    where: Annotated[str, Field(max_length=_LONGEST_FILTER)] | dict[str, Any] | None = Field(
        None,
        description='Metadata filter as text, "year >= 2019", or as an object, {"year": {">=": 2019}}.',
    )
    without: list[DocId] = Field([], max_length=_MOST_NAMES, description="Documents to leave out.")
    skip: list[Kind] = Field([], description=_SKIP_TEXT)
    weights: dict[str, float] = Field({}, max_length=_MOST_NAMES, description=_WEIGHTS_TEXT)
    mode: Literal["similar", "containment", "novelty"] = Field(
        "similar",
        description="What to find: similar documents, documents that contain the query, or sections of the query that "
        "no document contains.",
    )
    diversify: bool = Field(False, description="Order the first 50 hits so that each adds other sections of the query.")
    min_pair: float = Field(
        0.0, ge=0, le=1, description="List section pairs that contribute at least so much, and the sum of the others."
    )
    exact: bool = Field(False, description="Score every document, so that the ranking is certified.")
    candidates: int = Field(
        CANDIDATES,
        ge=0,
        le=MOST_CANDIDATES,
        description="Of so many best documents by words, encode those that have no vectors yet.",
    )
    encode_tokens: int | None = Field(None, ge=1, description="Encode at most about so many tokens of them.")
    sections: Listed | None = Field(3, description=SECTIONS_TEXT)
    matrix: bool = Field(False, description="Add the cosines of all sections, for each hit.")

    @model_validator(mode="after")
    def _fits_mode(self) -> Parameters:
        given = sorted(self.model_fields_set & _OF_RANKINGS) if self.mode == "novelty" else []
        if given:
            raise ValueError(f"{', '.join(given)}: only for rankings of documents; leave out with mode novelty")
        return self

    def filter_text(self) -> str | None:
        """The filter in the language of `engine.store.where`.

        Raises:
            QueryError: the value is not a filter.
        """
        return filter_text(self.where)


class SearchBody(Query, Parameters):
    """A search with a text, a document or a document of the index."""


class SearchForm(Parameters):
    """A search with a file, as `multipart/form-data`."""

    model_config = ConfigDict(extra="forbid", strict=False)

    file: UploadFile = Field(description="Any format that `longmatch index` reads, recognised by its suffix.")

    @field_validator("weights", mode="before")
    @classmethod
    def _weights(cls, given: object) -> object:
        return weights_of_text(given)

    def filter_text(self) -> str | None:
        """The filter, which a form can hold as JSON too."""
        return filter_text(_from_json(self.where) if isinstance(self.where, str) else self.where)


class MatrixBody(BaseModel):
    """Two documents whose sections are compared by cosine."""

    model_config = ConfigDict(extra="forbid", strict=True)

    query: Query
    target: DocId = Field(description="A document of the index.")


class CompareParameters(BaseModel):
    """How to compare; the names are those of a search."""

    skip: list[Kind] = Field([], description=_SKIP_TEXT)
    weights: dict[str, float] = Field({}, max_length=_MOST_NAMES, description=_WEIGHTS_TEXT)
    sections: Listed | None = Field(None, description=SECTIONS_TEXT)


class CompareBody(CompareParameters):
    """Two documents; the second is scored as a hit of a search with the first."""

    model_config = ConfigDict(extra="forbid", strict=True)

    query: Query
    target: Query


class CompareForm(CompareParameters):
    """Two files, as `multipart/form-data`."""

    model_config = ConfigDict(extra="forbid")

    query: UploadFile
    target: UploadFile

    @field_validator("weights", mode="before")
    @classmethod
    def _weights(cls, given: object) -> object:
        return weights_of_text(given)


def filter_text(where: object) -> str | None:
    """A filter as text; None for no filter.

    Raises:
        QueryError: the value is not a filter.
    """
    if where is None or isinstance(where, str):
        return where or None
    if not isinstance(where, dict):
        raise QueryError(f"the filter is {type(where).__name__}; send a text or an object")
    return where_text(where)


def weights_of_text(given: object) -> object:
    """Weights of a form or of the page, as JSON or as "claims=3,abstract=0"; pydantic checks any other value."""
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


def _from_json(where: str) -> object:
    if not where.lstrip().startswith("{"):
        return where
    try:
        return json.loads(where)
    except ValueError as error:
        raise QueryError(f"the filter is not JSON ({error}); send an object, or a text as: year >= 2019") from error
