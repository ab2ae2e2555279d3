"""A new FAISS generation: built from the shards, measured against exact search, and only then published."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from engine.encoders.encoder import Vectors
from engine.errors import RecallTooLow
from engine.search import Query, Searcher
from engine.store.ann import AUTO, AnnIndex, Ids, choose_factory, training_size
from engine.store.snapshot import OpenGeneration, Snapshot, ranges
from engine.store.writer import Writer

RECALL_FLOOR = 0.95  # of the exact top 10 documents; under it nothing is published
RECALL_TARGET = 0.98  # and up to which nprobe is raised
RECALL_K = 10
RECALL_QUERIES = 48
FRESH_SHARE = 0.1  # fresh chunks, relative to those covered, that make a new generation worth its time
FRESH_CHUNKS = 5_000  # fewer are scanned in a few milliseconds
_BLOCK_DOCUMENTS = 512
_FIRST_NPROBE = 8


@dataclass(frozen=True, slots=True)
class Generation:
    """What was published."""

    number: int
    factory: str
    nprobe: int
    n_vectors: int
    recall: float
    is_exact: bool


def needs_generation(snapshot: Snapshot, factory: str) -> bool:
    """Whether fresh documents, removals or another factory string call for a new generation."""
    row = snapshot.generation_row
    if row is None:
        return snapshot.n_chunks > 0
    if factory != AUTO and factory != row.factory:
        return True
    n_fresh = int(snapshot.roster.n_chunks[snapshot.is_fresh(row.through_chunk)].sum())
    n_covered = snapshot.n_chunks - n_fresh
    n_dead = row.n_vectors - n_covered
    return n_fresh > max(FRESH_CHUNKS, FRESH_SHARE * n_covered) or n_dead > max(FRESH_CHUNKS, n_covered)


def publish_generation(
    writer: Writer,
    factory: str = AUTO,
    *,
    recall_floor: float = RECALL_FLOOR,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> Generation:
    """Build, measure, and publish a generation over all documents.

    Args:
        writer: holds the index.
        factory: a FAISS factory string, or `auto`.
        recall_floor: least share of the exact top 10 documents that must be found.
        seed: of the training sample and the measured queries.
        tell: hears one line a step.

    Raises:
        RecallTooLow: no nprobe reaches the floor; nothing changed.
        IndexMismatch: FAISS cannot build the factory string over these vectors.
    """
    with Snapshot(writer.folder) as snapshot:
        chosen = choose_factory(snapshot.n_chunks, snapshot.width) if factory == AUTO else factory
        tell(f"building {chosen} over {snapshot.n_chunks:,} chunk vectors")
        rng = np.random.default_rng(seed)
        sample = _sample(snapshot, training_size(chosen), rng)
        ann = AnnIndex.build(chosen, snapshot.width, sample, _blocks(snapshot))
        through = int((snapshot.roster.first_chunk + snapshot.roster.n_chunks).max(initial=1)) - 1
        is_exact = chosen in ("Flat", "IDMap2,Flat")
        nprobe, recall, n_queries = 0, 1.0, 0
        if not is_exact:
            queries = _sampled_queries(snapshot, rng)
            n_queries = len(queries)
            candidate = OpenGeneration(ann, through, is_exact=False)
            nprobe, recall = _tune(snapshot, candidate, queries, recall_floor, tell)
        number, path = writer.next_generation_file()
        written = ann.write(path)
    generation = {
        "id": number,
        "factory": chosen,
        "nprobe": nprobe,
        "through_chunk": through,
        "n_vectors": ann.n_vectors,
        "is_exact": is_exact,
        "recall": recall,
        "recall_queries": n_queries,
        "file": path.relative_to(writer.folder).as_posix(),
        "size_bytes": written.size_bytes,
        "digest": written.digest,
    }
    writer.publish(generation)
    return Generation(number, chosen, nprobe, ann.n_vectors, recall, is_exact)


def _sample(snapshot: Snapshot, size: int, rng: np.random.Generator) -> Vectors:
    """Training rows, drawn by whole documents so that few shards are touched."""
    order = rng.permutation(snapshot.n_documents)
    enough = int(np.searchsorted(np.cumsum(snapshot.roster.n_chunks[order]), size)) + 1
    vectors, _ = snapshot.chunk_vectors(np.sort(order[:enough]))
    if len(vectors) > size:
        vectors = vectors[np.sort(rng.choice(len(vectors), size, replace=False))]
    return vectors


def _blocks(snapshot: Snapshot) -> Iterator[tuple[Ids, Vectors]]:
    for first in range(0, snapshot.n_documents, _BLOCK_DOCUMENTS):
        positions = np.arange(first, min(first + _BLOCK_DOCUMENTS, snapshot.n_documents))
        vectors, _ = snapshot.chunk_vectors(positions)
        yield ranges(snapshot.roster.first_chunk[positions], snapshot.roster.n_chunks[positions]), vectors


def _sampled_queries(snapshot: Snapshot, rng: np.random.Generator) -> list[tuple[str, Query]]:
    from engine.index import Index

    index = Index(snapshot)
    names = snapshot.doc_ids()
    chosen = rng.choice(len(names), min(RECALL_QUERIES, len(names)), replace=False)
    return [(names[position], index.stored_query(names[position])) for position in np.sort(chosen)]


def _tune(
    snapshot: Snapshot,
    candidate: OpenGeneration,
    queries: list[tuple[str, Query]],
    floor: float,
    tell: Callable[[str], None],
) -> tuple[int, float]:
    """Raise nprobe until the target is reached, or at least the floor: (nprobe, recall)."""
    ann = candidate.ann
    exact, approximate = Searcher(snapshot), Searcher(snapshot, generation=candidate)
    truth = [_found(exact, name, query, is_exact=True) for name, query in queries]

    def measured() -> float:
        found = [_found(approximate, name, query, is_exact=False) for name, query in queries]
        shares = [len(a & b) / len(b) for a, b in zip(found, truth, strict=True) if b]
        recall = float(np.mean(shares)) if shares else 1.0
        tell(f"nprobe {ann.nprobe}: document recall@{RECALL_K} {recall:.3f} over {len(shares)} queries")
        return recall

    ann.nprobe = min(_FIRST_NPROBE, ann.n_lists)
    recall = measured()
    while recall < max(floor, RECALL_TARGET) and ann.nprobe < ann.n_lists:
        ann.nprobe = min(2 * ann.nprobe, ann.n_lists)
        recall = measured()
    if recall < floor:
        raise RecallTooLow(
            f"document recall@{RECALL_K} is {recall:.3f} at best, under the floor of {floor}; nothing was "
            "published: use --factory auto, or codes with more bits"
        )
    return ann.nprobe, recall


def _found(searcher: Searcher, name: str, query: Query, *, is_exact: bool) -> set[str]:
    return {hit.doc_id for hit in searcher.search(query, k=RECALL_K, without=name, exact=is_exact).hits}
