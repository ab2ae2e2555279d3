"""The seal finds damage before SQLite reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import IndexDamaged
from engine.store import seal as seal_module
from engine.store.durable import Checksum, checksum
from engine.store.seal import break_seal, check_seal, is_unsealed, write_seal


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    path = tmp_path / "catalog.sqlite"
    path.write_bytes(bytes(range(256)))
    write_seal(path)
    return path


@pytest.mark.slow
def test_every_flipped_byte_of_the_catalog_is_found(catalog: Path, flip_byte: Callable[[Path, int], None]) -> None:
    for at in range(256):
        flip_byte(catalog, at)
        with pytest.raises(IndexDamaged, match=r"has 256 bytes and checksum .*, sealed were 256 and .*; check it:"):
            check_seal(catalog)
        flip_byte(catalog, at)
    check_seal(catalog)


def test_every_flipped_byte_of_the_seal_is_found(catalog: Path, flip_byte: Callable[[Path, int], None]) -> None:
    path = catalog.with_name("catalog.sqlite.seal")
    for at in range(len(path.read_bytes())):
        flip_byte(path, at)
        with pytest.raises(IndexDamaged):
            check_seal(catalog)
        flip_byte(path, at)


@pytest.mark.slow
def test_no_flipped_bit_of_the_seal_breaks_it_open(catalog: Path) -> None:
    path = catalog.with_name("catalog.sqlite.seal")
    sealed = path.read_bytes()
    for at in range(8 * len(sealed)):
        flipped = bytearray(sealed)
        flipped[at // 8] ^= 1 << at % 8
        path.write_bytes(flipped)
        assert not is_unsealed(catalog)


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[]", b'"sealed"', b"\xff\xfe"])
def test_a_missing_or_damaged_seal_is_damage(catalog: Path, content: bytes | None) -> None:
    path = catalog.with_name("catalog.sqlite.seal")
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(IndexDamaged) as raised:
        check_seal(catalog)
    assert str(raised.value) == (
        f"{path} is missing or damaged, so catalog.sqlite cannot be trusted; check it: longmatch upkeep verify INDEX"
    )


def test_a_broken_seal_passes_until_it_is_written_again(catalog: Path) -> None:
    break_seal(catalog)
    catalog.write_bytes(b"new content")
    check_seal(catalog)
    assert is_unsealed(catalog)
    write_seal(catalog)
    check_seal(catalog)
    assert not is_unsealed(catalog)


def test_a_writer_that_begins_while_the_seal_is_checked_is_no_damage(
    catalog: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checksum_while_a_writer_begins(path: Path) -> Checksum:
        break_seal(path)
        path.write_bytes(b"what the writer wrote")
        return checksum(path)

    monkeypatch.setattr(seal_module, "checksum", checksum_while_a_writer_begins)
    check_seal(catalog)


def test_a_writer_that_closes_while_the_seal_is_checked_is_no_damage(
    catalog: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checksum_after_a_whole_run(path: Path) -> Checksum:
        monkeypatch.setattr(seal_module, "checksum", checksum)
        path.write_bytes(b"what the writer wrote")
        write_seal(path)
        return checksum(path)

    monkeypatch.setattr(seal_module, "checksum", checksum_after_a_whole_run)
    check_seal(catalog)
