"""Budgets of memory and disk, footprints, and the type of index that follows from what is left."""

from __future__ import annotations

import mmap
import shutil
import time
from collections import namedtuple
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from engine.encoders.encoder import EncodedDocument, SegmentedDocument, unit
from engine.encoders.trainable import MeanEncoder
from engine.errors import BudgetExceeded
from engine.store.ann import TRAINING_POINTS_PER_LIST, AnnIndex
from indexer.building.budget import (
    SMALLEST_CHARS,
    batch_bytes,
    fit_batches,
    is_on_gpu,
    limited_vram,
    refuse_memory,
    tokens_per_second,
)
from indexer.building.builder import Settings, build
from indexer.building.pipeline import BATCH_CHARS
from indexer.generation.resources import (
    SCAN,
    SMALL,
    BuildSizes,
    DiskGuard,
    Footprint,
    IndexOption,
    MemoryWatch,
    Size,
    describe_options,
    factory_options,
    folder_bytes,
    index_options,
    network_note,
    training_size,
)
from tests.fakes import FakeEncoder, make_corpus, make_document


def test_batches_leave_half_of_a_limited_memory_to_the_index() -> None:
    assert fit_batches(None, 384) == BATCH_CHARS
    assert not Settings().is_limited
    assert Settings(disk_bytes=0).is_limited
    lefts = range(60_000_000, 0, -1_000_000)
    chosen = [fit_batches(left, 384) for left in lefts]
    assert (chosen[0], chosen[-1]) == (BATCH_CHARS, SMALLEST_CHARS)
    assert sorted(chosen, reverse=True) == chosen
    for left, batch_chars in zip(lefts, chosen, strict=True):
        assert 2 * batch_bytes(batch_chars, 384) <= left or batch_chars == SMALLEST_CHARS


@pytest.mark.parametrize(
    ("has_encoded", "advice"),
    [
        (False, "allow at least 502M and room to encode, see longmatch index --dry-run, or take a smaller --encoder"),
        (True, "allow at least 502M, or take a smaller --encoder"),
    ],
)
def test_too_little_memory_for_the_encoder_is_refused(has_encoded: bool, advice: str) -> None:
    with pytest.raises(BudgetExceeded) as raised:
        refuse_memory(300_000_000, 500_000_000, 384, has_encoded=has_encoded)
    smallest = 500_000_000 + batch_bytes(SMALLEST_CHARS, 384)
    assert str(raised.value) == (
        f"program and encoder take 500 MB, with the smallest batches {smallest / 1e6:.0f} MB; --memory allows 300 MB: "
        f"{advice}"
    )
    refuse_memory(502_000_000, 500_000_000, 384)
    refuse_memory(None, 500_000_000, 384)


def test_parameters_are_counted_and_on_the_cpu_a_limit_of_gpu_memory_has_no_effect(mean_encoder: MeanEncoder) -> None:
    assert mean_encoder.weights_bytes >= 4 * sum(one.numel() for one in mean_encoder.module.parameters())
    assert FakeEncoder().weights_bytes == 0
    assert not is_on_gpu(mean_encoder)
    with limited_vram(mean_encoder, 1):
        pass


def test_parameters_that_do_not_fit_are_refused_with_the_limit_and_the_next_step(
    mean_encoder: MeanEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mean_encoder, "device", "cuda:1")
    assert is_on_gpu(mean_encoder)
    with pytest.raises(BudgetExceeded) as raised, limited_vram(mean_encoder, 1000):
        pytest.fail("it was begun")
    assert str(raised.value).endswith(
        "MB, --vram allows 0 MB; allow more than 1M, take a smaller --encoder, or use --device cpu"
    )


@pytest.mark.parametrize(("enough_seconds", "largest"), [(1000.0, 8 * 4096), (0.0, 2 * 4096)])
def test_speed_is_that_of_a_large_group_unless_encoding_is_slow(
    enough_seconds: float, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.building.budget._ENOUGH_SECONDS", enough_seconds)
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


MIB = 1 << 20


def test_own_memory_grows_by_what_is_held_and_not_by_mapped_files(tmp_path: Path) -> None:
    footprint = Footprint()
    before = footprint.own_bytes()
    held = bytearray(b"x" * 64 * MIB)
    assert 60 * MIB < footprint.own_bytes() - before < 80 * MIB
    assert len(held) == 64 * MIB
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
    with MemoryWatch(footprint) as watch:
        held = bytearray(b"x" * 64 * MIB)
        time.sleep(0.3)
        del held
    assert watch.peak_bytes - before > 60 * MIB


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


def test_the_size_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "deep" / "b").write_bytes(b"4567")
    assert folder_bytes(tmp_path) == 7
    assert folder_bytes(tmp_path / "none") == 0


def test_a_folder_that_does_not_exist_yet_is_on_the_disk_of_its_parent(tmp_path: Path) -> None:
    assert DiskGuard(tmp_path / "deep" / "x.lm").left_bytes() == pytest.approx(
        shutil.disk_usage(tmp_path).free - SPARE, abs=1e9
    )


@pytest.mark.usefixtures("free")
def test_a_run_that_would_not_fit_is_refused_and_work_without_room_not_begun(tmp_path: Path) -> None:
    DiskGuard(tmp_path).refuse(80_000_000)
    with pytest.raises(BudgetExceeded) as raised:
        DiskGuard(tmp_path).refuse(90_000_000)
    assert str(raised.value) == (
        f"{tmp_path} would grow by 90.0 MB, the disk leaves 83.2 MB; make room for 6.8 MB more, "
        "or index fewer documents"
    )
    with pytest.raises(BudgetExceeded) as raised, DiskGuard(tmp_path, 2_000_000).room_for(3_000_000, "a batch"):
        pytest.fail("it was begun")
    assert str(raised.value) == (
        "a batch needs 3.0 MB, --disk 2.0 MB leaves 2.0 MB; what was committed is safe: make room and run the same "
        "command again to go on"
    )
    with pytest.raises(OSError, match="gone"), DiskGuard(tmp_path).room_for(3_000_000, "a batch"):
        raise OSError(5, "the disk is gone")


def test_an_error_on_a_full_disk_becomes_an_error_with_the_missing_space(tmp_path: Path, free: dict[str, int]) -> None:
    with (
        pytest.raises(BudgetExceeded, match=r"a batch needs 3\.0 MB, the disk leaves 0\.0 MB") as raised,
        DiskGuard(tmp_path).room_for(3_000_000, "a batch"),
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


FEW, MANY, HUGE = Size(1_000, 40_000, 384), Size(25_000, 1_000_000, 384), Size(2_500_000, 100_000_000, 384)


def chosen(size: Size, left: int | None) -> str:
    return index_options("auto", size, left)[-1].factory


def test_without_a_limit_the_best_type_is_chosen_and_less_memory_never_chooses_a_better_one() -> None:
    assert [option.factory for option in index_options("auto", FEW, None)] == ["Flat"]
    assert chosen(MANY, None) == "IVF4096,PQ192x4fs"
    for size, most in ((FEW, 600_000_000), (HUGE, 15_000_000_000)):
        order = [*factory_options(size.n_chunks, size.width), SCAN]
        places = [order.index(chosen(size, left)) for left in range(most, -1, -most // 600)]
        assert places == sorted(places)
        assert set(places) > {0, len(order) - 1}


def test_the_chosen_type_fits_and_coarser_codes_are_not_chosen_in_vain() -> None:
    for left in range(0, 200_000_000, 7_000_000):
        *rejected, last = index_options("auto", FEW, left)
        assert last.fits and last.needed_bytes <= left
        assert all(option.needed_bytes > left and not option.fits for option in rejected)
    training = 4 * MANY.width * SMALL.points_per_list * 4096
    assert {chosen(MANY, left) for left in range(0, 600_000_000, 1_000_000)} == {"IVF4096,PQ192x4fs", SCAN}
    assert chosen(MANY, training) == SCAN
    assert chosen(MANY, training + 20_000_000) == "IVF4096,PQ192x4fs"


def test_small_blocks_come_before_another_type_and_scanning_takes_no_memory() -> None:
    (usual,) = index_options("Flat", FEW, None)
    (small,) = index_options("Flat", FEW, usual.needed_bytes - 1)
    assert (usual.sizes, small.sizes) == (BuildSizes(), SMALL)
    assert small.needed_bytes < usual.needed_bytes
    (option,) = index_options(SCAN, MANY, 0)
    assert (option.factory, option.needed_bytes, option.fits) == (SCAN, 0, True)
    assert BuildSizes().points_per_list == TRAINING_POINTS_PER_LIST


def test_a_named_type_that_does_not_fit_is_refused_with_both_numbers_and_a_smaller_one() -> None:
    with pytest.raises(BudgetExceeded) as raised:
        index_options("Flat", MANY, 100_000_000)
    needed = 1_000_000 * (4 * 384 + 8) + 10 * 384 * 2_048 + 256 * 25_000
    assert str(raised.value) == (
        f"a Flat index over 1,000,000 vectors 384 wide takes {needed / 1e6:,.1f} MB while it is built, --memory "
        f"leaves 100.0 MB for it; allow {-(-(needed - 100_000_000) // 1_000_000):,} MB more, or use --factory auto, "
        "or a smaller one, for example IVF4096,PQ96x4fs"
    )


def test_the_ladder_marks_the_choice_and_explains_the_rejections() -> None:
    options = (
        IndexOption("Flat", 60_000_000, 5_000_000, SMALL, fits=False),
        IndexOption("SQfp16", 30_000_000, 5_000_000, SMALL, fits=True),
    )
    assert describe_options(options, 40_000_000) == [
        "  Flat (exact) takes 65.0 MB to build, 40.0 MB are left",
        "> SQfp16 (exact) takes 35.0 MB to build, in small blocks",
    ]
    assert describe_options(index_options("auto", MANY, -5), -5)[-1] == (
        "> no FAISS index: queries scan the mapped shards, exactly and slowly"
    )
    (best,) = describe_options(index_options("auto", MANY, None), None)
    assert best.startswith("> IVF4096,PQ192x4fs (codes in lists, rescored exactly from the shards) takes ")


@pytest.mark.slow
@pytest.mark.parametrize("factory", ["Flat", "SQfp16", "SQ8", "IVF2048,PQ32x4fs"])
def test_building_takes_no_more_memory_than_estimated(factory: str) -> None:
    """The index itself is not moved as it grows; a fifth is allowed for the interpreter."""
    n_chunks, width, block = 120_000, 64, 16_384
    (option,) = index_options(factory, Size(0, n_chunks, width), None)
    rng = np.random.default_rng(0)
    rows = unit(rng.standard_normal((block, width), np.float32))
    n_training = min(training_size(factory), n_chunks)
    blocks = (
        (np.arange(first, min(first + block, n_chunks)), rows[: n_chunks - first].copy())
        for first in range(0, n_chunks, block)
    )
    footprint = Footprint()
    before = footprint.own_bytes()
    with MemoryWatch(footprint) as watch:
        AnnIndex.build(factory, width, lambda: rng.standard_normal((n_training, width), np.float32), blocks, n_chunks)
    assert watch.peak_bytes - before < 1.2 * option.needed_bytes
