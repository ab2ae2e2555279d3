"""The index types that are measured, of four libraries behind one interface, and their settings of search.

Letters in shapes: C rows, I query chunks, K neighbours, D width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from benchmarks.packages import require
from engine.encoders.encoder import Vectors
from engine.errors import IndexMismatch
from engine.store.ann import AnnIndex, Ids, factory_ladder, is_exact_factory, n_lists_for, n_lists_of, training_size
from indexer.generation.index_choice import BuildSizes

EXTRA = "ann"
# hnswlib's own defaults, used for every graph.
LINKS = 16
EF_CONSTRUCTION = 200
EFS = (16, 32, 64, 128, 256, 512, 1024)
_REFINED = 10  # candidates rescored for each neighbour requested, where FAISS rescores


class Library(StrEnum):
    """The library of an index."""

    LONGMATCH = "longmatch"
    FAISS = "faiss"
    HNSWLIB = "hnswlib"
    USEARCH = "usearch"


@dataclass(frozen=True)
class Candidate:
    """An index type, and the settings that it is searched with, one after the other."""

    library: Library
    factory: str  # FAISS's own string; of a graph: links of a node, width of the building search, precision
    settings: tuple[str, ...]  # as FAISS writes them: "nprobe=8"; "" where there is nothing to set

    @property
    def name(self) -> str:
        """The name in tables and of files."""
        return f"{self.library} {self.factory}"


@dataclass(frozen=True)
class Conditions:
    """How every type is built and searched."""

    k: int
    threads: int
    build_threads: int
    seed: int


class VectorIndex(ABC):
    """An index over rows, numbered from 0 as they come."""

    is_rescored: bool = False  # similarities of rows found are computed from the stored rows, as in longmatch's search
    search_width: int | None = None  # of a graph, at least as wide as the rows requested; None for other types

    def __init__(self, factory: str, conditions: Conditions) -> None:
        self._factory = factory
        self._conditions = conditions

    @abstractmethod
    def build(self, rows: Vectors) -> None:
        """Add (C, D) unit rows; called once."""

    @abstractmethod
    def set(self, setting: str) -> None:
        """Search with this setting from now on."""

    @abstractmethod
    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        """(I, K) rows and similarities, best first, K at most `k`; row -1 where there were fewer."""

    @abstractmethod
    def write(self, path: Path) -> None:
        """Write all that a search needs to one file; a rescored type also needs the rows beside it."""


def value_of(setting: str) -> int:
    """The number in a setting, as in "nprobe=8"."""
    return int(setting.rpartition("=")[2])


class _GenerationIndex(VectorIndex):
    """`engine.store.ann.AnnIndex`, trained and filled as a new generation is; similarities are those of the codes."""

    def __init__(self, factory: str, conditions: Conditions) -> None:
        super().__init__(factory, conditions)
        self.is_rescored = not is_exact_factory(factory)

    def build(self, rows: Vectors) -> None:
        sizes = BuildSizes()
        n = min(len(rows), training_size(self._factory, sizes.points_per_list))
        sample = np.sort(np.random.default_rng(self._conditions.seed).choice(len(rows), n, replace=False))
        size = sizes.block_chunks
        blocks = ((first, rows[first : first + size]) for first in range(0, len(rows), size))
        numbered = ((np.arange(first, first + len(block)), block) for first, block in blocks)
        self._index = AnnIndex.build(self._factory, rows.shape[1], lambda: rows[sample], numbered, n_vectors=len(rows))

    def set(self, setting: str) -> None:
        self._index.nprobe = value_of(setting) if setting else 0

    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        return self._index.search(queries, k)

    def write(self, path: Path) -> None:
        self._index.write(path)


class _FaissIndex(VectorIndex):
    """FAISS by itself: any type that a factory string names, inner product, trained on all rows."""

    _parameters: Any = faiss.ParameterSpace()  # its stubs know only one of the two calls

    def build(self, rows: Vectors) -> None:
        self._index: Any = faiss.index_factory(rows.shape[1], self._factory, faiss.METRIC_INNER_PRODUCT)
        if "HNSW" in self._factory:
            self._parameters.set_index_parameters(self._index, f"efConstruction={EF_CONSTRUCTION}")
        self._index.train(rows)
        self._index.add(rows)

    def set(self, setting: str) -> None:
        if setting:
            self._parameters.set_index_parameters(self._index, setting)
        if "HNSW" in self._factory:
            self.search_width = value_of(setting)

    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        D, I = self._index.search(queries, min(k, self._index.ntotal))  # noqa: E741
        return I, D

    def write(self, path: Path) -> None:
        faiss.write_index(self._index, str(path))


class _HnswlibIndex(VectorIndex):
    """A graph of hnswlib over float32 rows, in its inner-product space."""

    search_width = EF_CONSTRUCTION

    def build(self, rows: Vectors) -> None:
        import hnswlib

        self._index = hnswlib.Index(space="ip", dim=rows.shape[1])
        sizes = {"max_elements": len(rows), "M": LINKS, "ef_construction": EF_CONSTRUCTION}
        self._index.init_index(**sizes, random_seed=self._conditions.seed)
        self._index.add_items(rows, np.arange(len(rows)), num_threads=self._conditions.build_threads)

    def set(self, setting: str) -> None:
        self.search_width = value_of(setting)

    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        k = min(k, self._index.get_current_count())
        self._index.set_ef(max(self.search_width, k))  # hnswlib requires at least k
        labels, distances = self._index.knn_query(queries, k, num_threads=self._conditions.threads)
        return labels.astype(np.int64), 1 - distances

    def write(self, path: Path) -> None:
        self._index.save_index(str(path))


class _UsearchIndex(VectorIndex):
    """A graph of usearch over rows in float32 (f32), half precision (f16) or bytes (i8), in its cosine metric."""

    search_width = EF_CONSTRUCTION

    def build(self, rows: Vectors) -> None:
        from usearch.index import Index

        sizes = {"ndim": rows.shape[1], "connectivity": LINKS, "expansion_add": EF_CONSTRUCTION}
        self._index = Index(**sizes, metric="cos", dtype=self._factory.rpartition(",")[2])
        self._index.add(np.arange(len(rows)), rows, threads=self._conditions.build_threads)

    def set(self, setting: str) -> None:
        self.search_width = value_of(setting)
        self._index.expansion_search = value_of(setting)

    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        found = self._index.search(queries, min(k, len(self._index)), threads=self._conditions.threads)
        keys = np.asarray(found.keys).reshape(len(queries), -1).astype(np.int64)
        similarities = 1 - np.asarray(found.distances, np.float32).reshape(keys.shape)
        # The unfilled rest of a short list holds zeros, which are no keys; a single query gets a shorter list.
        counts = np.broadcast_to(getattr(found, "counts", keys.shape[1]), len(queries))
        is_empty = np.arange(keys.shape[1]) >= counts[:, None]
        return np.where(is_empty, -1, keys), np.where(is_empty, -np.inf, similarities).astype(np.float32)

    def write(self, path: Path) -> None:
        self._index.save(str(path))


_INDEXES: Mapping[Library, type[VectorIndex]] = {
    Library.LONGMATCH: _GenerationIndex,
    Library.FAISS: _FaissIndex,
    Library.HNSWLIB: _HnswlibIndex,
    Library.USEARCH: _UsearchIndex,
}


def make_index(candidate: Candidate, conditions: Conditions) -> VectorIndex:
    """An empty index of this type."""
    return _INDEXES[candidate.library](candidate.factory, conditions)


def candidates(
    n_vectors: int, width: int, libraries: Collection[Library], *, k: int = 10, is_quick: bool = False
) -> list[Candidate]:
    """The types of some libraries for `n_vectors` vectors; those of longmatch are all that `auto` can choose.

    A graph is searched at least as widely as `k`. A quick run has only some of the settings, the widest among them.
    """
    widths = sorted({max(ef, k) for ef in EFS})
    graphs = tuple(f"ef={ef}" for ef in widths)
    of_library = {
        Library.LONGMATCH: [(factory, _probes(factory)) for factory in factory_ladder(n_vectors, width)],
        Library.FAISS: _faiss_types(n_vectors, width, widths),
        Library.HNSWLIB: [(f"M{LINKS},efC{EF_CONSTRUCTION}", graphs)],
        Library.USEARCH: [(f"M{LINKS},efC{EF_CONSTRUCTION},{dtype}", graphs) for dtype in ("f32", "f16", "i8")],
    }
    step = 3 if is_quick else 1
    return [
        Candidate(library, factory, settings[::-step][::-1])
        for library in Library
        if library in libraries
        for factory, settings in of_library[library]
    ]


def of_factories(tried: Sequence[Candidate], factories: Collection[str]) -> list[Candidate]:
    """The types with one of some factory strings, or all where no string is given."""
    known = dict.fromkeys(candidate.factory for candidate in tried)
    if unknown := [factory for factory in factories if factory not in known]:
        raise IndexMismatch(f"{unknown[0]!r} is none of the types that are measured here: {'  '.join(known)}")
    return [candidate for candidate in tried if not factories or candidate.factory in factories]


def _faiss_types(n_vectors: int, width: int, widths: Collection[int]) -> list[tuple[str, tuple[str, ...]]]:
    lists = f"IVF{n_lists_for(n_vectors)}"
    probes = _probes(lists)
    types: list[tuple[str, tuple[str, ...]]] = [(factory, ("",)) for factory in ("Flat", "SQfp16", "SQ8")]
    types += [(f"{lists},{codes}", probes) for codes in ("Flat", "SQ8", "RaBitQ")]
    if width % 2 == 0:
        codes = f"{lists},PQ{width // 2}x4fs"
        refined = tuple(f"{setting},k_factor_rf={_REFINED}" for setting in probes)
        types += [(codes, probes), (f"{codes},Refine(SQfp16)", refined)]
    graphs = tuple(f"efSearch={ef}" for ef in widths)
    return types + [(f"HNSW{LINKS}{codes}", graphs) for codes in ("", "_SQ8")]


def _probes(factory: str) -> tuple[str, ...]:
    """nprobe in powers of two up to half of the lists; one empty setting for a type without lists."""
    n_lists = n_lists_of(factory)
    if not n_lists:
        return ("",)
    return tuple(f"nprobe={1 << power}" for power in range(max(1, n_lists // 2).bit_length()))


def check_packages(libraries: Collection[Library]) -> None:
    """Check that the packages of libraries are installed, without importing them."""
    for library in libraries:
        if library in (Library.HNSWLIB, Library.USEARCH):
            require(f"measuring {library}", {library: library}, EXTRA)
