"""Documents as rows of the catalog, and back. No vectors, no files."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from engine.document import Coverage, Document, Section
from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexDamaged
from engine.store.catalog import DocumentRow, SectionRow, TextRow

_IDS_PER_STATEMENT = 500


def content_hash(document: Document) -> str:
    """SHA-256 over all that the encoder sees: title, text and sections. Metadata and source are not in it."""
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
    """Rows of the documents table for a batch whose vectors lie one after another in one shard.

    Args:
        encoded: documents with their vectors, in the shard's order.
        ids: their catalog ids.
        shard: number of the shard.
        first_chunk: id of the first chunk of the batch; the others follow.
    """
    rows = []
    section_row = chunk_row = 0
    for position, (document, vectors) in enumerate(encoded):
        rows.append(
            {
                "id": ids[position],
                "doc_id": document.doc_id,
                "title": document.title,
                "source": document.source,
                "content_hash": content_hash(document),
                "metadata": dict(document.metadata),
                "pages": list(document.pages),
                "shard_id": shard,
                "document_row": position,
                "section_row": section_row,
                "chunk_row": chunk_row,
                "first_chunk": first_chunk + chunk_row,
                "n_chunks": len(vectors.chunks),
                "n_sections": len(vectors.sections),
                "tokens_read": vectors.coverage.tokens_read,
                "tokens_total": vectors.coverage.tokens_total,
            }
        )
        section_row += len(vectors.sections)
        chunk_row += len(vectors.chunks)
    return rows


def insert_texts(connection: Connection, documents: Iterable[tuple[int, Document]]) -> None:
    """Write text and sections of documents under their catalog ids."""
    texts: list[dict[str, Any]] = []
    sections: list[dict[str, Any]] = []
    for document_id, document in documents:
        # Level 1: 50 MB/s and more, a third of the size; the encoder reads under 1 MB/s.
        texts.append({"document_id": document_id, "deflated": zlib.compress(document.text.encode(), 1)})
        sections.extend(
            {"document_id": document_id, "position": position, **asdict(section)}
            for position, section in enumerate(document.sections)
        )
    if texts:
        connection.execute(insert(TextRow), texts)
        connection.execute(insert(SectionRow), sections)


def delete_documents(connection: Connection, document_ids: Sequence[int]) -> None:
    """Remove documents with their texts and sections; their vectors stay in the shards, unnamed."""
    for ids in _blocks(document_ids):
        connection.execute(delete(DocumentRow).where(DocumentRow.id.in_(ids)))


def load_documents(connection: Connection, document_ids: Sequence[int]) -> list[tuple[Document, Coverage]]:
    """Read documents whole, in the order of the ids; an id that is not there is left out.

    Raises:
        IndexDamaged: a text or a value cannot be read.
    """
    found: dict[int, tuple[Document, Coverage]] = {}
    for ids in _blocks(document_ids):
        try:
            found |= _load_block(connection, ids)
        except (zlib.error, ValueError, KeyError, TypeError) as error:
            raise IndexDamaged(
                f"a document in the catalog cannot be read ({error}); check it: longmatch verify INDEX"
            ) from error
    return [found[document_id] for document_id in document_ids if document_id in found]


def _load_block(connection: Connection, ids: Sequence[int]) -> dict[int, tuple[Document, Coverage]]:
    found: dict[int, tuple[Document, Coverage]] = {}
    sections = _load_sections(connection, ids)
    statement = (
        select(DocumentRow.__table__, TextRow.deflated)
        .join(TextRow, TextRow.document_id == DocumentRow.id)
        .where(DocumentRow.id.in_(ids))
    )
    for row in connection.execute(statement).mappings():
        document = Document(
            doc_id=row["doc_id"],
            title=row["title"],
            text=zlib.decompress(row["deflated"]).decode(),
            sections=tuple(sections[row["id"]]),
            metadata=row["metadata"],
            source=row["source"],
            pages=tuple(row["pages"]),
        )
        found[row["id"]] = document, Coverage(row["tokens_read"], row["tokens_total"])
    return found


def _load_sections(connection: Connection, ids: Sequence[int]) -> dict[int, list[Section]]:
    sections: dict[int, list[Section]] = {document_id: [] for document_id in ids}
    columns = (
        SectionRow.document_id,
        SectionRow.heading,
        SectionRow.path,
        SectionRow.start,
        SectionRow.stop,
        SectionRow.n_merged,
        SectionRow.part,
        SectionRow.n_parts,
    )
    rows = connection.execute(
        select(*columns).where(SectionRow.document_id.in_(ids)).order_by(SectionRow.document_id, SectionRow.position)
    )
    for document_id, heading, path, *numbers in rows:
        sections[document_id].append(Section(heading, tuple(path), *numbers))
    return sections


def _blocks(ids: Sequence[int]) -> Iterable[list[int]]:
    for first in range(0, len(ids), _IDS_PER_STATEMENT):
        yield [int(document_id) for document_id in ids[first : first + _IDS_PER_STATEMENT]]
