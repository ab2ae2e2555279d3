"""ASGI middleware that checks access, the size of a body and the time it takes to arrive, before the application."""

from __future__ import annotations

import asyncio
import hmac
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indexer.serving.failures import Refusal, too_busy
from indexer.serving.metrics import Metrics
from indexer.serving.settings import ASSETS, Settings, is_loopback

IDLE_SECONDS = 10.0  # between two parts of a body
_DRAIN_SECONDS = 2.0  # so that a client which is still sending reads why its body is refused
_OPEN_PATHS = frozenset({"/health", "/ready", "/"})  # need no token: like the files of the page, without documents


class Gate:
    """Refuses requests with JSON, and gives the application those whose body has arrived."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._n_held = 0  # bytes of bodies of all requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; see the class."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with self._metrics.request(scope) as observed:

            async def observing(message: Message) -> None:
                if message["type"] == "http.response.start":
                    observed.status = message["status"]
                await send(message)

            await self._admit(scope, receive, observing)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        body: list[bytes] = []
        try:
            self._check_access(scope)
            try:
                await self._take(Headers(scope=scope), receive, body)
            except Refusal as refusal:
                # What is left of the body stays unread, so this connection cannot carry another request.
                refusal.headers["Connection"] = "close"
                raise
            await self._app(scope, _replayed(b"".join(body), receive), send)
        except Refusal as refusal:
            await refusal.response()(scope, receive, send)
        finally:
            self._n_held -= sum(map(len, body))

    def _check_access(self, scope: Scope) -> None:
        """Check the token; without one, check that no page of another site made a browser send the request.

        Raises:
            Refusal: the request has no access.
        """
        headers = Headers(scope=scope)
        if self._settings.token is None:
            _check_local(headers)
        elif scope["path"] not in _OPEN_PATHS and not scope["path"].startswith(ASSETS):
            scheme, _, given = headers.get("authorization", "").partition(" ")
            expected = self._settings.token.encode()
            if not (hmac.compare_digest(given.strip().encode("latin-1"), expected) and scheme.lower() == "bearer"):
                raise Refusal(
                    401,
                    "no_token" if not given else "wrong_token",
                    "the request has no valid token",
                    "send the header: Authorization: Bearer TOKEN",
                    WWW_Authenticate="Bearer",
                )

    async def _take(self, headers: Headers, receive: Receive, body: list[bytes]) -> None:
        """Read the body.

        Raises:
            Refusal: the body is too large, arrives too slowly or incompletely, or bodies of other requests fill the
                allowed memory.
        """
        limit, timeout = self._settings.max_bytes, self._settings.timeout
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > limit:
            if "expect" not in headers:
                await self._drain(receive)
            raise _too_large(limit)
        n_bytes, more = 0, True
        try:
            async with asyncio.timeout(timeout):
                while more:
                    async with asyncio.timeout(IDLE_SECONDS):
                        message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(499, "disconnected", "the client closed the connection", "send it again")
                    part, more = message.get("body", b""), message.get("more_body", False)
                    n_bytes += len(part)
                    if n_bytes > limit:
                        await self._drain(receive)
                        raise _too_large(limit)
                    if self._n_held + len(part) > limit * self._settings.concurrency:
                        raise too_busy("the bodies of other requests fill the memory that is allowed")
                    self._n_held += len(part)
                    body.append(part)
        except TimeoutError:
            seconds = f"{IDLE_SECONDS:g} s between two parts, {timeout:g} s in all"
            raise Refusal(
                408,
                "slow_client",
                f"the body arrived too slowly: at most {seconds}",
                "send it faster, or a smaller one",
            ) from None

    async def _drain(self, receive: Receive) -> None:
        """Read and drop up to `max_bytes`, for at most `_DRAIN_SECONDS`."""
        n_bytes = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while n_bytes <= self._settings.max_bytes:
                    message = await receive()
                    n_bytes += len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return


def _check_local(headers: Headers) -> None:
    """Refuse hosts and origins other than this machine: DNS names that others control, and pages of other sites.

    Raises:
        Refusal: host or origin is not this machine.
    """
    origin = headers.get("origin")
    for name in [f"//{headers.get('host', '')}", *([] if origin is None else [origin])]:
        try:
            host = urlsplit(name).hostname
        except ValueError:
            host = None
        if host is None or not is_loopback(host):
            raise Refusal(
                403,
                "foreign_host",
                f"a server without a token answers requests to this machine alone, not to {name[:80].strip('/')!r}",
                "use http://127.0.0.1, or start the server with --token-file",
            )


def _too_large(limit: int) -> Refusal:
    return Refusal(
        413,
        "too_large",
        f"the body is larger than {limit:,} bytes",
        "send a smaller document, or start the server with a larger --max-bytes",
    )


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body as one message; then the messages of the server, such as a disconnect of the client."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
