"""FAISS over chunk vectors: choosing a factory string, building, opening, searching. No catalog here.

Letters in shapes: I query chunks, K results each, D width.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.errors import IndexDamaged, IndexMismatch
from engine.store.durable import Checksum, check_file, write_durably
from engine.store.faiss_distribution import require_one_faiss

require_one_faiss()
import faiss  # noqa: E402

Ids = NDArray[np.int64]

AUTO = "auto"
ANN_FOLDER = "ann"
FLAT_LIMIT = 50_000  # vectors up to which an exact index is quick enough and needs no training
TRAINING_POINTS_PER_LIST = 64


def choose_factory(n_vectors: int, width: int, memory_bytes: int | None = None) -> str:
    """The factory string that `auto` stands for.

    Few vectors are searched exactly. Many go to inverted lists of 4-bit product
    codes, the quickest type at equal recall, because their exact similarities
    are read from the shards afterwards; coarser codes where memory is short.

    Args:
        n_vectors: chunks to be covered.
        width: D.
        memory_bytes: what the index may take; without one, what is quickest.
    """
    ladder = ["Flat"] if n_vectors <= FLAT_LIMIT else []
    lists = f"IVF{n_lists_for(n_vectors)}"
    ladder += [f"{lists},PQ{m}x4fs" for m in (width // 2, width // 4, width // 8) if m and width % m == 0]
    fitting = [
        factory for factory in ladder if memory_bytes is None or index_bytes(factory, n_vectors, width) <= memory_bytes
    ]
    return fitting[0] if fitting else ladder[-1]


def n_lists_for(n_vectors: int) -> int:
    """Inverted lists for so many vectors: a power of two near 2 sqrt(n), at least 1."""
    n_lists: int = 1 << round(float(np.log2(2 * np.sqrt(max(n_vectors, 1)))))
    while n_lists > max(1, n_vectors // 39):  # FAISS wants 39 training points a list
        n_lists //= 2
    return max(1, n_lists)


def index_bytes(factory: str, n_vectors: int, width: int) -> int:
    """Estimated memory of an index of a common type: Flat, SQ, PQ or RaBitQ codes, with or without lists."""
    code = 4 * width
    for part in factory.split(","):
        if match := re.fullmatch(r"PQ(\d+)(?:x(\d+)(?:fsr?)?)?", part):
            code = -(-int(match[1]) * int(match[2] or 8) // 8)
        elif match := re.fullmatch(r"SQ(?:fp|bf)?(\d+)", part):
            code = width * int(match[1]) // 8
        elif part.startswith("RaBitQ"):
            code = width // 8 + 8
    return n_vectors * (code + 8) + n_lists_of(factory) * 4 * width


def n_lists_of(factory: str) -> int:
    """Inverted lists that a factory string asks for; 0 without."""
    match = re.search(r"IVF(\d+)", factory)
    return int(match[1]) if match else 0


def training_size(factory: str) -> int:
    """Vectors that a factory string wants to be trained on, at most."""
    return max(n_lists_of(factory), 1024) * TRAINING_POINTS_PER_LIST


def multiply_by_blas(width: int) -> None:
    """Let FAISS use BLAS in this process from three queries on.

    Below nq * d = 128,000 it leaves BLAS unused, which is up to 8 times slower (nq 256).
    """
    faiss.cvar.distance_compute_blas_threshold = 3 * width


class AnnIndex:
    """A FAISS index with our own ids; inner product, so cosine for unit rows."""

    def __init__(self, index: Any, nprobe: int = 0) -> None:  # noqa: ANN401
        """Wrap a FAISS index; `nprobe` is ignored by types that have none."""
        self._index = index
        self.nprobe = nprobe
        multiply_by_blas(index.d)

    @classmethod
    def build(cls, factory: str, width: int, sample: Vectors, blocks: Iterable[tuple[Ids, Vectors]]) -> AnnIndex:
        """Train on a sample and add vectors block by block.

        Args:
            factory: a FAISS factory string.
            width: D.
            sample: (n, D) float32 training rows.
            blocks: ids (B,) and rows (B, D) float32.

        Raises:
            IndexMismatch: FAISS does not know the string, or the type cannot take ids.
        """
        try:
            index = faiss.index_factory(width, _with_ids(factory), faiss.METRIC_INNER_PRODUCT)
            if ivf := _ivf(index):
                ivf.cp.max_points_per_centroid = TRAINING_POINTS_PER_LIST
                ivf.cp.niter = 10
            if not index.is_trained:
                index.train(sample)
            for ids, rows in blocks:
                index.add_with_ids(np.ascontiguousarray(rows, np.float32), ids)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).splitlines()[-1].strip()[-160:]
            raise IndexMismatch(
                f"FAISS cannot build factory {factory!r} over {len(sample)} training vectors {width} wide ({reason}); "
                "use --factory auto, Flat, SQ8, or IVF1024,PQ64x4fs"
            ) from error
        return cls(index)

    def write(self, path: Path) -> Checksum:
        """Write the index durably; a generation names it afterwards."""
        return write_durably(path, lambda unfinished: faiss.write_index(self._index, str(unfinished)))

    @classmethod
    def open(cls, path: Path, expected: Checksum, *, n_vectors: int, width: int, nprobe: int) -> AnnIndex:
        """Check a file, then map it; a damaged FAISS file would load and answer wrongly.

        Raises:
            IndexDamaged: the file is not the one that was written.
        """
        check_file(path, expected)
        faiss.set_deserialization_vector_byte_limit(max(1 << 20, 4 * expected.size_bytes))
        try:
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise IndexDamaged(f"{path} is no FAISS index ({error}); mend it: longmatch repair INDEX") from error
        if (index.ntotal, index.d) != (n_vectors, width):
            raise IndexDamaged(
                f"{path} holds {index.ntotal} vectors {index.d} wide, not {n_vectors} vectors {width} wide; "
                "mend it: longmatch repair INDEX"
            )
        return cls(index, nprobe)

    @property
    def n_lists(self) -> int:
        """Inverted lists, 0 for a type without."""
        ivf = _ivf(self._index)
        return int(ivf.nlist) if ivf else 0

    @property
    def n_vectors(self) -> int:
        """Vectors in the index, those of removed documents included."""
        return int(self._index.ntotal)

    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        """Ids and similarities of the nearest vectors of each query row.

        Returns:
            (I, K) int64 and (I, K) float32, best first; id -1 where there were fewer than K.
        """
        k = min(k, self.n_vectors)
        parameters = None
        if self.n_lists and self.nprobe:
            parameters = faiss.SearchParametersIVF(nprobe=self.nprobe)  # type: ignore[call-arg]
        D, I = self._index.search(np.ascontiguousarray(queries, np.float32), k, params=parameters)  # noqa: E741
        return I, D


def _with_ids(factory: str) -> str:
    has_own_ids = factory.startswith(("IDMap", "IVF")) or ",IVF" in factory
    return factory if has_own_ids else f"IDMap2,{factory}"


def _ivf(index: Any) -> Any:  # noqa: ANN401
    """The inverted-file index inside, or None."""
    try:
        return faiss.extract_index_ivf(index)
    except RuntimeError:
        return None
