"""Sources of the corpora: downloads, archives, digests, and the command that fetches."""

import gzip
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import datasets, fetch
from benchmarks.datasets import TASKS, open_dataset, read_documents, read_qrels, read_queries
from benchmarks.fetch import RECIPES
from benchmarks.fetching import sources as recorded
from benchmarks.fetching.sources import (
    FOLDER,
    CorpusDocument,
    FetchError,
    Files,
    Recipe,
    Recorded,
    Source,
    corpus_document,
    decoded,
    document_digest,
    download,
    find_downloads,
    read_members,
    read_recorded,
    record,
    source_digest,
    write_recorded,
)
from benchmarks.formats.trec import write_json_lines
from tests.benchmarks.corpora import write_judgments

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


def packed_tar(mode: str, files: Mapping[str, bytes] = FILES) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        folder = tarfile.TarInfo("top")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in files.items():
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


TEXTS = {"a": "alpha beta", "b": "gamma", "c": "delta", "d": "epsilon"}


def key(name: str) -> str:
    return name.rpartition("/")[2].removesuffix(".txt") if name.endswith(".txt") else ""


def documents(facts: Recorded, files: Files) -> Iterator[CorpusDocument]:
    for doc_id in facts.ids:
        if doc_id in files:
            yield corpus_document(doc_id, doc_id.upper(), iter([("", files[doc_id].decode())]), {})


RECIPE = Recipe("proposals", (Source("texts.tar.gz", "http://127.0.0.1:9/texts", ("texts*",)),), key, bool, documents)


def archive(path: Path, texts: dict[str, str]) -> None:
    path.write_bytes(packed_tar("w:gz", {f"top/{name}.txt": text.encode() for name, text in texts.items()}))


@pytest.fixture
def downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the source of a corpus of four documents, whose facts take the place of the shipped ones."""
    monkeypatch.setattr(recorded, "FOLDER", tmp_path)
    monkeypatch.setitem(fetch.RECIPES, "proposals", RECIPE)
    first = tmp_path / "first" / "proposals"
    first.mkdir(parents=True)
    write_judgments(first / "qrels.tsv", [("a", "b", 2), ("a", "c", 1), ("c", "a", 1), ("d", "c", 1)])
    (first / "splits.json").write_text(json.dumps({"train": ["a", "d"], "test": ["c"]}, indent=1) + "\n")
    ids = Recorded(list(TEXTS), [], {}, {}, [], {}, {}, "")
    files = {name: text.encode() for name, text in TEXTS.items()}
    write_json_lines(first / "corpus.jsonl.gz", documents(ids, files))
    write_recorded("proposals", record(first, source=source_digest(files)))
    folder = tmp_path / "downloads"
    folder.mkdir()
    archive(folder / "texts.tar.gz", {**TEXTS, "other": "not of the corpus"})
    return folder


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(fetch.main, [str(argument) for argument in arguments])
    return done.exit_code, done.output


def test_the_same_sources_give_the_recorded_corpus_byte_for_byte(downloads: Path, tmp_path: Path) -> None:
    code, output = run("proposals", "--to", tmp_path / "new", "--from", downloads)
    assert code == 0
    assert "Equal to the recorded corpus: 4 of 4 (100.0%)\nSource files: as recorded\n" in output
    assert "This copy is the recorded corpus" in output
    for name in ("corpus.jsonl.gz", "qrels.tsv", "splits.json"):
        assert (tmp_path / "new/proposals" / name).read_bytes() == (tmp_path / "first/proposals" / name).read_bytes()
    dataset = open_dataset("proposals", tmp_path / "new")
    assert [document.doc_id for document in read_documents(dataset)] == list(TEXTS)
    assert read_qrels(dataset, "test") == {"c": {"a": 1}}
    assert list(read_queries(dataset, ["c"])) == ["c"]


def test_a_target_that_is_a_query_of_test_is_no_training_pair(downloads: Path, tmp_path: Path) -> None:
    run("proposals", "--to", tmp_path / "new", "--from", downloads)
    assert (tmp_path / "new/proposals/train_pairs.tsv").read_text() == recorded.HEADER + "a\tb\t2\n"
    assert fetch.train_pairs({"a": {"1": ["b"]}}, {"train": [], "test": ["a"]}) == []


def test_other_sources_are_reported_document_by_document(downloads: Path, tmp_path: Path) -> None:
    archive(downloads / "texts.tar.gz", {"a": "changed", "b": "gamma", "c": "delta"})
    code, output = run("proposals", "--to", tmp_path / "new", "--from", downloads)
    assert code == 0
    for line in (
        "proposals: 3 documents",
        "Equal to the recorded corpus: 2 of 4 (50.0%)",
        "Different text: 1 (a)",
        "Not in the sources: 1 (d)",
        "Source files: not the recorded ones",
        "differ from the published ones in the third digit",
    ):
        assert line in output
    assert (tmp_path / "new/proposals/qrels.tsv").read_text().splitlines()[1:] == ["a\tb\t2", "a\tc\t1", "c\ta\t1"]
    assert json.loads((tmp_path / "new/proposals/splits.json").read_text()) == {"train": ["a"], "test": ["c"]}


def test_the_error_for_a_missing_source_lists_what_to_download_by_hand(downloads: Path, tmp_path: Path) -> None:
    (downloads / "texts.tar.gz").unlink()
    code, output = run("proposals", "--to", tmp_path / "new", "--from", downloads)
    assert code == 1
    assert f"Error: {downloads} holds no texts.tar.gz\nDownload by hand:\n  http://127.0.0.1:9/texts\n" in output
    assert f"as {downloads / 'texts.tar.gz'}" in output
    assert f"python -m benchmarks fetch proposals --to {tmp_path / 'new'} --from {downloads}" in output
    assert not (tmp_path / "new").exists()
    code, output = run("proposals", "--to", tmp_path / "new", "--downloads", tmp_path / "empty")
    assert code == 1
    assert "http://127.0.0.1:9/texts could not be downloaded" in output and "Download by hand:" in output


def test_a_source_without_documents_and_a_folder_with_a_corpus_are_refused(downloads: Path, tmp_path: Path) -> None:
    code, output = run("proposals", "--to", tmp_path / "first", "--from", downloads)
    assert (code, "holds a corpus already; pass another --to" in output) == (1, True)
    archive(downloads / "texts.tar.gz", {"other": "x"})
    code, output = run("proposals", "--to", tmp_path / "new", "--from", downloads)
    assert (code, "no document of proposals is inside" in output) == (1, True)
