"""Several clients at the same time, each a thread with one connection, over the loopback interface alone."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.load.record import LoadRow
from benchmarks.load.requests import BUSY, FOUND, HOSTILE_SHARE, Sent, hostile, valid
from benchmarks.measuring.latency import percentiles

HOST = "127.0.0.1"
_PATIENCE = 120  # seconds for one response
_MOST_WRONG = 5
_PAUSE = 0.05  # seconds after a refusal for the load


@dataclass
class _Seen:
    """What all clients saw."""

    times_ms: list[float] = field(default_factory=list)
    n_busy: int = 0
    n_refused: int = 0
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, sent: Sent, status: int, body: bytes, elapsed_ms: float) -> None:
        with self.lock:
            if status == BUSY:
                self.n_busy += 1
            elif status != sent.right or not _is_json(body, is_error=status != FOUND):
                self.wrong.append(f"{sent.name}: {status} {body[:100]!r}")
            elif status == FOUND:
                self.times_ms.append(elapsed_ms)
            else:
                self.n_refused += 1


def _is_json(body: bytes, *, is_error: bool) -> bool:
    try:
        return ("error" in json.loads(body)) == is_error
    except ValueError:
        return False


def load(
    port: int,
    n_clients: int,
    seconds: float,
    make: Callable[[random.Random], Sent],
    seed: int,
) -> LoadRow:
    """Send requests for some time, and count what comes back.

    Args:
        port: of a server on this machine.
        n_clients: threads.
        seconds: after which no further request begins.
        make: a request.
        seed: of the choice of requests.
    """
    seen, started = _Seen(), time.monotonic()
    until = started + seconds
    clients = [
        threading.Thread(target=_client, args=(port, until, make, random.Random(f"{seed} {number}"), seen))
        for number in range(n_clients)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return LoadRow(
        n_clients=n_clients,
        seconds=round(time.monotonic() - started, 1),
        n_answered=len(seen.times_ms),
        n_busy=seen.n_busy,
        n_refused=seen.n_refused,
        wrong=list(dict.fromkeys(seen.wrong))[:_MOST_WRONG],
        n_wrong=len(seen.wrong),
        latency=percentiles(seen.times_ms or [0.0]),
        memory_mib=memory_mib(port),
    )


def mixed(doc_ids: Sequence[str], texts: Sequence[bytes], max_bytes: int) -> Callable[[random.Random], Sent]:
    """Valid and hostile requests."""
    return lambda rng: hostile(max_bytes, rng) if rng.random() < HOSTILE_SHARE else valid(doc_ids, texts, rng)


def _client(port: int, until: float, make: Callable[[random.Random], Sent], rng: random.Random, seen: _Seen) -> None:
    while time.monotonic() < until:
        sent, started = make(rng), time.perf_counter()
        try:
            status, body = exchange(port, sent)
        except (OSError, http.client.HTTPException) as error:
            status, body = 0, repr(error).encode()
        seen.add(sent, status, body, 1000 * (time.perf_counter() - started))
        if status == BUSY:
            time.sleep(_PAUSE)


def exchange(port: int, sent: Sent) -> tuple[int, bytes]:
    """Status and body of one response, over a connection of its own."""
    connection = http.client.HTTPConnection(HOST, port, timeout=_PATIENCE)
    try:
        connection.request(sent.method, sent.path, sent.body, sent.headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def memory_mib(port: int) -> float:
    """Resident memory of the server, as it reports it."""
    _, body = exchange(port, Sent("metrics", "/metrics", None, {}, FOUND))
    return round(next(_values(body, b"process_resident_memory_bytes ")) / 2**20, 1)


def _values(body: bytes, name: bytes) -> Iterator[float]:
    return (float(line.removeprefix(name)) for line in body.splitlines() if line.startswith(name))
