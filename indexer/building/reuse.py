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
from dataclasses import dataclass, field, replace
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

LEAST_SHARE = 0.5  # with this share of reusable chunks, a changed document gets vectors at once also with `later`
Encode: TypeAlias = Callable[[list[SegmentedDocument]], list[EncodedDocument]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document on its way into the index, with stored vectors of some of its chunks."""

    document: Document
    segmented: SegmentedDocument | None  # None if it is encoded later
    is_replacement: bool = False  # of a stored version
    places: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  # (R,) of chunks, ascending
    rows: NDArray[np.float16] | None = None  # (R, D) vectors of these chunks

    @property
    def n_tokens_reused(self) -> int:
        """Tokens that are not encoded."""
        return sum(self.segmented.chunks[place].n_tokens for place in self.places.tolist()) if self.segmented else 0


class Reuse:
    """Finds the chunks of changed documents that have vectors already; each shard is mapped and checked once."""

    def __init__(self, writer: Writer, encoder: Encoder, log: Callable[[str], None]) -> None:
        """Look up stored versions in the index of a writer; see `can_reuse`."""
        self._writer = writer
        self._encoder = encoder
        self._log = log
        self._shards: dict[int, ShardSet] = {}  # numbers are used once, and a shard never changes

    def of(self, prepared: Prepared, document_id: int) -> Prepared:
        """Compare a document with its stored version, chunk by chunk.

        A document that would be encoded later is segmented here if `LEAST_SHARE` of its chunks have vectors.
        """
        try:
            vectors_of = self._rows(document_id)
        except (IndexDamaged, DocumentError) as error:  # the new version replaces the damaged one
            name = prepared.document.doc_id
            self._log(f"all chunks of {name} are encoded, as its stored version cannot be read: {error}")
            return prepared
        if not vectors_of:
            return prepared
        try:
            segmented = prepared.segmented or self._encoder.segment(prepared.document)
        except DocumentError:  # it has no token; its words are indexed
            return prepared
        rows = {
            place: vectors_of[ids] for place, ids in enumerate(map(tuple, segmented.token_ids)) if ids in vectors_of
        }
        if not rows or (prepared.segmented is None and len(rows) < LEAST_SHARE * len(segmented.chunks)):
            return prepared
        return replace(prepared, segmented=segmented, places=np.array([*rows]), rows=np.stack([*rows.values()]))

    def _rows(self, document_id: int) -> dict[tuple[int, ...], NDArray[np.float16]]:
        """The vector of each chunk of a stored version by its token ids; of equal chunks, that of the first.

        Empty for a document that was removed or has no vectors.

        Raises:
            IndexDamaged: its rows, its text or its shard are not what was written.
        """
        with self._writer.read() as connection:
            row = stored_rows(connection, [document_id]).get(document_id)
            if row is None or not row["n_chunks"]:
                return {}
            ((document, _),) = stored_documents(connection, [document_id])
        shards, number = self._opened(row["shard_id"]), row["shard_id"]
        own = slice(row["chunk_row"], row["chunk_row"] + row["n_chunks"])
        segmented = self._encoder.segment(document)
        spans = [(chunk.section, chunk.start, chunk.stop, chunk.n_tokens) for chunk in segmented.chunks]
        if not np.array_equal(np.array(spans), shards.spans(number)[own]):
            return {}  # another version of this program cut it
        pairs = zip(segmented.token_ids, shards.chunks(number)[own], strict=True)
        return {tuple(ids): vector for ids, vector in reversed(list(pairs))}

    def _opened(self, number: int) -> ShardSet:
        if number not in self._shards:
            with self._writer.read() as connection:
                rows = [row for row in rows_of(connection, "shards") if row.id == number]
            if not rows:
                raise IndexDamaged(f"the catalog does not name shard {number}; check it: longmatch upkeep verify INDEX")
            self._shards[number] = ShardSet(self._writer.folder, rows)
        return self._shards[number]


def can_reuse(writer: Writer, encoder: Encoder) -> bool:
    """Whether stored chunk vectors can replace the vectors that an encoder would compute."""
    bound = writer.meta.get("encoder", {}).get("fingerprint")
    return encoder.has_independent_chunks and bound == encoder.fingerprint


def encode_prepared(encoder: Encoder, batch: Sequence[Prepared], encode: Encode) -> list[EncodedDocument]:
    """Encode the chunks without vectors of segmented documents."""
    parts = [_without_vectors(prepared) for prepared in batch]
    due = [part for part in parts if part.chunks]
    encoded = iter(encode(due) if due else [])
    vectors = []
    for prepared, part in zip(batch, parts, strict=True):
        if prepared.rows is None:
            vectors.append(next(encoded))
        else:
            joined = _joined(prepared, prepared.rows, next(encoded).chunks if part.chunks else None)
            vectors.append(encoder.from_chunks(_segmented(prepared), joined))
    return vectors


def _segmented(prepared: Prepared) -> SegmentedDocument:
    assert prepared.segmented is not None
    return prepared.segmented


def _without_vectors(prepared: Prepared) -> SegmentedDocument:
    """The document with only the chunks that must be encoded."""
    segmented, reused = _segmented(prepared), set(prepared.places.tolist())
    due = [place for place in range(len(segmented.chunks)) if place not in reused]
    chunks = tuple(segmented.chunks[place] for place in due)
    return replace(segmented, chunks=chunks, token_ids=tuple(segmented.token_ids[place] for place in due))


def _joined(prepared: Prepared, rows: NDArray[np.float16], encoded: Vectors | None) -> Vectors:
    """(C, D) stored and new chunk vectors in reading order."""
    is_new = np.ones(len(_segmented(prepared).chunks), bool)
    is_new[prepared.places] = False
    chunks = np.empty((len(is_new), rows.shape[1]), np.float32)
    chunks[~is_new] = as_float32(rows)
    if encoded is not None:
        chunks[is_new] = encoded
    return chunks
