from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from benchmarks.fetching.sources import FetchError, Source, download, find_downloads

DATA = bytes(range(256)) * 20


class Server(HTTPServer):
    """Serves DATA at /whole, and breaks off at /cut; records the ranges that were requested."""

    takes_ranges = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.ranges: list[str | None] = []

    def source(self, path: str) -> Source:
        return Source("data.tar.gz", f"http://127.0.0.1:{self.server_port}/{path}", ("data*",))


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        requested = self.headers.get("Range")
        self.server.ranges.append(requested)
        start = int(requested.removeprefix("bytes=").removesuffix("-")) if requested else 0
        if self.path == "/missing":
            self.send_error(404)
        elif self.server.takes_ranges and start >= len(DATA):
            self.send_error(416)
        else:
            start = start if self.server.takes_ranges else 0
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(DATA) - start))
            self.end_headers()
            self.wfile.write(DATA[start:100] if self.path == "/cut" else DATA[start:])

    def log_message(self, format: str, *args: object) -> None:
        """Keep the output of tests clean."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_file_is_downloaded_once(server: Server, tmp_path: Path) -> None:
    lines: list[str] = []
    for _ in range(2):
        path = download(server.source("whole"), tmp_path / "new", lines.append)
        assert path.read_bytes() == DATA
    assert (server.ranges, len(lines), lines[1]) == ([None], 2, f"{path} is there already")


def test_an_interrupted_download_is_reported_and_resumed(server: Server, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="100 of 5120 bytes came; run the same command again to go on"):
        download(server.source("cut"), tmp_path, print)
    assert download(server.source("whole"), tmp_path, print).read_bytes() == DATA
    assert server.ranges == [None, "bytes=100-"]
    assert [path.name for path in tmp_path.iterdir()] == ["data.tar.gz"]


def test_a_server_without_ranges_sends_the_whole_file_again(server: Server, tmp_path: Path) -> None:
    server.takes_ranges = False
    (tmp_path / "data.tar.gz.unfinished").write_bytes(b"other bytes")
    assert download(server.source("whole"), tmp_path, print).read_bytes() == DATA


def test_a_part_that_is_too_long_is_thrown_away(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.tar.gz.unfinished").write_bytes(DATA + b"more")
    assert download(server.source("whole"), tmp_path, print).read_bytes() == DATA
    assert server.ranges == ["bytes=5124-", None]


def test_a_refused_request_and_a_missing_network_raise_an_error(server: Server, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"/missing could not be downloaded \(Not Found\)"):
        download(server.source("missing"), tmp_path, print)
    with pytest.raises(FetchError, match="could not be downloaded"):
        download(Source("x.zip", "http://127.0.0.1:9/x.zip", ()), tmp_path, print)


def test_archives_and_unpacked_folders_are_found_by_name(tmp_path: Path) -> None:
    for name in ("data.tar.gz", "data-1.zip", "data.txt", "data.tar.gz.unfinished"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "data-abc").mkdir()
    found = find_downloads(Source("data.tar.gz", "", ("data*",)), tmp_path)
    assert [path.name for path in found] == ["data-1.zip", "data-abc", "data.tar.gz"]
