from __future__ import annotations

import gzip
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from benchmarks import datasets
from benchmarks.datasets import TASKS
from benchmarks.fetch import RECIPES
from benchmarks.fetching.sources import (
    FOLDER,
    FetchError,
    Source,
    decoded,
    document_digest,
    download,
    find_downloads,
    read_members,
    read_recorded,
    record,
    source_digest,
)

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


def test_a_file_is_downloaded_once(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        path = download(server.source("whole"), tmp_path / "new")
        assert path.read_bytes() == DATA
    assert (server.ranges, capsys.readouterr().err.splitlines()[1:]) == ([None], [f"{path} is there already"])


def test_an_interrupted_download_is_reported_and_resumed(server: Server, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="100 of 5120 bytes came; run the same command again to go on"):
        download(server.source("cut"), tmp_path)
    assert download(server.source("whole"), tmp_path).read_bytes() == DATA
    assert server.ranges == [None, "bytes=100-"]
    assert [path.name for path in tmp_path.iterdir()] == ["data.tar.gz"]


def test_a_server_without_ranges_sends_the_whole_file_again(server: Server, tmp_path: Path) -> None:
    server.takes_ranges = False
    (tmp_path / "data.tar.gz.unfinished").write_bytes(b"other bytes")
    assert download(server.source("whole"), tmp_path).read_bytes() == DATA


def test_a_part_that_is_too_long_is_thrown_away(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.tar.gz.unfinished").write_bytes(DATA + b"more")
    assert download(server.source("whole"), tmp_path).read_bytes() == DATA
    assert server.ranges == ["bytes=5124-", None]


def test_a_refused_request_and_a_missing_network_raise_an_error(server: Server, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"/missing could not be downloaded \(Not Found\)"):
        download(server.source("missing"), tmp_path)
    with pytest.raises(FetchError, match="could not be downloaded"):
        download(Source("x.zip", "http://127.0.0.1:9/x.zip", ()), tmp_path)


def test_archives_and_unpacked_folders_are_found_by_name(tmp_path: Path) -> None:
    for name in ("data.tar.gz", "data-1.zip", "data.txt", "data.tar.gz.unfinished"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "data-abc").mkdir()
    found = find_downloads(Source("data.tar.gz", "", ("data*",)), tmp_path)
    assert [path.name for path in found] == ["data-1.zip", "data-abc", "data.tar.gz"]


FILES = {"top/a.txt": b"alpha", "top/b.txt.gz": gzip.compress(b"beta"), "top/c.md": b"gamma"}
WANTED = [("top/a.txt", b"alpha"), ("top/b.txt", b"beta")]


def is_text(name: str) -> bool:
    return name.endswith(".txt")


def packed_tar(mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        folder = tarfile.TarInfo("top")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def ar_member(name: str, data: bytes) -> bytes:
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n"
    return header.encode() + data + b"\n" * (len(data) % 2)


def write_archive(path: Path) -> None:
    """Pack `FILES` as the suffix says."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in FILES.items():
                archive.writestr(name, data)
    elif path.suffix == ".deb":
        parts = [("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), ("data.tar.xz", packed_tar("w:xz"))]
        path.write_bytes(b"!<arch>\n" + b"".join(ar_member(name, data) for name, data in parts))
    elif path.suffix:
        path.write_bytes(packed_tar("w:xz" if path.suffix == ".xz" else "w:gz"))
    else:
        for name, data in FILES.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(data)


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tgz", "a.tar.xz", "a.zip", "a.deb", "folder"])
def test_archives_and_folders_are_read(tmp_path: Path, name: str) -> None:
    write_archive(tmp_path / name)
    assert list(read_members(tmp_path / name, is_text)) == WANTED


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.tar.gz", packed_tar("w:gz")[:60], r"a.tar.gz cannot be read as an archive .* download it again"),
        ("a.zip", b"cut", r"a.zip cannot be read as an archive .* download it again"),
        ("a.deb", b"!<arch>\n" + ar_member("debian-binary", b"2.0\n"), "a.deb holds no data.tar; download it again"),
        ("a.deb", b"<html>", "a.deb is not a Debian package"),
        ("a.rar", b"x", r"neither a folder nor an archive that ends with .tar"),
    ],
    ids=["a cut tar", "a cut zip", "a deb without data", "no deb", "a rar"],  # packed data has the time in it
)
def test_a_file_that_is_no_archive_is_refused(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FetchError, match=said):
        list(read_members(tmp_path / name, is_text))


def test_every_corpus_of_the_tasks_has_a_recipe_and_facts() -> None:
    assert set(RECIPES) == {task.folder for task in TASKS.values()}
    shipped = {name for name, recipe in RECIPES.items() if recipe.facts is None}
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.json.xz" for name in shipped}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 300_000


@pytest.mark.slow
@pytest.mark.needs_data
@pytest.mark.parametrize("name", ["proposals", "clscisumm"])
def test_the_shipped_facts_are_those_of_the_recorded_corpus(name: str) -> None:
    shipped = read_recorded(name)
    found = record(datasets.DATA / name, RECIPES[name].given, shipped.source)
    assert replace(found, given={}) == replace(shipped, given={})
    assert found.given == shipped.given


def test_a_file_that_is_not_utf8_is_read_as_latin_1() -> None:
    assert (decoded("é".encode()), decoded(b"\xe9"), decoded(b"\xef\xbb\xbfa", "utf-8-sig")) == ("é", "é", "a")


def test_digests_see_text_but_neither_metadata_nor_the_order_of_files() -> None:
    document = {"id": "a", "title": "T", "sections": [{"heading": "H", "text": "x"}], "meta": {"year": 1}}
    assert document_digest(document) == document_digest({**document, "meta": {}})
    assert document_digest(document) != document_digest({**document, "title": "U"})

    assert source_digest({"a": b"1", "b": b"2"}) == source_digest({"b": b"2", "a": b"1"})
    assert source_digest({"a": b"1", "b": b"2"}) != source_digest({"a": b"2", "b": b"1"})
