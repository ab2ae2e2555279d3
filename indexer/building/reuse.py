"""Reuses chunk vectors from the stored version of a document that changed. Encodes and commits nothing.

A chunk with the same token ids as a chunk of the stored version has the same vector, if the encoder reads each chunk by
itself. The stored row is float16 and is stored again as the same bytes. Section and document vectors are recomputed
from the chunk vectors, which here are rounded to float16, while encoding the whole document has them in float32. The
difference is less than 1e-6 in cosine; `tests/indexer/test_reuse.py` checks that bound.

A run on a Ray cluster encodes documents whole, since its first step commits words alone. `--reencode` finds nothing to
reuse: the text of a replaced version is gone, and with it the tokens of its chunks.

Letters in shapes: C chunks of a document, R of them with stored vectors, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument, Vectors
from engine.errors import DocumentError, IndexDamaged
from engine.store.catalog import rows_of
from engine.store.checks import stored_rows
from engine.store.documents import stored_documents
from engine.store.shards import ShardSet
from engine.store.tensors import as_float32
from engine.store.writer import Writer
from engine.text.document import Document


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A document with the vectors of its chunks."""

    document: Document
    spans: NDArray[np.int32]  # (C, 4), see `engine.store.shards.Shard`
    chunks: NDArray[np.float16]  # (C, D), a view of the shard


class StoredVersions:
    """The documents of a folder that is held for writing; each shard is mapped and checked once."""

    def __init__(self, writer: Writer) -> None:
        """Read from the folder of a writer."""
        self._writer = writer
        self._shards: dict[int, ShardSet] = {}  # numbers are used once, and a shard never changes

    def find(self, document_id: int) -> StoredVersion | None:
        """Look up a document by catalog id; None if it was removed or has no vectors.

        Raises:
            IndexDamaged: its rows, its text or its shard are not what was written.
        """
        with self._writer.read() as connection:
            row = stored_rows(connection, [document_id]).get(document_id)
            if row is None or not row["n_chunks"]:
                return None
            ((document, _),) = stored_documents(connection, [document_id])
        number = row["shard_id"]
        shards = self._opened(number)
        own = slice(row["chunk_row"], row["chunk_row"] + row["n_chunks"])
        return StoredVersion(document, shards.spans(number)[own], shards.chunks(number)[own])

    def _opened(self, number: int) -> ShardSet:
        if number not in self._shards:
            with self._writer.read() as connection:
                rows = [row for row in rows_of(connection, "shards") if row.id == number]
            if not rows:
                raise IndexDamaged(f"the catalog does not name shard {number}; check it: longmatch upkeep verify INDEX")
            self._shards[number] = ShardSet(self._writer.folder, rows)
        return self._shards[number]


LEAST_SHARE = 0.5  # with this share of reusable chunks, a changed document gets vectors at once also with `later`
Encode: TypeAlias = Callable[[list[SegmentedDocument]], list[EncodedDocument]]


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A document some of whose chunks have vectors in its stored version."""

    segmented: SegmentedDocument
    places: NDArray[np.int64]  # (R,) indexes of these chunks among all, ascending
    rows: NDArray[np.float16]  # (R, D) vectors of these chunks

    @property
    def document(self) -> Document:
        """The new version."""
        return self.segmented.document

    @property
    def n_tokens_reused(self) -> int:
        """Tokens that are not encoded."""
        return sum(self.segmented.chunks[place].n_tokens for place in self.places.tolist())


class Reuse:
    """Finds the chunks of changed documents that have vectors already."""

    def __init__(self, writer: Writer, encoder: Encoder, log: Callable[[str], None] = lambda _: None) -> None:
        """Look up stored versions in the index of a writer.

        Args:
            writer: of the index, which is bound to the encoder.
            encoder: with independent chunks; see `can_reuse`.
        """
        self.encoder = encoder
        self._stored = StoredVersions(writer)
        self._log = log

    def find(self, document: SegmentedDocument | Document, document_id: int) -> ChangedDocument | None:
        """Compare a document with its stored version, chunk by chunk.

        Args:
            document: the new version; a `Document`, which is not segmented yet, would otherwise be encoded later.
            document_id: catalog id of the stored version.

        Returns:
            None if no chunk of the stored version is left; for a document that would be encoded later, also if less
            than `LEAST_SHARE` of its chunks have vectors.
        """
        rows_of = self._readable_rows(document, document_id)
        if not rows_of:
            return None
        is_due = isinstance(document, SegmentedDocument)
        try:
            segmented = document if isinstance(document, SegmentedDocument) else self.encoder.segment(document)
        except DocumentError:  # it has no token; its words are indexed
            return None
        found = [rows_of.get(tuple(ids)) for ids in segmented.token_ids]
        places = [place for place, row in enumerate(found) if row is not None]
        if not places or not (is_due or len(places) >= LEAST_SHARE * len(found)):
            return None
        return ChangedDocument(segmented, np.array(places), np.stack([row for row in found if row is not None]))

    def _readable_rows(
        self, document: SegmentedDocument | Document, document_id: int
    ) -> dict[tuple[int, ...], NDArray[np.float16]]:
        """As `_rows`, but empty if the rows cannot be read: the new version replaces the damaged one."""
        try:
            return self._rows(document_id)
        except (IndexDamaged, DocumentError) as error:
            name = (document if isinstance(document, Document) else document.document).doc_id
            self._log(f"all chunks of {name} are encoded, as its stored version cannot be read: {error}")
            return {}

    def _rows(self, document_id: int) -> dict[tuple[int, ...], NDArray[np.float16]]:
        """The vector of each chunk of a stored version by its token ids; of equal chunks, that of the first."""
        stored = self._stored.find(document_id)
        if stored is None:
            return {}
        segmented = self.encoder.segment(stored.document)
        spans = [(chunk.section, chunk.start, chunk.stop, chunk.n_tokens) for chunk in segmented.chunks]
        if not np.array_equal(np.array(spans), stored.spans):
            return {}  # another version of this program cut it
        pairs = zip(segmented.token_ids, stored.chunks, strict=True)
        return {tuple(ids): row for ids, row in reversed(list(pairs))}


def can_reuse(writer: Writer, encoder: Encoder) -> bool:
    """Whether stored chunk vectors can replace the vectors that an encoder would compute."""
    bound = writer.meta.get("encoder", {}).get("fingerprint")
    return encoder.has_independent_chunks and bound == encoder.fingerprint


def encode_changes(
    encoder: Encoder, documents: Sequence[SegmentedDocument | ChangedDocument], encode: Encode
) -> list[EncodedDocument]:
    """Encode the chunks without vectors, and return the encoded documents."""
    due = [one for one in map(_due, documents) if one.chunks]
    encoded = iter(encode(due) if due else [])
    made = []
    for document in documents:
        if isinstance(document, SegmentedDocument):
            made.append(next(encoded))
            continue
        is_due = len(document.places) < len(document.segmented.chunks)
        made.append(
            encoder.from_chunks(document.segmented, _joined(document, next(encoded).chunks if is_due else None))
        )
    return made


def _due(document: SegmentedDocument | ChangedDocument) -> SegmentedDocument:
    """The document with only the chunks that must be encoded."""
    if isinstance(document, SegmentedDocument):
        return document
    segmented, reused = document.segmented, set(document.places.tolist())
    kept = [place for place in range(len(segmented.chunks)) if place not in reused]
    chunks = tuple(segmented.chunks[place] for place in kept)
    ids = tuple(segmented.token_ids[place] for place in kept)
    return SegmentedDocument(segmented.document, chunks, ids, segmented.coverage)


def _joined(changed: ChangedDocument, encoded: Vectors | None) -> Vectors:
    """(C, D) stored and new chunk vectors in reading order."""
    chunks = np.empty((len(changed.segmented.chunks), changed.rows.shape[1]), np.float32)
    chunks[changed.places] = as_float32(changed.rows)
    if encoded is not None:
        is_new = np.ones(len(chunks), bool)
        is_new[changed.places] = False
        chunks[is_new] = encoded
    return chunks
