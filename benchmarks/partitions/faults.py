"""Servers of partitions, and a relay with faults on demand; one request a connection, as searches send."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from benchmarks.datasets import DatasetError

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_ADDRESS = re.compile(r"(http://[\d.]+:(\d+))")
_PAUSE = 0.05  # seconds between two bytes of a slow answer
_BLOCK = 65_536


@dataclass(frozen=True)
class Served:
    """A running server."""

    process: subprocess.Popen[str]
    address: str
    port: int


@contextmanager
def served(folders: Sequence[Path], environment: dict[str, str] | None = None) -> Iterator[list[Served]]:
    """A ready server for each index, on the loopback interface; killed afterwards.

    Raises:
        DatasetError: a server ended before it was ready.
    """
    command = [sys.executable, "-m", "longmatch", "serve", "--port", "0", "--threads", "1"]
    started = [
        subprocess.Popen([*command, str(folder)], stderr=subprocess.PIPE, text=True, env=environment)
        for folder in folders
    ]
    try:
        yield [_ready(process) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
            if process.stderr is not None:
                process.stderr.close()


def _ready(process: subprocess.Popen[str]) -> Served:
    assert process.stderr is not None
    first = process.stderr.readline()
    found = _ADDRESS.search(first)
    if found is None or not process.stderr.readline().startswith("ready"):
        raise DatasetError(f"a server ended before it was ready: {first}{process.stderr.read()}")
    return Served(process, found[1], int(found[2]))


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


class Relay:
    """Listens on the loopback interface, and passes requests on to the server at `port`, which can be changed."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.fault = Fault.NONE
        self.skipped = 0  # requests that pass before the fault
        self.kill: Callable[[], None] = lambda: None  # kills the server, as `Fault.KILLED` does
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

    def __exit__(self, *_: object) -> None:
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
                request = b"\r\n".join([*_lines_but(b"authorization:", head), b"", body])
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


def _lines_but(name: bytes, head: bytes) -> list[bytes]:
    return [line for line in head.split(b"\r\n") if not line.lower().startswith(name)]


def _with_length(head: bytes, length: int) -> bytes:
    return b"\r\n".join([*_lines_but(b"content-length:", head), b"content-length: %d" % length, b"", b""])


def _message(connection: socket.socket) -> bytes:
    """Receive a request or response with a Content-Length, or its beginning if the connection ends."""
    received = bytearray()
    n_bytes = None  # of the message, once its head has arrived
    while n_bytes is None or len(received) < n_bytes:
        part = connection.recv(_BLOCK)
        if not part:
            break
        received += part
        if n_bytes is None and (end := received.find(b"\r\n\r\n")) >= 0:
            found = _LENGTH.search(received, 0, end)
            n_bytes = end + 4 + (int(found[1]) if found else 0)
    return bytes(received)
