"""Reading of files by their suffix: packed files, limits, and files that cannot be read."""

import gzip
from pathlib import Path

import pytest

from engine.readers import FORMATS, Unreadable, is_readable, read_bytes, read_file
from engine.text.cleaning import MAX_DOCUMENT_BYTES
from engine.text.document import Document


def reason_of(path: Path) -> str:
    (result,) = read_file(path)
    assert isinstance(result, Unreadable)
    assert result.source == str(path)
    return result.reason


def test_the_suffix_determines_the_format(tmp_path: Path) -> None:
    path = tmp_path / "a.MD"
    path.write_text("# Title\n\ntext")
    (document,) = read_file(path)
    assert isinstance(document, Document)
    assert (document.doc_id, document.title, document.source) == ("a.MD", "Title", str(path))


def test_packed_files_are_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"some text"))
    (document,) = read_file(path, "dir/a.txt.gz")
    assert isinstance(document, Document)
    assert (document.doc_id, document.text, document.title) == ("dir/a.txt.gz", "some text", "some text")
    assert next(read_file(path)).doc_id == "a.txt"


def test_packed_lines_are_streamed() -> None:
    data = gzip.compress(b'{"id": 1, "text": "a"}\n{"id": 2, "text": "b"}\n')
    assert [item.doc_id for item in read_bytes(data, "c.jsonl.gz")] == ["1", "2"]


def test_known_suffixes_are_readable_and_named_for_others() -> None:
    assert is_readable(Path("a.txt")) and is_readable(Path("a.TeX.gz"))
    assert not is_readable(Path("a.gz")) and not is_readable(Path("a.py")) and not is_readable(Path("txt"))
    (result,) = read_bytes(b"x", "a.py")
    assert isinstance(result, Unreadable)
    assert ".txt" in result.reason


def test_a_missing_file_and_a_folder_are_unreadable(tmp_path: Path) -> None:
    assert reason_of(tmp_path / "none.txt") == "No such file or directory"
    (tmp_path / "d.txt").mkdir()
    assert reason_of(tmp_path / "d.txt") == "Is a directory"


def test_a_file_over_the_limit_is_refused_also_where_it_is_packed(tmp_path: Path) -> None:
    path, packed = tmp_path / "huge.txt", tmp_path / "bomb.txt.gz"
    with path.open("wb") as stream:
        stream.truncate(100_000_000)
    assert reason_of(path) == "the file is 100,000,000 bytes, the limit is 33,554,432; split it into several documents"
    packed.write_bytes(gzip.compress(b"0" * (MAX_DOCUMENT_BYTES + 1), 1))
    assert reason_of(packed).startswith("the file is more than 33,554,432 bytes")


@pytest.mark.parametrize(
    "data",
    [b"garbage", b"", gzip.compress(b"some text")[:-9], gzip.compress(b"x" * 99)[:12] + b"\xff" * 9],
    ids=["garbage", "empty", "cut", "damaged"],
)
def test_damaged_gzip_is_unreadable(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(data)
    assert "gzip" in reason_of(path) or "no text" in reason_of(path)


@pytest.mark.parametrize("suffix", sorted(set(FORMATS) - {".jsonl", ".jsonlines", ".ndjson"}))
@pytest.mark.parametrize("data", [b"", b"\x00\x01\x02" * 100, b"%PDF-1.7 cut", b"PK\x03\x04cut", b"<a", b"{"])
def test_no_bad_file_raises(tmp_path: Path, suffix: str, data: bytes) -> None:
    path = tmp_path / f"bad{suffix}"
    path.write_bytes(data)
    (result,) = read_file(path)
    assert isinstance(result, Unreadable) or result.text == data.decode()


def test_a_parser_that_breaks_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.xml"
    path.write_text("<article><body><p>x</p></body></article>")

    def broken(*_: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("engine.readers.xml.parse_safely", broken)
    assert reason_of(path) == ("the XML parser failed (ZeroDivisionError: by zero); the file may be damaged")
