"""Which index types are measured on a collection, and with which settings."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from benchmarks.packages import require
from benchmarks.vectors.candidate import Candidate, Library, VectorIndex
from engine.errors import IndexMismatch
from engine.store.ann import factory_ladder, n_lists_for, n_lists_of

EXTRA = "ann"
# hnswlib's own defaults, given to every graph alike.
LINKS = 16
EF_CONSTRUCTION = 200
EFS = (16, 32, 64, 128, 256, 512, 1024)
_REFINED = 10  # candidates read again for each neighbour wanted, where FAISS does the rescoring


def candidates(
    n_vectors: int, width: int, libraries: Collection[Library], *, k: int = 10, is_quick: bool = False
) -> list[Candidate]:
    """The types of some libraries for so many vectors; ours are all that `auto` can stand for.

    Args:
        n_vectors: C.
        width: D.
        libraries: whose.
        k: neighbours asked for; a graph is searched at least as widely.
        is_quick: only some of the settings, the widest among them.
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
    """Those with one of some factory strings, or all where none is named.

    Raises:
        IndexMismatch: no type has such a string.
    """
    known = {candidate.factory: None for candidate in tried}
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
    """Look for the packages of libraries without importing them.

    Raises:
        MissingExtra: one is not installed.
    """
    for library in libraries:
        if library in (Library.HNSWLIB, Library.USEARCH):
            require(f"measuring {library}", {library: library}, EXTRA)


def make_index(candidate: Candidate, *, build_threads: int, threads: int, seed: int) -> VectorIndex:
    """An index of this type with nothing in it; its library is imported now."""
    match candidate.library:
        case Library.LONGMATCH:
            from benchmarks.vectors.generation import GenerationIndex

            return GenerationIndex(candidate.factory, seed=seed)
        case Library.FAISS:
            from benchmarks.vectors.faiss_types import FaissIndex

            return FaissIndex(candidate.factory, ef_construction=EF_CONSTRUCTION)
        case Library.HNSWLIB:
            from benchmarks.vectors.hnswlib_graph import HnswlibIndex

            return HnswlibIndex(
                links=LINKS,
                ef_construction=EF_CONSTRUCTION,
                build_threads=build_threads,
                threads=threads,
                seed=seed,
            )
        case Library.USEARCH:
            from benchmarks.vectors.usearch_graph import UsearchIndex

            return UsearchIndex(
                links=LINKS,
                ef_construction=EF_CONSTRUCTION,
                dtype=candidate.factory.rpartition(",")[2],
                build_threads=build_threads,
                threads=threads,
            )
