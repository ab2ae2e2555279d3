"""Serves an index, sends valid and hostile requests from several clients, and records the responses."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from benchmarks.markdown import markdown, origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.measuring.timing import percentiles
from benchmarks.options import log
from benchmarks.program import program
from benchmarks.speed.records import LoadRecord, LoadRow
from engine.errors import StorageError
from engine.index import Index
from indexer.serving.settings import TOKEN_VARIABLE

HOST = "127.0.0.1"
BUSY, FOUND = 503, 200
HOSTILE_SHARE = 0.3
MAX_BYTES = 2**20  # of a body, so that a hostile one is cheap to send
TOKEN = "token-of-the-load-study"
QUICK_SECONDS = 2.0
SLOW_SECONDS = 60.0  # rows of this length and more have slow clients, which wait 10 s for their refusal
_THREADS, _CONCURRENCY = 4, 16
_N_TEXTS, _TEXT_CHARS = 20, 4_000  # documents of the index whose beginnings are searched with
_PATIENCE = 120  # seconds for one response
_MOST_WRONG = 5
_SECONDS = click.FloatRange(0, min_open=True)
_PAUSE = 0.05  # seconds after a refusal for the load
_MINUTE = 60.0  # seconds between two measurements of the memory
_BOUNDARY = "longmatch-load-boundary"
_JSON = {"Content-Type": "application/json"}
_FORM = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}
_SEARCH = "/v1/search"
_HEAD = ["Clients", "Seconds", "Answered", "Refused: hostile", "Refused: busy", "Wrong", "p50, ms", "p99, ms"]
_NOTE = (
    "Clients run on the same machine. First row: one client with valid requests alone, without pauses. Other rows: "
    "each client waits {think:g} s on average (exponential) after each response, and {share:.0%} of the requests are "
    "hostile (refused: {refused}); the other requests are searches with a doc_id, a text or a file, and lists of "
    "documents. Wrong: a status or error code other than the expected one, or a body that is not JSON with code, "
    "message and next step. p50, p99: latency of valid requests that returned a result. Memory: resident memory of "
    "the server, without the processes that read files, at the end of each row. It was {memory:,.0f} MiB when the "
    "server was ready, and every minute of the last row {minutes}. {documents:,} documents of {index}, {vectors}; "
    "{threads} threads, {concurrency} requests admitted."
)


@dataclass(frozen=True)
class Request:
    """One request, and its expected status."""

    name: str
    path: str
    right: int
    body: bytes | None = None  # None for GET
    headers: dict[str, str] = field(default_factory=dict)
    code: str = ""  # of the error, where it matters
    token: str | None = TOKEN
    is_slow: bool = False  # the body never arrives


def valid(doc_ids: Sequence[str], texts: Sequence[bytes], rng: random.Random) -> Request:
    """A request that a server answers with a result."""
    doc_id, text = rng.choice(doc_ids), rng.choice(texts)
    forms = [
        Request("doc_id", _SEARCH, FOUND, json.dumps({"doc_id": doc_id, "k": 5}).encode(), _JSON),
        Request("text", _SEARCH, FOUND, json.dumps({"text": text.decode()}).encode(), _JSON),
        Request("file", f"{_SEARCH}/file", FOUND, form("draft.md", text), _FORM),
        Request("documents", f"/v1/documents?limit={rng.randint(1, 20)}", FOUND),
    ]
    return rng.choice(forms)


def hostile(with_slow: bool, rng: random.Random) -> Request:
    """A request that `server` refuses; with slow clients, which take 10 s, or without."""
    requests = [
        Request("bad JSON", _SEARCH, 422, b'{"text": ', _JSON),
        Request("nested JSON", _SEARCH, 400, b"[" * 50_000, _JSON),
        Request("wrong type", _SEARCH, 422, b'{"text": "a", "k": NaN}', _JSON),
        Request("bad filter", _SEARCH, 400, b'{"text": "a", "where": "year >"}', _JSON),
        Request("unknown id", _SEARCH, 404, b'{"doc_id": "no such document"}', _JSON),
        Request("noise as PDF", f"{_SEARCH}/file", 422, form("noise.pdf", rng.randbytes(2_000)), _FORM),
        Request("large body", _SEARCH, 413, b" " * (MAX_BYTES + 1), _JSON, "too_large"),
        Request("path", "/v1/documents/..%2F..%2Fetc%2Fpasswd", 404),
        Request("no token", _SEARCH, 401, b'{"text": "a"}', _JSON, "no_token", token=None),
        Request("wrong token", "/v1/documents", 401, code="wrong_token", token="another-token-of-nobody"),
    ]
    if with_slow:
        requests.append(Request("slow client", _SEARCH, 408, b'{"text": "a"}', _JSON, "slow_client", is_slow=True))
    return rng.choice(requests)


def mixed(doc_ids: Sequence[str], texts: Sequence[bytes], with_slow: bool, rng: random.Random) -> Request:
    """A valid or a hostile request."""
    return hostile(with_slow, rng) if rng.random() < HOSTILE_SHARE else valid(doc_ids, texts, rng)


def form(name: str, data: bytes) -> bytes:
    """A form with one file."""
    head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return head.encode() + data + f"\r\n--{_BOUNDARY}--\r\n".encode()


@dataclass
class _Responses:
    """The responses to all clients."""

    times_ms: list[float] = field(default_factory=list)
    n_busy: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # by name
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, request: Request, status: int, body: bytes, elapsed_ms: float) -> None:
        with self.lock:
            if status == BUSY:
                self.n_busy += 1
            elif status != request.right or not _is_right(body, request):
                self.wrong.append(f"{request.name}: {status} {body[:100]!r}")
            elif status == FOUND:
                self.times_ms.append(elapsed_ms)
            else:
                self.refused[request.name] += 1


def _is_right(body: bytes, request: Request) -> bool:
    """Whether a body is JSON: a result, or an error with the expected code, a message and the next step."""
    try:
        values = json.loads(body)
    except ValueError:
        return False
    if request.right == FOUND:
        return "error" not in values
    error = values.get("error", {})
    return bool(error.get("message") and error.get("next")) and request.code in ("", error["code"])


def load(
    port: int, n_clients: int, seconds: float, make: Callable[[random.Random], Request], seed: int, think: float = 0.0
) -> LoadRow:
    """Let clients send requests to this machine, none begun after `seconds`, and count the responses."""
    responses, started = _Responses(), time.monotonic()
    until = started + seconds

    def send(number: int) -> None:
        rng = random.Random(f"{seed} {number}")
        while time.monotonic() < until:
            request, sent = make(rng), time.perf_counter()
            try:
                status, body = exchange(port, request)
            except (OSError, http.client.HTTPException) as error:
                status, body = 0, repr(error).encode()
            responses.add(request, status, body, 1000 * (time.perf_counter() - sent))
            pause = rng.expovariate(1 / think) if think else _PAUSE * (status == BUSY)
            time.sleep(max(0.0, min(pause, until - time.monotonic())))

    clients = [threading.Thread(target=send, args=(number,)) for number in range(n_clients)]
    for client in clients:
        client.start()
    memory_by_minute: list[float] = []
    while (due := started + _MINUTE * (len(memory_by_minute) + 1)) < until:
        time.sleep(max(0.0, due - time.monotonic()))
        memory_by_minute.append(memory_mib(port))
    for client in clients:
        client.join()
    return LoadRow(
        n_clients=n_clients,
        seconds=round(time.monotonic() - started, 1),
        n_answered=len(responses.times_ms),
        n_busy=responses.n_busy,
        refused=dict(sorted(responses.refused.items())),
        wrong=list(dict.fromkeys(responses.wrong))[:_MOST_WRONG],
        n_wrong=len(responses.wrong),
        latency=percentiles(responses.times_ms or [0.0]),
        memory_mib=memory_mib(port),
        memory_mib_by_minute=memory_by_minute,
    )


def exchange(port: int, request: Request) -> tuple[int, bytes]:
    """Status and body of one response, over a connection of its own."""
    connection = http.client.HTTPConnection(HOST, port, timeout=_PATIENCE)
    try:
        method = "GET" if request.body is None else "POST"
        headers = dict(request.headers)
        if request.token is not None:
            headers["Authorization"] = f"Bearer {request.token}"
        body = request.body
        if request.is_slow and body is not None:
            headers["Content-Length"], body = str(len(body)), body[:1]
        connection.request(method, request.path, body, headers)
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
    """The port of a ready server of an index, which requires `TOKEN`."""
    command = [sys.executable, "-P", "-m", "longmatch", "serve", str(index), "--port", "0"]
    command += ["--max-bytes", str(MAX_BYTES), "--threads", str(_THREADS), "--concurrency", str(_CONCURRENCY)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {TOKEN_VARIABLE: TOKEN})
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
            counts = (row.n_answered, sum(row.refused.values()), row.n_busy, row.n_wrong)
            values = (row.seconds, *counts, row.latency.p50_ms, row.latency.p99_ms, row.memory_mib)
            rows.append([f"{row.n_clients:,}", *(f"{value:,.0f}" for value in values)])
        last = record.rows[-1]
        minutes = last.memory_mib_by_minute
        note = _NOTE.format(
            share=HOSTILE_SHARE,
            think=record.think_seconds,
            refused=", ".join(f"{name} {n:,}" for name, n in last.refused.items()) or "none",
            minutes=f"between {min(minutes):,.0f} and {max(minutes):,.0f} MiB" if minutes else "not measured",
            vectors="words alone" if record.is_words else "with vectors",
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
@click.option("--clients", "n_clients", default=50, type=click.IntRange(1), help="Concurrent clients.")
@click.option("--seconds", default=60.0, type=_SECONDS, help="Duration of the row of many clients.")
@click.option("--single-seconds", default=60.0, type=_SECONDS, help="Duration of the row of a single client.")
@click.option("--think", default=0.0, type=click.FloatRange(0), help="Mean pause of many clients after a response, s.")
@measurement(seed="Seed of the choice of requests.", quick=f"{QUICK_SECONDS:g} seconds a row")
def main(run: Measurement, path: Path, n_clients: int, seconds: float, single_seconds: float, think: float) -> None:
    """Serve INDEX on the loopback interface; measure a single client, then many, valid and hostile ones mixed.

    \b
    Example:
        python -m benchmarks study serve demo.lm --clients 50 --seconds 1800 --single-seconds 120 --think 2
    """
    started = time.perf_counter()
    if run.is_quick:
        seconds, single_seconds = min(seconds, QUICK_SECONDS), min(single_seconds, QUICK_SECONDS)
    with Index.open(path) as index:
        doc_ids = index.snapshot.doc_ids()
        texts = [index.document(one).text[:_TEXT_CHARS].encode() for one in doc_ids[:_N_TEXTS]]
        is_words = not index.snapshot.width
    with server(path) as port:
        memory = memory_mib(port)
        log(f"ready with {memory:,.0f} MiB; a single client")
        rows = [load(port, 1, single_seconds, partial(valid, doc_ids, texts), run.seed)]
        log(f"{n_clients} clients")
        both = partial(mixed, doc_ids, texts, seconds >= SLOW_SECONDS)
        rows.append(load(port, n_clients, seconds, both, run.seed, think=think))
    record = LoadRecord(
        index=path.stem,
        n_documents=len(doc_ids),
        is_words=is_words,
        think_seconds=think,
        threads=_THREADS,
        concurrency=_CONCURRENCY,
        memory_mib=memory,
        rows=rows,
        seconds=round(time.perf_counter() - started, 1),
        origin=run.origin,
        is_quick=run.is_quick,
    )
    run.publish([record], load_table)
