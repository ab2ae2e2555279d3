"""Serves an index, sends valid and hostile requests from several clients, and records what became of them."""

from __future__ import annotations

import http.client
import json
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from benchmarks.markdown import markdown, origins
from benchmarks.measuring.latency import percentiles
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.program import program
from benchmarks.speed.records import LoadRecord, LoadRow
from engine.errors import StorageError
from engine.index import Index

HOST = "127.0.0.1"
BUSY, FOUND = 503, 200
HOSTILE_SHARE = 0.3
MAX_BYTES = 2**20  # of a body, so that a hostile one is cheap to send
QUICK_SECONDS = 2.0
_THREADS, _CONCURRENCY = 4, 16
_N_TEXTS, _TEXT_CHARS = 20, 4_000  # documents of the index whose beginnings are searched with
_PATIENCE = 120  # seconds for one response
_MOST_WRONG = 5
_PAUSE = 0.05  # seconds after a refusal for the load
_BOUNDARY = "longmatch-load-boundary"
_JSON = {"Content-Type": "application/json"}
_FORM = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}
_SEARCH = "/v1/search"
_HEAD = ["Clients", "Seconds", "Answered", "Refused: hostile", "Refused: busy", "Wrong", "p50, ms", "p99, ms"]
_NOTE = (
    "Clients on the same machine, each with one request after another: {share:.0%} hostile (bad, nested and mistyped "
    "JSON, bad filters, unknown ids, noise as PDF, bodies over the limit, paths, other sites), the others searches "
    "with a doc_id, a text or a file, and lists of documents. The first row is one client with valid requests alone. "
    "Wrong: another status than the expected one, or a body that is not JSON. Latency is of valid requests with their "
    "result. Memory is resident, at the end of the row; when the server was ready it was {memory:,.0f} MiB. "
    "{documents:,} documents of {index}; {threads} threads, {concurrency} requests admitted."
)


@dataclass(frozen=True)
class Request:
    """One request, and the status that is right for it."""

    name: str
    path: str
    right: int
    body: bytes | None = None  # None for GET
    headers: dict[str, str] = field(default_factory=dict)


def valid(doc_ids: Sequence[str], texts: Sequence[bytes], rng: random.Random) -> Request:
    """A request that a server answers with a result.

    Args:
        doc_ids: of the index.
        texts: of documents to search with.
        rng: chooses.
    """
    doc_id, text = rng.choice(doc_ids), rng.choice(texts)
    forms = [
        Request("doc_id", _SEARCH, FOUND, json.dumps({"doc_id": doc_id, "k": 5}).encode(), _JSON),
        Request("text", _SEARCH, FOUND, json.dumps({"text": text.decode()}).encode(), _JSON),
        Request("file", f"{_SEARCH}/file", FOUND, form("draft.md", text), _FORM),
        Request("documents", f"/v1/documents?limit={rng.randint(1, 20)}", FOUND),
    ]
    return rng.choice(forms)


def hostile(max_bytes: int, rng: random.Random) -> Request:
    """A request that a server with this limit of a body refuses."""
    return rng.choice(
        [
            Request("bad JSON", _SEARCH, 422, b'{"text": ', _JSON),
            Request("nested JSON", _SEARCH, 400, b"[" * 50_000, _JSON),
            Request("wrong type", _SEARCH, 422, b'{"text": "a", "k": NaN}', _JSON),
            Request("bad filter", _SEARCH, 400, b'{"text": "a", "where": "year >"}', _JSON),
            Request("unknown id", _SEARCH, 404, b'{"doc_id": "no such document"}', _JSON),
            Request("noise as PDF", f"{_SEARCH}/file", 422, form("noise.pdf", rng.randbytes(2_000)), _FORM),
            Request("large body", _SEARCH, 413, b" " * (max_bytes + 1), _JSON),
            Request("path", "/v1/documents/..%2F..%2Fetc%2Fpasswd", 404),
            Request("other site", "/v1/documents", 403, headers={"Origin": "https://example.org"}),
        ]
    )


def mixed(doc_ids: Sequence[str], texts: Sequence[bytes], max_bytes: int) -> Callable[[random.Random], Request]:
    """Valid and hostile requests."""
    return lambda rng: hostile(max_bytes, rng) if rng.random() < HOSTILE_SHARE else valid(doc_ids, texts, rng)


def form(name: str, data: bytes) -> bytes:
    """A form with one file."""
    head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return head.encode() + data + f"\r\n--{_BOUNDARY}--\r\n".encode()


@dataclass
class _Responses:
    """What all clients received."""

    times_ms: list[float] = field(default_factory=list)
    n_busy: int = 0
    n_refused: int = 0
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, request: Request, status: int, body: bytes, elapsed_ms: float) -> None:
        with self.lock:
            if status == BUSY:
                self.n_busy += 1
            elif status != request.right or not _is_json(body, is_error=status != FOUND):
                self.wrong.append(f"{request.name}: {status} {body[:100]!r}")
            elif status == FOUND:
                self.times_ms.append(elapsed_ms)
            else:
                self.n_refused += 1


def _is_json(body: bytes, *, is_error: bool) -> bool:
    try:
        return ("error" in json.loads(body)) == is_error
    except ValueError:
        return False


def load(port: int, n_clients: int, seconds: float, make: Callable[[random.Random], Request], seed: int) -> LoadRow:
    """Send requests to this machine for some time, and count what comes back.

    Args:
        port: of a server.
        n_clients: threads.
        seconds: after which no further request begins.
        make: a request.
        seed: of the choice of requests.
    """
    responses, started = _Responses(), time.monotonic()
    clients = [
        threading.Thread(target=_client, args=(port, started + seconds, make, random.Random(f"{seed} {n}"), responses))
        for n in range(n_clients)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return LoadRow(
        n_clients=n_clients,
        seconds=round(time.monotonic() - started, 1),
        n_answered=len(responses.times_ms),
        n_busy=responses.n_busy,
        n_refused=responses.n_refused,
        wrong=list(dict.fromkeys(responses.wrong))[:_MOST_WRONG],
        n_wrong=len(responses.wrong),
        latency=percentiles(responses.times_ms or [0.0]),
        memory_mib=memory_mib(port),
    )


def _client(
    port: int, until: float, make: Callable[[random.Random], Request], rng: random.Random, responses: _Responses
) -> None:
    while time.monotonic() < until:
        request, started = make(rng), time.perf_counter()
        try:
            status, body = exchange(port, request)
        except (OSError, http.client.HTTPException) as error:
            status, body = 0, repr(error).encode()
        responses.add(request, status, body, 1000 * (time.perf_counter() - started))
        if status == BUSY:
            time.sleep(_PAUSE)


def exchange(port: int, request: Request) -> tuple[int, bytes]:
    """Status and body of one response, over a connection of its own."""
    connection = http.client.HTTPConnection(HOST, port, timeout=_PATIENCE)
    try:
        method = "GET" if request.body is None else "POST"
        connection.request(method, request.path, request.body, request.headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def memory_mib(port: int) -> float:
    """Resident memory of the server, as it reports it."""
    _, body = exchange(port, Request("metrics", "/metrics", FOUND))
    name = b"process_resident_memory_bytes "
    values = (float(line.removeprefix(name)) for line in body.splitlines() if line.startswith(name))
    return round(next(values) / 2**20, 1)


@contextmanager
def server(index: Path) -> Iterator[int]:
    """The port of a server of an index that is ready.

    Raises:
        StorageError: it does not start.
    """
    options = ["--port", "0", "--max-bytes", str(MAX_BYTES), "--threads", str(_THREADS)]
    command = [sys.executable, "-P", "-m", "longmatch", "serve", str(index), *options]
    process = subprocess.Popen([*command, "--concurrency", str(_CONCURRENCY)], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        lines = [process.stderr.readline(), process.stderr.readline()]
        found = re.search(r"http://127\.0\.0\.1:(\d+)", lines[0])
        if found is None or not lines[1].startswith("ready"):
            raise StorageError(f"the server of {index} does not start: {' '.join(lines)}; run longmatch serve {index}")
        yield int(found[1])
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


def load_table(records: Sequence[LoadRecord]) -> str:
    """A row for each number of clients, for each index."""
    lines = []
    for record in records:
        rows = []
        for row in record.rows:
            counts = (row.n_answered, row.n_refused, row.n_busy, row.n_wrong)
            values = (row.seconds, *counts, row.latency.p50_ms, row.latency.p99_ms, row.memory_mib)
            rows.append([f"{row.n_clients:,}", *(f"{value:,.0f}" for value in values)])
        note = _NOTE.format(
            share=HOSTILE_SHARE,
            memory=record.memory_mib,
            documents=record.n_documents,
            index=record.index,
            threads=record.threads,
            concurrency=record.concurrency,
        )
        lines += [*markdown([*_HEAD, "Memory, MiB"], rows), "", note, ""]
    return "\n".join([*lines, *origins(records)])


@program
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--clients", "n_clients", default=50, show_default=True, type=click.IntRange(1), help="At the same time.")
@click.option(
    "--seconds", default=60.0, show_default=True, type=click.FloatRange(0, min_open=True), help="Of each row."
)
@measurement(seed="Of the choice of requests.", quick=f"{QUICK_SECONDS:g} seconds a row")
def main(run: Measurement, path: Path, n_clients: int, seconds: float) -> None:
    """Serve INDEX on the loopback interface; measure a single client, then many, valid and hostile ones mixed.

    \b
    Example:
        python -m benchmarks study serve demo.lm --clients 50 --seconds 60
    """
    started = time.perf_counter()
    seconds = min(seconds, QUICK_SECONDS) if run.is_quick else seconds
    with Index.open(path) as index:
        doc_ids = index.snapshot.doc_ids()
        texts = [index.document(one).text[:_TEXT_CHARS].encode() for one in doc_ids[:_N_TEXTS]]
    with server(path) as port:
        memory = memory_mib(port)
        log(f"ready with {memory:,.0f} MiB; a single client")
        rows = [load(port, 1, seconds, partial(valid, doc_ids, texts), run.seed)]
        log(f"{n_clients} clients")
        rows.append(load(port, n_clients, seconds, mixed(doc_ids, texts, MAX_BYTES), run.seed))
    record = LoadRecord(
        index=path.stem,
        n_documents=len(doc_ids),
        threads=_THREADS,
        concurrency=_CONCURRENCY,
        memory_mib=memory,
        rows=rows,
        seconds=round(time.perf_counter() - started, 1),
        origin=run.origin,
        is_quick=run.is_quick,
    )
    run.keep(record)
    click.echo(load_table([record]))
