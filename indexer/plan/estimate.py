"""Makes the plan of a run from a sample of its corpus, before it starts. Writes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.encoders.encoder import Encoder
from engine.errors import BudgetExceeded
from engine.faults import named_faults
from engine.store.ann import ANN_FOLDER, AUTO, is_exact_factory
from engine.store.manifest import index_folders
from engine.store.partitioned import open_snapshot
from engine.store.presence import stored_meta
from engine.store.reference import FEWEST_DOCUMENTS, REFERENCE_FOLDER, SAMPLE_CHUNKS, SAMPLE_DOCUMENTS
from engine.store.shards import SHARD_FOLDER
from engine.store.snapshot import Snapshot
from indexer.building.accelerator import forget_peak, is_on_gpu, limited_vram, peak_vram, weights_bytes
from indexer.building.budget import Budget, batch_bytes, fit_batches, refuse_memory
from indexer.building.doc_ids import FileIds
from indexer.building.encoding_speed import tokens_per_second
from indexer.building.pipeline import BatchSizes
from indexer.building.stored import LOOKUP_DOCUMENTS
from indexer.generation.disk import DiskGuard
from indexer.generation.extension import Standing
from indexer.generation.footprint import Footprint, Watch, folder_bytes
from indexer.generation.index_choice import SCAN, SMALL, Rung, Size, check_factory_option, climb_down, describe_ladder
from indexer.generation.new_generation import is_outgrown
from indexer.generation.reference import ALL_TOKENS, FEWEST_FIRST, FIRST_DOCUMENTS, FIRST_TOKENS
from indexer.plan.rates import Rates, extension_seconds, generation_seconds, measure_rates
from indexer.plan.sample import Unit, draw, units_of
from indexer.plan.sample_measurement import (
    Counts,
    Known,
    Sample,
    read_sample,
    store_seconds_per_char,
)
from indexer.plan.values import Disk, Memory, Plan, Seconds, Vram, Way
from indexer.reading.reader import DocumentReader, ReadLimits

_SPAN_BYTES = 16  # for each chunk, beside its row
_TERM_BYTES = 3.4  # for each distinct term of a document: hash and count
_TERM_STARTS_BYTES = 96  # for each document: the starts and the high bytes of its terms
# For each distinct term of a document: the share of terms that two documents have, times their size; measured on four
# corpora.
_POSTING_BYTES = 2.2
_STATISTICS_BYTES = 0.8
_SCALE_BYTES = 4  # for each chunk of the reference, beside its row with a byte for each number
_SHARD_SHARE = 1.01  # a shard with its header, relative to its content
EMPTY_CATALOG_BYTES = 114_688  # pages of its tables
# Upper bound for the memory of reading and encoding in a run, relative to a sample: kernels and heap grow beyond a
# sample, and a run reads one batch while it encodes another. `benchmarks.speed.plan` compares it with runs.
_RUN_SHARE = 1.1
_PLANNED_RUN_SHARE = 1.3  # for a run that plans first in its own process, which keeps some memory of the plan


@dataclass(frozen=True)
class _There:
    """The index as it is."""

    known: Known
    n_documents: int = 0
    n_chunks: int = 0
    n_fresh: int = 0  # chunks that no generation covers
    n_vectors: int = 0  # in the generation
    n_trained: int = 0  # vectors that the index had when the generation was trained
    factory: str = ""  # of the generation; "" without one


@dataclass(frozen=True)
class _Tried:
    """The measurements on a sample."""

    counts: Counts
    encoding_seconds: float  # of the whole corpus
    storing_seconds: float  # of the whole corpus
    rates: Rates
    held_bytes: int  # memory of program and encoder
    peak_bytes: int  # memory while a batch is read and encoded, including `held_bytes`
    vram: Vram | None


@named_faults
def make_plan(
    path: Path | None,
    paths: Sequence[str],
    encoder: Encoder,
    *,
    factory: str = AUTO,
    budget: Budget | None = None,
    seed: int = 0,
    read_limits: ReadLimits | None = None,
    id_prefix: str = "",
) -> Plan:
    """Estimate a run from a sample of the corpus.

    Args:
        path: of the index, which need not exist; None to plan without an index.
        paths: of the corpus, as in `indexer.read_corpus`; standard input is read to its end.
        encoder: that would be used. It is measured, so nothing else should run.
        factory: FAISS factory string, `auto`, or `scan` for none.
        budget: limits of the run.
        seed: of the sample.
        read_limits: of reading one document.
        id_prefix: of new doc_ids.

    Raises:
        IndexMismatch: FAISS does not know the factory string.
        BudgetExceeded: the budget cannot be kept. If program and encoder alone are too large, this
            is raised before the corpus is read.
        DocumentError: a path does not exist, or nothing readable was found.
    """
    check_factory_option(factory, encoder.width)
    budget = budget or Budget()
    there = _there(path)
    units = units_of(paths, FileIds(id_prefix, path))
    tried = _try_out(units, there.known, encoder, budget, seed, read_limits)
    counts, after = tried.counts, _size_after(there, tried.counts, encoder.width)
    batches = _batches(counts, budget, tried.peak_bytes, encoder.width)
    left = None if budget.memory_bytes is None else budget.memory_bytes - tried.peak_bytes - batches
    rungs = climb_down(factory, after, left) if _is_due(there, counts, factory) else ()
    rung = rungs[-1] if rungs else Rung(SCAN, 0, 0, SMALL, fits=True)
    disk = _disk(path, counts, rung, after)
    _refuse_disk(path, disk, budget)
    generation = _generation_seconds(there, counts, factory, rung, after, tried.rates)
    seconds = _seconds(tried, encoder, generation)
    return Plan(
        n_new=round(counts.n_new),
        n_changed=round(counts.n_changed),
        n_unchanged=round(counts.n_unchanged),
        n_unreadable=round(counts.n_unreadable),
        n_chars=round(counts.n_chars),
        n_tokens=round(counts.n_tokens),
        n_chunks=round(counts.n_chunks),
        n_chunks_after=after.n_chunks,
        is_counted=counts.is_all,
        factory="" if rung.factory == SCAN else rung.factory,
        seconds=seconds,
        memory=_memory(tried, encoder, batches, rung),
        mapped_bytes=disk.shards if rungs else 0,
        vram=tried.vram,
        disk=disk,
        ladder=tuple(describe_ladder(rungs, left)),
        ways=_ways(tried, seconds, disk, encoder.width),
    )


def _size_after(there: _There, counts: Counts, width: int) -> Size:
    """What the index will hold after the run."""
    n_chunks = round(there.n_chunks - counts.n_chunks_replaced + counts.n_chunks)
    return Size(there.n_documents + round(counts.n_new), max(0, n_chunks), width)


def _seconds(tried: _Tried, encoder: Encoder, generation: float) -> Seconds:
    reading = _shown_reading(tried.counts.read_seconds, tried.encoding_seconds, encoder)
    return Seconds(reading, tried.encoding_seconds, tried.storing_seconds, generation)


def _memory(tried: _Tried, encoder: Encoder, batches: int, rung: Rung) -> Memory:
    """Memory of each part of the run; the parameters of an encoder on a GPU do not count."""
    on_cpu = 0 if is_on_gpu(encoder) else min(tried.held_bytes, weights_bytes(encoder))
    return Memory(
        program=tried.held_bytes - on_cpu,
        weights=on_cpu,
        encoding=tried.peak_bytes - tried.held_bytes,
        batches=batches,
        index=rung.index_bytes,
        building=rung.work_bytes,
    )


def _ways(tried: _Tried, seconds: Seconds, disk: Disk, width: int) -> tuple[Way, ...]:
    """The cost of each way of encoding; the vectors of `later` are estimated as a share of all vectors."""
    counts = tried.counts
    n_documents = counts.n_new + counts.n_changed
    first = counts.n_tokens
    if first > ALL_TOKENS:
        per_document = counts.n_tokens / max(1.0, n_documents)
        first = min(first, max(FEWEST_FIRST * per_document, min(FIRST_TOKENS, FIRST_DOCUMENTS * per_document)))
    share = first / max(1.0, counts.n_tokens)
    vectors = 2 * width * (n_documents + counts.n_sections + counts.n_chunks) + _SPAN_BYTES * counts.n_chunks
    words = disk.catalog + max(0, disk.shards - round(_SHARD_SHARE * vectors))
    reading = counts.read_seconds + tried.storing_seconds
    return (
        Way("none", reading, 0, words),
        Way("later", reading + share * tried.encoding_seconds, round(first), words + round(share * vectors)),
        Way("all", seconds.total, round(counts.n_tokens), disk.afterwards),
    )


def _try_out(
    units: Iterable[Unit],
    known: Known,
    encoder: Encoder,
    budget: Budget,
    seed: int,
    read_limits: ReadLimits | None,
) -> _Tried:
    """Read a sample and encode some of it, inside the budget.

    Raises:
        BudgetExceeded: program and encoder are too large already.
        DocumentError: see `make_plan`.
    """
    footprint = Footprint()
    held = footprint.own_bytes()
    refuse_memory(budget, held, encoder.width)
    with limited_vram(encoder, budget.vram_bytes), Watch(footprint) as watch:
        if is_on_gpu(encoder):
            forget_peak(encoder)
        with DocumentReader(read_limits) as reader:
            sample = read_sample(draw(units, known.hashes, seed), encoder, known, seed, reader)
        encoding, storing = _pace(sample, encoder)
        rates = measure_rates(encoder.width)
        vram = _vram(encoder)
    loaded = Footprint().own_bytes() - footprint.own_bytes()  # code of the program that was not in use before
    share = _RUN_SHARE if budget.memory_bytes is None else _PLANNED_RUN_SHARE
    peak = held + round(share * (watch.peak_bytes - held))
    return _Tried(sample.counts, encoding, storing, rates, held + loaded, peak + loaded, vram)


def _there(path: Path | None) -> _There:
    if path is None or not stored_meta(path).keys() & {"encoder", "counters"}:
        return _There(Known())  # no index, or one that holds nothing yet
    with open_snapshot(path) as snapshot:
        rows = [(part, part.generation_row) for part in snapshot.parts]
        covered = [(part, row) for part, row in rows if row is not None]
        return _There(
            Known(snapshot.content_hashes(), snapshot.chunk_counts()),
            snapshot.n_documents,
            snapshot.n_chunks,
            sum(_n_fresh(part, 0 if row is None else row.through_chunk) for part, row in rows),
            sum(row.n_vectors for _, row in covered),
            sum(part.meta.get("trained_vectors", row.n_vectors) for part, row in covered),
            covered[0][1].factory if covered else "",
        )


def _n_fresh(part: Snapshot, through_chunk: int) -> int:
    return int(part.roster.n_chunks[part.is_fresh(through_chunk)].sum())


def _is_due(there: _There, counts: Counts, factory: str) -> bool:
    """Whether the run will build a generation; see `indexer.generation.new_generation.needs_generation`."""
    n_chunks = there.n_chunks + round(counts.n_chunks)
    if not there.factory:
        return n_chunks > 0
    n_covered = there.n_chunks - there.n_fresh - round(counts.n_chunks_replaced)
    is_other = factory not in (AUTO, there.factory)
    return is_other or is_outgrown(there.n_vectors, n_covered, there.n_fresh + round(counts.n_chunks))


def _generation_seconds(there: _There, counts: Counts, factory: str, rung: Rung, after: Size, rates: Rates) -> float:
    """Seconds to extend the published generation, or else to build a new one."""
    n_fresh = there.n_fresh + round(counts.n_chunks)
    n_covered = there.n_chunks - there.n_fresh - round(counts.n_chunks_replaced)
    standing = Standing(there.factory, there.n_vectors, there.n_trained, n_covered, n_fresh)
    if there.factory and standing.takes_in(factory, rung.factory):
        return extension_seconds(rung, after, n_fresh, rates)
    return generation_seconds(rung, after, rates)


def _pace(sample: Sample, encoder: Encoder) -> tuple[float, float]:
    """Seconds of encoding and of storing."""
    if not sample.kept:
        return 0.0, 0.0
    encoding = sample.counts.n_tokens / tokens_per_second(sample.kept, encoder)
    return encoding, sample.counts.n_chars * store_seconds_per_char(sample.kept, encoder.width)


def _shown_reading(reading: float, encoding: float, encoder: Encoder) -> float:
    """Reading time that encoding does not hide: reading has a thread of its own, but takes a share of the cores."""
    if is_on_gpu(encoder):
        return max(0.0, reading - encoding)
    return max(reading / (os.cpu_count() or 1), reading - encoding)


def _vram(encoder: Encoder) -> Vram | None:
    if not is_on_gpu(encoder):
        return None
    weights = weights_bytes(encoder)
    return Vram(weights, max(0, peak_vram(encoder) - weights))


def _batches(counts: Counts, budget: Budget, held: int, width: int) -> int:
    """Memory of the batches of a run, which are no larger than its corpus.

    Raises:
        BudgetExceeded: the smallest do not fit.
    """
    refuse_memory(budget, held, width, has_encoded=True)
    chars_per_chunk = counts.n_chars / max(1.0, counts.n_chunks) or 1.0
    left = None if budget.memory_bytes is None else budget.memory_bytes - held
    sizes = fit_batches(left, width, chars_per_chunk)
    n_documents = max(1.0, counts.n_new + counts.n_changed)
    looked_up = min(sizes.lookup_chars, round(LOOKUP_DOCUMENTS * counts.n_chars / n_documents))
    return batch_bytes(
        BatchSizes(min(sizes.batch_chars, round(counts.n_chars)), min(looked_up, round(counts.n_chars))),
        width,
        chars_per_chunk,
    )


def _disk(path: Path | None, counts: Counts, rung: Rung, size: Size) -> Disk:
    width = size.width
    rows = counts.n_new + counts.n_changed + counts.n_sections + counts.n_chunks
    n_documents = counts.n_new + counts.n_changed
    terms = counts.n_terms * _TERM_BYTES + n_documents * _TERM_STARTS_BYTES
    shards = _SHARD_SHARE * (rows * 2 * width + counts.n_chunks * _SPAN_BYTES + terms)
    there = Disk(catalog=EMPTY_CATALOG_BYTES)
    if path is not None and path.exists():
        homes = {path, *index_folders(path)}
        parts = [
            sum(folder_bytes(home / folder) for home in homes)
            for folder in (SHARD_FOLDER, ANN_FOLDER, REFERENCE_FOLDER)
        ]
        there = Disk(folder_bytes(path) - sum(parts), *parts)
    is_replaced = bool(rung.index_bytes)
    # In proportion to the documents, for terms that the index holds already.
    n_terms = counts.n_terms * size.n_documents / max(1.0, n_documents)
    postings = 0 if is_exact_factory(rung.factory) else round(_POSTING_BYTES * n_terms)
    return Disk(
        catalog=there.catalog + round(counts.catalog_bytes),
        shards=there.shards + round(shards),
        generation=rung.index_bytes + postings if is_replaced else there.generation,
        reference=there.reference or _reference_bytes(size, n_terms),
        replaced_generation=there.generation if is_replaced else 0,
    )


def _reference_bytes(size: Size, n_terms: float) -> int:
    """Bytes of the sample's vectors and of the term statistics."""
    per_document = size.n_chunks / max(1, size.n_documents)
    n_sampled = min(size.n_documents, SAMPLE_DOCUMENTS, max(FEWEST_DOCUMENTS, SAMPLE_CHUNKS / max(1.0, per_document)))
    sample = n_sampled * (per_document * (size.width + _SCALE_BYTES) + 2 * size.width)
    return round(sample + _STATISTICS_BYTES * n_terms)


def _refuse_disk(path: Path | None, disk: Disk, budget: Budget) -> None:
    if path is not None:
        DiskGuard(path, budget.disk_bytes).refuse(int(disk.total) - folder_bytes(path))
    elif budget.disk_bytes is not None and disk.total > budget.disk_bytes:
        raise BudgetExceeded(
            f"the index would take {disk.total / 1e6:,.1f} MB, --disk allows {budget.disk_bytes / 1e6:,.1f} MB; "
            f"allow at least {-(-int(disk.total) // 1_000_000):,}M, or index fewer documents"
        )
