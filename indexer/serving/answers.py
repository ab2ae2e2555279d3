"""Responses of the API as bytes of JSON: results are those of `longmatch query --format json` and of Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from engine.errors import QueryError
from engine.index import Index
from engine.report.contract import envelope, head_dict, hit_dicts, outline, result_dict
from engine.result import SectionMatrix, recorded_encoder
from engine.search.request import Request
from engine.store.lookup import check_fields, stored_fields, stored_values
from engine.text.document import Document
from engine.text.segmentation import Coverage
from engine.views import Result
from engine.work import step
from indexer.request_fields import request_of
from indexer.serving.bodies import MOST_LISTED, CompareParameters, Parameters
from indexer.serving.failures import not_found, too_large
from indexer.serving.settings import MOST_CELLS, MOST_REPLY_BYTES

_DIGITS = 4  # of a cosine


def as_json(value: Mapping[str, Any]) -> bytes:
    """JSON in UTF-8; a number that JSON does not have is an error."""
    made = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    check_reply(len(made))
    return made


def search(index: Index, query: Document | str, parameters: Parameters) -> bytes:
    """Rank the index against a document, or against an indexed document."""
    request = request_of(parameters)
    check_names(index, query, request)
    result = without_folders(index.search(query, request))
    if result.sections is not None:
        return as_json(envelope([result_dict(result, n_pairs=_n_listed(parameters))]))
    return _ranking(result, parameters, partial(index.section_matrix, query) if parameters.matrix else None)


def search_together(
    index: Index, like: Sequence[Document | str], unlike: Sequence[Document | str], parameters: Parameters
) -> bytes:
    """Rank the index against several documents as one query."""
    if parameters.matrix:
        raise QueryError("matrix is for one document; leave it out with also and unlike")
    request = request_of(parameters)
    for query in (*like, *unlike):
        check_names(index, query, request)
    result = index.search_together(like, unlike, request)
    result = replace(result, results=tuple(map(without_folders, result.results)))
    return as_json(envelope([result.to_dict(n_pairs=_n_listed(parameters))]))


def _n_listed(parameters: Parameters | CompareParameters) -> int:
    n_pairs: int | None = parameters.sections
    return MOST_LISTED if n_pairs is None else n_pairs


def _ranking(
    result: Result,
    parameters: Parameters | CompareParameters,
    matrix_with: Callable[[str], SectionMatrix] | None,
) -> bytes:
    """A result as an envelope, whose hits become bytes one by one, so that few are in memory as values."""
    head = as_json(envelope([head_dict(result) | {"hits": []}]))
    hits, n_bytes = [], len(head)
    for hit, values in zip(result.hits, hit_dicts(result, n_pairs=_n_listed(parameters)), strict=True):
        if matrix_with is not None:
            values["section_matrix"] = _cosines(matrix_with(hit.doc_id))
        hits.append(as_json(values))
        check_reply(n_bytes := n_bytes + len(hits[-1]))
    end = head.rindex(b"]}]}")
    return head[:end] + b", ".join(hits) + head[end:]


def check_reply(n_bytes: int) -> None:
    """Refuse a reply that becomes too large.

    Raises:
        Refusal: it does.
    """
    if n_bytes > MOST_REPLY_BYTES:
        next_step = "list fewer section pairs (sections), fewer hits (k) or no matrix, or use the command line"
        raise too_large("reply_too_large", "bytes of the reply", n_bytes, MOST_REPLY_BYTES, next_step)


def check_names(index: Index, query: Document | str, request: Request) -> None:
    """Check that the index holds the documents that a search names.

    Raises:
        Refusal: it lacks one of them.
    """
    _check_are_there(index, *request.without, query)


def without_folders(result: Result) -> Result:
    """The same result, with files and index named without the folders of this machine."""
    origin = result.provenance
    if origin is not None and origin.index is not None:
        origin = replace(origin, index=replace(origin.index, path=_name(origin.index.path)))
    hits = tuple(replace(hit, document=_without_folder(hit.document)) for hit in result.hits)
    return replace(result, query=_without_folder(result.query), hits=hits, provenance=origin)


def _without_folder(document: Document) -> Document:
    return replace(document, source=_name(document.source))


def _name(source: str) -> str:
    return source.rstrip("/").rpartition("/")[2]


def compare(index: Index, query: Document | str, target: Document | str, asked: CompareParameters) -> bytes:
    """Score a target for a query, as a search would."""
    _check_are_there(index, query, target)
    if isinstance(query, Document) and isinstance(target, Document):
        _check_cells(len(query.sections) * len(target.sections))
    compared = index.compare(query, target, request_of(asked))
    matrix = compared.matrix
    assert matrix is not None, "a comparison has the cosines of all sections"
    return _ranking(without_folders(compared), asked, lambda _: matrix)


def matrix(index: Index, query: Document | str, doc_id: str) -> bytes:
    """Cosines of all sections of two documents."""
    _check_are_there(index, query, doc_id)
    found = index.section_matrix(query, doc_id)
    return as_json({"query": _outline(found.query), "target": _outline(found.target), "cosines": _cosines(found)})


def _cosines(found: SectionMatrix) -> list[list[float]]:
    _check_cells(found.cosines.size)
    step(40 * found.cosines.size)
    return [[round(float(one), _DIGITS) for one in row] for row in found.cosines]


def _check_cells(n: int) -> None:
    if n > MOST_CELLS:
        next_step = "send shorter documents, or use the command line: longmatch compare A B"
        raise too_large("too_many_pairs", "pairs of sections in a matrix", n, MOST_CELLS, next_step)


def documents(index: Index, offset: int, limit: int, where: str | None) -> bytes:
    """A page of the documents, in the order in which they were indexed."""
    snapshot = index.snapshot
    positions = np.arange(snapshot.n_documents)
    if where is not None:
        check_fields(snapshot, where)
        positions = np.flatnonzero(snapshot.matching(where))
    page = positions[offset : offset + limit]
    has_vectors = [snapshot.is_encoded(position) for position in page.tolist()]
    rows = zip(snapshot.documents(page), has_vectors, strict=True)
    listed = [_entry(document, coverage, has) for (document, coverage), has in rows]
    return as_json({"n_documents": len(positions), "offset": offset, "documents": listed})


def document(index: Index, doc_id: str) -> bytes:
    """One document, text and sections included."""
    position = _position(index, doc_id)
    ((found, coverage),) = index.snapshot.documents(np.array([position]))
    entry = _entry(found, coverage, index.snapshot.is_encoded(position))
    return as_json(entry | {"sections": outline(found), "text": found.text})


def description(index: Index, max_bytes: int) -> bytes:
    """Name, size, encoder, limit of bodies and metadata fields of an index, for people who write filters."""
    snapshot = index.snapshot
    encoder = recorded_encoder(snapshot)
    return as_json(
        {
            "name": snapshot.folder.name,
            "documents": snapshot.n_documents,
            "documents_with_vectors": index.facts["encoded"],
            "encoder": None if encoder is None else encoder.name,
            "language": snapshot.language,
            "max_bytes": max_bytes,
            "fields": [asdict(field) for field in stored_fields(snapshot.folder)],
        }
    )


def values(index: Index, field: str, containing: str, limit: int) -> bytes:
    """The values of a metadata field, the commonest first."""
    rows = stored_values(index.snapshot.folder, field, containing=containing, limit=limit)
    return as_json({"field": field, "values": [{"value": value, "documents": count} for value, count in rows]})


def _check_are_there(index: Index, *documents: Document | str) -> None:
    for document in documents:
        if isinstance(document, str):
            _position(index, document)


def _position(index: Index, doc_id: str) -> int:
    """The position of a document.

    Raises:
        Refusal: the index holds no document of that name.
    """
    position = index.snapshot.position(doc_id)
    if position is None:
        raise not_found(doc_id)
    return position


def _entry(found: Document, coverage: Coverage, has_vectors: bool) -> dict[str, Any]:
    return {
        "id": found.doc_id,
        "title": found.title,
        "source": _name(found.source),
        "metadata": dict(found.metadata),
        "coverage": {name: getattr(coverage, name) for name in ("tokens_read", "tokens_total", "share")},
        "has_vectors": has_vectors,
    }


def _outline(found: Document) -> dict[str, Any]:
    return {"id": found.doc_id, "title": found.title, "sections": outline(found)}
