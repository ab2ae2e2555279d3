"""A search on GPUs gives the hits of a search on the CPU; the CPU stands in for the GPUs."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import engine.search.candidates as neighbours_module
from engine.encoders.encoder import Vectors
from engine.errors import BudgetExceeded, EncoderError
from engine.gpu import Acceleration, accelerate, lists_on, scan_on
from engine.index import Index
from engine.result import Result, Status
from engine.scoring.evidence import best_chunks
from engine.search.candidates import best_by_document
from engine.search.request import Request
from engine.store.ann import Ids
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from tests.gpu_index import write_index
from tests.stand_in_gpus import CappedIndex, StandInGpus

SIZES = [4 + number % 17 for number in range(300)]  # about 3,600 chunks
QUERY_IDS = ["doc0000", "doc0107", "doc0298"]


@pytest.fixture(autouse=True)
def no_scan_of_filtered_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours_module, "SCAN_BELOW_CHUNKS", 0)
    monkeypatch.setattr(neighbours_module, "SCAN_BELOW_SHARE", 0.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generation of coded lists over 260 documents, 40 newer documents, and three removed ones."""
    folder = tmp_path_factory.mktemp("gpu") / "x.lm"
    write_index(folder, [*SIZES[:260], 9, 9], factory="IVF16,PQ16x4fs")
    write_index(folder, SIZES[260:], factory=None, first=260)
    with Writer(folder) as writer:
        writer.remove([there.id for there in writer.indexed(["doc0030", "doc0031", "doc0150"]).values()])
    return folder


def assert_same(there: Result, here: Result) -> None:
    assert [hit.doc_id for hit in there.hits] == [hit.doc_id for hit in here.hits]
    np.testing.assert_allclose([hit.score for hit in there.hits], [hit.score for hit in here.hits], atol=1e-6)


def scanned(snapshot: IndexSnapshot, n: int = 1) -> Acceleration:
    scan, summary = scan_on(snapshot, ["cpu"] * n, 1 << 30)
    assert scan is not None, summary
    return Acceleration(scan, None, summary)


def listed(snapshot: IndexSnapshot, n: int = 1) -> Acceleration:
    acceleration = lists_on(snapshot, StandInGpus(n), "too large")
    assert acceleration.replica is not None, acceleration.summary
    return acceleration


@pytest.mark.slow
@pytest.mark.parametrize("accelerated", [scanned, listed])
@pytest.mark.parametrize("n_gpus", [1, 2])
@pytest.mark.parametrize("where", [None, "third = 1", "number < 30", "number = 7"])
def test_hits_are_those_of_an_exact_scan(
    folder: Path, accelerated: Callable[[IndexSnapshot, int], Acceleration], n_gpus: int, where: str | None
) -> None:
    with Index.open(folder) as exact, IndexSnapshot(folder) as snapshot:
        index = Index(snapshot, acceleration=accelerated(snapshot, n_gpus))
        for name in QUERY_IDS:
            there, here = index.search(name, Request(where=where)), exact.search(name, Request(where=where, exact=True))
            assert_same(there, here)
            assert there.status is Status.ESTIMATED  # postings or lists chose the candidates


def test_without_a_generation_all_documents_are_compared_and_the_result_is_certified(tmp_path: Path) -> None:
    folder = write_index(tmp_path / "x.lm", SIZES[:60], factory=None)
    with Index.open(folder) as exact, IndexSnapshot(folder) as snapshot:
        there, here = (index.search("doc0007") for index in (Index(snapshot, acceleration=scanned(snapshot)), exact))
    assert there.hits == here.hits and there.status is Status.CERTIFIED


def test_the_cpu_searches_query_chunks_for_which_lists_on_the_gpu_find_too_few_documents(tmp_path: Path) -> None:
    """One long document fills the 2,048 places of each list of neighbours."""
    write_index(tmp_path / "x.lm", [6, 2100, 6, *SIZES[:40]], factory="IVF1,SQfp16")
    with Index.open(tmp_path / "x.lm") as exact, IndexSnapshot(tmp_path / "x.lm") as snapshot:
        replica = listed(snapshot).replica
        assert replica is not None
        query = exact.stored_query("doc0001").vectors.chunks[::300]
        allowed = np.ones(snapshot.n_documents, bool)
        lists = neighbours_module.CandidateLists(snapshot, replica=replica).lists(query, allowed, 30)
        best, _ = best_chunks(query, *snapshot.chunk_vectors(np.arange(snapshot.n_documents)))
        owners = snapshot.documents_of_chunks(replica.ann.search(query, 4000)[0])
    assert owners.shape == (7, 2048) and max(len(np.unique(row)) for row in owners) < 30
    every = np.broadcast_to(np.arange(len(allowed)), best.shape)
    assert np.array_equal(lists.documents, best_by_document(every, best, 30).documents)


def test_the_summary_names_the_copy_and_the_result_of_the_test(folder: Path) -> None:
    with IndexSnapshot(folder) as snapshot:
        assert re.fullmatch(
            r"every chunk in float16, 3,\d{3} vectors in 0.00 GiB, similarities within [0-9]e[+-]\d\d of the CPU's",
            scanned(snapshot).summary,
        )
        assert " on stand-in 0; probe: 8 stored chunks searched, similarities within " in listed(snapshot).summary


def test_without_room_on_the_gpu_the_cpu_searches_and_the_summary_names_the_sizes(folder: Path) -> None:
    with IndexSnapshot(folder) as snapshot:
        scan, reason = scan_on(snapshot, ["cpu"], -5)
        assert scan is None and reason.startswith("there is room for 0.00 GiB, not for every chunk in float16, 3,")
        acceleration = lists_on(snapshot, StandInGpus(free_bytes=1 << 30), reason)
        assert acceleration.scan is None and acceleration.replica is None
        result = Index(snapshot, acceleration=acceleration).search("doc0107")
    assert acceleration.summary.startswith(
        f"searched on the CPU: {reason}; there is room for 0.00 GiB; the lists of the generation with 16 "
    )
    assert result.hits


@pytest.mark.parametrize(
    ("fault", "summary"),
    [
        (lambda rows, halves: 0.99 * (rows.float() @ halves.float()), "the test of every chunk .* failed: .*1e-02 off"),
        (lambda rows, halves: (rows.float() @ halves.float()).roll(1, 0), "the test of every chunk .* failed"),
        (lambda *_: raise_out_of_memory(), r"every chunk .* failed \(the GPU failed .*out of memory"),
    ],
    ids=["numbers", "vectors", "memory"],
)
def test_a_scan_that_fails_its_test_is_not_used(
    folder: Path, fault: Callable[..., object], summary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.scan._products", fault)
    with IndexSnapshot(folder) as snapshot:
        scan, reason = scan_on(snapshot, ["cpu"], 1 << 30)
    assert scan is None and re.search(summary, reason), reason


def raise_out_of_memory() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory")


class Wrong(CappedIndex):
    """Returns wrong similarities or wrong vectors, or has no memory to search."""

    def __init__(self, of: CappedIndex, fault: str) -> None:
        super().__init__(of._index)
        self._fault = fault

    def search(self, queries: Vectors, k: int, *, params: object = None) -> tuple[Vectors, Ids]:
        if self._fault == "out of memory":
            raise RuntimeError("Error in allocMemory: cudaMalloc error out of memory [2]")
        D, ids = super().search(queries, k, params=params)
        return {"numbers": (D * 0.99, ids), "vectors": (D, (ids + 1) % self.ntotal), "twice": (D, ids // 2)}[
            self._fault
        ]


class WrongGpus(StandInGpus):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self._fault = fault

    def place(self, index: object, number: int) -> CappedIndex:
        return Wrong(super().place(index, number), self._fault)


@pytest.mark.parametrize(
    ("fault", "summary"),
    [
        ("numbers", r"probe of the lists .*failed: similarities are up to 0\.01\d? off, 0\.001 is allowed"),
        ("vectors", r"similarities are up to .*% of near chunks were found, .*% are required"),
        ("twice", r"similarities are up to .*; a vector was found twice; filtered lists agree"),
        ("out of memory", r"the GPU failed in a search of 8 chunks for 128 each \(.*out of memory \[2\]\)"),
    ],
)
def test_lists_that_fail_the_probe_are_not_used(folder: Path, fault: str, summary: str) -> None:
    with IndexSnapshot(folder) as snapshot:
        acceleration = lists_on(snapshot, WrongGpus(fault), "too large")
    assert acceleration.scan is None and acceleration.replica is None
    assert re.search(summary, acceleration.summary)


def test_lists_that_fail_after_the_probe_raise_an_error_with_the_next_step(folder: Path) -> None:
    with IndexSnapshot(folder) as snapshot:
        acceleration = listed(snapshot)
        acceleration.replica.ann.parts = (Wrong(acceleration.replica.ann.parts[0], "out of memory"),)
        with pytest.raises(BudgetExceeded, match="or open the index on the CPU: --device cpu"):
            Index(snapshot, acceleration=acceleration).search("doc0107")


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch sees a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_a_gpu_that_is_not_there_is_refused_when_the_index_is_opened(folder: Path, device: str) -> None:
    with pytest.raises(EncoderError, match=rf"device '{device}' was requested, torch .* sees 0 GPUs; use --device cpu"):
        Index.open(folder, device=device)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_without_a_named_gpu_there_is_no_acceleration(folder: Path, device: str | None) -> None:
    with Index.open(folder, device=device) as index:
        assert index.acceleration is None
        assert index.search("doc0107").hits


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch sees a GPU")
def test_the_summary_reports_a_torch_without_gpus(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.gpu.gpu_numbers", lambda _: [99])
    with IndexSnapshot(folder) as snapshot:
        acceleration = accelerate(snapshot, "cuda")
    assert acceleration.summary == "searched on the CPU: torch sees 0 GPUs, and cuda was requested"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
def test_a_real_gpu_gives_the_hits_of_the_cpu(folder: Path) -> None:
    with Index.open(folder, device="cuda") as there, Index.open(folder, device="cpu") as here:
        assert there.acceleration is not None and there.acceleration.scan is not None, there.acceleration
        for name in QUERY_IDS:
            for where in (None, "third = 1", "number < 30"):
                assert_same(
                    there.search(name, Request(where=where)), here.search(name, Request(where=where, exact=True))
                )
