"""Fallbacks when memory is short: index types from best to smallest, and the memory to build each of them.

    float32, exact  ->  float16, exact  ->  8 bits  ->  4-bit codes in lists, coarser and coarser,
    with exact similarities from the shards  ->  no index: queries scan the mapped shards

Many vectors begin at the lists, because lists are faster. Before a type is rejected, it is tried with fewer training
vectors and smaller blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import BudgetExceeded
from engine.scoring.similarity import QUERY_BLOCK
from engine.search.searcher import PASS_CHUNKS
from engine.store.factory import (
    AUTO,
    MIN_POINTS_PER_LIST,
    TRAINING_POINTS_PER_LIST,
    factory_options,
    index_bytes,
    is_exact_factory,
    n_lists_of,
    training_size,
)

SCAN = "scan"  # no FAISS index: requested, or no factory string fits
# For each number of a row: float32 and float16 while it is gathered, float32 and codes inside FAISS.
_BLOCK_BYTES = 10
_SCAN_BYTES = 6  # for each number of a row that is multiplied with queries
# For each document: the locations, twice while it is read, and a name.
_DOCUMENT_BYTES = 256


@dataclass(frozen=True, slots=True)
class BuildSizes:
    """How much of the vectors is in memory at one time while an index is built."""

    points_per_list: int = TRAINING_POINTS_PER_LIST  # training vectors
    block_chunks: int = 16_384  # vectors added at once
    scan_chunks: int = 32_768  # compared at once, when the recall is measured


SMALL = BuildSizes(MIN_POINTS_PER_LIST, 2_048, 2_048)


@dataclass(frozen=True, slots=True)
class Size:
    """The size of the data under an index."""

    n_documents: int
    n_chunks: int
    width: int


@dataclass(frozen=True, slots=True)
class IndexOption:
    """One type of index, and the memory that building it takes."""

    factory: str  # or `SCAN`
    index_bytes: int
    work_bytes: int  # beyond the index: the largest of training before it is filled, adding blocks, measuring recall
    sizes: BuildSizes
    fits: bool

    @property
    def needed_bytes(self) -> int:
        """Memory of index and work together."""
        return self.index_bytes + self.work_bytes


def index_options(factory: str, size: Size, left_bytes: int | None) -> tuple[IndexOption, ...]:
    """The options down to the first that fits; `SCAN` always fits.

    Raises:
        BudgetExceeded: `factory` is a factory string that does not fit.
    """
    scanning = IndexOption(SCAN, 0, 0, SMALL, fits=True)
    if factory == SCAN:
        return (scanning,)
    options: list[IndexOption] = []
    for one in factory_options(size.n_chunks, size.width) if factory == AUTO else [factory]:
        options.append(_option(one, size, left_bytes))
        if options[-1].fits:
            return tuple(options)
    if factory != AUTO:
        raise _does_not_fit(options[-1], size, left_bytes)
    return (*options, scanning)


def check_factory_option(factory: str, width: int) -> None:
    """Refuse a factory string that FAISS does not know, before anything is read or encoded.

    Raises:
        IndexMismatch: FAISS does not know the factory string, or cannot build it at this width.
    """
    if factory not in (AUTO, SCAN):
        from engine.store.ann import check_factory  # loads FAISS

        check_factory(factory, width)


def describe_options(options: Sequence[IndexOption], left_bytes: int | None) -> list[str]:
    """One line for each option: its memory, and whether it was chosen or why not."""
    lines = []
    for option in options:
        if option.factory == SCAN:
            lines.append("> no FAISS index: queries scan the mapped shards, exactly and slowly")
            continue
        need = f"{option.factory} ({_precision(option.factory)}) takes {option.needed_bytes / 1e6:,.1f} MB to build"
        if not option.fits:
            assert left_bytes is not None
            lines.append(f"  {need}, {max(0, left_bytes) / 1e6:,.1f} MB are left")
        else:
            lines.append(f"> {need}" + (", in small blocks" if option.sizes == SMALL else ""))
    return lines


def _precision(factory: str) -> str:
    if is_exact_factory(factory):
        return "exact"
    if n_lists_of(factory):
        return "codes in lists, rescored exactly from the shards"
    return "codes, rescored exactly from the shards"


def _option(factory: str, size: Size, left_bytes: int | None) -> IndexOption:
    held = index_bytes(factory, size.n_chunks, size.width)
    for sizes in (BuildSizes(), SMALL):
        work = _work_bytes(factory, size, sizes, held)
        fits = left_bytes is None or held + work <= left_bytes
        if fits:
            break
    return IndexOption(factory, held, work, sizes, fits)


def _work_bytes(factory: str, size: Size, sizes: BuildSizes, held: int) -> int:
    n_training = min(training_size(factory, sizes.points_per_list), size.n_chunks)
    training = 4 * size.width * (n_training + n_lists_of(factory)) - held
    block = _BLOCK_BYTES * size.width * min(sizes.block_chunks, size.n_chunks)
    documents = _DOCUMENT_BYTES * size.n_documents
    if is_exact_factory(factory):
        return block + documents
    n_scanned = min(sizes.scan_chunks, size.n_chunks)
    scanned = (_SCAN_BYTES * size.width + 4 * QUERY_BLOCK) * n_scanned
    query_bytes = 8 * size.width * min(PASS_CHUNKS, size.n_chunks)  # query chunks, one by one and together
    return max(training, block, scanned + query_bytes + 2 * size.width * size.n_documents) + documents


def _does_not_fit(option: IndexOption, size: Size, left_bytes: int | None) -> BudgetExceeded:
    *types, smallest = factory_options(size.n_chunks, size.width)
    fitting = (name for name in types if index_bytes(name, size.n_chunks, size.width) <= (left_bytes or 0))
    return BudgetExceeded(
        f"a {option.factory} index over {size.n_chunks:,} vectors {size.width} wide takes "
        f"{option.needed_bytes / 1e6:,.1f} MB while it is built, --memory leaves {max(0, left_bytes or 0) / 1e6:,.1f} "
        f"MB for it; allow {-(-(option.needed_bytes - (left_bytes or 0)) // 1_000_000):,} MB more, or use "
        f"--factory auto, or a smaller one, for example {next(fitting, smallest)}"
    )
