"""Documents as rows of the catalog, and back. No vectors, no files."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any

from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexDamaged, faults_named
from engine.lazy import deferred
from engine.store.catalog import execute_in
from engine.store.checks import content_check, stored_contents, stored_rows
from engine.store.gathering import write_blocks
from engine.text.document import Document
from engine.text.segmentation import Coverage, Section

MAX_TEXT_BYTES = 1 << 30  # of one document; SQLite holds no larger value
_AT_ONCE = 500  # documents whose packed texts are read together


def content_hash(document: Document) -> str:
    """SHA-256 of the encoder's input: title, text and sections, without metadata and source."""
    digest = hashlib.sha256()
    sections = [[section.heading, section.path, section.start, section.stop] for section in document.sections]
    for part in (document.title, document.text, json.dumps(sections)):
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


def document_rows(
    encoded: Sequence[tuple[Document, EncodedDocument]], ids: Sequence[int], shard: int, first_chunk: int
) -> list[dict[str, Any]]:
    """Rows of the documents table for a batch whose vectors follow each other in one shard; see `places`."""
    where = places([vectors for _, vectors in encoded], shard, first_chunk)
    return [
        {
            "id": ids[position],
            "doc_id": document.doc_id,
            "title": document.title,
            "source": document.source,
            "content_hash": content_hash(document),
            "metadata": dict(document.metadata),
            "pages": list(document.pages),
            "pins": list(document.pins),
            **where[position],
        }
        for position, (document, _) in enumerate(encoded)
    ]


def places(encoded: Sequence[EncodedDocument], shard: int, first_chunk: int) -> list[dict[str, int]]:
    """Where the vectors of consecutive documents of one shard are, by column of the documents table.

    Args:
        first_chunk: id of the first chunk; the others follow, see `chunk_ids`.
    """
    rows = []
    section_row = chunk_row = 0
    for position, vectors in enumerate(encoded):
        rows.append(
            {
                "shard_id": shard,
                "document_row": position,
                "section_row": section_row,
                "chunk_row": chunk_row,
                "first_chunk": first_chunk,
                "n_chunks": len(vectors.chunks),
                "n_sections": len(vectors.sections),
                "tokens_read": vectors.coverage.tokens_read,
                "tokens_total": vectors.coverage.tokens_total,
            }
        )
        section_row += len(vectors.sections)
        chunk_row += len(vectors.chunks)
        first_chunk += chunk_ids(vectors)
    return rows


def chunk_ids(vectors: EncodedDocument) -> int:
    """The number of chunk ids that a document takes: one if it has no vectors yet, so that its first id is unique."""
    return max(1, len(vectors.chunks))


def text_rows(documents: Iterable[tuple[int, Document]]) -> Iterator[dict[str, Any]]:
    """Rows of the texts of documents with their catalog ids."""
    for document_id, document in documents:
        # Level 1: 50 MB/s and more, a third of the size; the encoder reads under 1 MB/s.
        yield {"document_id": document_id, "deflated": zlib.compress(document.text.encode(), 1)}


def section_rows(documents: Iterable[tuple[int, Document]]) -> Iterator[dict[str, Any]]:
    """Rows of the sections of documents with their catalog ids."""
    for document_id, document in documents:
        for position, section in enumerate(document.sections):
            values = {**asdict(section), "path": list(section.path)}
            yield {"document_id": document_id, "position": position, **values}


def delete_documents(connection: sqlite3.Connection, document_ids: Sequence[int]) -> None:
    """Remove documents with their texts and sections; their vectors stay in the shards, unnamed."""
    execute_in(connection, "DELETE FROM documents WHERE id IN ({marks})", document_ids)
    write_blocks(connection, document_ids)


def stored_documents(connection: sqlite3.Connection, document_ids: Sequence[int]) -> list[tuple[Document, Coverage]]:
    """Read documents, in the order of the ids; an id that does not exist is left out.

    Text and sections stay packed in memory until one of them is first read. That read needs no connection,
    and can raise IndexDamaged.

    Raises:
        IndexDamaged: a value cannot be read, or text and sections are not what was written.
    """
    found: dict[int, tuple[Document, Coverage]] = {}
    ids = [int(document_id) for document_id in document_ids]
    for first in range(0, len(ids), _AT_ONCE):
        with _damage():
            found |= _load_block(connection, ids[first : first + _AT_ONCE])
    return [found[document_id] for document_id in ids if document_id in found]


@contextmanager
def _damage() -> Iterator[None]:
    try:
        with faults_named():
            yield
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise IndexDamaged(
            f"a document in the catalog cannot be read ({error}); check it: longmatch upkeep verify INDEX"
        ) from error


def _load_block(connection: sqlite3.Connection, ids: Sequence[int]) -> dict[int, tuple[Document, Coverage]]:
    found: dict[int, tuple[Document, Coverage]] = {}
    contents = stored_contents(connection, ids)
    for one, row in stored_rows(connection, ids).items():
        if one not in contents:
            continue
        if row["content_check"] != content_check(*contents[one]):
            raise IndexDamaged(
                f"text or sections of {row['doc_id']!r} are not what was indexed; "
                "check it: longmatch upkeep verify INDEX"
            )
        document = deferred(
            Document,
            partial(_unpacked, *contents[one]),
            doc_id=row["doc_id"],
            title=row["title"],
            metadata=json.loads(row["metadata"]),
            source=row["source"],
            pages=tuple(json.loads(row["pages"])),
            pins=tuple((start, name) for start, name in json.loads(row["pins"])),
        )
        found[one] = document, Coverage(row["tokens_read"], row["tokens_total"])
    return found


def _unpacked(deflated: bytes, sections: Sequence[Sequence[Any]]) -> dict[str, Any]:
    with _damage():
        return {
            "text": _inflated(deflated).decode(),
            "sections": tuple(
                Section(heading, tuple(json.loads(path)), *numbers) for heading, path, *numbers in sections
            ),
        }


def _inflated(deflated: bytes) -> bytes:
    """Unpack a text of at most `MAX_TEXT_BYTES`: a few damaged bytes could unpack to more than the memory."""
    stream = zlib.decompressobj()
    found = stream.decompress(deflated, MAX_TEXT_BYTES)
    if not stream.eof:
        raise ValueError(f"a text of more than {MAX_TEXT_BYTES:,} bytes, or one that is cut off")
    return found
