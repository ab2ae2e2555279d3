"""Pins the reference of an index, with the floor of its scores. Encodes nothing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.errors import IndexMismatch, QueryError, command_line, named_faults
from engine.scoring.breakdown import Prepared
from engine.scoring.evidence import LEVELS, FloorTable, Scoring
from engine.search.query import Background, Query, Unpinned, prepare, stored_queries
from engine.search.scorer import Scorer
from engine.store.partitioned import Snapshot, open_snapshot
from engine.store.reference import OUTGROWN, Reference, is_outgrown, sample_order
from engine.store.snapshot import Positions
from engine.store.writer import PartitionWriters, Writer, open_writers
from engine.text.document import Document
from engine.text.segmentation import Coverage, Section

FIRST_DOCUMENTS = 100  # most documents of the sample that `later` encodes before the first query
FIRST_TOKENS = 300_000  # most tokens of these documents; half a minute on two cores
FEWEST_FIRST = 20  # fewest of these documents, whatever their tokens
ALL_TOKENS = 600_000  # with at most this number of tokens, all documents are encoded at once
FLOOR_QUERIES = 50  # documents of the sample that are queries for the floor
FLOOR_TARGETS = 200  # documents of the sample that these are scored against
FEWEST_TARGETS = 20  # with fewer documents the floor is unknown
FLOOR_LENGTHS = (60, 250, 1_000, 4_000, 16_000)  # characters of excerpts that are queries
_NEAR_COPY = 0.5  # score of whole documents that are left out as versions of one another
_NEAREST = 5  # documents of the sample that are left out as related, for each query


@named_faults
def rebase(path: str | Path, *, log: Callable[[str], None] = lambda _: None) -> Reference:
    """Draw another reference from the documents as they are now, of all partitions. All scores change with it.

    Raises:
        IndexBusy: another process writes the index.
        IndexDamaged: a shard is damaged; repair first.
        IndexMismatch: the index is a partition, whose reference is that of all partitions.
    """
    with open_writers(Path(path)) as writer:
        if isinstance(writer, Writer) and writer.is_partition:
            whole = writer.folder.parent
            rebase = command_line("upkeep", "rebase", whole)
            raise IndexMismatch(f"{path} is a partition of {whole}, whose reference it shares: {rebase}")
        with open_snapshot(writer.folder) as snapshot:
            return pin_reference(writer, snapshot, log)


def sample_documents(snapshot: Snapshot) -> Positions:
    """The documents that are encoded first, so that queries have thresholds.

    They are the first documents of the draw: up to `FIRST_DOCUMENTS` documents and `FIRST_TOKENS` tokens, but at least
    `FEWEST_FIRST` documents. Documents that have vectors are left out of the list. A small corpus is encoded whole.
    """
    if snapshot.missing_tokens.sum() <= ALL_TOKENS:
        return np.flatnonzero(~snapshot.has_vectors)
    order = sample_order(snapshot.doc_ids())[:FIRST_DOCUMENTS]
    within = int(np.searchsorted(np.cumsum(snapshot.missing_tokens[order]), FIRST_TOKENS, side="right"))
    first = order[: max(within, FEWEST_FIRST)]
    return first[~snapshot.has_vectors[first]]


def refresh_reference(writer: Writer | PartitionWriters, log: Callable[[str], None]) -> None:
    """Pin a reference where there is none, where documents have outgrown it, or where it lacks vectors it could have.

    A reference that was drawn while documents had no vectors is drawn again once all have them. A partition by
    itself never gets one.
    """
    if isinstance(writer, Writer) and writer.is_partition:
        return
    with open_snapshot(writer.folder) as snapshot:
        row, n_documents = snapshot.reference_row, snapshot.n_documents
        has_vectors = snapshot.has_vectors
        first = sample_order(snapshot.doc_ids())[:1]
        is_empty = row is not None and not row.n_documents and bool(has_vectors[first].any())
        is_whole = snapshot.has_partial_reference and bool(has_vectors.all())
        if not n_documents:
            return
        if row is None:
            pin_reference(writer, snapshot, lambda _: None)
        elif is_empty or is_whole:
            log("drawing the reference again, now from documents with vectors; scores differ from those before")
            pin_reference(writer, snapshot, log)
        elif is_outgrown(row.n_corpus, n_documents):
            log(
                f"{n_documents:,} documents are {OUTGROWN} times the {row.n_corpus:,} that the reference was drawn "
                "from: drawing another one, so scores differ from those before"
            )
            pin_reference(writer, snapshot, log)


def pin_reference(writer: Writer | PartitionWriters, snapshot: Snapshot, log: Callable[[str], None]) -> Reference:
    """Draw a reference from the newest snapshot and pin it, in place of the one before."""
    reference = snapshot.draw_reference(writer.next_reference())
    reference = replace(reference, floor=measure_floor(snapshot, reference))
    writer.publish_reference(reference, is_partial=not snapshot.has_vectors.all())
    log(
        f"reference {reference.version}: {reference.n_documents:,} of {reference.n_corpus:,} documents, "
        f"{len(reference.rows):,} chunks"
    )
    return reference


def measure_floor(snapshot: Snapshot, reference: Reference) -> FloorTable | None:
    """The percentiles of the scores of unrelated documents; None where the sample is too small.

    Documents of the sample, and excerpts of them of several lengths, are queries against the sample. A document, each
    that it matches as a near-copy, and its nearest are left out: in a small collection most of these are related.
    Vectors of an excerpt are those of the chunks that it touches.
    """
    order = sample_order(snapshot.doc_ids())
    sample = order[: min(reference.n_documents or FLOOR_TARGETS, FLOOR_TARGETS)]
    if len(sample) < FEWEST_TARGETS:
        return None
    background, scorer = Unpinned(reference, snapshot.language), Scorer(snapshot, Scoring())
    stored = stored_queries(snapshot, sample[:FLOOR_QUERIES], vectors=reference.width > 0)
    queries = [replace(query, keeps_common=True) for query in stored]
    near = np.zeros((len(queries), len(sample)), bool)
    rows = list[tuple[int, NDArray[np.float64]]]()
    for length in (None, *reversed(FLOOR_LENGTHS)):
        shortened = [query if length is None else _excerpt(query, length, at) for at, query in enumerate(queries)]
        prepared = [(at, ready) for at, query in enumerate(shortened) if (ready := _prepared(query, background))]
        all_scores = np.full(near.shape, np.nan)
        for (at, _), pool in zip(prepared, scorer.pools([query for _, query in prepared], sample), strict=True):
            all_scores[at] = pool.scores
        if length is None:
            near = _related(all_scores, sample[:FLOOR_QUERIES, None] == sample)
        scores = all_scores[~near & ~np.isnan(all_scores)]
        if len(scores):
            n_characters = int(np.median([len(query.document.text) for query in shortened if query is not None]))
            rows.append((n_characters, np.percentile(scores, LEVELS)))
    by_length = dict(sorted(rows, key=lambda row: row[0]))
    if not by_length:
        return None
    return FloorTable(np.array([*by_length], np.int64), np.array([*by_length.values()], np.float32))


def _related(scores: NDArray[np.float64], is_query: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which documents of the sample are the query itself, a near-copy of it, or among its nearest; NaN is no score."""
    others = np.where(is_query | np.isnan(scores), -1.0, scores)
    last = np.sort(others, axis=1)[:, -_NEAREST, None]
    related: NDArray[np.bool_] = is_query | (others >= np.clip(last, 0.0, _NEAR_COPY))
    return related


def _excerpt(query: Query, length: int, number: int) -> Query | None:
    """Some characters of a document as a query, from a place that differs by document; None if it has no more."""
    text = query.document.text
    if len(text) <= length:
        return None
    start = (number * 7_919) % (len(text) - length)
    stop = start + length
    vectors = query.vectors
    touched = [at for at, span in enumerate(vectors.chunk_spans) if span.start < stop and span.stop > start]
    spans = [replace(vectors.chunk_spans[at], section=0, start=0, stop=length) for at in touched]
    encoded = replace(vectors, chunks=vectors.chunks[touched], chunk_spans=tuple(spans), coverage=Coverage(0, 0))
    excerpt = Document(query.document.doc_id, "", text[start:stop], (Section("", (), 0, length),))
    return Query(excerpt, encoded, key=query.key, keeps_common=True)


def _prepared(query: Query | None, background: Background) -> Prepared | None:
    """A query that is ready to score; None where there is nothing of it to compare."""
    if query is None:
        return None
    try:
        return prepare(query, background, Scoring())
    except QueryError:
        return None
