"""The memory of this process as it grows and shrinks, and the size of a folder."""

from __future__ import annotations

import mmap
import time
from pathlib import Path

import pytest

from indexer.generation.footprint import Footprint, Watch, folder_bytes

MIB = 1 << 20


def test_own_memory_grows_by_what_is_held() -> None:
    footprint = Footprint()
    before = footprint.own_bytes()
    held = bytearray(b"x" * 64 * MIB)
    assert 60 * MIB < footprint.own_bytes() - before < 80 * MIB
    assert len(held) == 64 * MIB


def test_a_file_that_is_mapped_later_is_not_own_memory(tmp_path: Path) -> None:
    (tmp_path / "shard").write_bytes(b"x" * 64 * MIB)
    footprint = Footprint()
    before = footprint.own_bytes()
    with (tmp_path / "shard").open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert mapped[:: mmap.PAGESIZE].count(b"x") == 64 * MIB // mmap.PAGESIZE
        assert footprint.own_bytes() - before < 16 * MIB


@pytest.mark.slow
def test_a_watch_records_the_peak_of_memory() -> None:
    footprint = Footprint()
    before = footprint.own_bytes()
    with Watch(footprint) as watch:
        held = bytearray(b"x" * 64 * MIB)
        time.sleep(0.3)
        del held
    assert watch.peak_bytes - before > 60 * MIB


def test_the_size_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "deep" / "b").write_bytes(b"4567")
    assert folder_bytes(tmp_path) == 7
    assert folder_bytes(tmp_path / "none") == 0
