"""Who may send a request, and how large and how slow its body may be. Slow heads and readers are left to a proxy."""

from __future__ import annotations

import asyncio
import hmac
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indexer.serving.failures import Refusal
from indexer.serving.metrics import Metrics
from indexer.serving.settings import ASSETS, Settings, is_loopback

_OPEN_PATHS = frozenset({"/health", "/ready", "/"})  # need no token: like the files of the page, without documents


class Access:
    """Refuses requests without the token, from other sites, and with bodies over the limits; counts all requests."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics

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

            try:
                self._check(scope)
                body = await self._body(Headers(scope=scope), receive)
            except Refusal as refusal:
                refusal.headers["Connection"] = "close"  # the rest of the body stays unread
                await refusal.response()(scope, receive, observing)
            else:
                await self._app(scope, _replayed(body, receive), observing)

    def _check(self, scope: Scope) -> None:
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

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        """The whole body.

        Raises:
            Refusal: it is too large, arrives too slowly, or the client goes away.
        """
        limit, timeout = self._settings.max_bytes, self._settings.timeout
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > limit:
            raise _too_large(limit)
        body, more = bytearray(), True
        try:
            async with asyncio.timeout(timeout):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(499, "disconnected", "the client closed the connection", "send it again")
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > limit:
                        raise _too_large(limit)
        except TimeoutError:
            reason = f"the body did not arrive within {timeout:g} s"
            raise Refusal(408, "slow_client", reason, "send it faster, or a smaller one") from None
        return bytes(body)


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
