"""The plan of a run before it starts: time, memory and disk, from a sample of the corpus. Writes no index.

A sample (`indexer.sampling`) is read and segmented, a part of it is encoded, and committed to an index in a temporary
folder. Its seconds and bytes, times the size of the corpus, are the plan. The time to build a FAISS index is left out.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument
from engine.errors import DocumentError, named_faults
from engine.readers import Unreadable
from engine.store.catalog import ANN_FOLDER
from engine.store.documents import content_hash
from engine.store.factory import AUTO, is_exact_factory
from engine.store.lookup import stored_meta
from engine.store.manifest import index_folders
from engine.store.partitioned import open_snapshot
from engine.store.reference import FEWEST_DOCUMENTS, SAMPLE_CHUNKS, SAMPLE_DOCUMENTS
from engine.store.shards import SHARD_FOLDER
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.budget import (
    batch_bytes,
    fit_batches,
    forget_peak,
    is_on_gpu,
    limited_vram,
    peak_vram,
    refuse_memory,
    tokens_per_second,
)
from indexer.building.builder import Settings
from indexer.building.corpus import CorpusFiles
from indexer.building.doc_ids import FileIds
from indexer.generation.generations import GenerationState, generation_state, is_outgrown
from indexer.generation.index_choice import SCAN, IndexOption, Size, check_factory_option, index_options
from indexer.generation.reference import ALL_TOKENS, FEWEST_FIRST, FIRST_DOCUMENTS, FIRST_TOKENS
from indexer.generation.resources import DiskGuard, Footprint, Watch, folder_bytes
from indexer.reading.reader import DocumentReader, ReadLimits
from indexer.sampling import Drawn, Unit, draw, units_of

_KEPT_CHARS = 2_000_000  # of the sample, to be encoded and stored
_LANGUAGE = "english"  # of the sample; the size of term counts is nearly the same in other languages
_SPAN_BYTES = 16  # for each chunk, beside its row
# Postings, and statistics of words in the reference, relative to the term counts in the shards; of four corpora.
_POSTINGS_SHARE = 0.65
_STATISTICS_SHARE = 0.24
# Upper bound for the memory of reading and encoding in a run, relative to a sample: kernels and heap grow beyond a
# sample, and a run reads one batch while it encodes another.
_RUN_SHARE = 1.1
_PLANNED_RUN_SHARE = 1.3  # for a run that plans first in its own process, which keeps some memory of the plan


@dataclass(frozen=True)
class Way:
    """The cost of a run that encodes none, some or all of the documents, see `index --encode`."""

    encode: str
    seconds: float
    n_tokens: int
    disk_bytes: int


@dataclass(frozen=True)
class Plan:
    """Counts of a run, and its cost. All are estimates; counts are exact if `is_counted`."""

    n_new: int
    n_changed: int
    n_unchanged: int
    n_unreadable: int
    n_tokens: int
    n_chunks: int
    is_counted: bool
    factory: str
    memory_bytes: int
    vram_bytes: int | None
    disk_bytes: int
    ways: tuple[Way, ...]

    def way(self, encode: str) -> Way:
        """The cost with a value of `--encode`: none, later or all."""
        return next(way for way in self.ways if way.encode == encode)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _Existing:
    """The index before the run."""

    hashes: dict[str, str] = field(default_factory=dict)
    n_chunks_of: dict[str, int] = field(default_factory=dict)
    generations: tuple[GenerationState, ...] = ()  # of its partitions

    @property
    def n_chunks(self) -> int:
        """Chunks of all documents."""
        return sum(self.n_chunks_of.values())


@dataclass
class _Counts:
    """The corpus as the sample represents it. From `n_chars` on: of new and changed documents alone."""

    n_new: float = 0.0
    n_changed: float = 0.0
    n_unchanged: float = 0.0
    n_unreadable: float = 0.0
    n_chunks_replaced: float = 0.0
    read_seconds: float = 0.0
    is_all: bool = True
    n_chars: float = 0.0
    n_tokens: float = 0.0
    n_sections: float = 0.0
    n_chunks: float = 0.0

    @property
    def n_documents(self) -> float:
        """New and changed documents."""
        return self.n_new + self.n_changed


@dataclass(frozen=True)
class _Cost:
    """The cost of the corpus, measured on the sample."""

    counts: _Counts
    encode_seconds: float
    store_seconds: float
    catalog_bytes: int
    vector_bytes: int
    word_bytes: int
    peak_bytes: int
    vram_bytes: int | None


@named_faults
def make_plan(
    path: Path,
    paths: Sequence[str] | CorpusFiles,
    encoder: Encoder,
    *,
    settings: Settings | None = None,
    read_limits: ReadLimits | None = None,
    id_prefix: str = "",
) -> Plan:
    """Estimate a run with these settings from a sample. The encoder is measured, so nothing else should run.

    Raises:
        IndexMismatch: FAISS does not know the factory string.
        BudgetExceeded: a limit cannot be kept; raised before the corpus is read if program and encoder are too large.
        DocumentError: a path does not exist, or nothing readable was found.
    """
    settings = settings or Settings()
    factory, memory_bytes = settings.factory, settings.memory_bytes
    check_factory_option(factory, encoder.width)
    existing = _existing(path)
    drawn = draw(units_of(paths, FileIds(id_prefix, path)), existing.hashes)
    cost = _measured(drawn, existing, encoder, settings, read_limits)
    counts = cost.counts
    batches = _batches(counts, memory_bytes, cost.peak_bytes, encoder.width)
    after = Size(
        len(existing.hashes) + round(counts.n_new),
        max(0, round(existing.n_chunks - counts.n_chunks_replaced + counts.n_chunks)),
        encoder.width,
    )
    left = None if memory_bytes is None else memory_bytes - cost.peak_bytes - batches
    option = index_options(factory, after, left)[-1] if _is_due(existing, counts, factory) else None
    derived = _derived_bytes(cost, after, option, is_new=not existing.hashes)
    added = cost.catalog_bytes + cost.vector_bytes + cost.word_bytes
    before = folder_bytes(path) if path.exists() else 0
    replaced = sum(folder_bytes(home / ANN_FOLDER) for home in {path, *index_folders(path)}) if before else 0
    DiskGuard(path, settings.disk_bytes).refuse(added + derived)
    shown = ("n_new", "n_changed", "n_unchanged", "n_unreadable", "n_tokens", "n_chunks")
    return Plan(
        **{name: round(getattr(counts, name)) for name in shown},
        is_counted=counts.is_all,
        factory="" if option is None or option.factory == SCAN else option.factory,
        memory_bytes=cost.peak_bytes + batches + (0 if option is None else option.needed_bytes),
        vram_bytes=cost.vram_bytes,
        disk_bytes=before + added + derived,
        ways=_ways(cost, encoder, before + added + derived - (replaced if derived else 0)),
    )


def _existing(path: Path) -> _Existing:
    if not stored_meta(path).keys() & {"encoder", "counters"}:
        return _Existing()
    with open_snapshot(path) as snapshot:
        states = tuple(filter(None, map(generation_state, snapshot.parts)))
        return _Existing(dict(snapshot.content_hashes()), dict(snapshot.chunk_counts()), states)


def _is_due(existing: _Existing, counts: _Counts, factory: str) -> bool:
    """Whether the run will build a generation; see `indexer.generation.generations.needs_generation`."""
    n_added, states = round(counts.n_chunks), existing.generations
    if not states:
        return existing.n_chunks + n_added > 0
    n_covered = sum(state.n_covered for state in states)
    n_vectors, n_fresh = sum(state.n_vectors for state in states), existing.n_chunks - n_covered + n_added
    is_other = factory not in (AUTO, states[0].factory)
    return is_other or is_outgrown(n_vectors, n_covered - round(counts.n_chunks_replaced), n_fresh)


def _measured(
    drawn: Sequence[Drawn], existing: _Existing, encoder: Encoder, settings: Settings, read_limits: ReadLimits | None
) -> _Cost:
    """Read the sample, and encode and store a part of it, inside the limits."""
    footprint = Footprint()
    held = footprint.own_bytes()
    refuse_memory(settings.memory_bytes, held, encoder.width)
    with limited_vram(encoder, settings.vram_bytes), Watch(footprint) as watch:
        if is_on_gpu(encoder):
            forget_peak(encoder)
        with DocumentReader(read_limits) as reader:
            counts, kept = read_sample(
                drawn, encoder, existing.hashes, existing.n_chunks_of, lambda unit: unit.read(reader)
            )
        encode_seconds = counts.n_tokens / tokens_per_second(kept, encoder) if kept else 0.0
        vram = peak_vram(encoder) if is_on_gpu(encoder) else None
        seconds, catalog_bytes, word_bytes = _stored(kept, encoder.width, counts.n_chars, is_new=not existing.hashes)
    loaded = Footprint().own_bytes() - footprint.own_bytes()  # code of the program that was not in use before
    share = _RUN_SHARE if settings.memory_bytes is None else _PLANNED_RUN_SHARE
    rows = counts.n_documents + counts.n_sections + counts.n_chunks
    return _Cost(
        counts,
        encode_seconds,
        seconds,
        catalog_bytes,
        round(2 * encoder.width * rows + _SPAN_BYTES * counts.n_chunks),
        word_bytes,
        held + round(share * (watch.peak_bytes - held)) + loaded,
        vram,
    )


def read_sample(
    drawn: Sequence[Drawn],
    encoder: Encoder,
    hashes: dict[str, str],
    n_chunks_of: dict[str, int],
    read: Callable[[Unit], Document | Unreadable],
) -> tuple[_Counts, list[SegmentedDocument]]:
    """Read, compare and segment a sample; returns the counts of the corpus, and some documents in random order.

    The hashes and numbers of chunks are those of the documents that the index holds, by `doc_id`.
    """
    counts, kept, n_kept = _Counts(), list[SegmentedDocument](), 0
    for part in random.Random(0).sample(drawn, len(drawn)):
        started = time.perf_counter()
        document = read(part.unit)
        counts.is_all &= part.n_units == 1
        if isinstance(document, Document) and hashes.get(document.doc_id) == content_hash(document):
            counts.n_unchanged += part.n_units
        elif isinstance(document, Unreadable) or (segmented := _segmented(document, encoder)) is None:
            counts.n_unreadable += part.n_units
        else:
            _count(counts, part, segmented, n_chunks_of)
            if n_kept < _KEPT_CHARS:
                kept.append(segmented)
                n_kept += len(segmented.document.text)
        counts.read_seconds += part.share * (time.perf_counter() - started)
    return counts, kept


def _segmented(document: Document, encoder: Encoder) -> SegmentedDocument | None:
    try:
        return encoder.segment(document)
    except DocumentError:
        return None


def _count(counts: _Counts, part: Drawn, segmented: SegmentedDocument, n_chunks_of: dict[str, int]) -> None:
    doc_id = segmented.document.doc_id
    if doc_id in n_chunks_of:
        counts.n_changed += part.n_units
        counts.n_chunks_replaced += part.share * n_chunks_of[doc_id]
    else:
        counts.n_new += part.n_units
    counts.n_chars += part.share * len(segmented.document.text)
    counts.n_tokens += part.share * segmented.coverage.tokens_read
    counts.n_sections += part.share * len(segmented.document.sections)
    counts.n_chunks += part.share * len(segmented.chunks)


def _stored(kept: Sequence[SegmentedDocument], width: int, n_chars: float, *, is_new: bool) -> tuple[float, int, int]:
    """Seconds to store the corpus, bytes of its catalog and of its term counts: the kept documents are committed.

    The seconds are those of the quicker of two halves: the first also loads what a run loads once.
    """
    if not kept:
        return 0.0, 0, 0
    paces = []
    with tempfile.TemporaryDirectory(prefix="longmatch-plan-") as name:
        folder = Path(name) / "sample.lm"
        with Writer(folder) as writer:
            writer.claim({"name": "sample", "fingerprint": "", "width": width})
            writer.set_language(_LANGUAGE)
        empty = folder_bytes(folder)
        with Writer(folder) as writer:
            for half in filter(None, (kept[::2], kept[1::2])):
                encoded = [(document.document, _zeros(document, width)) for document in half]
                started = time.perf_counter()
                writer.commit(encoded)
                paces.append((time.perf_counter() - started) / sum(len(one.text) for one, _ in encoded))
        shards = folder_bytes(folder / SHARD_FOLDER)
        catalog = folder_bytes(folder) - shards
    rows = sum(1 + len(one.document.sections) + len(one.chunks) for one in kept)
    vectors = 2 * width * rows + _SPAN_BYTES * sum(len(one.chunks) for one in kept)
    share = n_chars / sum(len(one.document.text) for one in kept)
    catalog_bytes = round(share * (catalog - empty)) + (empty if is_new else 0)
    return min(paces) * n_chars, catalog_bytes, round(share * max(0, shards - vectors))


def _zeros(document: SegmentedDocument, width: int) -> EncodedDocument:
    sections = np.zeros((len(document.document.sections), width), np.float32)
    chunks = np.zeros((len(document.chunks), width), np.float32)
    return EncodedDocument(np.zeros(width, np.float32), sections, chunks, document.chunks, document.coverage)


def _batches(counts: _Counts, memory_bytes: int | None, held: int, width: int) -> int:
    """Memory of the batches of a run, which are no larger than its corpus."""
    refuse_memory(memory_bytes, held, width, has_encoded=True)
    chars_per_chunk = counts.n_chars / max(1.0, counts.n_chunks) or 1.0
    batch_chars = fit_batches(None if memory_bytes is None else memory_bytes - held, width, chars_per_chunk)
    return batch_bytes(min(batch_chars, round(counts.n_chars)), width, chars_per_chunk)


def _derived_bytes(cost: _Cost, size: Size, option: IndexOption | None, *, is_new: bool) -> int:
    """Bytes of a FAISS index, of postings, and for a new index of the reference with its statistics of words."""
    if option is None:
        return 0
    word_bytes = cost.word_bytes * size.n_documents / max(1.0, cost.counts.n_documents)
    postings = 0.0 if is_exact_factory(option.factory) else _POSTINGS_SHARE * word_bytes
    chunks_each = size.n_chunks / max(1, size.n_documents)
    n_sampled = min(size.n_documents, SAMPLE_DOCUMENTS, max(FEWEST_DOCUMENTS, SAMPLE_CHUNKS / max(1.0, chunks_each)))
    reference = n_sampled * size.width * (chunks_each + 2) + _STATISTICS_SHARE * word_bytes
    return option.index_bytes + round(postings + (reference if is_new else 0.0))


def _ways(cost: _Cost, encoder: Encoder, disk_bytes: int) -> tuple[Way, ...]:
    """The cost with each value of --encode; the vectors of `later` are estimated as a share of all vectors."""
    counts = cost.counts
    first = counts.n_tokens
    if first > ALL_TOKENS:
        each = first / max(1.0, counts.n_documents)
        first = min(first, max(FEWEST_FIRST * each, min(FIRST_TOKENS, FIRST_DOCUMENTS * each)))
    share = first / max(1.0, counts.n_tokens)
    beside = counts.read_seconds + cost.store_seconds
    # Reading has a thread of its own beside encoding, but takes a share of the cores.
    slowing = 0.0 if is_on_gpu(encoder) else counts.read_seconds / (os.cpu_count() or 1)
    reading = max(slowing, counts.read_seconds - cost.encode_seconds)
    without = disk_bytes - cost.vector_bytes
    return (
        Way("none", beside, 0, without),
        Way("later", beside + share * cost.encode_seconds, round(first), without + round(share * cost.vector_bytes)),
        Way("all", reading + cost.encode_seconds + cost.store_seconds, round(counts.n_tokens), disk_bytes),
    )
