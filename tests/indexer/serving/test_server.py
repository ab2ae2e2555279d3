"""`longmatch serve`: slow clients, signals, ports, tokens and missing packages."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from engine.errors import StorageError
from indexer.cli import main
from indexer.serving.app import serve
from indexer.serving.settings import ServerSettings

ROOT = Path(__file__).parents[3]
_CODE = "from indexer.cli import main; main()"


@contextmanager
def running(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server that is ready, and its port."""
    command = [sys.executable, "-P", "-c", _CODE, "serve", str(folder), "--port", "0", "--threads", "1", *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    try:
        first = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", first)
        assert found is not None, first + process.stderr.read()
        assert process.stderr.readline() == "ready: 60 documents\n"
        yield process, int(found[1])
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def exchange(port: int, sent: bytes) -> bytes:
    """What the server sends until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(sent)
        received = b""
        while part := connection.recv(65_536):
            received += part
    return received


@pytest.mark.slow
def test_slow_bodies_are_cut_off_and_sigterm_ends_cleanly(words_folder: Path) -> None:
    with running(words_folder, "--timeout", "2") as (process, port):
        url = f"http://127.0.0.1:{port}/v1/search"
        data = json.dumps({"text": "topic3word1 common1", "k": 1}).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            assert len(json.load(response)["results"][0]["hits"]) == 1
        head = b"POST /v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        slow = exchange(port, head + b"Content-Length: 100\r\n\r\n{")
        assert slow.startswith(b"HTTP/1.1 408 ") and b'"slow_client"' in slow
        assert exchange(port, b"\x16\x03\x01 noise\r\n\r\n").startswith(b"HTTP/1.1 400 ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_the_error_names_a_port_that_is_taken(words_folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StorageError, match=rf"127\.0\.0\.1 port {port} cannot be served .* --port"):
            serve(words_folder, ServerSettings(port=port), log=lambda _: None)


def test_an_address_that_others_can_reach_needs_a_token(words_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LONGMATCH_TOKEN", raising=False)
    run = CliRunner().invoke(main, ["serve", str(words_folder), "--host", "0.0.0.0"])
    assert run.exit_code == 1 and "--token-file FILE or set LONGMATCH_TOKEN" in run.output
