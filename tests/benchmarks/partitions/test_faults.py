"""Servers that run while they are needed, and a relay that passes responses on, or spoils them by its fault."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from benchmarks.datasets import DatasetError
from benchmarks.partitions.faults import Fault, Relay, served, spoiled
from indexer.building.builder import build
from tests.fakes import make_corpus

BODY = bytes(range(1, 11))
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n" + BODY


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault.NONE, ANSWER),
        (Fault.CUT, ANSWER[:-5]),
        (Fault.OVERSIZED, ANSWER.replace(b": 10", b": %d" % (1 << 40))),
        (Fault.GARBAGE, ANSWER[:-10] + bytes(10)),
        (Fault.TORN, ANSWER.replace(b": 10", b": 5")[:-5]),
    ],
)
def test_a_response_is_spoiled_in_one_way(fault: Fault, expected: bytes) -> None:
    assert spoiled(ANSWER, fault) == expected


@contextmanager
def answering() -> Iterator[tuple[int, list[bytes]]]:
    """The port of a server that sends one response to each request, and the requests that it received."""
    requests: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    requests.append(client.recv(65_536))
                    client.sendall(ANSWER)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1], requests


def send_request(relay: Relay) -> bytes:
    with socket.create_connection(("127.0.0.1", int(relay.address.rpartition(":")[2])), timeout=30) as client:
        client.sendall(b"POST / HTTP/1.1\r\nAuthorization: Bearer x\r\ncontent-length: 0\r\n\r\n")
        received = b""
        with suppress(ConnectionResetError):  # of a connection that is closed with an unread request
            while part := client.recv(65_536):
                received += part
        return received


def test_requests_pass_before_the_fault() -> None:
    with answering() as (port, requests), Relay(port) as relay:
        relay.spoil(Fault.REFUSED, after=2)
        assert [send_request(relay) for _ in range(3)] == [ANSWER, ANSWER, b""]
        assert (len(requests), relay.n_requests) == (2, 3)


def test_a_token_is_taken_away() -> None:
    with answering() as (port, requests), Relay(port) as relay:
        relay.spoil(Fault.NO_TOKEN)
        assert send_request(relay) == ANSWER
        assert b"Authorization" not in requests[0]


def test_a_server_is_killed_when_it_has_the_request() -> None:
    with answering() as (port, _), Relay(port) as relay:
        killed = threading.Event()
        relay.kill = killed.set
        assert send_request(relay) == ANSWER and not killed.is_set()
        relay.spoil(Fault.KILLED)
        send_request(relay)
        assert killed.is_set()


@pytest.mark.slow
def test_a_server_is_ready_and_then_gone(tmp_path: Path) -> None:
    build(tmp_path / "x.lm", make_corpus(3), encode="none")
    with served([tmp_path / "x.lm"]) as (one,):
        with urlopen(f"{one.address}/health", timeout=60) as answer:
            assert answer.status == 200
        assert one.process.poll() is None and one.address.endswith(f":{one.port}")
    assert one.process.poll() is not None


def test_the_error_for_a_server_that_does_not_start_has_the_reason(tmp_path: Path) -> None:
    with (
        pytest.raises(DatasetError, match=r"a server ended before it was ready: .*holds no index"),
        served([tmp_path / "absent.lm"]),
    ):
        pass
