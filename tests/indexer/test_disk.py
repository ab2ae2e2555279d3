"""A full disk ends a run cleanly; a run that would fill the disk does not begin."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from engine.errors import BudgetExceeded
from indexer.generation.disk import DiskGuard

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
