"""Errors as JSON: {"error": {"code", "message", "next"}} with an HTTP status. No traceback, no path of the server."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse

from engine.errors import BudgetExceeded, DocumentError, EngineError, IndexBusy, IndexMismatch, QueryError

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


def not_found(doc_id: str) -> Refusal:
    """For a doc_id that the index does not hold."""
    return Refusal(
        404, "no_such_document", f"the index holds no document {doc_id!r:.200}", "list them: GET /v1/documents"
    )


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
            text = str(error).replace(str(folder.resolve()), "the index").replace(str(folder), "the index")
            message, _, next_step = text.rpartition("; ")
            headers = {"Retry_After": str(RETRY_SECONDS)} if status == 503 else {}
            return Refusal(status, code, message or text, next_step if message else usual, **headers)
    if isinstance(error, RecursionError):
        return Refusal(400, "bad_request", "the request is nested too deeply", "nest its values less")
    if isinstance(error, UnicodeEncodeError):  # JSON can write half of a pair of surrogates
        return Refusal(400, "bad_request", "the request holds characters that are not Unicode", "send text in UTF-8")
    LOG.error("a request failed", exc_info=error)
    if isinstance(error, EngineError):
        return Refusal(500, "index_failed", "the index cannot be searched", "read the log of the server")
    return Refusal(500, "internal_error", "the server failed on this request", "read the log of the server")
