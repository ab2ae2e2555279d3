"""Everything that an index holds, read through the engine, so that two indexes can be compared by `==`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.index import Index
from engine.store.partitioned import open_snapshot
from engine.store.snapshot import IndexSnapshot
from engine.text.document import Document


@dataclass(frozen=True)
class DocumentContents:
    """Everything that is kept of one document, except its catalog id, which can differ between runs."""

    content_hash: str
    document: Document
    vectors: bytes  # of document, sections and chunks
    spans: bytes
    terms: bytes  # counts of words and of pairs


@dataclass(frozen=True)
class Contents:
    """All documents of an index by doc_id, and the hits of queries as doc_id and score."""

    documents: dict[str, DocumentContents]
    hits: dict[str, list[tuple[str, float]]]


def read_contents(path: Path, doc_ids: Sequence[str]) -> Contents:
    """Read all documents of an index, and ten hits of each of the documents `doc_ids`."""
    with open_snapshot(path) as snapshot:
        hashes = snapshot.content_hashes()
        documents = {
            document.doc_id: DocumentContents(
                hashes[document.doc_id],
                document,
                _vectors(snapshot, position),
                np.array(snapshot.spans(position)).tobytes(),
                _terms(snapshot, position),
            )
            for position, (document, _) in enumerate(snapshot.documents(np.arange(snapshot.n_documents)))
        }
    with Index.open(path) as index:
        hits = {doc_id: [(hit.doc_id, hit.score) for hit in index.search(doc_id).hits] for doc_id in doc_ids}
    return Contents(documents, hits)


def _vectors(snapshot: IndexSnapshot, position: int) -> bytes:
    if not snapshot.is_encoded(position):
        return b""
    chunks, _ = snapshot.chunk_vectors(np.array([position]))
    document = snapshot.document_vectors[position : position + 1]
    return b"".join(np.asarray(rows).tobytes() for rows in (document, snapshot.section_vectors(position), chunks))


def _terms(snapshot: IndexSnapshot, position: int) -> bytes:
    tables = snapshot.words(np.array([position]))
    arrays = (array for table in (tables.words, tables.pairs) for array in (table.terms, table.counts))
    return b"".join(array.tobytes() for array in arrays)
