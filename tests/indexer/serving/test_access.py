"""`longmatch serve`: addresses, tokens and settings; requests that are refused; slow clients and signals."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from engine.encoders.encoder import SegmentedDocument
from engine.errors import QueryError, StorageError
from engine.text.document import Document
from indexer.cli import main
from indexer.serving.app import serve
from indexer.serving.settings import TOKEN_VARIABLE, ServerSettings, check_exposure, is_loopback, read_token
from tests.fakes import FakeEncoder
from tests.indexer.serving.clients import served, until

TOKEN = "a-token-of-32-characters-or-more"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def guarded(built_folder: Path) -> Iterator[TestClient]:
    with served(built_folder, ServerSettings(threads=1, token=TOKEN, max_bytes=1_000)) as client:
        yield client


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer \xe4"]
)
def test_a_request_without_the_token_is_refused(guarded: TestClient, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    for path in ("/v1/documents", "/metrics", "/openapi.json", "/nothing"):
        response = guarded.get(path, headers=headers)
        assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
        assert response.json()["error"]["next"] == "send the header: Authorization: Bearer TOKEN"


def test_the_token_opens_the_api_and_health_needs_none(guarded: TestClient) -> None:
    assert guarded.get("/v1/documents", headers=BEARER).status_code == 200
    assert guarded.get("/v1/documents", headers=BEARER | {"Host": "search.example.org"}).status_code == 200
    assert guarded.get("/health").status_code == guarded.get("/ready").status_code == 200


@pytest.mark.slow
def test_a_body_over_the_limit_is_refused(guarded: TestClient) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(100):
            yield b"a" * 100

    for body in (b"a" * 1_001, parts()):
        response = guarded.post("/v1/search", headers=BEARER, content=body)
        assert (response.status_code, response.json()["error"]["code"]) == (413, "too_large")
        assert "1,000 bytes" in response.json()["error"]["message"]


@pytest.mark.parametrize("headers", [{"Host": "example.org"}, {"Origin": "https://example.org"}, {"Origin": "null"}])
def test_without_a_token_other_sites_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    response = client.get("/v1/documents", headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (403, "foreign_host")


class StuckEncoder(FakeEncoder):
    """Stops at the query that holds "stuck", until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.release = threading.Event()
        self.n_stuck = 0

    def segment(self, document: Document) -> SegmentedDocument:
        if "stuck" in document.text:
            self.n_stuck += 1
            assert self.release.wait(60)
        return super().segment(document)


def post(client: TestClient, text: str) -> int:
    return int(client.post("/v1/search", json={"text": text}).status_code)


def test_too_many_requests_are_refused_at_once(built_folder: Path) -> None:
    encoder, statuses = StuckEncoder(), list[int]()
    with served(built_folder, ServerSettings(threads=1, concurrency=1), encoder) as client:
        stuck = threading.Thread(target=lambda: statuses.append(post(client, "stuck")))
        stuck.start()
        until(lambda: encoder.n_stuck == 1)
        refused = client.post("/v1/search", json={"text": "one"})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert refused.json()["error"]["code"] == "busy"
        encoder.release.set()
        stuck.join()
        assert statuses == [200] and post(client, "one") == 200


@pytest.mark.slow
def test_a_slow_request_keeps_its_place_after_the_timeout(built_folder: Path) -> None:
    encoder = StuckEncoder()
    with served(built_folder, ServerSettings(threads=1, concurrency=1, timeout=0.3), encoder) as client:
        response = client.post("/v1/search", json={"text": "stuck"})
        assert (response.status_code, response.json()["error"]["code"]) == (504, "timeout")
        assert post(client, "one") == 503
        encoder.release.set()
        until(lambda: post(client, "one") == 200)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *((host, True) for host in ("127.0.0.1", "localhost", "::1", "[::1]", "127.9.9.9")),
        *((host, False) for host in ("0.0.0.0", "::", "192.168.0.4", "example.org", "")),
    ],
)
def test_a_loopback_address_is_known(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_an_address_other_than_loopback_needs_a_token_which_is_not_shown() -> None:
    with pytest.raises(QueryError, match=r"0\.0\.0\.0 can be reached .* --token-file FILE"):
        check_exposure(ServerSettings(host="0.0.0.0"))
    check_exposure(ServerSettings(host="0.0.0.0", token=TOKEN))
    check_exposure(ServerSettings())
    assert TOKEN not in repr(ServerSettings(token=TOKEN))


def test_a_token_comes_from_the_file_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert read_token(None) is None
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    assert read_token(None) == TOKEN
    with pytest.raises(QueryError, match=r"cannot be read from .*nothing"):
        read_token(tmp_path / "nothing")
    (tmp_path / "token").write_text("another-token-of-many-characters\n")
    assert read_token(tmp_path / "token") == "another-token-of-many-characters"


@pytest.mark.parametrize("token", ["", "short", "sixteen characters, but blanks", "sixteen-characters-ä"])
def test_a_weak_token_is_refused(tmp_path: Path, token: str) -> None:
    (tmp_path / "token").write_text(token)
    with pytest.raises(QueryError, match=r"the token in .* has \d+ characters; use 16 or more"):
        read_token(tmp_path / "token")


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
