"""FAISS over chunk vectors: building, opening, searching, and the copy of an index on GPUs. Reads no catalog.

Letters in shapes: I query chunks, K results each, N documents, P parts, D width.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.environment import require_one_faiss
from engine.errors import BudgetExceeded, IndexMismatch, damaged_file
from engine.store.durable import Checksum, check_file, write_durably

require_one_faiss()
import faiss  # noqa: E402

Ids = NDArray[np.int64]

KMEANS_ROUNDS = 10
TRAINING_POINTS_PER_LIST = 64  # most training vectors of k-means
_SOURCE_LINE = re.compile(r"^.*\.(?:cpp|h):\d+: (?:Error: '.*?' failed: )?", re.DOTALL)  # in errors of FAISS


def check_factory(factory: str, width: int) -> None:
    """Check that FAISS accepts a factory string; whether the type can be trained shows only in training."""
    _empty_index(factory, width)


def multiply_by_blas(width: int) -> None:
    """Let FAISS use BLAS in this process from three queries on.

    By default it does not use BLAS below nq * d = 128,000, which is up to 8 times slower (nq 256).
    """
    faiss.cvar.distance_compute_blas_threshold = 3 * width


class AnnIndex:
    """A FAISS index with our own ids; inner product, so cosine for unit rows."""

    most_k = most_nprobe = sys.maxsize  # limits of one search

    def __init__(self, index: Any, nprobe: int = 0) -> None:  # noqa: ANN401
        """Wrap a FAISS index; `nprobe` is ignored by types that have none."""
        self.inner = index  # of FAISS; not to be changed
        self.nprobe = nprobe
        multiply_by_blas(index.d)

    @classmethod
    def build(
        cls,
        factory: str,
        width: int,
        sample: Callable[[], Vectors],
        blocks: Iterable[tuple[Ids, Vectors]],
        n_vectors: int = 0,
    ) -> AnnIndex:
        """Train on a sample and add vectors block by block.

        Args:
            sample: draws (n, D) float32 training rows, if the type needs any; released before vectors are added.
            blocks: ids (B,) and rows (B, D) float32.
        """
        index, n_trained = _empty_index(factory, width), 0
        try:
            if ivf := inverted_lists(index):
                ivf.cp.max_points_per_centroid = TRAINING_POINTS_PER_LIST
                ivf.cp.niter = KMEANS_ROUNDS
            if not index.is_trained:
                rows = sample()
                n_trained = len(rows)
                index.train(rows)
                del rows
            _reserve(index, n_vectors)
            built = cls(index)
            built.add(blocks)
        except (RuntimeError, AssertionError) as error:
            raise _refusal(factory, f"{n_trained} training vectors {width} wide", error) from error
        return built

    def write(self, path: Path) -> Checksum:
        """Write the index durably; the catalog names the file afterwards."""

        def write_to(unfinished: Path) -> None:
            with unfinished.open("wb") as file:  # FAISS's own files hide the system's error, such as a full disk
                faiss.write_index(self.inner, faiss.PyCallbackIOWriter(file.write))  # type: ignore[attr-defined]

        return write_durably(path, write_to)

    @classmethod
    def open(
        cls, path: Path, expected: Checksum, *, n_vectors: int, width: int, nprobe: int, is_mapped: bool = True
    ) -> AnnIndex:
        """Check a file, then map it; a damaged FAISS file would load and return wrong results.

        Args:
            is_mapped: leave the codes in the file; False reads them into memory, so that vectors can be added.

        Raises:
            IndexDamaged: the file is not the one that was written.
        """
        check_file(path, expected)
        faiss.set_deserialization_vector_byte_limit(max(1 << 20, 4 * expected.size_bytes))
        try:
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if is_mapped else 0)
        except RuntimeError as error:
            raise damaged_file(f"{path} is no FAISS index ({error})") from error
        if (index.ntotal, index.d) != (n_vectors, width):
            raise damaged_file(
                f"{path} holds {index.ntotal} vectors {index.d} wide, not {n_vectors} vectors {width} wide"
            )
        return cls(index, nprobe)

    @property
    def n_lists(self) -> int:
        """Inverted lists, 0 for a type without."""
        ivf = inverted_lists(self.inner)
        return int(ivf.nlist) if ivf else 0

    @property
    def width(self) -> int:
        """D."""
        return int(self.inner.d)

    @property
    def n_vectors(self) -> int:
        """Vectors in the index, those of removed documents included."""
        return int(self.inner.ntotal)

    @property
    def can_filter(self) -> bool:
        """Whether a search can be restricted to some ids: true for types with lists or plain codes."""
        codes = faiss.downcast_index(getattr(self.inner, "index", self.inner))
        return self.n_lists > 0 or isinstance(codes, faiss.IndexFlatCodes)

    def search(
        self, queries: Vectors, k: int, *, allowed: NDArray[np.bool_] | None = None, nprobe: int | None = None
    ) -> tuple[Ids, Vectors]:
        """Ids and similarities of the nearest vectors of each query row.

        Args:
            allowed: for each id from 0 on, whether it may be found; ids beyond the end may not; by default all may.
            nprobe: lists to search, by default that of the index.

        Returns:
            (I, K) int64 and (I, K) float32, best first; id -1 where fewer than K were found.
        """
        k = min(k, self.n_vectors)
        selected: dict[str, Any] = {} if allowed is None else {"sel": selector(allowed)}
        nprobe = min(nprobe or self.nprobe, self.n_lists)
        parameters: Any = None
        if nprobe:
            parameters = faiss.SearchParametersIVF(nprobe=nprobe, **selected)  # type: ignore[call-arg]
        elif selected:
            parameters = faiss.SearchParameters(**selected)
        D, I = self.inner.search(np.ascontiguousarray(queries, np.float32), k, params=parameters)  # noqa: E741
        return I, D

    def add(self, blocks: Iterable[tuple[Ids, Vectors]]) -> None:
        """Add vectors without training again, to an index that was built here or opened unmapped."""
        for ids, rows in blocks:
            self.inner.add_with_ids(np.ascontiguousarray(rows, np.float32), ids)


def selector(allowed: NDArray[np.bool_]) -> Any:  # noqa: ANN401
    """A FAISS selector of ids; `allowed` holds for each id from 0 on whether it may be found."""
    return faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))  # type: ignore[call-arg, arg-type]


def _empty_index(factory: str, width: int) -> Any:  # noqa: ANN401
    try:
        # IDMap2 also maps ids back to rows, which nothing here needs, for about 60 bytes more per vector.
        has_own_ids = factory.startswith(("IDMap", "IVF")) or ",IVF" in factory
        return faiss.index_factory(width, factory if has_own_ids else f"IDMap,{factory}", faiss.METRIC_INNER_PRODUCT)
    except (RuntimeError, AssertionError) as error:
        raise _refusal(factory, f"vectors {width} wide", error) from error


def _refusal(factory: str, over: str, error: Exception) -> IndexMismatch:
    reason = _SOURCE_LINE.sub("", str(error)).strip().rstrip(".")[:160]
    if "could not parse" in reason:
        reason = "it does not know this string"
    elif "exception sto" in reason:  # stoi and stol of C++
        reason = "a number in it is too large"
    return IndexMismatch(
        f"FAISS cannot build factory {factory!r} over {over} ({reason}); "
        "use --factory auto, Flat, SQ8, or IVF1024,PQ64x4fs"
    )


def _reserve(index: Any, n_vectors: int) -> None:  # noqa: ANN401
    """Allocate memory for all codes at once: growing by doubling holds the old and the new array at the same time."""
    codes = faiss.downcast_index(getattr(index, "index", index))
    if isinstance(codes, faiss.IndexFlatCodes):
        codes.codes.resize(n_vectors * codes.code_size)
        codes.codes.resize(0)


def inverted_lists(index: Any) -> Any:  # noqa: ANN401
    """The inverted-file index inside a FAISS index, or None."""
    try:
        return faiss.extract_index_ivf(index)
    except RuntimeError:
        return None


MOST = 2_048  # limit of GPU FAISS on the vectors of a query, and on the lists that it searches


class Replica:
    """Searches all parts and merges their results; one search at a time, as GPU FAISS requires."""

    can_filter = False  # GPU FAISS ignores a selector, or refuses it: the caller filters the results
    most_k = most_nprobe = MOST

    def __init__(self, parts: Sequence[Any], *, nprobe: int = 0, n_lists: int = 0) -> None:
        """Take over FAISS indexes that share no vector, each on a GPU of its own; 0 lists for a type without."""
        self.parts = tuple(parts)
        self.nprobe = nprobe
        self.n_lists = n_lists
        self.n_vectors = sum(int(part.ntotal) for part in parts)
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(len(parts)) if len(parts) > 1 else None

    def search(
        self, queries: Vectors, k: int, *, allowed: NDArray[np.bool_] | None = None, nprobe: int | None = None
    ) -> tuple[Ids, Vectors]:
        """Like `AnnIndex.search`, for at most `most_k` vectors and `most_nprobe` lists, and without `allowed`.

        Raises:
            BudgetExceeded: the GPU has no room for the search, or failed.
        """
        assert allowed is None  # see `can_filter`
        k = min(k, self.most_k, self.n_vectors)
        rows = np.ascontiguousarray(queries, np.float32)
        probed = min(nprobe or self.nprobe, self.n_lists, self.most_nprobe)
        parameters: Any = faiss.SearchParametersIVF(nprobe=probed) if probed else None  # type: ignore[call-arg]

        def ask(part: Any) -> tuple[Ids, Vectors]:  # noqa: ANN401
            D, ids = part.search(rows, min(k, int(part.ntotal)), params=parameters)
            return ids, np.where(ids >= 0, D, -np.inf).astype(np.float32)

        try:
            with self._lock:
                answers = list((map if self._threads is None else self._threads.map)(ask, self.parts))
        except RuntimeError as error:
            reason = str(error).splitlines()[-1][-160:]
            raise BudgetExceeded(
                f"the GPU failed in a search of {len(rows)} chunks for {k} each ({reason}); "
                "free its memory, or open the index on the CPU: --device cpu"
            ) from error
        return _merged(answers, k)

    def close(self) -> None:
        """Release the GPUs."""
        self.parts = ()
        if self._threads is not None:
            self._threads.shutdown()


@dataclass(frozen=True, slots=True)
class OpenReplica:
    """A replica that covers the chunks with ids up to `through_chunk`."""

    ann: Replica
    through_chunk: int
    summary: str  # type, vectors, bytes and GPUs


def _merged(answers: Sequence[tuple[Ids, Vectors]], k: int) -> tuple[Ids, Vectors]:
    """The best k of the results of all parts, best first."""
    ids, similarities = (np.concatenate(column, axis=1) for column in zip(*answers, strict=True))  # (I, P K)
    if len(answers) > 1 and ids.shape[1] > k:
        best = np.argpartition(-similarities, k - 1, axis=1)[:, :k]
        ids, similarities = (np.take_along_axis(column, best, axis=1) for column in (ids, similarities))
    order = np.argsort(-similarities, axis=1, kind="stable")
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(similarities, order, axis=1)
