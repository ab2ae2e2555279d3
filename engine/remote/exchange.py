"""One exchange of frames with a partition, within a deadline, and once more with a replica where that fails.

Frames travel over HTTP, or by a `Channel`.

Whatever keeps an answer from being used, a refused connection, silence, a cut or malformed frame, is the
same fault to a search: `PartitionUnavailable`. Only a query that no server could answer is another one.
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
    """This partition gave no answer that can be used; a replica of it may."""


class Channel(Protocol):
    """Carries frames to the partitions of one index in another way than HTTP."""

    next_step: str  # what helps where a partition does not answer, for messages

    def address(self, number: int) -> str:
        """What a partition is called."""

    def send(self, address: str, subject: str, body: bytes, seconds: float) -> bytes:
        """Send a frame, and wait for the one that comes back.

        Args:
            address: of a partition.
            subject: of the round.
            body: the frame.
            seconds: until the answer is late.

        Raises:
            NoAnswer: none came in time.
            IndexChanged: the documents are no longer those of the given `state`.
            QueryError: the query cannot be answered.
        """


@dataclass(frozen=True, slots=True)
class Access:
    """How partitions in other processes are reached."""

    seconds: float = SECONDS  # that a partition has for a round, a second try on a replica included
    is_partial: bool = False  # whether partitions that do not answer are left out of a search
    token: str | None = field(default_factory=lambda: os.environ.get(TOKEN_VARIABLE) or None, repr=False)
    channel: Channel | None = field(default=None, repr=False)  # to all partitions; None for HTTP


class Exchange:
    """Asks one partition, at any of its addresses."""

    def __init__(self, name: str, addresses: Sequence[str], access: Access) -> None:
        """Connect to nothing yet.

        Args:
            name: of the partition, for messages.
            addresses: of its replicas, the preferred one first.
            access: deadline and token.
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
        """Send a frame, and read the one that comes back.

        Args:
            subject: of the round, the end of the path.
            read: makes values of the frame; a `FrameError` of it is a fault of the server.
            head: header of the frame.
            arrays: of the frame.

        Raises:
            PartitionUnavailable: no server answered with a frame that can be used before the deadline.
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
            if number > 1:  # the one that answers is asked first from now on
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
    # Loads ssl and email, which a search of local files does without.
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    parts = urlsplit(address)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=seconds)
    headers = {"Content-Type": "application/octet-stream", "Connection": "close"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    began = time.monotonic()
    # Timeouts of a socket start again with every byte, so a server that sends slowly is cut off by a clock.
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
    """The body, if the server announced how long it is, and it is no longer than allowed."""
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
