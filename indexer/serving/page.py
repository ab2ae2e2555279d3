"""The page for people: its files come from the package, its results from the templates of the evidence report.

The response to a search is JSON lines: first its progress, then the report piece by piece.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Form, Response
from jinja2 import Environment
from pydantic import Field
from starlette.responses import StreamingResponse

from engine.index import Index
from engine.readers import FORMATS
from engine.report.page import asset, result_page, result_pieces
from engine.result import Result
from engine.text.document import Document
from indexer.request_fields import request_of
from indexer.serving import answers
from indexer.serving.answers import refusal_of
from indexer.serving.bodies import SearchBody, SearchForm
from indexer.serving.live_index import Progress, Stage
from indexer.serving.service import Service
from indexer.serving.settings import ASSETS

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_STREAMED = _HEADERS | {"X-Accel-Buffering": "no"}  # proxies must not buffer lines
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_OF_REPORT = {"report.css": "style.css", "report.js": "script.js"}
_OF_PAGE = ("page.css", "main.js", "address.js", "filter.js", "query.js", "requests.js", "results.js", "icon.svg")
_PAUSE = 0.1  # seconds between two looks at the progress


class PageBody(SearchBody):
    """A search of the page with a text or with a document of the index."""

    report: bool = Field(False, description="Make the report, one file, in place of the pieces.")


class PageForm(SearchForm):
    """A search of the page with a file."""

    report: bool = Field(False)


def add_page(app: FastAPI, service: Service) -> None:
    """Add the page, its files and its searches."""
    html = Environment(autoescape=True).from_string(_own("page.html")).render(accepted=",".join([*FORMATS, ".gz"]))
    contents = {name: _own(name) for name in _OF_PAGE} | {name: asset(own) for name, own in _OF_REPORT.items()}

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return Response(html, media_type="text/html", headers=_HEADERS)

    def add_asset(name: str, content: str) -> None:
        @app.get(ASSETS + name, include_in_schema=False)
        async def one() -> Response:
            return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers=_HEADERS)

    for name, content in contents.items():
        add_asset(name, content)

    @app.post("/page/search", include_in_schema=False)
    async def search(body: PageBody) -> Response:
        return await _answer(service, lambda: service.query(body), body)

    @app.post("/page/search/file", include_in_schema=False)
    async def search_file(form: Annotated[PageForm, Form(media_type="multipart/form-data")]) -> Response:
        name, data = form.file.filename or "", await form.file.read()
        return await _answer(service, lambda: service.uploads.file(name, data), form)


def _own(name: str) -> str:
    return files("indexer.serving").joinpath("templates", name).read_text(encoding="utf-8")


async def _answer(service: Service, read: Callable[[], Document | str], asked: PageBody | PageForm) -> Response:
    """Search in a thread; an error within `_PAUSE` sets the HTTP status, a later error is a line of the response."""
    progress = Progress()

    def work() -> None:
        progress.enter(Stage.READING)
        query = read()
        progress.enter(Stage.WAITING)
        with service.live.lease() as index, progress.followed():
            progress.enter(Stage.SEARCHING)
            _search(index, query, asked, progress)

    running = asyncio.create_task(service.workers.run(work))
    await asyncio.wait({running}, timeout=_PAUSE)
    if running.done() and (error := running.exception()) is not None:
        return refusal_of(_raised(error), service.folder).response()
    return StreamingResponse(_lines(service, progress, running), media_type="application/x-ndjson", headers=_STREAMED)


def _search(index: Index, query: Document | str, asked: PageBody | PageForm, progress: Progress) -> None:
    request = request_of(asked)
    answers.check_are_there(index, *request.without, query)
    result = index.search(query, request)
    progress.enter(Stage.ARRANGING)
    shown = answers.without_folders(result)
    if asked.report:
        progress.pieces.append(_line({"piece": "report", "html": result_page([shown])}))
        return
    n_bytes = 0
    progress.pieces.append(_line({"piece": "facts", "left_out": list(result.copies), **_facts(result)}))
    for kind, html in result_pieces(shown):
        progress.enter(Stage.ARRANGING)
        progress.pieces.append(_line({"piece": kind, "html": html}))
        answers.check_reply(n_bytes := n_bytes + len(html))


def _facts(result: Result) -> dict[str, Any]:
    """Facts about a result that the page shows beside the report; of a novelty the numbers of sections, not hits."""
    names, n_found = [hit.doc_id for hit in result], result.n_found
    if result.sections is not None:
        names, n_found = [str(section.section + 1) for section in result.sections], len(result.sections)
    return {"title": result.query.title, "n_hits": len(names), "n_found": n_found, "hits": names}


async def _lines(service: Service, progress: Progress, running: asyncio.Task[None]) -> AsyncIterator[bytes]:
    """Changes of the progress and the pieces of the result, until the search has ended."""
    state = None
    try:
        while True:
            await asyncio.wait({running}, timeout=_PAUSE)
            while progress.pieces:
                yield progress.pieces.popleft()
            if running.done():
                break
            if (now := progress.state) != state:
                state = now
                yield _line(asdict(now))
        if (error := running.exception()) is not None:
            yield _line(refusal_of(_raised(error), service.folder).body())
    finally:
        progress.abandon()  # the client may have disconnected; no effect on a search that has ended
        running.cancel()


def _raised(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else RuntimeError(repr(error))


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"
