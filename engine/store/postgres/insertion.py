"""Rows of documents, their vectors and their term counts, sent to PostgreSQL by COPY. Begins no transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from engine.encoders.encoder import EncodedDocument
from engine.store.documents import content_hash
from engine.store.postgres.binary import encode
from engine.store.postgres.blocks import SPANS
from engine.store.postgres.connection import Session
from engine.text.document import Document
from engine.words.packing import PackedTable, PackedWords

_KINDS = ("words", "pairs")
_DOCUMENT_COLUMNS = (
    "id, doc_id, title, source, content_hash, metadata, pages, n_sections, n_chunks, tokens_read, tokens_total, text, "
    "kinds, groups, vector"
)
_DOCUMENT_TYPES = (
    *("int8", "text", "text", "text", "text", "json", "json"),
    *("int4", "int4", "int8", "int8", "text", "bytea", "bytea", "halfvec"),
)
_SECTION_COLUMNS = "document_id, position, heading, path, start, stop, n_merged, part, n_parts, vector"
_SECTION_TYPES = ("int8", "int4", "text", "json", *("int4",) * 5, "halfvec")


def insert_documents(
    session: Session, ids: Sequence[int], encoded: Sequence[tuple[Document, EncodedDocument]], words: PackedWords
) -> None:
    """Write documents, their sections and the vectors of both; chunks and counts are written afterwards."""
    apart = words.apart
    assert apart is not None
    with session.cursor().copy(f"COPY documents ({_DOCUMENT_COLUMNS}) FROM STDIN (FORMAT binary)".encode()) as copy:
        copy.set_types(_DOCUMENT_TYPES)
        for row, (one, (document, vectors)) in enumerate(zip(ids, encoded, strict=True)):
            names = one, document.doc_id, document.title, document.source, content_hash(document)
            values = dict(document.metadata), list(document.pages), *_counts(vectors), document.text
            vector = HalfVector(vectors.document) if len(vectors.chunks) else None
            kinds = apart.kinds[_of(apart.section_starts, row)].tobytes()
            groups = apart.groups[_of(apart.group_starts, row)].tobytes()
            copy.write_row((*names, *values, kinds, groups, vector))
    with session.cursor().copy(f"COPY sections ({_SECTION_COLUMNS}) FROM STDIN (FORMAT binary)".encode()) as copy:
        copy.set_types(_SECTION_TYPES)
        for one, (document, vectors) in zip(ids, encoded, strict=True):
            rows = vectors.sections if len(vectors.sections) else [None] * len(document.sections)
            for position, (section, row) in enumerate(zip(document.sections, rows, strict=True)):
                place = section.start, section.stop, section.n_merged, section.part, section.n_parts
                vector = None if row is None else HalfVector(row)
                copy.write_row((one, position, section.heading, list(section.path), *place, vector))


def update_vectors(session: Session, encoded: Sequence[tuple[int, EncodedDocument]]) -> None:
    """Set the vectors of stored documents and sections."""
    with session.cursor() as cursor:
        cursor.executemany(
            "UPDATE documents SET n_sections = %s, n_chunks = %s, tokens_read = %s, tokens_total = %s, vector = %s "
            "WHERE id = %s",
            [(*_counts(vectors), HalfVector(vectors.document), one) for one, vectors in encoded],
        )
        cursor.executemany(
            "UPDATE sections SET vector = %s WHERE document_id = %s AND position = %s",
            [
                (HalfVector(row), one, position)
                for one, vectors in encoded
                for position, row in enumerate(vectors.sections)
            ],
        )


def insert_chunks(session: Session, encoded: Sequence[tuple[int, EncodedDocument]], width: int) -> None:
    """Write the chunks of stored documents, with their vectors of `width`."""
    counts = [len(vectors.chunks) for _, vectors in encoded]
    if not sum(counts):
        return
    spans = [
        (span.section, span.start, span.stop, span.n_tokens) for _, vectors in encoded for span in vectors.chunk_spans
    ]
    rows: dict[str, NDArray[Any]] = {
        "document_id": np.repeat(np.array([one for one, _ in encoded], np.int64), counts),
        "position": np.concatenate([np.arange(count) for count in counts]),
        **dict(zip(SPANS, np.array(spans, np.int64).T, strict=True)),
        "vector": np.concatenate([vectors.chunks for _, vectors in encoded if len(vectors.chunks)]).astype(np.float16),
    }
    fields = {name: "int8" if name == "document_id" else "int4" for name in rows if name != "vector"}
    columns = ", ".join(rows)
    with session.cursor().copy(f"COPY chunks ({columns}) FROM STDIN (FORMAT binary)".encode()) as copy:
        copy.write(encode(rows, fields, width))


def insert_counts(session: Session, ids: Sequence[int], words: PackedWords) -> None:
    """Write the term counts of stored documents and of their groups, packed as in a shard."""
    apart = words.apart
    assert apart is not None
    for kind in _KINDS:
        _copy_counts(session, "term_counts", [(one, kind) for one in ids], getattr(words, kind))
        sizes = np.diff(apart.group_starts).tolist()
        keys = [(one, kind, group) for one, size in zip(ids, sizes, strict=True) for group in range(size)]
        _copy_counts(session, "group_counts", keys, getattr(apart.counts, kind))


def _counts(vectors: EncodedDocument) -> tuple[int, int, int, int]:
    """Numbers of sections and chunks with vectors, of tokens read, and of all tokens."""
    coverage = vectors.coverage
    return len(vectors.sections), len(vectors.chunks), coverage.tokens_read, coverage.tokens_total


def _copy_counts(session: Session, table: str, keys: Sequence[tuple[object, ...]], counts: PackedTable) -> None:
    """Write one row for each of the term tables that follow each other in `counts`."""
    has_position = table == "group_counts"
    columns = f"document_id, kind{', position' if has_position else ''}, occurrences, lows, middles, highs, counts"
    occurrences = counts.lengths().astype(np.int64).tolist()
    with session.cursor().copy(f"COPY {table} ({columns}) FROM STDIN (FORMAT binary)".encode()) as copy:
        copy.set_types(["int8", "text", *(["int4"] if has_position else []), "int8", *["bytea"] * 4])
        for row, key in enumerate(keys):
            copy.write_row((*key, occurrences[row], *_of_document(counts, row)))


def _of_document(table: PackedTable, row: int) -> tuple[bytes, bytes, bytes, bytes]:
    """Columns `lows`, `middles`, `highs` and `counts` of one term table."""
    terms, highs, counts = (_of(starts, row) for starts in (table.starts, table.high_starts, table.count_starts))
    lows = table.lows[terms].astype("<u2").tobytes()
    return lows, table.middles[terms].tobytes(), table.highs[highs].tobytes(), table.counts[counts].tobytes()


def _of(starts: NDArray[np.int64], row: int) -> slice:
    return slice(int(starts[row]), int(starts[row + 1]))
