from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.records import read_records
from benchmarks.speed.records import LoadRecord
from benchmarks.speed.serve import Request, exchange, load, main, mixed
from indexer.building.builder import build
from tests.fakes import make_corpus


class _Answers(BaseHTTPRequestHandler):
    """Answers every request, and so is wrong for hostile ones."""

    def do_GET(self) -> None:
        self._answer(b"process_resident_memory_bytes 1.048576e+06\n" if self.path == "/metrics" else b'{"results": []}')

    def do_POST(self) -> None:
        if self.path == "/slow":
            self._answer(self.rfile.read(1), 408)  # of a client that sends no more than it was given
            return
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(b'{"results": []}')

    def _answer(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.slow
def test_hostile_requests_that_are_answered_are_wrong(port: int) -> None:
    row = load(port, 2, 0.5, partial(mixed, ["a"], [b"some words"], False), seed=0)
    assert row.n_wrong > 0 and row.n_answered > 0 and row.refused == {} and row.n_busy == 0
    assert all(": 200 b'{" in one for one in row.wrong)
    assert row.memory_mib == 1.0 and 0 < row.latency.p50_ms <= row.latency.p99_ms


def test_a_slow_client_begins_its_body_and_waits(port: int) -> None:
    assert exchange(port, Request("slow client", "/slow", 408, b"{}", is_slow=True)) == (408, b"{")


@pytest.mark.slow
def test_a_quick_run_writes_a_record(tmp_path: Path) -> None:
    build(tmp_path / "words.lm", make_corpus(12), encode="none")
    options = ["--clients", "3", "--seconds", "1", "--single-seconds", "0.5", "--think", "0.1", "--quick"]
    run = CliRunner().invoke(main, [str(tmp_path / "words.lm"), *options, "--out", str(tmp_path)])
    assert run.exit_code == 0, run.output
    (record,) = read_records(tmp_path)
    assert isinstance(record, LoadRecord) and record.name == "load-words-quick"
    assert [row.n_clients for row in record.rows] == [1, 3]
    assert [row.wrong for row in record.rows] == [[], []]
    assert sum(record.rows[1].refused.values()) > 0 and record.rows[0].n_answered > 0
    assert record.is_words and record.think_seconds == 0.1
