"""The room on the disk, file systems of a network, and the speed of an encoder."""

from __future__ import annotations

import shutil
from collections import namedtuple
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.encoders.encoder import EncodedDocument, SegmentedDocument
from engine.errors import BudgetExceeded
from indexer.building.builder import build
from indexer.generation.resources import folder_bytes, left_bytes, network_note, refuse_growth, room_for
from indexer.plan import tokens_per_second
from tests.fakes import FakeEncoder, make_corpus, make_document


@pytest.mark.parametrize(("enough_seconds", "largest"), [(1000.0, 8 * 4096), (0.0, 2 * 4096)])
def test_speed_is_that_of_a_large_group_unless_encoding_is_slow(
    enough_seconds: float, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.plan._ENOUGH_SECONDS", enough_seconds)
    long = " ".join(f"word{number}" for number in range(5_000))
    documents = [FakeEncoder().segment(make_document(f"long{number}", long)) for number in range(12)]
    groups: list[int] = []

    class Counting(FakeEncoder):
        def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
            groups.append(sum(document.coverage.tokens_read for document in documents))
            return super().encode_segmented(documents)

    tokens_per_second(documents, Counting())
    assert groups[-1] == largest


def test_of_a_long_document_only_the_first_chunks_are_encoded() -> None:
    long = make_document("long", " ".join(f"word{number}" for number in range(20_000)))
    read: list[int] = []

    class Counting(FakeEncoder):
        def _one(self, segmented: SegmentedDocument) -> EncodedDocument:
            read.append(segmented.coverage.tokens_read)
            return super()._one(segmented)

    tokens_per_second([FakeEncoder().segment(long)], Counting())
    assert read == [512, 4096]


Usage = namedtuple("Usage", "total used free")
SPARE = 1 << 24


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The number of free bytes that the disk reports; a test may change it."""
    reported = {"bytes": 100_000_000}
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 0, reported["bytes"]))
    return reported


def test_the_size_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "deep" / "b").write_bytes(b"4567")
    assert folder_bytes(tmp_path) == 7
    assert folder_bytes(tmp_path / "none") == 0


def test_a_folder_that_does_not_exist_yet_is_on_the_disk_of_its_parent(tmp_path: Path) -> None:
    assert left_bytes(tmp_path / "deep" / "x.lm") == pytest.approx(shutil.disk_usage(tmp_path).free - SPARE, abs=1e9)


@pytest.mark.usefixtures("free")
def test_a_run_that_would_not_fit_is_refused_and_work_without_room_not_begun(tmp_path: Path) -> None:
    refuse_growth(tmp_path, 80_000_000)
    with pytest.raises(BudgetExceeded) as raised:
        refuse_growth(tmp_path, 90_000_000)
    assert str(raised.value) == (
        f"{tmp_path} would grow by 90.0 MB, the disk leaves 83.2 MB; make room for 6.8 MB more, "
        "or index fewer documents"
    )
    with pytest.raises(BudgetExceeded) as raised, room_for(tmp_path, 90_000_000, "a batch"):
        pytest.fail("it was begun")
    assert str(raised.value) == (
        "a batch needs 90.0 MB, the disk leaves 83.2 MB; what was committed is safe: make room and run the same "
        "command again to go on"
    )
    with pytest.raises(OSError, match="gone"), room_for(tmp_path, 3_000_000, "a batch"):
        raise OSError(5, "the disk is gone")


def test_an_error_on_a_full_disk_becomes_an_error_with_the_missing_space(tmp_path: Path, free: dict[str, int]) -> None:
    with (
        pytest.raises(BudgetExceeded, match=r"a batch needs 3\.0 MB, the disk leaves 0\.0 MB") as raised,
        room_for(tmp_path, 3_000_000, "a batch"),
    ):
        free["bytes"] = 4096
        raise OSError(28, "No space left on device")
    assert isinstance(raised.value.__cause__, OSError)


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
