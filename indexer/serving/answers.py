"""Responses of the API as bytes of JSON: results are those of `longmatch query --format json` and of Python.

Errors are {"error": {"code", "message", "next"}} with an HTTP status. No traceback, no path of the server.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from starlette.responses import JSONResponse

from engine.errors import BudgetExceeded, DocumentError, EngineError, IndexBusy, IndexMismatch, QueryError
from engine.index import Index
from engine.report.contract import envelope, head_dict, hit_dicts, outline, result_dict
from engine.result import recorded_encoder
from engine.store.partitioned import stored_fields, stored_values
from engine.text.document import Document
from engine.text.segmentation import Coverage
from engine.views import Result
from indexer.request_fields import request_of
from indexer.serving.bodies import MOST_LISTED, CompareParameters, Parameters
from indexer.serving.settings import MOST_REPLY_BYTES

LOG = logging.getLogger("longmatch.serving")
RETRY_SECONDS = 2
_OF_CLIENTS: dict[type[EngineError], tuple[int, str, str]] = {  # status, code, next step where the error has none
    DocumentError: (422, "document_unreadable", "send another document"),
    QueryError: (400, "bad_query", "change the request; /openapi.json describes it"),
    IndexMismatch: (409, "index_mismatch", "change the request, or the index"),
    IndexBusy: (503, "index_busy", "send the request again"),
    BudgetExceeded: (503, "budget_exceeded", "send a smaller request"),
}


class Refusal(Exception):
    """A response that is an error, in the three parts that a client reads."""

    def __init__(self, status: int, code: str, message: str, next_step: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.next_step = next_step
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def body(self) -> dict[str, Any]:
        """As the client reads it."""
        return {"error": {"code": self.code, "message": self.message, "next": self.next_step}}

    def response(self) -> JSONResponse:
        """As the server sends it."""
        return JSONResponse(self.body(), self.status, self.headers)


def too_large(code: str, what: str, n: int, most: int, next_step: str) -> Refusal:
    """For a request over a limit: what there is too much of, how much, and the limit."""
    return Refusal(413, code, f"{what}: {n:,}, the limit is {most:,}", next_step)


def too_busy(message: str) -> Refusal:
    """For a request that is refused because of others."""
    return Refusal(503, "busy", message, f"send it again in {RETRY_SECONDS} s", Retry_After=str(RETRY_SECONDS))


def refusal_of(error: Exception, folder: Path) -> Refusal:
    """What a client gets for an error; one that the client did not cause goes to the log."""
    if isinstance(error, Refusal):
        return error
    for kind, (status, code, usual) in _OF_CLIENTS.items():
        if isinstance(error, kind):
            text = str(error).replace(str(folder.resolve()), str(folder))
            message, _, next_step = text.rpartition("; ")
            message = (message or text).replace(str(folder), "the index")
            next_step = next_step.replace(str(folder), "INDEX") if "; " in text else usual
            headers = {"Retry_After": str(RETRY_SECONDS)} if status == 503 else {}
            return Refusal(status, code, message, next_step, **headers)
    if isinstance(error, RecursionError):
        return Refusal(400, "bad_request", "the request is nested too deeply", "nest its values less")
    if isinstance(error, UnicodeEncodeError):  # JSON can write half of a pair of surrogates
        return Refusal(400, "bad_request", "the request holds characters that are not Unicode", "send text in UTF-8")
    LOG.error("a request failed", exc_info=error)
    if isinstance(error, EngineError):
        return Refusal(500, "index_failed", "the index cannot be searched", "read the log of the server")
    return Refusal(500, "internal_error", "the server failed on this request", "read the log of the server")


def as_json(value: Mapping[str, Any]) -> bytes:
    """JSON in UTF-8; a number that JSON does not have is an error."""
    content = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    check_reply(len(content))
    return content


def search(index: Index, query: Document | str, parameters: Parameters) -> bytes:
    """Rank the index against a document, or against an indexed document."""
    request = request_of(parameters)
    check_are_there(index, *request.without, query)
    result = without_folders(index.search(query, request))
    if result.sections is not None:
        return as_json(envelope([result_dict(result, n_pairs=_n_listed(parameters))]))
    return _ranking(result, parameters)


def search_together(
    index: Index, like: Sequence[Document | str], unlike: Sequence[Document | str], parameters: Parameters
) -> bytes:
    """Rank the index against several documents as one query."""
    request = request_of(parameters)
    check_are_there(index, *request.without, *like, *unlike)
    result = index.search_together(like, unlike, request)
    result = replace(result, results=tuple(map(without_folders, result.results)))
    return as_json(envelope([result.to_dict(n_pairs=_n_listed(parameters))]))


def _n_listed(parameters: Parameters | CompareParameters) -> int:
    n_pairs: int | None = parameters.sections
    return MOST_LISTED if n_pairs is None else n_pairs


def _ranking(result: Result, parameters: Parameters | CompareParameters) -> bytes:
    """A result as an envelope, whose hits become bytes one by one, so that few are in memory as values or twice."""
    head = as_json(envelope([head_dict(result) | {"hits": []}]))
    end, written = head.rindex(b"]}]}"), BytesIO()
    written.write(head[:end])
    for number, values in enumerate(hit_dicts(result, n_pairs=_n_listed(parameters))):
        written.write(b", " * (number > 0) + as_json(values))
        check_reply(written.tell() + len(head) - end)
    written.write(head[end:])
    return written.getvalue()


def check_reply(n_bytes: int) -> None:
    """Refuse a reply that becomes too large, by a `Refusal`."""
    if n_bytes > MOST_REPLY_BYTES:
        next_step = "list fewer section pairs (sections), or fewer hits (k), or use the command line"
        raise too_large("reply_too_large", "bytes of the reply", n_bytes, MOST_REPLY_BYTES, next_step)


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


def compare(index: Index, query: Document | str, target: Document | str, parameters: CompareParameters) -> bytes:
    """Score a target for a query, as a search would."""
    check_are_there(index, query, target)
    compared = index.compare(query, target, request_of(parameters))
    return _ranking(without_folders(compared), parameters)


def documents(index: Index, offset: int, limit: int, where: str | None) -> bytes:
    """A page of the documents, in the order in which they were indexed."""
    snapshot, positions = index.snapshot, index.matching(where)
    page = positions[offset : offset + limit]
    has_vectors = [snapshot.is_encoded(position) for position in page.tolist()]
    rows = zip(snapshot.documents(page), has_vectors, strict=True)
    listed = [_entry(document, coverage, has) for (document, coverage), has in rows]
    return as_json({"n_documents": len(positions), "offset": offset, "documents": listed})


def document(index: Index, doc_id: str) -> bytes:
    """One document, text and sections included."""
    position = _position(index, doc_id)
    ((document, coverage),) = index.snapshot.documents(np.array([position]))
    entry = _entry(document, coverage, index.snapshot.is_encoded(position))
    return as_json(entry | {"sections": outline(document), "text": document.text})


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


def check_are_there(index: Index, *documents: Document | str) -> None:
    """Refuse, by a `Refusal`, documents that are named by their doc_ids and that the index does not hold."""
    for document in documents:
        if isinstance(document, str):
            _position(index, document)


def _position(index: Index, doc_id: str) -> int:
    position = index.snapshot.position(doc_id)
    if position is None:
        message = f"the index holds no document {doc_id!r:.200}"
        raise Refusal(404, "no_such_document", message, "list them: GET /v1/documents")
    return position


def _entry(document: Document, coverage: Coverage, has_vectors: bool) -> dict[str, Any]:
    return {
        "id": document.doc_id,
        "title": document.title,
        "source": _name(document.source),
        "metadata": dict(document.metadata),
        "coverage": {name: getattr(coverage, name) for name in ("tokens_read", "tokens_total", "share")},
        "has_vectors": has_vectors,
    }
