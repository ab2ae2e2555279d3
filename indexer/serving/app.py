"""The ASGI application: the paths of the API, the work of each, and the server, which runs until a signal ends it."""

import asyncio
import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, cast

import uvicorn
from fastapi import FastAPI, Form, Request, Response
from fastapi import Query as UrlQuery
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from engine.encoders.encoder import Encoder
from engine.errors import StorageError
from engine.index import Index
from engine.store.where import filter_text
from indexer.serving import answers, bodies
from indexer.serving.access import Access
from indexer.serving.answers import Refusal, refusal_of
from indexer.serving.page import add_page
from indexer.serving.service import Service
from indexer.serving.settings import ServerSettings, check_exposure
from indexer.serving.work import few_arenas

_N_SHOWN = 3  # faults of a request that an error lists
_HTTP_CODES = {400: "bad_request", 404: "no_such_path", 405: "method_not_allowed"}
_DESCRIBED = "see GET /openapi.json"
_NO_JSON = (
    "the body is not JSON in UTF-8 without compression, or is nested too deeply, or has a number of too many digits"
)


def create_app(service: Service, stop: Callable[[], None] = lambda: None) -> FastAPI:
    """The ASGI application.

    Args:
        service: index and limits; closed with the application.
        stop: called where the index cannot be loaded.
    """

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        following = asyncio.create_task(service.follow(stop))
        yield
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        service.close()

    app = FastAPI(
        title="longmatch",
        version="1",
        docs_url=None,  # the pages of FastAPI load scripts from other machines
        redoc_url=None,
        lifespan=lifespan,
        middleware=[Middleware(Access, settings=service.settings, metrics=service.metrics)],
    )
    _add_state(app, service)
    _add_searches(app, service)
    _add_catalog(app, service)
    _add_documents(app, service)
    _add_comparisons(app, service)
    add_page(app, service)
    _add_errors(app, service)
    _add_description(app)
    return app


def _add_state(app: FastAPI, service: Service) -> None:
    @app.get("/health", summary="Whether the server runs")
    async def health() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/ready", summary="Whether encoder and index are loaded", responses=bodies.response("ready"))
    async def ready() -> dict[str, Any]:
        if not service.live.is_ready:
            raise Refusal(503, "loading", "the index is being loaded", "wait", Retry_After="1")
        return {"status": "ready"}

    @app.get("/metrics", summary="Numbers for Prometheus")
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=1.0.0")


def _add_searches(app: FastAPI, service: Service) -> None:
    @app.post("/v1/search", summary="Search with a text, a document or a doc_id", responses=bodies.response("envelope"))
    async def search(body: bodies.SearchBody) -> Response:
        def work(index: Index) -> bytes:
            query, also, unlike = service.query(body), *map(service.queries, (body.also, body.unlike))
            if also or unlike:
                return answers.search_together(index, [query, *also], unlike, body)
            return answers.search(index, query, body)

        return await service.answer_with(work)

    @app.post("/v1/search/file", summary="Search with a file", responses=bodies.response("envelope"))
    async def search_file(form: Annotated[bodies.SearchForm, Form(media_type="multipart/form-data")]) -> Response:
        name, data = form.file.filename or "", await form.file.read()

        def work(index: Index) -> bytes:
            return answers.search(index, service.uploads.file(name, data), form)

        return await service.answer_with(work)


def _add_catalog(app: FastAPI, service: Service) -> None:
    @app.get("/v1/index", summary="Size, encoder and metadata fields of the index", responses=bodies.response("index"))
    async def description() -> Response:
        return await service.answer_with(lambda index: answers.description(index, service.settings.max_bytes))

    @app.get("/v1/values", summary="Values of a metadata field", responses=bodies.response("values"))
    async def values(
        field: Annotated[str, UrlQuery(max_length=bodies.LONGEST_FIELD)],
        containing: Annotated[
            str, UrlQuery(max_length=bodies.LONGEST_FIELD, description="In the text of a value.")
        ] = "",
        limit: Annotated[int, UrlQuery(ge=1, le=bodies.MOST_LISTED)] = 20,
    ) -> Response:
        return await service.answer_with(lambda index: answers.values(index, field, containing, limit))


def _add_documents(app: FastAPI, service: Service) -> None:
    @app.get("/v1/documents", summary="List documents", responses=bodies.response("documents"))
    async def documents(
        offset: Annotated[int, UrlQuery(ge=0, le=bodies.MOST_OFFSET)] = 0,
        limit: Annotated[int, UrlQuery(ge=1, le=bodies.MOST_LISTED)] = 50,
        where: Annotated[str | None, UrlQuery(description="Metadata filter as text.")] = None,
    ) -> Response:
        return await service.answer_with(lambda index: answers.documents(index, offset, limit, filter_text(where)))

    @app.get("/v1/documents/{doc_id:path}", summary="One document with its text", responses=bodies.response("document"))
    async def document(doc_id: str) -> Response:
        return await service.answer_with(lambda index: answers.document(index, doc_id))


def _add_comparisons(app: FastAPI, service: Service) -> None:
    @app.post("/v1/compare", summary="Score one document for another one", responses=bodies.response("envelope"))
    async def compare(body: bodies.CompareBody) -> Response:
        def work(index: Index) -> bytes:
            return answers.compare(index, service.query(body.query), service.query(body.target), body)

        return await service.answer_with(work)

    @app.post("/v1/compare/files", summary="Score one file for another one", responses=bodies.response("envelope"))
    async def compare_files(form: Annotated[bodies.CompareForm, Form(media_type="multipart/form-data")]) -> Response:
        files = [(upload.filename or "", await upload.read()) for upload in (form.query, form.target)]

        def work(index: Index) -> bytes:
            query, target = (service.uploads.file(name, data) for name, data in files)
            return answers.compare(index, query, target, form)

        return await service.answer_with(work)


def _add_errors(app: FastAPI, service: Service) -> None:
    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> Response:
        faults = [
            f"{'.'.join(map(str, item['loc']))[:200]}: {_fault(item)}"[:400] for item in error.errors()[:_N_SHOWN]
        ]
        return Refusal(422, "invalid_request", "; ".join(faults), _DESCRIBED).response()

    @app.exception_handler(HTTPException)
    async def refused(_request: Request, error: HTTPException) -> Response:
        code = _HTTP_CODES.get(error.status_code, "refused")
        message = _NO_JSON if error.detail == "There was an error parsing the body" else str(error.detail)
        return Refusal(error.status_code, code, message, _DESCRIBED).response()

    @app.exception_handler(Refusal)
    @app.exception_handler(Exception)
    async def failed(_request: Request, error: Exception) -> Response:
        return refusal_of(error, service.folder).response()


def _fault(item: Mapping[str, Any]) -> str:
    """What is wrong with a field, in words about requests instead of those about Python."""
    match item["type"]:
        case "missing":
            return "it is missing"
        case "extra_forbidden":
            return "there is no such field"
        case "json_invalid":
            return f"it is not JSON: {item['ctx']['error']}"
        case "model_attributes_type" | "dict_type":
            return "it must be a JSON object, sent with Content-Type: application/json"
    return re.sub(r"^(Input|String|List) should", "it must", str(item["msg"]).removeprefix("Value error, "))


def _add_description(app: FastAPI) -> None:
    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = bodies.add_contract(
                get_openapi(title=app.title, version=app.version, routes=app.routes)
            )
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]


_KEEP_ALIVE_SECONDS = 15
_BACKLOG = 256
_HEAD_SECONDS = 15  # for the head of a request to arrive
_MOST_CONNECTIONS = 512
_STILL_RUNNING = 1  # exit status


class Connection(H11Protocol):
    """A connection that is closed where no request arrives; of too many, the one that was idle longest."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the head of a request."""
        super().connection_made(cast(asyncio.Transport, transport))
        self._head = self.loop.call_later(_HEAD_SECONDS, self._close_idle)
        self._opened = self.loop.time()
        if len(self.connections) > _MOST_CONNECTIONS:
            idle = [
                connection
                for connection in self.connections
                if isinstance(connection, Connection) and connection.is_idle
            ]
            if idle:
                min(idle, key=lambda connection: connection._opened)._close_idle()

    @property
    def is_idle(self) -> bool:
        """Whether no request is worked on."""
        return self.cycle is None or self.cycle.response_complete

    def handle_events(self) -> None:
        """Handle what arrived; a complete head ends the wait."""
        super().handle_events()
        if not self.is_idle:
            self._head.cancel()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._opened = self.loop.time()
        self._head = self.loop.call_later(_HEAD_SECONDS, self._close_idle)

    def _close_idle(self) -> None:
        if self.is_idle:
            self.transport.close()


class Server(uvicorn.Server):
    """Uvicorn that ends without an error when it is signalled."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM; a second SIGINT ends the server at once."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop(self) -> None:
        """End as on a signal."""
        self.should_exit = True


def serve(
    folder: Path, settings: ServerSettings, *, log: Callable[[str], None], encoder: Encoder | None = None
) -> None:
    """Serve an index until SIGINT or SIGTERM.

    Raises:
        EngineError: the index cannot be loaded, or the address cannot be bound.
    """
    check_exposure(settings)
    few_arenas()
    service = Service(folder, settings, encoder, on_load=log)
    try:
        listener = _listener(settings)
        server = Server(configuration(service, lambda: server.stop()))
        log(f"serving {folder} on {_url(listener)}")
        asyncio.run(server.serve([listener]))
    finally:
        service.close()
    if service.failure is not None:
        raise service.failure
    if service.workers.n_admitted:
        log(f"{service.workers.n_admitted} requests did not finish within {settings.shutdown:g} s")
        os._exit(_STILL_RUNNING)  # their threads cannot be stopped, and Python would wait for them


def _listener(settings: ServerSettings) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        return socket.create_server((settings.host.strip("[]"), settings.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise StorageError(
            f"{settings.host} port {settings.port} cannot be served ({error.strerror or error}); "
            "choose another one: --port 8322"
        ) from error


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def configuration(service: Service, stop: Callable[[], None]) -> uvicorn.Config:
    """How uvicorn runs the application; `stop` is called where the index cannot be loaded."""
    return uvicorn.Config(
        create_app(service, stop),
        http=Connection,
        ws="none",
        limit_concurrency=2 * _MOST_CONNECTIONS,
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(service.settings.shutdown)),
    )
