"""Batches of documents that are in a catalog without vectors, and the vectors of one batch. Commits nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from engine.encoders.encoder import EncodedDocument, SegmentedDocument
from engine.errors import DocumentError
from engine.readers import Unreadable
from engine.store.writer import Writer
from engine.text.document import Document

LOOKUP_DOCUMENTS = 64  # documents that are looked up in the catalog by one statement, at most


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """Documents that are encoded and get their vectors together."""

    ids: list[int]  # catalog ids
    documents: list[Document]


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """The vectors of a batch."""

    places: list[int]  # places in the batch of the encoded documents
    encoded: list[EncodedDocument]  # one for each place
    failures: list[Unreadable] = field(default_factory=list)  # documents without a token
    seconds: float = 0.0  # that an encoder in another process took


EncodeBatches: TypeAlias = Callable[[Iterator[StoredBatch]], Iterator[tuple[StoredBatch, EncodedBatch]]]


def stored_batches(writer: Writer, document_ids: Sequence[int], batch_chars: int) -> Iterator[StoredBatch]:
    """Cut documents of a catalog into batches.

    Args:
        batch_chars: a batch is full with this number of characters.
    """
    batch = StoredBatch([], [])
    n_chars = 0
    for first in range(0, len(document_ids), LOOKUP_DOCUMENTS):
        ids = list(document_ids[first : first + LOOKUP_DOCUMENTS])
        for one, document in zip(ids, writer.documents(ids), strict=True):
            batch.ids.append(one)
            batch.documents.append(document)
            n_chars += len(document.text)
            if n_chars >= batch_chars:
                yield batch
                batch, n_chars = StoredBatch([], []), 0
    if batch.ids:
        yield batch


def encode_batch(
    batch: StoredBatch,
    segment: Callable[[Document], SegmentedDocument],
    encode: Callable[[list[SegmentedDocument]], list[EncodedDocument]],
) -> EncodedBatch:
    """Segment and encode a batch."""
    segmented, places, failures = [], [], []
    for place, document in enumerate(batch.documents):
        try:
            segmented.append(segment(document))
            places.append(place)
        except DocumentError as error:
            failures.append(Unreadable(document.source or document.doc_id, str(error), document.doc_id))
    return EncodedBatch(places, encode(segmented) if segmented else [], failures)
