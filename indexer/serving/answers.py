"""Responses of the API as bytes of JSON: results are those of `longmatch query --format json` and of Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from engine.errors import QueryError
from engine.index import Index
from engine.report.contract import envelope, head_dict, hit_dicts, listed_hits, result_dict
from engine.result import Provenance, Result, SectionMatrix
from engine.search.request import Request
from engine.store.lookup import check_fields
from engine.text.document import Document
from engine.text.spans import Coverage, Section, Span
from engine.work import step
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
    """Rank the index against a document, or against an indexed document.

    Args:
        index: opened for this thread.
        parameters: how to search.
    """
    request = parameters.request()
    check_names(index, query, request)
    result = index.search(query, request)
    if result.sections is not None:
        return as_json(envelope([_without_paths(result_dict(result, n_pairs=_n_listed(parameters)))]))
    return _ranking(result, parameters, index.section_matrix if parameters.matrix else None, query)


def search_together(
    index: Index, like: Sequence[Document | str], unlike: Sequence[Document | str], parameters: Parameters
) -> bytes:
    """Rank the index against several documents as one query; the arguments are as of `search`."""
    if parameters.matrix:
        raise QueryError("matrix is for one document; leave it out with also and unlike")
    request = parameters.request()
    for query in (*like, *unlike):
        check_names(index, query, request)
    values = index.search_together(like, unlike, request).to_dict(n_pairs=_n_listed(parameters))
    for number, query in enumerate(values["queries"]):
        _without_paths({**query, "hits": [hit["by_query"][number]["hit"] for hit in values["hits"]]})
    return as_json(envelope([values]))


def _n_listed(parameters: Parameters | CompareParameters) -> int:
    n_pairs: int | None = parameters.sections
    return MOST_LISTED if n_pairs is None else n_pairs


def _ranking(
    result: Result,
    parameters: Parameters | CompareParameters,
    matrix: Callable[[Document | str, str], SectionMatrix] | None,
    query: Document | str,
) -> bytes:
    """A result as an envelope, whose hits become bytes one by one, so that few are in memory as values."""
    head = as_json(envelope([_without_paths(head_dict(result) | {"hits": []})]))
    hits, n_bytes = [], len(head)
    for hit, values in zip(result.hits, hit_dicts(result, n_pairs=_n_listed(parameters)), strict=True):
        values["source"] = _name(values["source"])
        if matrix is not None:
            values["section_matrix"] = _cosines(matrix(query, hit.doc_id))
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
    for doc_id in [*request.without, *([query] if isinstance(query, str) else [])]:
        check_is_there(index, doc_id)


def without_folders(result: Result) -> Result:
    """The same result, with files and index named without the folders of this machine."""
    return replace(
        result,
        query=_without_folder(result.query),
        hits=tuple(replace(hit, document=_without_folder(hit.document)) for hit in result.hits),
        provenance=_origin(result.provenance),
    )


def _origin(origin: Provenance | None) -> Provenance | None:
    if origin is None or origin.index is None:
        return origin
    return replace(origin, index=replace(origin.index, path=_name(origin.index.path)))


def _without_folder(document: Document) -> Document:
    return replace(document, source=_name(document.source))


def _without_paths(values: dict[str, Any]) -> dict[str, Any]:
    """A result whose files and index are named without the folders of this machine."""
    for one in (values["query"], *listed_hits(values)):
        one["source"] = _name(one["source"])
    if (origin := values["provenance"]) is not None and origin["index"] is not None:
        origin["index"] = {**origin["index"], "path": _name(origin["index"]["path"])}
    return values


def _name(source: str) -> str:
    return source.rstrip("/").rpartition("/")[2]


def compare(index: Index, query: Document | str, target: Document | str, asked: CompareParameters) -> bytes:
    """Score a target for a query, as a search would."""
    for one in (query, target):
        if isinstance(one, str):
            check_is_there(index, one)
    if isinstance(query, Document) and isinstance(target, Document):
        _check_cells(len(query.sections) * len(target.sections))
    compared = index.compare(query, target, asked.request())
    matrix = compared.matrix
    assert matrix is not None, "a comparison has the cosines of all sections"
    return _ranking(compared, asked, lambda *_: matrix, query)


def matrix(index: Index, query: Document | str, doc_id: str) -> bytes:
    """Cosines of all sections of two documents."""
    for one in (query, doc_id):
        if isinstance(one, str):
            check_is_there(index, one)
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
    listed = [
        _entry(document, coverage, has)
        for (document, coverage), has in zip(snapshot.documents(page), has_vectors, strict=True)
    ]
    return as_json({"n_documents": len(positions), "offset": offset, "documents": listed})


def document(index: Index, doc_id: str) -> bytes:
    """One document, text and sections included."""
    position = check_is_there(index, doc_id)
    ((found, coverage),) = index.snapshot.documents(np.array([position]))
    entry = _entry(found, coverage, index.snapshot.is_encoded(position))
    return as_json(entry | {"sections": _sections(found), "text": found.text})


def check_is_there(index: Index, doc_id: str) -> int:
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
        "coverage": {
            "tokens_read": coverage.tokens_read,
            "tokens_total": coverage.tokens_total,
            "share": coverage.share,
        },
        "has_vectors": has_vectors,
    }


def _outline(found: Document) -> dict[str, Any]:
    return {"id": found.doc_id, "title": found.title, "sections": _sections(found)}


def _sections(found: Document) -> list[dict[str, Any]]:
    return [_section(found, number, section) for number, section in enumerate(found.sections)]


def _section(found: Document, number: int, section: Section) -> dict[str, Any]:
    pages = found.page_numbers(Span(section.start, section.stop))
    return {
        "index": number,
        "heading": section.heading,
        "path": list(section.path),
        "start": section.start,
        "end": section.stop,
        "page": pages[0] if pages else None,
        "last_page": pages[-1] if pages else None,
    }
