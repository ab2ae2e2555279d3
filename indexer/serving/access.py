"""Who may send a request, and how large and how slow its body may be. Slow heads and readers are left to a proxy."""

import asyncio
import hmac
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from tempfile import SpooledTemporaryFile
from typing import IO
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indexer.serving.answers import Refusal, too_busy, too_large
from indexer.serving.settings import ASSETS, MOST_VALUES, ServerSettings, is_loopback
from indexer.serving.work import BODY_BYTES, LARGE_BODY, Metrics, return_memory, too_slow

_HELD_BODIES = 1  # as many of the largest size are held at one time, the larger ones on disk
_TAKEN_BYTES = 2 * 2**20  # of large bodies that are in memory and worked on at one time; or one alone
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OPEN_PATHS = frozenset({"/health", "/ready", "/"})  # need no token: like the files of the page, without documents


class Access:
    """Refuses requests without the token, from other sites, and with bodies over the limits; counts all requests."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._n_held = 0  # bytes of all bodies
        self._n_taken = 0  # bytes of large bodies in memory
        self._queue, self._room = asyncio.Lock(), asyncio.Condition()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; see the class."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with self._metrics.request(scope) as observed:

            async def observing(message: Message) -> None:
                if message["type"] == "http.response.start":
                    observed.status = message["status"]
                    MutableHeaders(scope=message)["X-Content-Type-Options"] = "nosniff"
                await send(message)

            headers = Headers(scope=scope)
            try:
                self._check(scope, headers)
                async with self._received(headers, receive) as file, self._taken(file.tell()):
                    BODY_BYTES.set(file.tell())
                    file.seek(0)
                    messages: list[Message] = [{"type": "http.request", "body": file.read(), "more_body": False}]
                    if not headers.get("content-type", "").startswith("multipart/form-data"):
                        _check_values(messages[0]["body"])
                    await self._app(scope, _replayed(messages, receive), observing)
            except Refusal as refusal:
                refusal.headers["Connection"] = "close"  # the rest of the body stays unread
                await refusal.response()(scope, receive, observing)

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Check the token; without one, check that no page of another site made a browser send the request."""
        if self._settings.token is None:
            _check_local(headers)
        elif scope["path"] not in _OPEN_PATHS and not scope["path"].startswith(ASSETS):
            scheme, _, token = headers.get("authorization", "").partition(" ")
            expected = self._settings.token.encode()
            if not (hmac.compare_digest(token.strip().encode("latin-1"), expected) and scheme.lower() == "bearer"):
                raise Refusal(
                    401,
                    "no_token" if not token else "wrong_token",
                    "the request has no valid token",
                    "send the header: Authorization: Bearer TOKEN",
                    WWW_Authenticate="Bearer",
                )

    @asynccontextmanager
    async def _received(self, headers: Headers, receive: Receive) -> AsyncIterator[IO[bytes]]:
        """The whole body, in a file that is read to its end."""
        with SpooledTemporaryFile(LARGE_BODY) as file:
            try:
                await self._receive(headers, receive, file)
                yield file
            finally:
                self._n_held -= file.seek(0, os.SEEK_END)

    async def _receive(self, headers: Headers, receive: Receive, file: IO[bytes]) -> None:
        limit, timeout = self._settings.max_bytes, self._settings.timeout
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > limit:
            raise _too_large(limit)
        more = True
        try:
            async with asyncio.timeout(timeout):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(499, "disconnected", "the client closed the connection", "send it again")
                    part = message.get("body", b"")
                    file.write(part)
                    self._n_held += len(part)
                    more = message.get("more_body", False)
                    if file.tell() > limit:
                        raise _too_large(limit)
                    if self._n_held > _HELD_BODIES * self._settings.max_bytes:
                        raise too_busy("other requests send large bodies")
        except TimeoutError:
            reason = f"the body did not arrive within {timeout:g} s"
            raise Refusal(408, "slow_client", reason, "send it faster, or a smaller one") from None

    @asynccontextmanager
    async def _taken(self, n_bytes: int) -> AsyncIterator[None]:
        """Wait, in order, until a large body fits into memory beside others."""
        if n_bytes <= LARGE_BODY:
            yield
            return
        try:
            async with asyncio.timeout(self._settings.timeout), self._queue, self._room:
                await self._room.wait_for(lambda: not self._n_taken or self._n_taken + n_bytes <= _TAKEN_BYTES)
                self._n_taken += n_bytes
        except TimeoutError:
            raise too_slow(self._settings.timeout) from None
        try:
            yield
        finally:
            return_memory()
            self._n_taken -= n_bytes
            async with self._room:
                self._room.notify_all()


def _check_values(body: bytes) -> None:
    """Refuse JSON of too many values, before it is parsed: they take many times the memory of their text."""
    if _n_values(body) > MOST_VALUES and (n := _n_values(_STRING.sub(b"", body))) > MOST_VALUES:
        raise too_large("too_many_values", "values of the body", n, MOST_VALUES, "send fewer sections")


def _n_values(text: bytes) -> int:
    return sum(text.count(mark) for mark in (b"{", b"[", b","))


def _check_local(headers: Headers) -> None:
    """Refuse hosts and origins other than this machine: DNS names that others control, and pages of other sites."""
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


def _replayed(messages: list[Message], receive: Receive) -> Receive:
    """These messages, none of them kept; then those of the server, such as a disconnect of the client."""

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
