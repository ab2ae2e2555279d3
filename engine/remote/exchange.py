"""Exchanges frames with a partition, within a deadline and with one retry on a replica.

Frames are sent over HTTP, or by a `Channel`.

A refused connection, a timeout, and a cut or malformed frame all raise `PartitionUnavailable`. Other errors are
raised only for a query that no server can answer (`QueryError`) and for changed documents (`IndexChanged`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from socket import SHUT_RDWR
from threading import Timer
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlsplit

from engine.errors import IndexChanged, PartitionUnavailable, QueryError
from engine.remote.frames import MOST_BYTES, Frame, FrameError, pack, unpack

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

    from numpy.typing import NDArray

PATH = "/v1/partition/"
TOKEN_VARIABLE = "LONGMATCH_TOKEN"
SECONDS = 30.0
_MOST_TRIES = 2
_MOST_ERROR_BYTES = 65_536

Answer = TypeVar("Answer")


class NoAnswer(Exception):
    """A partition returned no usable reply; a replica of the partition is tried next."""


class Channel(Protocol):
    """A transport other than HTTP for frames to the partitions of one index."""

    next_step: str  # for messages: the remedy where a partition does not answer

    def address(self, number: int) -> str:
        """The address of a partition."""

    def send(self, address: str, subject: str, body: bytes, seconds: float) -> bytes:
        """Send a frame and wait for the reply.

        Args:
            address: of a partition.
            subject: of the round.
            body: the frame.
            seconds: deadline of the reply.

        Raises:
            NoAnswer: no usable reply arrived in time.
            IndexChanged: the documents are no longer those of the given `state`.
            QueryError: the query cannot be answered.
        """


@dataclass(frozen=True, slots=True)
class Access:
    """How partitions in other processes are reached."""

    seconds: float = SECONDS  # deadline of a round, including a second try on a replica
    is_partial: bool = False  # whether partitions that do not answer are left out of a search
    token: str | None = field(default_factory=lambda: os.environ.get(TOKEN_VARIABLE) or None, repr=False)
    channel: Channel | None = field(default=None, repr=False)  # to all partitions; None for HTTP


class Exchange:
    """Sends requests to one partition, at any of its addresses."""

    def __init__(self, name: str, addresses: Sequence[str], access: Access) -> None:
        """Connect to nothing yet.

        Args:
            name: of the partition, for messages.
            addresses: of its replicas, the preferred one first.
            access: deadline, token and channel.
        """
        self.name = name
        self._addresses = list(addresses)
        self._access = access

    def ask(
        self,
        subject: str,
        read: Callable[[Frame], Answer],
        head: dict[str, Any] | None = None,
        arrays: dict[str, NDArray[Any]] | None = None,
    ) -> Answer:
        """Send a frame and read the reply.

        Args:
            subject: of the round; the last part of the URL path.
            read: parses the reply; a `FrameError` that it raises counts as a fault of the server.
            head: header of the frame.
            arrays: of the frame.

        Raises:
            PartitionUnavailable: no server returned a usable frame before the deadline.
            IndexChanged: the documents are no longer those of the given `state`.
            QueryError: the query cannot be answered.
        """
        body = pack(head or {}, arrays)
        deadline = time.monotonic() + self._access.seconds
        tries = list(self._addresses[:_MOST_TRIES])
        reasons = []
        for number, address in enumerate(tries, start=1):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            try:
                content = self._send(address, subject, body, left / (len(tries) - number + 1))
                answer = read(unpack(content))
            except (NoAnswer, FrameError) as failure:
                reasons.append(f"{address}: {failure}")
                continue
            if number > 1:  # later requests try the address that answered first
                self._addresses.sort(key=lambda one: one != address)
            return answer
        raise PartitionUnavailable(
            f"{self.name} does not answer ({'; '.join(reasons)}); {self._next_step}, or search the other partitions: "
            "--partial"
        )

    def _send(self, address: str, subject: str, body: bytes, seconds: float) -> bytes:
        if self._access.channel is not None:
            return self._access.channel.send(address, subject, body, seconds)
        return _exchange(address, subject, body, self._access.token, seconds)

    @property
    def _next_step(self) -> str:
        channel = self._access.channel
        return "start it: longmatch serve FOLDER" if channel is None else channel.next_step


def _exchange(address: str, subject: str, body: bytes, token: str | None, seconds: float) -> bytes:
    """The body of a successful response."""
    # This import loads ssl and email, which searches of local files do not need.
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    parts = urlsplit(address)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=seconds)
    headers = {"Content-Type": "application/octet-stream", "Connection": "close"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    began = time.monotonic()
    # A socket timeout restarts with every byte, so a timer cuts off a server that sends slowly.
    clock = Timer(seconds, _cut, [connection])
    clock.daemon = True
    clock.start()
    try:
        connection.request("POST", parts.path.rstrip("/") + PATH + subject, body, headers)
        with connection.getresponse() as response:
            content = _content(response)
            status = response.status
    except (OSError, HTTPException, ValueError) as error:
        if time.monotonic() - began >= seconds - 0.01:
            raise NoAnswer(f"no whole answer within {seconds:.3g} s") from error
        raise NoAnswer(str(error) or type(error).__name__) from error
    finally:
        clock.cancel()
        connection.close()
    if status != 200:
        raise _refusal(status, content)
    return content


def _cut(connection: HTTPConnection) -> None:
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(SHUT_RDWR)


def _content(response: HTTPResponse) -> bytes:
    """The body of a response whose announced length is within the limit."""
    most = MOST_BYTES if response.status == 200 else _MOST_ERROR_BYTES
    if response.length is None:
        raise NoAnswer(f"status {response.status} without a length")
    if response.length > most:
        raise NoAnswer(f"it announces {response.length:,} bytes, the limit is {most:,}")
    return response.read()


def _refusal(status: int, content: bytes) -> Exception:
    """An error that a server sent as JSON."""
    try:
        error = json.loads(content)["error"]
        code, message, next_step = (str(error[name]) for name in ("code", "message", "next"))
    except (ValueError, LookupError, TypeError):
        return NoAnswer(f"status {status}, which is no answer of longmatch serve")
    if code == "bad_query":
        return QueryError(f"{message}; {next_step}")
    if code == "index_changed":
        return IndexChanged(f"{message}; {next_step}")
    return NoAnswer(f"{message} (status {status}; {next_step})")
