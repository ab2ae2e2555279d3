"""The whole content of an index, read through the engine, so that two indexes can be compared; changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.index import Index
from engine.store.partitioned import open_snapshot
from engine.store.snapshot import Snapshot
from engine.text.document import Document

Hits = list[tuple[str, float]]  # doc_id and score, best first


@dataclass(frozen=True)
class Seen:
    """A document of an index, as `look` finds it."""

    id: int
    content_hash: str
    first_chunk: int | None  # id of its first chunk vector; None while it has no vectors


@dataclass(frozen=True)
class DocumentContents:
    """Everything that is kept of one document, except its catalog id, which can differ between runs."""

    content_hash: str
    document: Document
    vectors: Vectors  # (1 + S + C, D): document, sections, chunks
    spans: NDArray[np.int32]
    terms: bytes  # counts of words and of pairs


@dataclass(frozen=True)
class Contents:
    """All documents of an index by doc_id, and the hits of queries."""

    documents: dict[str, DocumentContents]
    hits: dict[str, Hits]


@dataclass(frozen=True)
class Difference:
    """The differences of two indexes that should be equal."""

    documents: list[str]  # doc_ids with other text, sections, metadata, hash or terms, or on one side only
    vectors: list[str]  # doc_ids of which some vector or span differs in a byte
    largest_vector_difference: float
    hits: list[str]  # queries with another ranking or another score
    largest_score_difference: float  # infinite where other targets are ranked

    @property
    def is_none(self) -> bool:
        """True if the indexes are equal to the last byte."""
        return not (self.documents or self.vectors or self.hits)


def look(path: Path) -> dict[str, Seen]:
    """The documents that can be found now."""
    with open_snapshot(path) as snapshot:
        hashes = snapshot.content_hashes()
        roster = snapshot.roster
        rows = zip(snapshot.doc_ids(), roster.ids.tolist(), roster.first_chunk.tolist(), roster.n_chunks, strict=True)
        return {
            doc_id: Seen(number, hashes[doc_id], first_chunk if n_chunks else None)
            for doc_id, number, first_chunk, n_chunks in rows
        }


def read_contents(path: Path, doc_ids: Sequence[str]) -> Contents:
    """Read all documents of an index, and ten hits of each of the documents `doc_ids`."""
    with open_snapshot(path) as snapshot:
        hashes = snapshot.content_hashes()
        documents = {
            document.doc_id: DocumentContents(
                hashes[document.doc_id],
                document,
                _vectors(snapshot, position),
                np.array(snapshot.spans(position)),
                _terms(snapshot, position),
            )
            for position, (document, _) in enumerate(snapshot.documents(np.arange(snapshot.n_documents)))
        }
    with Index.open(path) as index:
        hits = {doc_id: [(hit.doc_id, hit.score) for hit in index.search_id(doc_id).hits] for doc_id in doc_ids}
    return Contents(documents, hits)


def _vectors(snapshot: Snapshot, position: int) -> Vectors:
    chunks, _ = snapshot.chunk_vectors(np.array([position]))
    whole = snapshot.document_vectors[position : position + 1]
    return np.concatenate([whole, snapshot.section_vectors(position), chunks])


def _terms(snapshot: Snapshot, position: int) -> bytes:
    if snapshot.language is None:
        return b""
    tables = snapshot.words(np.array([position]))
    arrays = (array for table in (tables.words, tables.pairs) for array in (table.terms, table.counts))
    return b"".join(array.tobytes() for array in arrays)


def compare(found: Contents, expected: Contents) -> Difference:
    """Compare one index with another."""
    names = found.documents.keys() & expected.documents.keys()
    pairs = {name: (found.documents[name], expected.documents[name]) for name in sorted(names)}
    apart = sorted(found.documents.keys() ^ expected.documents.keys())
    vectors = {name: _vector_difference(a, b) for name, (a, b) in pairs.items()}
    scores = [_score_difference(dict(found.hits[name]), dict(hits)) for name, hits in expected.hits.items()]
    return Difference(
        documents=apart + [name for name, (a, b) in pairs.items() if _without_vectors(a) != _without_vectors(b)],
        vectors=[name for name, difference in vectors.items() if difference is not None],
        largest_vector_difference=max((value for value in vectors.values() if value is not None), default=0.0),
        hits=[name for name, hits in expected.hits.items() if found.hits[name] != hits],
        largest_score_difference=max(scores, default=0.0),
    )


def _without_vectors(one: DocumentContents) -> tuple[str, Document, bytes]:
    return one.content_hash, one.document, one.terms


def _vector_difference(a: DocumentContents, b: DocumentContents) -> float | None:
    """The largest difference of an element; None where every byte is the same."""
    if a.vectors.shape != b.vectors.shape or not np.array_equal(a.spans, b.spans):
        return float("inf")
    if a.vectors.tobytes() == b.vectors.tobytes():
        return None
    return float(np.abs(a.vectors - b.vectors).max())


def _score_difference(scores: dict[str, float], truth: dict[str, float]) -> float:
    if scores.keys() != truth.keys():
        return float("inf")
    return max((abs(scores[doc_id] - truth[doc_id]) for doc_id in truth), default=0.0)
