"""A file is written completely, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import IndexDamaged, StorageError
from engine.store.durable import Checksum, check_file, checksum, write_durably


def test_a_written_file_matches_its_checksum(tmp_path: Path) -> None:
    written = write_durably(tmp_path / "a", _abc)
    assert (tmp_path / "a").read_bytes() == b"abc"
    assert written == checksum(tmp_path / "a") == Checksum(3, "06b05ab6733a618578af5f94892f3950")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def _abc(path: Path) -> None:
    path.write_bytes(b"abc")


def _half(path: Path) -> None:
    path.write_bytes(b"half")
    raise OSError("disk full")


@pytest.mark.parametrize("before", [[], [b"old"]])
def test_a_writer_that_raises_leaves_what_was_under_the_final_name(tmp_path: Path, before: list[bytes]) -> None:
    for content in before:
        (tmp_path / "a").write_bytes(content)
    with pytest.raises(StorageError, match="a: disk full"):
        write_durably(tmp_path / "a", _half)
    assert [path.read_bytes() for path in tmp_path.glob("a")] == before


def test_each_flipped_byte_is_found(tmp_path: Path, flip_byte: Callable[[Path, int], None]) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(range(100)))
    expected = checksum(path)
    for at in range(100):
        flip_byte(path, at)
        with pytest.raises(
            IndexDamaged, match=f"has checksum .*, not {expected.digest[:12]}; repair it: longmatch upkeep repair"
        ):
            check_file(path, expected)
        flip_byte(path, at)
    check_file(path, expected)


@pytest.mark.parametrize("content", [b"", b"ab", b"abcd"])
def test_another_size_is_found(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(IndexDamaged) as raised:
        check_file(tmp_path / "a", Checksum(3, "0" * 32))
    assert (
        str(raised.value) == f"{tmp_path / 'a'} has {len(content)} bytes, not 3; "
        "repair it: longmatch upkeep repair INDEX"
    )


def test_a_missing_file_is_damage(tmp_path: Path) -> None:
    with pytest.raises(IndexDamaged, match=r"a cannot be read \(No such file or directory\); repair it"):
        check_file(tmp_path / "a", Checksum(3, "0" * 32))
