"""How an index that was opened for a GPU is searched: all chunks compared there, lists of FAISS, or why it is not used.

All chunk vectors are compared on the GPU if they fit into its memory (`engine.scan`). Else lists of FAISS are copied
there, of the first of these types that fits and that GPU FAISS accepts.

1. The published generation itself, if a GPU can hold its type; one GPU only.
2. The lists of the generation with codes of 16, then of 8 bits, computed from the shards.

GPU FAISS 1.15 has flat vectors, and inverted lists over a flat quantizer: of float32, of scalar codes of 4, 8 or 16
bits, and of product codes of 8 bits. It has no fast-scan codes, no RaBitQ, no graphs. An index with lists of such
codes keeps its centroids, and its codes are recomputed from the shards.

Each copy is tested first: it searches a few stored chunks, and the results are compared with the CPU's. Of lists the
test checks four things:

- similarities: those of found chunks that are also in a sample differ by at most `TOLERANCE` from
  products computed on the CPU;
- recall: of the chunks of the sample that are nearer than the last chunk found, it finds about as many as the CPU's
  index;
- the largest k: a search returns that number of vectors, and none twice;
- filters: with every second document left out, lists of documents are compared with the CPU's.

Letters in shapes: B rows of a block, L lists, D width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.environment import gpu_numbers, installed_faiss, require_one_faiss
from engine.errors import BudgetExceeded, install_command
from engine.scan import BYTES_AT_ONCE, DeviceScan
from engine.scoring.evidence import PASSAGES_ALONE, ROUNDING, Thresholds, best_matches
from engine.search.candidates import FIRST_DEPTH, CandidateLists
from engine.store.ann import MOST, Ids, OpenReplica, Replica, inverted_lists
from engine.store.snapshot import IndexSnapshot, Positions
from engine.words.apart import ranges

require_one_faiss()
import faiss  # noqa: E402

BLOCK_CHUNKS = 65_536
TRAINING_CHUNKS = 65_536
_LIST_GROWTH = 1.5  # lists on a GPU are reallocated as they grow, and have spare capacity
Blocks = Iterable[tuple[Ids, Vectors]]
_CODES = ("QT_4bit", "QT_8bit", "QT_8bit_direct", "QT_4bit_uniform", "QT_8bit_uniform", "QT_fp16")
TEMPORARY_BYTES = 1 << 30  # allocated once on each GPU; a search that needs more requests it from the driver
# For torch, an encoder and its batches, and the memory of a search beyond its temporary memory.
LIST_RESERVE_BYTES = TEMPORARY_BYTES + (2 << 30)
SCAN_RESERVE_BYTES = BYTES_AT_ONCE + (2 << 30)  # for products, and for an encoder and its batches
TOLERANCE = 1e-3  # of a cosine: float16 has 11 bits
MAY_LACK = 0.05  # share of near chunks by which a replica may fall below the CPU's index
TRIAL_CHUNKS = 20_000
_QUERIES = 8
_LIST = 11


@dataclass(frozen=True, slots=True)
class Acceleration:
    """What a GPU computes for a search; neither scan nor replica if the GPU cannot be used."""

    scan: DeviceScan | None
    replica: OpenReplica | None
    summary: str  # one line

    def close(self) -> None:
        """Release the GPU."""
        if self.scan is not None:
            self.scan.close()
        if self.replica is not None:
            self.replica.ann.close()


def accelerate(snapshot: IndexSnapshot, device: str) -> Acceleration:
    """Copy an index onto the GPUs of a device, `cuda` or `cuda:N`, and test the copy; fall back to the CPU.

    Reads all chunk vectors, unless the published generation itself is copied. The snapshot stays open meanwhile.

    Raises:
        IndexDamaged: a file is not the one that was written.
    """
    numbers = gpu_numbers(device)
    if not numbers or max(numbers) >= torch.cuda.device_count():
        return on_the_cpu(f"torch sees {torch.cuda.device_count()} GPUs, and {device} was requested")
    room = min(torch.cuda.mem_get_info(number)[0] for number in numbers) - SCAN_RESERVE_BYTES
    names = ", ".join(f"{torch.cuda.get_device_name(number)} {number}" for number in numbers)
    devices = [f"cuda:{number}" for number in numbers]
    scan, reason = scan_on(snapshot, devices, room * len(numbers))
    if scan is not None:
        return Acceleration(scan, None, f"searched on the GPU: {reason} on {names}")
    if no_lists := why_none(numbers):
        return on_the_cpu(f"{reason}; {no_lists}")
    return lists_on(snapshot, FaissGpus(numbers), reason)


def scan_on(snapshot: IndexSnapshot, devices: Sequence[str], room: int) -> tuple[DeviceScan | None, str]:
    """All chunks on devices with a number of free bytes in total, tested, and a summary; or None, and the reason."""
    n, width = snapshot.n_chunks, snapshot.width
    if not n:
        return None, "the index has no vectors to search"
    name = f"every chunk in float16, {n:,} vectors in {2 * n * width / 2**30:,.2f} GiB"
    if 2 * n * width > room:
        return None, f"there is room for {max(0, room) / 2**30:,.2f} GiB, not for {name}"
    try:
        scan = DeviceScan(
            snapshot.locations.n_chunks, lambda some: snapshot.chunk_rows(some)[0], width, devices, snapshot.chunk_bits
        )
        error = probe_scan(snapshot, scan)
    except (RuntimeError, BudgetExceeded) as failure:
        return None, f"{name} failed ({str(failure).splitlines()[-1].strip()[-160:]})"
    if error > scan.error:
        scan.close()
        return None, f"the test of {name} failed: similarities are up to {error:.0e} off, {scan.error:.0e} is allowed"
    return scan, f"{name}, similarities within {error:.0e} of the CPU's"


def lists_on(snapshot: IndexSnapshot, gpus: FaissGpus, reason: str) -> Acceleration:
    """Lists of FAISS on GPUs, tested; `reason` says why not all chunks are compared."""
    replica, summary = replicate(snapshot, gpus)
    if replica is None:
        return on_the_cpu(f"{reason}; {summary}")
    try:
        tested, faults = probe(snapshot, replica)
    except BudgetExceeded as error:
        replica.ann.close()
        return on_the_cpu(str(error))
    if faults:
        replica.ann.close()
        return on_the_cpu(f"the probe of {summary} failed: {'; '.join(faults)}")
    beyond = (
        f"the CPU answers beyond {replica.ann.most_k:,} chunks a query, and where a filter leaves little; "
        f"--exact scans the shards"
    )
    return Acceleration(None, replica, f"searched on the GPU: {summary}; probe: {tested}; {beyond}; {reason}")


def on_the_cpu(reason: str) -> Acceleration:
    """No acceleration, with the reason."""
    return Acceleration(None, None, f"searched on the CPU: {reason}")


class FaissGpus:
    """NVIDIA GPUs, used by a FAISS that was built for them.

    An index on a GPU supports no filter and no removal, and returns at most `MOST` (`engine.store.ann`) vectors
    per query.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        """Allocate temporary memory on each GPU; call `why_none` first to check that this is possible."""
        self.numbers = tuple(numbers)
        self._resources = {number: faiss.StandardGpuResources() for number in self.numbers}
        for resources in self._resources.values():
            resources.setTempMemory(TEMPORARY_BYTES)

    def name(self, number: int) -> str:
        """Name of a GPU for messages."""
        return f"{torch.cuda.get_device_name(number)} {number}"

    def free_bytes(self, number: int) -> int:
        """Free memory of a GPU."""
        return int(torch.cuda.mem_get_info(number)[0])

    def place(self, index: Any, number: int) -> Any:  # noqa: ANN401
        """Copy a FAISS index onto a GPU.

        Raises:
            RuntimeError: GPU FAISS has no such type, or the memory is too small.
        """
        options = faiss.GpuClonerOptions()
        options.useFloat16 = True  # for the tables of product codes
        return faiss.index_cpu_to_gpu(self._resources[number], number, index, options)


def why_none(numbers: Sequence[int]) -> str | None:
    """The reason why the installed FAISS cannot use these GPUs; None if it can."""
    installed = " and ".join(f"{name} {version}" for name, version in installed_faiss().items())
    if not hasattr(faiss, "StandardGpuResources"):
        return (
            f"{installed} was built without GPU (pip uninstall -y faiss-cpu && {install_command('gpu', 'faiss-gpu')})"
        )
    n_seen = faiss.get_num_gpus()
    if not numbers or max(numbers) >= n_seen:
        return f"{installed} sees {n_seen} GPUs, and number {max(numbers, default=0)} was requested"
    return None


def lists_of(index: Any, width: int) -> Any:  # noqa: ANN401
    """The inverted lists of an index whose centroids are as wide as the vectors; None for any other index."""
    lists = inverted_lists(index)
    is_all = isinstance(faiss.downcast_index(index), faiss.IndexIVF)  # no transform in front of the lists
    return lists if lists is not None and is_all and lists.d == width else None


def can_clone(index: Any) -> bool:  # noqa: ANN401
    """Whether a GPU can hold these inverted lists with their codes."""
    made: Any = faiss.downcast_index(index)
    if not isinstance(faiss.downcast_index(made.quantizer), faiss.IndexFlat):
        return False
    # Compare names: fast-scan and refined lists are subclasses, and their copies would lose what the subclass adds.
    kind = type(made).__name__
    if kind == "IndexIVFScalarQuantizer":
        return made.sq.qtype in [getattr(faiss.ScalarQuantizer, code) for code in _CODES]
    return kind == "IndexIVFFlat" or (kind == "IndexIVFPQ" and made.pq.nbits == 8)


def centroids(lists: Any) -> Vectors:  # noqa: ANN401
    """The centroids (L, D) of inverted lists."""
    rows: Vectors = faiss.downcast_index(lists.quantizer).reconstruct_n(0, int(lists.nlist))
    return rows


def list_parts(gpus: FaissGpus, quantizer: Vectors, code: str, sample: Vectors, blocks: Blocks) -> list[Any]:
    """Inverted lists around centroids (L, D), one part per GPU; blocks are assigned to the GPUs in turn.

    Args:
        code: FAISS's name of the scalar code, for example `QT_fp16`.
        sample: (n, D) rows from which the range of the codes is learned.
        blocks: ids (B,) and rows (B, D) float32.
    """
    width = quantizer.shape[1]
    flat = faiss.IndexFlatIP(width)
    flat.add(np.ascontiguousarray(quantizer, np.float32))
    lists = faiss.IndexIVFScalarQuantizer(
        flat, width, len(quantizer), getattr(faiss.ScalarQuantizer, code), faiss.METRIC_INNER_PRODUCT, False
    )
    lists.train(np.ascontiguousarray(sample, np.float32))
    placed = [gpus.place(lists, number) for number in gpus.numbers]
    for (ids, rows), index in zip(blocks, cycle(placed), strict=False):
        index.add_with_ids(np.ascontiguousarray(rows, np.float32), ids)
    for index in placed:
        if hasattr(index, "reclaimMemory"):
            index.reclaimMemory()  # lists that grew have spare capacity
    return [index for index in placed if index.ntotal]


@dataclass(frozen=True, slots=True)
class ReplicaOption:
    """A type of replica."""

    name: str
    size_bytes: int  # peak on all GPUs together, while it is filled
    code: str | None  # FAISS's name of the scalar code; None for the generation itself


def replicate(snapshot: IndexSnapshot, gpus: FaissGpus) -> tuple[OpenReplica | None, str]:
    """Copy an index onto GPUs: the replica and its summary, or None and the reason.

    Raises:
        IndexDamaged: a file is not the one that was written.
    """
    room = len(gpus.numbers) * (min(map(gpus.free_bytes, gpus.numbers)) - LIST_RESERVE_BYTES)
    refused: list[str] = []
    for option in options(snapshot, gpus):
        if option.size_bytes > room:
            refused.append(f"{option.name} wants {_gib(option.size_bytes)}")
            continue
        try:
            replica = _placed(snapshot, option, gpus)
            return replica, replica.summary
        except RuntimeError as error:
            refused.append(f"{option.name} was refused ({str(error).splitlines()[-1].strip()[-120:]})")
    if not refused:
        return None, "the index has no lists that a GPU can hold"
    return None, f"there is room for {_gib(max(0, room))}; {', '.join(refused)}"


def options(snapshot: IndexSnapshot, gpus: FaissGpus) -> list[ReplicaOption]:
    """The possible types of replica, best first."""
    generation, row, width = snapshot.generation, snapshot.generation_row, snapshot.width
    lists = None if generation is None else lists_of(generation.ann.inner, width)
    if generation is None or row is None or lists is None or generation.ann.nprobe > MOST:
        return []
    options = []
    if can_clone(lists) and len(gpus.numbers) == 1:
        options.append(ReplicaOption("the generation as it is", int(_LIST_GROWTH * row.size_bytes), None))
    for code, bits in (("QT_fp16", 16), ("QT_8bit", 8)):
        size = int(_LIST_GROWTH * snapshot.n_chunks * (width * bits // 8 + 8))
        size += len(gpus.numbers) * 4 * width * generation.ann.n_lists
        options.append(ReplicaOption(f"the lists of the generation with {bits} bits a number", size, code))
    return options


def _placed(snapshot: IndexSnapshot, option: ReplicaOption, gpus: FaissGpus) -> OpenReplica:
    """A replica of one type; errors as in `FaissGpus.place`."""
    generation, free = snapshot.generation, sum(map(gpus.free_bytes, gpus.numbers))
    assert generation is not None
    ann, through_chunk = generation.ann, generation.through_chunk
    if option.code is None:
        parts = [gpus.place(ann.inner, number) for number in gpus.numbers]
    else:
        around = centroids(lists_of(ann.inner, snapshot.width))
        sample, _ = snapshot.chunk_vectors(spread_documents(snapshot, TRAINING_CHUNKS))
        blocks = snapshot.chunk_blocks(np.arange(snapshot.n_documents), BLOCK_CHUNKS)
        parts = list_parts(gpus, around, option.code, sample, blocks)
        through_chunk = int((snapshot.locations.first_chunk + snapshot.locations.n_chunks).max()) - 1
    replica = Replica(parts, nprobe=ann.nprobe, n_lists=ann.n_lists)
    size = _gib(max(0, free - sum(map(gpus.free_bytes, gpus.numbers))))
    where = ", ".join(map(gpus.name, gpus.numbers))
    return OpenReplica(replica, through_chunk, f"{option.name}, {replica.n_vectors:,} vectors in {size} on {where}")


def spread_documents(snapshot: IndexSnapshot, n_chunks: int) -> Positions:
    """Documents evenly spread over an index, with about `n_chunks` chunks in total; at least one document."""
    n = snapshot.n_documents
    wanted = max(1, min(n, n_chunks * n // max(1, snapshot.n_chunks)))
    return np.unique(np.linspace(0, n - 1, wanted).astype(np.int64))


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:,.2f} GiB"


@dataclass(frozen=True, slots=True)
class _Sample:
    ids: Ids  # (C,) rising
    queries: Vectors  # (I, D) some of the rows
    table: Vectors  # (I, C) their similarities


def probe(snapshot: IndexSnapshot, replica: OpenReplica) -> tuple[str, list[str]]:
    """Test a replica before it is used: the results in one line, and its faults; none if the replica can be used.

    Raises:
        BudgetExceeded: the GPU failed.
    """
    sample = _drawn(snapshot)
    faults: list[str] = []
    known = sample.ids <= replica.through_chunk
    ids, similarities = replica.ann.search(sample.queries, FIRST_DEPTH)
    at, is_known = _places(sample, ids)
    exact = np.take_along_axis(sample.table, at, axis=1)
    error = float(np.abs(similarities - exact)[is_known].max(initial=0.0))
    if error > TOLERANCE:
        faults.append(f"similarities are up to {error:.3f} off, {TOLERANCE} is allowed")
    near = known & (sample.table > similarities[:, -1:] + TOLERANCE)
    if not (ids >= 0).all() or ids.shape[1] == replica.ann.n_vectors:
        near = np.broadcast_to(known, near.shape)
    generation = snapshot.generation
    assert generation is not None  # whose lists were copied
    on_cpu = _share_found(
        sample, near & (sample.ids <= generation.through_chunk), generation.ann.search(sample.queries, FIRST_DEPTH)[0]
    )
    share = _share_found(sample, near, ids)
    if share < on_cpu - MAY_LACK:
        faults.append(f"{share:.1%} of near chunks were found, {on_cpu - MAY_LACK:.1%} are required")
    faults += _faults_at_most(replica.ann, sample.queries)
    filtered = _filtered_share(snapshot, replica, sample.queries)
    if filtered < 1.0 - MAY_LACK:
        faults.append(f"filtered lists agree with the CPU's by {filtered:.1%}")
    summary = (
        f"{len(sample.queries)} stored chunks searched, similarities within {error:.0e} of the CPU's, "
        f"{share:.0%} of {int(near.sum()):,} near chunks found (CPU {on_cpu:.0%}), "
        f"filtered lists agree by {filtered:.0%}"
    )
    return summary, faults


def probe_scan(snapshot: IndexSnapshot, scan: DeviceScan) -> float:
    """The largest error of a similarity of stored chunks to a sample of documents."""
    positions = spread_documents(snapshot, TRIAL_CHUNKS)
    positions = positions[snapshot.has_vectors[positions]]
    rows, starts = snapshot.chunk_vectors(positions)
    queries = rows[np.unique(np.linspace(0, len(rows) - 1, _QUERIES).astype(np.int64))]
    exact = best_matches(queries, rows, starts, np.full(len(queries), -1.0)).similarities
    # With one chunk and the threshold 0, the component is the similarity.
    single = Thresholds.none()
    there = scan.components([(queries[[row]], single) for row in range(len(queries))], PASSAGES_ALONE)
    return max(0.0, float(np.abs(there[:, scan.places[positions]] - exact.clip(0, 1)).max()) - ROUNDING)


def _drawn(snapshot: IndexSnapshot) -> _Sample:
    positions = spread_documents(snapshot, TRIAL_CHUNKS)
    rows, _ = snapshot.chunk_vectors(positions)
    ids = ranges(snapshot.locations.first_chunk[positions], snapshot.locations.n_chunks[positions])
    order = np.argsort(ids)
    rows, ids = rows[order], ids[order]
    queries = rows[np.unique(np.linspace(0, len(rows) - 1, _QUERIES).astype(np.int64))]
    return _Sample(ids, queries, queries @ rows.T)


def _places(sample: _Sample, ids: Ids) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Columns of the table for ids, and whether each id is in the sample."""
    at = np.minimum(np.searchsorted(sample.ids, ids), len(sample.ids) - 1)
    return at, sample.ids[at] == ids


def _share_found(sample: _Sample, near: NDArray[np.bool_], ids: Ids) -> float:
    at, is_known = _places(sample, ids)
    is_found = np.zeros(near.shape, bool)
    rows, columns = np.nonzero(is_known)
    is_found[rows, at[rows, columns]] = True
    return float(is_found[near].mean()) if near.any() else 1.0


def _faults_at_most(ann: Replica, queries: Vectors) -> list[str]:
    """Faults in the longest lists that can be requested."""
    ids, _ = ann.search(queries, ann.most_k)
    wanted = min(ann.most_k, ann.n_vectors)
    if ids.shape[1] != wanted:
        return [f"{ids.shape[1]} vectors returned, {wanted} were requested"]
    counted = [row[row >= 0] for row in ids]
    is_twice = any(len(np.unique(row)) != len(row) for row in counted)
    return ["a vector was found twice"] if is_twice else []


def _filtered_share(snapshot: IndexSnapshot, replica: OpenReplica, queries: Vectors) -> float:
    allowed = np.arange(snapshot.n_documents) % 2 == 0
    neighbours = CandidateLists(snapshot)
    here = neighbours.by_generation(queries, allowed, _LIST)
    there = neighbours.by_replica(replica, queries, allowed, _LIST)
    if not allowed[there.documents[there.documents >= 0]].all():
        return 0.0
    width = min(here.similarities.shape[1], there.similarities.shape[1])
    is_as_near = there.similarities[:, :width] >= here.similarities[:, :width] - TOLERANCE
    return float(is_as_near.mean()) if width else 1.0
