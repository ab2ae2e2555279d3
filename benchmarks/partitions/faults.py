"""A relay in front of a server, with faults on demand; one request a connection, as searches of partitions send."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from types import TracebackType


class Fault(StrEnum):
    """The fault of a response."""

    NONE = "none"
    REFUSED = "refused"  # the connection is closed at once, as of a killed process
    SILENT = "silent"  # nothing comes, as of a stopped process
    SLOW = "slow"  # one byte every `_PAUSE` seconds
    CUT = "cut"  # half of the answer
    OVERSIZED = "oversized"  # more bytes are announced than are allowed
    GARBAGE = "garbage"  # a body of the right length, all zeros
    TORN = "torn"  # a complete HTTP response with half of a frame
    NO_TOKEN = "no token"  # the request arrives without its token
    KILLED = "killed during a round"  # the server is killed after it received the request, before it answers


_PAUSE = 0.05  # seconds between two bytes of a slow answer
_BLOCK = 65_536


class Relay:
    """Listens on the loopback interface, and passes requests on to a server."""

    def __init__(self, port: int) -> None:
        """Begin to listen.

        Args:
            port: of the server; the attribute can be changed later.
        """
        self.port = port
        self.fault = Fault.NONE
        self.skipped = 0  # requests that pass before the fault
        self.kill: Callable[[], None] = _nothing  # kills the server, as `Fault.KILLED` does
        self.n_requests = 0
        self._stop = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """The address of the relay, for clients."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def spoil(self, fault: Fault, after: int = 0) -> None:
        """Fail from now on, after `after` requests that pass."""
        self.fault, self.skipped = fault, after

    def __enter__(self) -> Relay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self.n_requests += 1
        fault = self.fault if self.skipped <= 0 else Fault.NONE
        self.skipped -= 1
        with client, suppress(OSError):
            if fault is Fault.REFUSED:
                return
            request = _message(client)
            if fault is Fault.SILENT:
                self._stop.wait(60)
                return
            if fault is Fault.NO_TOKEN:
                head, _, body = request.partition(b"\r\n\r\n")
                lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"authorization:")]
                request = b"\r\n".join(lines) + b"\r\n\r\n" + body
            with socket.create_connection(("127.0.0.1", self.port), timeout=60) as server:
                server.sendall(request)
                if fault is Fault.KILLED:
                    self.kill()
                answer = _message(server)
            self._send(client, spoiled(answer, fault), fault)

    def _send(self, client: socket.socket, answer: bytes, fault: Fault) -> None:
        if fault is not Fault.SLOW:
            client.sendall(answer)
            return
        for place in range(len(answer)):
            client.sendall(answer[place : place + 1])
            if self._stop.wait(_PAUSE):
                return


def spoiled(answer: bytes, fault: Fault) -> bytes:
    """An HTTP response with a fault."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if fault is Fault.CUT:
        return answer[: len(head) + 4 + len(body) // 2]
    if fault is Fault.OVERSIZED:
        return _with_length(head, 1 << 40) + body
    if fault is Fault.GARBAGE:
        return head + b"\r\n\r\n" + bytes(len(body))
    if fault is Fault.TORN:
        half = body[: len(body) // 2]
        return _with_length(head, len(half)) + half
    return answer


def _nothing() -> None:
    """Do nothing: by default there is no server to kill."""


def _with_length(head: bytes, length: int) -> bytes:
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length:")]
    return b"\r\n".join([*lines, b"content-length: %d" % length]) + b"\r\n\r\n"


def _message(connection: socket.socket) -> bytes:
    """Receive a request or response with a Content-Length."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(_BLOCK)
        if not part:
            return received
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    parts = [body]
    n_bytes = len(body)
    while n_bytes < length:
        part = connection.recv(_BLOCK)
        if not part:
            break
        parts.append(part)
        n_bytes += len(part)
    return head + b"\r\n\r\n" + b"".join(parts)
