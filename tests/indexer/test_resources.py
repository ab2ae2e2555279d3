"""The memory of this process as it grows and shrinks, and the size of a folder."""

from __future__ import annotations

import mmap
import shutil
import time
from collections import namedtuple
from pathlib import Path

import pytest

from engine.errors import BudgetExceeded
from indexer.building.builder import build
from indexer.generation.resources import DiskGuard, Footprint, Watch, folder_bytes, network_note
from tests.fakes import FakeEncoder, make_corpus

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


Usage = namedtuple("Usage", "total used free")
SPARE = 1 << 24


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The number of free bytes that the disk reports; a test may change it."""
    reported = {"bytes": 100_000_000}
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 0, reported["bytes"]))
    return reported


def test_what_is_left_is_the_smaller_of_disk_and_limit(tmp_path: Path, free: dict[str, int]) -> None:
    (tmp_path / "shard").write_bytes(b"x" * 1000)
    assert DiskGuard(tmp_path).left_bytes() == 100_000_000 - SPARE
    assert DiskGuard(tmp_path, 5_000).left_bytes() == 4_000
    free["bytes"] = SPARE + 10
    assert DiskGuard(tmp_path, 5_000).left_bytes() == 10


def test_a_folder_that_does_not_exist_yet_is_on_the_disk_of_its_parent(tmp_path: Path) -> None:
    assert DiskGuard(tmp_path / "deep" / "x.lm").left_bytes() == pytest.approx(
        shutil.disk_usage(tmp_path).free - SPARE, abs=1e9
    )


@pytest.mark.usefixtures("free")
def test_a_run_that_would_not_fit_is_refused_with_both_numbers(tmp_path: Path) -> None:
    DiskGuard(tmp_path).refuse(80_000_000)
    with pytest.raises(BudgetExceeded) as raised:
        DiskGuard(tmp_path).refuse(90_000_000)
    assert str(raised.value) == (
        f"{tmp_path} would grow by 90.0 MB, the disk leaves 83.2 MB; make room for 6.8 MB more, "
        "or index fewer documents"
    )


@pytest.mark.usefixtures("free")
def test_work_without_room_is_not_begun(tmp_path: Path) -> None:
    with pytest.raises(BudgetExceeded) as raised, DiskGuard(tmp_path, 2_000_000).room_for(3_000_000, "a batch"):
        pytest.fail("it was begun")
    assert str(raised.value) == (
        "a batch needs 3.0 MB, --disk 2.0 MB leaves 2.0 MB; what was committed is safe: make room and run the same "
        "command again to go on"
    )


def test_an_error_on_a_full_disk_becomes_an_error_with_the_missing_space(tmp_path: Path, free: dict[str, int]) -> None:
    with (
        pytest.raises(BudgetExceeded, match=r"a batch needs 3\.0 MB, the disk leaves 0\.0 MB") as raised,
        DiskGuard(tmp_path).room_for(3_000_000, "a batch"),
    ):
        free["bytes"] = 4096
        raise OSError(28, "No space left on device")
    assert isinstance(raised.value.__cause__, OSError)


@pytest.mark.usefixtures("free")
def test_any_other_error_is_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="gone"), DiskGuard(tmp_path).room_for(3_000_000, "a batch"):
        raise OSError(5, "the disk is gone")


_LISTED = """\
/dev/sda1 / ext4 rw,relatime 0 0
server:/home /home nfs4 rw,vers=4.2 0 0
/dev/sdb1 /home/disk ext4 rw 0 0
server:/ /media/a\\040disc 9p ro,nosuid 0 0
share /home/disk cifs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "mount"),
    [
        ("/data/x.lm", ""),
        ("/homes/x.lm", ""),
        ("/home/anna/x.lm", "nfs4 at /home"),
        ("/home/disk/x.lm", "cifs at /home/disk"),
        ("/media/a disc/x.lm", "9p at /media/a disc"),
    ],
)
def test_the_innermost_and_latest_mount_counts(
    path: str, mount: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.generation.resources.MOUNTS", tmp_path / "mounts")
    assert network_note(Path(path)) == ""  # the system lists none
    (tmp_path / "mounts").write_text(_LISTED)
    note = network_note(Path(path))
    assert note.startswith(f"{path} lies on a network file system ({mount})" if mount else "") and bool(note) == bool(
        mount
    )


def test_a_build_on_a_network_file_system_logs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mounts").write_text(f"server:/a {tmp_path} nfs rw 0 0\n")
    monkeypatch.setattr("indexer.generation.resources.MOUNTS", tmp_path / "mounts")
    lines: list[str] = []
    build(tmp_path / "x.lm", make_corpus(3), encoder=FakeEncoder(), log=lines.append)
    assert "network file system (nfs at" in lines[0]
