"""Measures on a sample the counts, sizes and seconds that a run needs for the corpus. Stores nothing."""

from __future__ import annotations

import json
import random
import tempfile
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument
from engine.errors import DocumentError
from engine.readers import Unreadable
from engine.store.documents import content_hash
from engine.store.writer import Writer
from engine.text.document import Document
from engine.words.counts import count_words
from engine.words.segmenter import segmenter_of
from indexer.plan.sample import Drawn
from indexer.reading.reader import DocumentReader

_KEPT_CHARS = 2_000_000  # of the sample, to be encoded and stored
_PAGE_BYTES = 4096  # of SQLite
_SPILLED_BYTES = 300  # mean loss in the first page of a long value
_SECTION_BYTES = 28  # of a section beside heading and path: numbers, and its entry in an index
_LANGUAGE = "english"  # used to count terms; the number of terms is nearly the same with another language
_DOCUMENT_BYTES = 124  # of a document: numbers, its entry in an index, and its hash of 64 bytes


@dataclass(frozen=True, slots=True)
class Known:
    """What the index holds: content hash and chunks of each document, by name."""

    hashes: Mapping[str, str] = field(default_factory=dict)
    n_chunks: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Counts:
    """Counts of the corpus, estimated from the sample; exact if the sample is the whole corpus."""

    n_new: float = 0.0
    n_changed: float = 0.0
    n_unchanged: float = 0.0
    n_unreadable: float = 0.0
    n_chars: float = 0.0  # this and all counts below: of new and changed documents, unless a comment says otherwise
    n_tokens: float = 0.0
    n_sections: float = 0.0
    n_chunks: float = 0.0
    n_chunks_replaced: float = 0.0  # of changed documents, as they are in the index
    n_terms: float = 0.0  # distinct words and pairs of words of each document, summed
    catalog_bytes: float = 0.0
    read_seconds: float = 0.0  # reading, comparing and segmenting, also of what is unchanged
    is_all: bool = True  # whether everything was read


@dataclass
class Sample:
    """What was counted, and the documents that further measuring is done with."""

    counts: Counts = field(default_factory=Counts)
    kept: list[SegmentedDocument] = field(default_factory=list)


def read_sample(
    drawn: Sequence[Drawn], encoder: Encoder, known: Known, seed: int = 0, reader: DocumentReader | None = None
) -> Sample:
    """Read, compare and segment a sample.

    Args:
        drawn: from `indexer.plan.sample.draw`.
        encoder: that would encode the sample.
        known: contents of the index.
        seed: of the choice of kept documents.
        reader: reads within limits; by default documents are read in this process, without limits.
    """
    sample = Sample()
    order = list(drawn)
    random.Random(seed).shuffle(order)
    n_kept = 0
    for one in order:
        segmented = _count(one, encoder, known, sample.counts, reader)
        if segmented is not None and n_kept < _KEPT_CHARS:
            sample.kept.append(segmented)
            n_kept += len(segmented.document.text)
    return sample


def _count(
    one: Drawn, encoder: Encoder, known: Known, counts: Counts, reader: DocumentReader | None
) -> SegmentedDocument | None:
    started = time.perf_counter()
    document = one.unit.read() if reader is None else one.unit.read(reader)
    segmented = None
    counts.is_all &= one.n_units == 1
    if isinstance(document, Document) and known.hashes.get(document.doc_id) == content_hash(document):
        counts.n_unchanged += one.n_units
    else:
        segmented = _segmented(document, encoder)
        if segmented is None or isinstance(document, Unreadable):
            counts.n_unreadable += one.n_units
        elif document.doc_id in known.hashes:
            counts.n_changed += one.n_units
            counts.n_chunks_replaced += one.share * known.n_chunks[document.doc_id]
        else:
            counts.n_new += one.n_units
    counts.read_seconds += one.share * (time.perf_counter() - started)
    if segmented is not None:
        counts.n_chars += one.share * len(segmented.document.text)
        counts.n_tokens += one.share * segmented.coverage.tokens_read
        counts.n_sections += one.share * len(segmented.document.sections)
        counts.n_chunks += one.share * len(segmented.chunks)
        counts.catalog_bytes += one.share * catalog_bytes(segmented.document)
        words = count_words(segmenter_of(_LANGUAGE), [segmented.document.text])
        counts.n_terms += one.share * (len(words.words.terms) + len(words.pairs.terms))
    return segmented


def _segmented(document: Document | Unreadable, encoder: Encoder) -> SegmentedDocument | None:
    try:
        return None if isinstance(document, Unreadable) else encoder.segment(document)
    except DocumentError:
        return None


def catalog_bytes(document: Document) -> int:
    """Bytes that a document adds to the catalog: compressed text, sections, row, and their entries in indexes."""
    deflated = len(zlib.compress(document.text.encode(), 1))
    sections = sum(
        len(section.heading.encode()) + len(json.dumps(section.path, ensure_ascii=False).encode()) + _SECTION_BYTES
        for section in document.sections
    )
    named = 2 * len(document.doc_id.encode()) + len(document.title.encode()) + len(document.source.encode())
    metadata = json.dumps([dict(document.metadata), document.pages], ensure_ascii=False)
    return _paged(deflated) + sections + named + len(metadata.encode()) + _DOCUMENT_BYTES


def _paged(size: int) -> int:
    """Bytes of a value in SQLite: small values share a page whole, a longer one continues in pages of its own."""
    if size > _PAGE_BYTES - 40:
        return size + _SPILLED_BYTES
    return _PAGE_BYTES // max(1, (_PAGE_BYTES - 16) // (size + 10))


def store_seconds_per_char(kept: Sequence[SegmentedDocument], width: int) -> float:
    """Commit the kept documents, with zeros for vectors, to an index in a temporary folder, and time it.

    It is the quicker of two halves: the first also loads and makes what a run does only once.
    """
    paces = []
    with tempfile.TemporaryDirectory(prefix="longmatch-plan-") as folder, Writer(Path(folder) / "sample.lm") as writer:
        for half in filter(None, (kept[::2], kept[1::2])):
            encoded = [(document.document, _zeros(document, width)) for document in half]
            started = time.perf_counter()
            writer.commit(encoded)
            paces.append((time.perf_counter() - started) / sum(len(document.text) for document, _ in encoded))
    return min(paces)


def _zeros(document: SegmentedDocument, width: int) -> EncodedDocument:
    sections = np.zeros((len(document.document.sections), width), np.float32)
    chunks = np.zeros((len(document.chunks), width), np.float32)
    return EncodedDocument(np.zeros(width, np.float32), sections, chunks, document.chunks, document.coverage)
