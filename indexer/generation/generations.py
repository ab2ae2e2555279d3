"""FAISS generations: built from the shards or extended, measured against exact search, and only then published.

New documents are added to the published generation where it can take them, so that the cost depends on them and not on
the whole index: the trained lists and codes stay. With more than twice the vectors of the training, it is rebuilt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.encoders.encoder import Vectors
from engine.errors import BudgetExceeded, IndexDamaged, RecallTooLow
from engine.store.durable import Checksum
from engine.store.factory import AUTO, index_bytes, is_exact_factory, training_size
from engine.store.postings import Postings
from engine.store.snapshot import IndexSnapshot, OpenGeneration, Positions
from engine.store.writer import Writer
from engine.words.apart import ranges
from engine.words.counts import WordTables
from indexer.generation.index_choice import SCAN, BuildSizes, IndexOption, Size, describe_options, index_options
from indexer.generation.recall import RECALL_FLOOR, RecallSample, tune
from indexer.generation.resources import DiskGuard

if TYPE_CHECKING:
    from engine.store.ann import AnnIndex, Ids

FRESH_SHARE = 0.01  # ratio of fresh to covered chunks above which a new generation is worth its time
FRESH_CHUNKS = 5_000  # up to this number, fresh chunks are scanned in a few milliseconds
FRESH_MOST = 20_000  # more fresh chunks need a new generation, however many chunks are covered
POSTINGS_FILE = "words.safetensors"
MANY_WITHOUT_VECTORS = 5_000  # documents; up to this number queries read all term counts, beyond it postings choose
_POSTINGS_AT_ONCE = 1_000  # documents whose term counts are inverted together


@dataclass(frozen=True, slots=True)
class Generation:
    """A published generation."""

    number: int
    factory: str
    nprobe: int
    n_vectors: int
    recall: float
    is_exact: bool


def needs_generation(snapshot: IndexSnapshot, factory: str) -> bool:
    """Whether fresh documents, removals or another factory string call for a new generation."""
    row = snapshot.generation_row
    if row is None:
        return snapshot.n_chunks > 0
    if factory != AUTO and factory != row.factory:
        return True
    n_fresh = int(snapshot.locations.n_chunks[snapshot.is_fresh(row.through_chunk)].sum())
    return is_outgrown(int(row.n_vectors), snapshot.n_chunks - n_fresh, n_fresh)


def is_outgrown(n_vectors: int, n_covered: int, n_fresh: int) -> bool:
    """Whether too many documents were added or removed since a generation was built.

    Args:
        n_vectors: vectors in the generation.
        n_covered: vectors in the generation whose documents are still in the index.
        n_fresh: chunks added later.
    """
    n_dead = n_vectors - n_covered
    n_scanned = max(FRESH_CHUNKS, min(FRESH_SHARE * n_covered, FRESH_MOST))
    return n_fresh > n_scanned or n_dead > max(FRESH_CHUNKS, n_covered)


def publish_generation(
    writer: Writer,
    factory: str = AUTO,
    *,
    left_bytes: int | None = None,
    disk: DiskGuard | None = None,
    recall_floor: float = RECALL_FLOOR,
    seed: int = 0,
    log: Callable[[str], None] = lambda _: None,
) -> Generation:
    """Build, measure, and publish a generation over all documents.

    Raises:
        BudgetExceeded: memory or disk do not hold the generation; nothing changed.
        RecallTooLow: no nprobe reaches the floor; nothing changed.
        IndexMismatch: FAISS cannot build the factory string over these vectors.
    """
    with IndexSnapshot(writer.folder) as snapshot:
        return _publish_new(
            writer, snapshot, factory, left_bytes=left_bytes, disk=disk, recall_floor=recall_floor, seed=seed, log=log
        )


def _publish_new(
    writer: Writer,
    snapshot: IndexSnapshot,
    factory: str,
    *,
    left_bytes: int | None,
    disk: DiskGuard | None,
    recall_floor: float,
    log: Callable[[str], None],
    seed: int = 0,
) -> Generation:
    """As `publish_generation`, from the newest snapshot."""
    options = options_for(snapshot, factory, left_bytes)
    option, chosen = options[-1], options[-1].factory
    for line in describe_options(options, left_bytes) if left_bytes is not None else []:
        log(line)
    if chosen == SCAN:
        raise BudgetExceeded(
            f"no FAISS index over {snapshot.n_chunks:,} vectors {snapshot.width} wide can be built in "
            f"{max(0, left_bytes or 0) / 1e6:,.1f} MB; queries go on scanning the shards, or allow more --memory"
        )
    log(f"building {chosen} over {snapshot.n_chunks:,} chunk vectors")
    rng = np.random.default_rng(seed)
    ann = _built(snapshot, chosen, option.sizes, rng)
    is_exact = is_exact_factory(chosen)
    postings = None if is_exact else build_postings(snapshot)
    candidate = OpenGeneration(ann, last_chunk(snapshot), is_exact, postings)
    recall, n_queries = 1.0, 0
    if not candidate.is_exact:
        sample = RecallSample(snapshot, rng, scan_chunks=option.sizes.scan_chunks)
        recall, n_queries = tune(sample, candidate, recall_floor, log), len(sample)
    guard = disk or DiskGuard(writer.folder)
    return publish(writer, candidate, Measured(chosen, recall, n_queries), guard, trained_vectors=ann.n_vectors)


def last_chunk(snapshot: IndexSnapshot) -> int:
    """The highest id of a chunk."""
    return int((snapshot.locations.first_chunk + snapshot.locations.n_chunks).max(initial=1)) - 1


@dataclass(frozen=True, slots=True)
class Measured:
    """The type and recall of a generation, which the catalog records."""

    factory: str
    recall: float  # 1 for an exact one, which is not measured
    n_queries: int


def publish(
    writer: Writer, candidate: OpenGeneration, measured: Measured, disk: DiskGuard, *, trained_vectors: int
) -> Generation:
    """Write a FAISS index, and record it in the catalog in place of the previous generation.

    Args:
        trained_vectors: vectors that the index had when the candidate was trained.

    Raises:
        BudgetExceeded: the disk does not hold the candidate; nothing changed.
    """
    ann = candidate.ann
    with disk.room_for(index_bytes(measured.factory, ann.n_vectors, ann.width), "the FAISS index"):
        number, path = writer.next_generation_file()
        written = ann.write(path)
    postings = None
    if candidate.postings is not None:
        with disk.room_for(candidate.postings.n_bytes, "the postings of words"):
            words = path.with_name(POSTINGS_FILE)
            postings = words.relative_to(writer.folder).as_posix(), candidate.postings.write(words)
    nprobe = ann.nprobe if ann.n_lists else 0
    generation = {
        "id": number,
        "factory": measured.factory,
        "nprobe": nprobe,
        "through_chunk": candidate.through_chunk,
        "n_vectors": ann.n_vectors,
        "is_exact": candidate.is_exact,
        "recall": measured.recall,
        "recall_queries": measured.n_queries,
        "file": path.relative_to(writer.folder).as_posix(),
        "size_bytes": written.size_bytes,
        "digest": written.digest,
    }
    writer.publish(generation, trained_vectors=trained_vectors, postings=postings)
    return Generation(number, measured.factory, nprobe, ann.n_vectors, measured.recall, candidate.is_exact)


def options_for(snapshot: IndexSnapshot, factory: str, left_bytes: int | None) -> tuple[IndexOption, ...]:
    """The types of index that were considered, the chosen one last; see `index_options`."""
    return index_options(factory, Size(snapshot.n_documents, snapshot.n_chunks, snapshot.width), left_bytes)


def build_postings(snapshot: IndexSnapshot, positions: Positions | None = None) -> Postings:
    """The postings of words over documents of a snapshot, by default all."""
    if positions is None:
        positions = np.arange(snapshot.n_documents)

    def blocks() -> Iterator[WordTables]:
        for first in range(0, len(positions), _POSTINGS_AT_ONCE):
            yield snapshot.words(positions[first : first + _POSTINGS_AT_ONCE])

    return Postings.build(snapshot.locations.ids[positions], blocks, snapshot.reference.statistics)


def refresh_word_postings(writer: Writer, disk: DiskGuard | None = None) -> None:
    """Publish postings over the documents without vectors, if there are many and no generation has postings.

    The postings are rebuilt when the documents have outgrown them, and withdrawn when few documents lack vectors.

    Raises:
        BudgetExceeded: the disk does not hold the postings; nothing changed.
    """
    if not writer.holds_anything:
        return
    with IndexSnapshot(writer.folder) as snapshot:
        there, generation = snapshot.word_postings_row, snapshot.generation_row
        without = np.flatnonzero(~snapshot.has_vectors)
        is_chosen_otherwise = generation is not None and not generation.is_exact
        if len(without) <= MANY_WITHOUT_VECTORS or is_chosen_otherwise:
            if there is not None:
                writer.withdraw_word_postings()
            return
        if there is not None and snapshot.word_postings is not None:
            covered = np.isin(snapshot.locations.ids[without], snapshot.word_postings.ids)
            if not is_outgrown(there.n_documents, int(np.count_nonzero(covered)), int(np.count_nonzero(~covered))):
                return
        postings = build_postings(snapshot, without)
    with (disk or DiskGuard(writer.folder)).room_for(postings.n_bytes, "the postings of words"):
        writer.publish_word_postings(postings)


def _built(snapshot: IndexSnapshot, factory: str, sizes: BuildSizes, rng: np.random.Generator) -> AnnIndex:
    from engine.store.ann import AnnIndex  # loads FAISS, which an index without vectors does not need

    n_training = training_size(factory, sizes.points_per_list)
    blocks = chunk_blocks(snapshot, np.flatnonzero(snapshot.has_vectors), sizes.block_chunks)
    return AnnIndex.build(
        factory, snapshot.width, lambda: _sample(snapshot, n_training, rng), blocks, n_vectors=snapshot.n_chunks
    )


def _sample(snapshot: IndexSnapshot, size: int, rng: np.random.Generator) -> Vectors:
    """Training rows, drawn by whole documents so that few shards are touched."""
    order = rng.permutation(snapshot.n_documents)
    enough = int(np.searchsorted(np.cumsum(snapshot.locations.n_chunks[order]), size)) + 1
    vectors, _ = snapshot.chunk_vectors(np.sort(order[:enough]))
    # A view, which avoids a copy; it only cuts the rows of the last document beyond `size`.
    return vectors[:size]


def chunk_blocks(snapshot: IndexSnapshot, positions: Positions, block_chunks: int) -> Iterator[tuple[Ids, Vectors]]:
    """Ids and vectors of documents in runs of about `block_chunks` chunks; a longer document is a run by itself."""
    locations = snapshot.locations
    block = (np.cumsum(locations.n_chunks[positions]) - 1) // block_chunks
    for run in np.split(positions, np.flatnonzero(np.diff(block)) + 1):
        vectors, _ = snapshot.chunk_vectors(run)
        yield ranges(locations.first_chunk[run], locations.n_chunks[run]), vectors


GROWTH = 2  # largest ratio of vectors to those at training for which the trained lists and codes are kept
EXTENSION_QUERIES = 48  # to measure the recall with
CHANCE = 0.015  # by which a sample of this size can underestimate recall; else each extension would raise nprobe


@dataclass(frozen=True, slots=True)
class GenerationState:
    """A published generation, and how much of it the present documents use."""

    factory: str
    n_vectors: int  # in the generation
    n_trained: int  # vectors that the index had when the generation was trained
    n_covered: int  # vectors in the generation whose documents are still in the index
    n_fresh: int  # chunks added later

    def takes_in(self, requested: str, built: str) -> bool:
        """Whether new documents can join.

        The generation must be of the requested type, hold no more vectors of removed
        documents than of others, and not grow beyond `GROWTH`.

        Args:
            requested: a factory string, or `auto`, which leaves the number of lists open.
            built: the factory string that would be built now.
        """
        is_type = _kind(self.factory) == _kind(built) if requested == AUTO else self.factory == requested
        return (
            self.n_fresh > 0
            and is_type
            and self.n_vectors <= 2 * self.n_covered
            and self.n_vectors + self.n_fresh <= GROWTH * self.n_trained
        )


def can_extend(snapshot: IndexSnapshot, factory: str, option: IndexOption, left_bytes: int | None) -> bool:
    """Whether the published generation can take the new documents, and they fit.

    Args:
        option: the index that would be built instead.
    """
    row = snapshot.generation_row
    if row is None:
        return False
    n_fresh = int(snapshot.locations.n_chunks[snapshot.is_fresh(row.through_chunk)].sum())
    trained = snapshot.meta.get("trained_vectors", row.n_vectors)
    state = GenerationState(row.factory, row.n_vectors, trained, snapshot.n_chunks - n_fresh, n_fresh)
    needed = index_bytes(row.factory, row.n_vectors + n_fresh, snapshot.width) + option.work_bytes
    return state.takes_in(factory, option.factory) and (left_bytes is None or needed <= left_bytes)


def extend_generation(
    writer: Writer,
    snapshot: IndexSnapshot,
    option: IndexOption,
    *,
    disk: DiskGuard | None = None,
    recall_floor: float = RECALL_FLOOR,
    seed: int = 0,
    log: Callable[[str], None] = lambda _: None,
) -> Generation | None:
    """Add the documents that are newer than the published generation, measure the recall, and publish.

    Args:
        option: block sizes and working memory.

    Returns:
        The new generation. None if the old one is damaged or the recall of the extended
        one is too low: nothing changed, and the generation must be rebuilt.

    Raises:
        BudgetExceeded: the disk does not hold it; nothing changed.
    """
    from engine.store.ann import AnnIndex  # loads FAISS

    row = snapshot.generation_row
    assert row is not None
    fresh = np.flatnonzero(snapshot.is_fresh(row.through_chunk) & snapshot.has_vectors)
    log(f"adding {int(snapshot.locations.n_chunks[fresh].sum()):,} chunk vectors to {row.factory}")
    try:
        ann = AnnIndex.open(
            writer.folder / row.file,
            Checksum(row.size_bytes, row.digest),
            n_vectors=row.n_vectors,
            width=snapshot.width,
            nprobe=row.nprobe,
            is_mapped=False,
        )
    except IndexDamaged as error:
        log(f"rebuilding: {error}")
        return None
    ann.add(chunk_blocks(snapshot, fresh, option.sizes.block_chunks))
    postings = None if row.is_exact else build_postings(snapshot)
    candidate = OpenGeneration(ann, last_chunk(snapshot), row.is_exact, postings)
    recall, n_queries = 1.0, 0
    if not row.is_exact:
        sample = RecallSample(
            snapshot,
            np.random.default_rng(seed),
            n_queries=EXTENSION_QUERIES,
            scan_chunks=option.sizes.scan_chunks,
        )
        try:
            recall = tune(sample, candidate, recall_floor, log, row.nprobe, CHANCE)
            n_queries = len(sample)
        except RecallTooLow as error:
            log(f"rebuilding: {error}")
            return None
    trained = snapshot.meta.get("trained_vectors", row.n_vectors)
    measured = Measured(row.factory, recall, n_queries)
    return publish(writer, candidate, measured, disk or DiskGuard(writer.folder), trained_vectors=trained)


def _kind(factory: str) -> str:
    """A factory string without its number of lists."""
    return re.sub(r"IVF\d+", "IVF", factory)


def refresh_generation(
    writer: Writer,
    factory: str,
    *,
    left_bytes: int | None = None,
    disk: DiskGuard | None = None,
    recall_floor: float = RECALL_FLOOR,
    log: Callable[[str], None] = lambda _: None,
) -> None:
    """Publish a generation if the documents have outgrown the published one, and some type of index fits.

    New documents are added to the published generation where it can take them;
    otherwise it is rebuilt. If no type fits, queries scan the documents that no generation covers.
    Arguments and errors as in `publish_generation`.
    """
    with IndexSnapshot(writer.folder) as snapshot:
        if not needs_generation(snapshot, factory):
            return
        options = options_for(snapshot, factory, left_bytes)
        if options[-1].factory == SCAN:
            for line in describe_options(options, left_bytes):
                log(line)
            return
        if can_extend(snapshot, factory, options[-1], left_bytes) and extend_generation(
            writer, snapshot, options[-1], disk=disk, recall_floor=recall_floor, log=log
        ):
            return
        _publish_new(writer, snapshot, factory, left_bytes=left_bytes, disk=disk, recall_floor=recall_floor, log=log)
