"""Closes connections of slow clients; uvicorn alone waits without limit for the head of a request and for readers."""

from __future__ import annotations

import asyncio
import json
from typing import cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from indexer.serving.failures import Refusal

HEAD_SECONDS = 10.0  # until the head of the first request has arrived
STALLED_SECONDS = 30.0  # in which a client reads nothing of a response
MOST_CONNECTIONS = 512


class TimedProtocol(H11Protocol):
    """HTTP/1.1 of uvicorn, with time limits, and JSON errors for requests that are not HTTP."""

    _head: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to wait for the head of a request."""
        super().connection_made(cast(asyncio.Transport, transport))
        if len(self.connections) > MOST_CONNECTIONS:
            self.transport.abort()
            return
        self._head = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        """Take bytes; a head must arrive within `HEAD_SECONDS` of the connection or, later, of its first bytes."""
        super().data_received(data)
        if not self._awaits_head():
            self._cancel(self._head)
            self._head = None
        elif self._head is None:
            self._head = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _awaits_head(self) -> bool:
        """Whether no request has begun since the last response."""
        return self.cycle is None or (self.cycle.response_complete and self.conn.their_state is h11.IDLE)

    def _cancel(self, timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()

    def pause_writing(self) -> None:
        """Start the timer: the client reads more slowly than the response is written."""
        super().pause_writing()
        self._cancel(self._stalled)
        self._stalled = self.loop.call_later(STALLED_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the timer: the client reads again."""
        super().resume_writing()
        self._cancel(self._stalled)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        self._cancel(self._head)
        self._cancel(self._stalled)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Respond to a request that is not HTTP, and close the connection."""
        refusal = Refusal(400, "bad_request", "this is no request of HTTP/1.1", "use a client for HTTP")
        body = json.dumps(refusal.body()).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
