from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from benchmarks.formats.trec import FormatError, columns, read_lines, whole_number


@pytest.mark.parametrize("name", ["plain.txt", "packed.txt.gz"])
def test_lines_end_at_line_ends_only_and_know_their_numbers(tmp_path: Path, name: str) -> None:
    text = "\ufefföne\r\n\n  \ntwo\u2028still two\x0b\nlast".encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    found = [("öne", 1), ("two\u2028still two\x0b", 4), ("last", 5)]
    assert list(read_lines(path)) == [(f"{path}:{number}", line) for line, number in found]


def test_the_error_for_an_unreadable_file_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\nb\xffd\n")
    with pytest.raises(FormatError, match=r"a.txt:2 is not UTF-8 \(byte 1\)"):
        list(read_lines(path))
    with pytest.raises(FormatError, match=r"b.txt cannot be read \(No such file or directory\)"):
        list(read_lines(tmp_path / "b.txt"))
    (tmp_path / "c.gz").write_bytes(gzip.compress(b"whole")[:-9])
    with pytest.raises(FormatError, match=r"c.gz is not a whole gzip file"):
        list(read_lines(tmp_path / "c.gz"))


def test_columns_must_be_as_many_as_their_names() -> None:
    assert columns("f:1", "a\tb c", ("x", "y")) == ["a", "b c"]
    assert columns("f:1", " a  b ", ("x", "y"), None) == ["a", "b"]
    with pytest.raises(FormatError, match="f:1 has 1 columns, not 2; it must be x, y by tabs"):
        columns("f:1", "a b", ("x", "y"))
    with pytest.raises(FormatError, match=r"f:1 has the score '1\.5'; it must be a whole number"):
        whole_number("f:1", "score", "1.5")
