"""Which type of replica of an index is placed on GPUs, and that it covers every document that can be found."""

from pathlib import Path

import numpy as np
import pytest

from engine.gpu import LIST_RESERVE_BYTES, options, replicate, spread_documents
from engine.store.ann import OpenReplica
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from tests.gpu_index import write_index
from tests.stand_in_gpus import CappedIndex, StandInGpus

pytestmark = pytest.mark.slow

SIZES = [5 + number % 9 for number in range(120)]
CLONE = "the generation as it is"
HALVES, BYTES = (f"the lists of the generation with {bits} bits a number" for bits in (16, 8))


def write(folder: Path, factory: str | None) -> Path:
    write_index(folder, SIZES[:100], factory=factory)
    write_index(folder, SIZES[100:], factory=None, first=100)
    with Writer(folder) as writer:
        writer.remove([there.id for there in writer.indexed(["doc0003"]).values()])
    return folder


@pytest.mark.parametrize(
    ("factory", "n_gpus", "names"),
    [
        (None, 1, []),
        ("HNSW8", 1, []),
        ("IVF8,PQ8x4fs", 1, [HALVES, BYTES]),
        ("IVF8,SQ8", 1, [CLONE, HALVES, BYTES]),
        ("IVF8,SQ8", 2, [HALVES, BYTES]),
    ],
)
def test_types_are_tried_in_order(factory: str | None, n_gpus: int, names: list[str], tmp_path: Path) -> None:
    with IndexSnapshot(write(tmp_path / "x.lm", factory)) as snapshot:
        assert [option.name for option in options(snapshot, StandInGpus(n_gpus))] == names


def chunks_of(replica: OpenReplica, snapshot: IndexSnapshot) -> list[int]:
    query = snapshot.chunk_vectors(np.array([0]))[0][:1]
    ids, _ = replica.ann.search(query, 2000, nprobe=8)
    assert ids.shape[1] == replica.ann.n_vectors
    return sorted(ids[ids >= 0].tolist())


def fresh_chunks(snapshot: IndexSnapshot, replica: OpenReplica) -> int:
    return int(snapshot.locations.n_chunks[snapshot.is_fresh(replica.through_chunk)].sum())


class Picky(StandInGpus):
    """Refuses the first `refused` types that are offered."""

    def __init__(self, refused: int) -> None:
        super().__init__()
        self._refused = refused

    def place(self, index: object, number: int) -> CappedIndex:
        if self._refused:
            self._refused -= 1
            raise RuntimeError("Error in GpuIndex\nnot on this GPU")
        return super().place(index, number)


@pytest.mark.parametrize(("refused", "covers_all"), [(0, False), (1, True), (2, True)])
def test_each_type_holds_every_chunk_that_it_covers(refused: int, covers_all: bool, tmp_path: Path) -> None:
    with IndexSnapshot(write(tmp_path / "x.lm", "IVF8,SQ8")) as snapshot:
        replica, _ = replicate(snapshot, Picky(refused))
        assert replica is not None
        found = snapshot.documents_of_chunks(np.array(chunks_of(replica, snapshot)))
        live = found[found >= 0]
        assert len(live) == snapshot.n_chunks - fresh_chunks(snapshot, replica)
        assert (not fresh_chunks(snapshot, replica) and -1 not in found) is covers_all


def test_the_summary_names_every_type_that_the_gpu_refused(tmp_path: Path) -> None:
    with IndexSnapshot(write(tmp_path / "x.lm", "IVF8,SQ8")) as snapshot:
        replica, summary = replicate(snapshot, Picky(3))
    assert replica is None
    assert summary.endswith(
        f"{CLONE} was refused (not on this GPU), "
        f"{HALVES} was refused (not on this GPU), {BYTES} was refused (not on this GPU)"
    )


def test_the_free_memory_decides_which_type_is_used(tmp_path: Path) -> None:
    with IndexSnapshot(write(tmp_path / "x.lm", "IVF8,PQ8x4fs")) as snapshot:
        sizes = {option.name: option.size_bytes for option in options(snapshot, StandInGpus())}
        assert sizes[HALVES] > sizes[BYTES]
        for size, name in ((sizes[HALVES], "16 bits"), (sizes[BYTES], "8 bits")):
            replica, summary = replicate(snapshot, StandInGpus(free_bytes=LIST_RESERVE_BYTES + size))
            assert replica is not None and name in summary
        assert replicate(snapshot, StandInGpus(free_bytes=LIST_RESERVE_BYTES + sizes[BYTES] - 1))[0] is None


@pytest.mark.parametrize("n_chunks", [1, 50, 400, 100_000])
def test_documents_are_spread_over_the_index(n_chunks: int, tmp_path: Path) -> None:
    with IndexSnapshot(write(tmp_path / "x.lm", None)) as snapshot:
        positions = spread_documents(snapshot, n_chunks)
        assert positions[0] == 0 and len(positions) <= snapshot.n_documents
        if n_chunks >= 50:
            assert positions[-1] == snapshot.n_documents - 1
        assert abs(int(snapshot.locations.n_chunks[positions].sum()) - min(n_chunks, snapshot.n_chunks)) < 30
