"""Runs the application until a signal ends it; requests that are running then may finish."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from engine.encoders.encoder import Encoder
from engine.errors import StorageError
from indexer.serving.app import create_app
from indexer.serving.service import Service
from indexer.serving.settings import Settings, check_exposure
from indexer.serving.work import few_arenas

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
                min(idle, key=lambda one: one._opened)._close_idle()

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
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def stop(self) -> None:
        """End as on a signal."""
        self.should_exit = True


def serve(folder: Path, settings: Settings, *, log: Callable[[str], None], encoder: Encoder | None = None) -> None:
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


def _listener(settings: Settings) -> socket.socket:
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
