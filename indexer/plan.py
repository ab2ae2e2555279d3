"""The plan of a run before it starts: time, memory and disk, from a sample of the corpus. Writes no index.

The sample is read and segmented, a part of it is encoded, and committed to an index in a temporary folder. Its seconds
and bytes, times the size of the corpus, are the plan. The time to build a FAISS index is left out. The sample is
stratified: a stratum holds files of one format, or lines of JSON, whose sizes differ by a factor of two at most, and
which the index holds all or none of.
"""

from __future__ import annotations

import gzip
import os
import random
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import numpy as np

from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument
from engine.errors import DocumentError, named_faults
from engine.readers import Unreadable, is_readable
from engine.readers.fields import Fields
from engine.store.catalog import ANN_FOLDER, index_folders
from engine.store.checks import content_hash
from engine.store.partitioned import open_snapshot, stored_meta
from engine.store.reference import FEWEST_DOCUMENTS, SAMPLE_CHUNKS, SAMPLE_DOCUMENTS
from engine.store.shards import SHARD_FOLDER
from engine.store.writer import Writer
from engine.text.cleaning import MAX_DOCUMENT_BYTES
from engine.text.document import Document
from indexer.building import budget
from indexer.building.builder import Settings
from indexer.building.corpus import CorpusFiles, FileIds, list_corpus
from indexer.generation import resources
from indexer.generation.generations import GenerationState, generation_state, is_outgrown
from indexer.generation.reference import ALL_TOKENS, FEWEST_FIRST, FIRST_DOCUMENTS, FIRST_TOKENS
from indexer.reading.reader import DocumentReader, ReadLimits, ReadRequest, is_json_lines

_MOST = 16  # most units drawn from a stratum
_LEAST = 6
_BYTES = 1 << 20  # about the most bytes drawn from a stratum, but at least `_LEAST` units
_MAX_LINE_BYTES = 4 * MAX_DOCUMENT_BYTES  # a longer line is refused, so its rest is not kept
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

Unit: TypeAlias = tuple[ReadRequest, int]  # a file, or a line of a file that holds many documents, and its bytes


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
class Existing:
    """The index before the run: content hashes and numbers of chunks by name, and the generations of partitions."""

    hashes: dict[str, str] = field(default_factory=dict)
    n_chunks_of: dict[str, int] = field(default_factory=dict)
    generations: tuple[GenerationState, ...] = ()


@dataclass
class Sample:
    """The corpus as the sample represents it, and its cost. From `n_chars` on: of new and changed documents alone."""

    n_new: float = 0.0
    n_changed: float = 0.0
    n_unchanged: float = 0.0
    n_unreadable: float = 0.0
    n_chunks_replaced: float = 0.0
    read_seconds: float = 0.0
    is_counted: bool = True
    n_chars: float = 0.0
    n_tokens: float = 0.0
    n_sections: float = 0.0
    n_chunks: float = 0.0
    encode_seconds: float = 0.0
    store_seconds: float = 0.0
    catalog_bytes: int = 0
    vector_bytes: int = 0
    word_bytes: int = 0
    peak_bytes: int = 0
    vram_bytes: int | None = None
    kept: list[SegmentedDocument] = field(default_factory=list)  # some documents, in random order

    @property
    def n_documents(self) -> float:
        """New and changed documents."""
        return self.n_new + self.n_changed


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
    resources.check_factory_option(factory, encoder.width)
    existing = _existing(path)
    drawn = draw(units_of(paths, FileIds(id_prefix, path)), existing.hashes)
    sample = _measured(drawn, existing, encoder, settings, read_limits)
    batches = _batches(sample, memory_bytes, encoder.width)
    n_chunks = sum(existing.n_chunks_of.values()) - sample.n_chunks_replaced + sample.n_chunks
    after = resources.Size(len(existing.hashes) + round(sample.n_new), max(0, round(n_chunks)), encoder.width)
    left = None if memory_bytes is None else memory_bytes - sample.peak_bytes - batches
    option = resources.index_options(factory, after, left)[-1] if _is_due(existing, sample, factory) else None
    derived = _derived_bytes(sample, after, option, is_new=not existing.hashes)
    added = sample.catalog_bytes + sample.vector_bytes + sample.word_bytes
    before = resources.folder_bytes(path) if path.exists() else 0
    replaced = sum(resources.folder_bytes(home / ANN_FOLDER) for home in {path, *index_folders(path)}) if before else 0
    resources.DiskGuard(path, settings.disk_bytes).refuse(added + derived)
    shown = ("n_new", "n_changed", "n_unchanged", "n_unreadable", "n_tokens", "n_chunks")
    return Plan(
        **{name: round(getattr(sample, name)) for name in shown},
        is_counted=sample.is_counted,
        factory="" if option is None or option.factory == resources.SCAN else option.factory,
        memory_bytes=sample.peak_bytes + batches + (0 if option is None else option.needed_bytes),
        vram_bytes=sample.vram_bytes,
        disk_bytes=before + added + derived,
        ways=_ways(sample, encoder, before + added + derived - (replaced if derived else 0)),
    )


def _existing(path: Path) -> Existing:
    if not stored_meta(path).keys() & {"encoder", "counters"}:
        return Existing()
    with open_snapshot(path) as snapshot:
        states = tuple(filter(None, map(generation_state, snapshot.parts)))
        return Existing(snapshot.content_hashes(), snapshot.chunk_counts(), states)


def _is_due(existing: Existing, sample: Sample, factory: str) -> bool:
    """Whether the run will build a generation; see `indexer.generation.generations.needs_generation`."""
    n_chunks, states = sum(existing.n_chunks_of.values()) + round(sample.n_chunks), existing.generations
    if not states:
        return n_chunks > 0
    n_covered, n_vectors = (sum(getattr(state, name) for state in states) for name in ("n_covered", "n_vectors"))
    is_other = factory not in (resources.AUTO, states[0].factory)
    return is_other or is_outgrown(n_vectors, n_covered - round(sample.n_chunks_replaced), n_chunks - n_covered)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A unit of the sample, and the part of its stratum that it represents."""

    request: ReadRequest
    size_bytes: int
    n_units: float  # units of the stratum for each drawn one, at least 1
    share: float  # bytes of the stratum for each drawn byte, at least 1

    def read(self, reader: DocumentReader) -> Document | Unreadable:
        """Parse it."""
        return next(iter([*reader.read([self.request])]), Unreadable(self.request.source, "the line is empty"))


@dataclass
class _Stratum:
    n_units: int = 0
    n_bytes: int = 0
    drawn: list[Unit] = field(default_factory=list)


def units_of(paths: Sequence[str] | CorpusFiles, ids: FileIds | None = None) -> Iterator[Unit]:
    """All units of a corpus; lines are read, not parsed.

    Raises:
        DocumentError: a path does not exist, or nothing readable was found.
    """
    files = paths if isinstance(paths, CorpusFiles) else list_corpus(paths)
    if files.reads_stdin:
        yield from _lines(sys.stdin.buffer, "stdin", files.fields)
    for file, doc_id in files.named(ids):
        if is_json_lines(file.name):
            yield from _lines_of(file, files.fields)
        else:
            yield ReadRequest(str(file), doc_id, fields=files.fields), file.stat().st_size


def _lines_of(file: Path, fields: Fields) -> Iterator[Unit]:
    is_packed = file.name.lower().endswith(".gz")
    try:
        with cast(BinaryIO, gzip.open(file)) if is_packed else file.open("rb") as stream:
            yield from _lines(stream, str(file), fields)
    except (OSError, EOFError, zlib.error):
        return  # the run reports the failure


def _lines(stream: BinaryIO, source: str, fields: Fields) -> Iterator[Unit]:
    while line := stream.readline(_MAX_LINE_BYTES):
        size, part = len(line), line
        while not part.endswith(b"\n") and (part := stream.readline(_MAX_LINE_BYTES)):
            size += len(part)
        if line.strip():
            yield ReadRequest(source, line=line, fields=fields), size


def draw(units: Iterable[Unit], known: Container[str | None] = (), seed: int = 0) -> list[Drawn]:
    """Draw some units of each stratum, all of a small one.

    Algorithm R of Vitter (1985, doi:10.1145/3147.3165) in each stratum: one pass, and every
    unit is drawn as likely as the others.

    `known` are the doc_ids that the index holds.
    """
    rng = random.Random(seed)
    strata: dict[tuple[str, int, bool], _Stratum] = {}
    for request, size_bytes in units:
        size_class = size_bytes.bit_length()
        suffix = "" if request.line is not None else _suffix(Path(request.source))
        stratum = strata.setdefault((suffix, size_class, request.doc_id in known), _Stratum())
        stratum.n_units += 1
        stratum.n_bytes += size_bytes
        most = max(_LEAST, min(_MOST, _BYTES >> size_class))
        if len(stratum.drawn) < most:
            stratum.drawn.append((request, size_bytes))
        elif (place := rng.randrange(stratum.n_units)) < most:
            stratum.drawn[place] = request, size_bytes
    return [drawn for _, stratum in sorted(strata.items()) for drawn in _weighted(stratum)]


def _suffix(path: Path) -> str:
    """The suffixes of a format; of 2004.14974.gz the last alone."""
    return "".join(path.suffixes[-2 if is_readable(path) else -1 :]).lower()


def _weighted(stratum: _Stratum) -> Iterator[Drawn]:
    n_units = stratum.n_units / len(stratum.drawn)
    n_bytes = sum(size_bytes for _, size_bytes in stratum.drawn)
    share = stratum.n_bytes / n_bytes if n_bytes else n_units
    for request, size_bytes in stratum.drawn:
        yield Drawn(request, size_bytes, n_units, share)


def _measured(
    drawn: Sequence[Drawn], existing: Existing, encoder: Encoder, settings: Settings, read_limits: ReadLimits | None
) -> Sample:
    """Read the sample, and encode and store a part of it, inside the limits."""
    footprint = resources.Footprint()
    held = footprint.own_bytes()
    budget.refuse_memory(settings.memory_bytes, held, encoder.width)
    with budget.limited_vram(encoder, settings.vram_bytes), resources.MemoryWatch(footprint) as watch:
        if budget.is_on_gpu(encoder):
            budget.forget_peak(encoder)
        with DocumentReader(read_limits) as reader:
            sample = read_sample(drawn, encoder, existing, lambda unit: unit.read(reader))
        if sample.kept:
            sample.encode_seconds = sample.n_tokens / budget.tokens_per_second(sample.kept, encoder)
        sample.vram_bytes = budget.peak_vram(encoder) if budget.is_on_gpu(encoder) else None
        if sample.kept:
            _store(sample, encoder.width, is_new=not existing.hashes)
    loaded = resources.Footprint().own_bytes() - footprint.own_bytes()  # code of the program that was not in use before
    share = _RUN_SHARE if settings.memory_bytes is None else _PLANNED_RUN_SHARE
    rows = sample.n_documents + sample.n_sections + sample.n_chunks
    sample.vector_bytes = round(2 * encoder.width * rows + _SPAN_BYTES * sample.n_chunks)
    sample.peak_bytes = held + round(share * (watch.peak_bytes - held)) + loaded
    return sample


def read_sample(
    drawn: Sequence[Drawn], encoder: Encoder, existing: Existing, read: Callable[[Drawn], Document | Unreadable]
) -> Sample:
    """Read, compare and segment a sample; returns the counts of the corpus."""
    sample, n_kept = Sample(), 0
    for unit in random.Random(0).sample(drawn, len(drawn)):
        started = time.perf_counter()
        document = read(unit)
        sample.is_counted &= unit.n_units == 1
        if isinstance(document, Document) and existing.hashes.get(document.doc_id) == content_hash(document):
            sample.n_unchanged += unit.n_units
        elif isinstance(document, Unreadable) or (segmented := _segmented(document, encoder)) is None:
            sample.n_unreadable += unit.n_units
        else:
            _count(sample, unit, segmented, existing.n_chunks_of)
            if n_kept < _KEPT_CHARS:
                sample.kept.append(segmented)
                n_kept += len(segmented.document.text)
        sample.read_seconds += unit.share * (time.perf_counter() - started)
    return sample


def _segmented(document: Document, encoder: Encoder) -> SegmentedDocument | None:
    try:
        return encoder.segment(document)
    except DocumentError:
        return None


def _count(sample: Sample, unit: Drawn, segmented: SegmentedDocument, n_chunks_of: dict[str, int]) -> None:
    doc_id = segmented.document.doc_id
    if doc_id in n_chunks_of:
        sample.n_changed += unit.n_units
        sample.n_chunks_replaced += unit.share * n_chunks_of[doc_id]
    else:
        sample.n_new += unit.n_units
    sample.n_chars += unit.share * len(segmented.document.text)
    sample.n_tokens += unit.share * segmented.coverage.tokens_read
    sample.n_sections += unit.share * len(segmented.document.sections)
    sample.n_chunks += unit.share * len(segmented.chunks)


def _store(sample: Sample, width: int, *, is_new: bool) -> None:
    """Commit the kept documents, and take the cost of the corpus from them.

    The seconds are those of the quicker of two halves: the first also loads what a run loads once.
    """
    kept, paces = sample.kept, []
    with tempfile.TemporaryDirectory(prefix="longmatch-plan-") as name:
        folder = Path(name) / "sample.lm"
        with Writer(folder) as writer:
            writer.claim({"name": "sample", "fingerprint": "", "width": width})
            writer.set_language(_LANGUAGE)
        empty = resources.folder_bytes(folder)
        with Writer(folder) as writer:
            for half in filter(None, (kept[::2], kept[1::2])):
                encoded = [(document.document, _zeros(document, width)) for document in half]
                started = time.perf_counter()
                writer.commit(encoded)
                paces.append((time.perf_counter() - started) / sum(len(document.text) for document, _ in encoded))
        shards = resources.folder_bytes(folder / SHARD_FOLDER)
        catalog = resources.folder_bytes(folder) - shards
    rows = sum(1 + len(segmented.document.sections) + len(segmented.chunks) for segmented in kept)
    vectors = 2 * width * rows + _SPAN_BYTES * sum(len(segmented.chunks) for segmented in kept)
    share = sample.n_chars / sum(len(segmented.document.text) for segmented in kept)
    sample.store_seconds = min(paces) * sample.n_chars
    sample.catalog_bytes = round(share * (catalog - empty)) + (empty if is_new else 0)
    sample.word_bytes = round(share * max(0, shards - vectors))


def _zeros(document: SegmentedDocument, width: int) -> EncodedDocument:
    sections = np.zeros((len(document.document.sections), width), np.float32)
    chunks = np.zeros((len(document.chunks), width), np.float32)
    return EncodedDocument(np.zeros(width, np.float32), sections, chunks, document.chunks, document.coverage)


def _batches(sample: Sample, memory_bytes: int | None, width: int) -> int:
    """Memory of the batches of a run, which are no larger than its corpus."""
    budget.refuse_memory(memory_bytes, sample.peak_bytes, width, has_encoded=True)
    chars_per_chunk = sample.n_chars / max(1.0, sample.n_chunks) or 1.0
    left = None if memory_bytes is None else memory_bytes - sample.peak_bytes
    return budget.batch_bytes(
        min(budget.fit_batches(left, width, chars_per_chunk), round(sample.n_chars)), width, chars_per_chunk
    )


def _derived_bytes(sample: Sample, size: resources.Size, option: resources.IndexOption | None, *, is_new: bool) -> int:
    """Bytes of a FAISS index, of postings, and for a new index of the reference with its statistics of words."""
    if option is None:
        return 0
    word_bytes = sample.word_bytes * size.n_documents / max(1.0, sample.n_documents)
    postings = 0.0 if resources.is_exact_factory(option.factory) else _POSTINGS_SHARE * word_bytes
    chunks_each = size.n_chunks / max(1, size.n_documents)
    n_sampled = min(size.n_documents, SAMPLE_DOCUMENTS, max(FEWEST_DOCUMENTS, SAMPLE_CHUNKS / max(1.0, chunks_each)))
    reference = n_sampled * size.width * (chunks_each + 2) + _STATISTICS_SHARE * word_bytes
    return option.index_bytes + round(postings + (reference if is_new else 0.0))


def _ways(sample: Sample, encoder: Encoder, disk_bytes: int) -> tuple[Way, ...]:
    """The cost with each value of --encode; the vectors of `later` are estimated as a share of all vectors."""
    first = sample.n_tokens
    if first > ALL_TOKENS:
        each = first / max(1.0, sample.n_documents)
        first = min(first, max(FEWEST_FIRST * each, min(FIRST_TOKENS, FIRST_DOCUMENTS * each)))
    share = first / max(1.0, sample.n_tokens)
    beside = sample.read_seconds + sample.store_seconds
    # Reading has a thread of its own beside encoding, but takes a share of the cores.
    slowing = 0.0 if budget.is_on_gpu(encoder) else sample.read_seconds / (os.cpu_count() or 1)
    reading = max(slowing, sample.read_seconds - sample.encode_seconds)
    without = disk_bytes - sample.vector_bytes
    return (
        Way("none", beside, 0, without),
        Way(
            "later", beside + share * sample.encode_seconds, round(first), without + round(share * sample.vector_bytes)
        ),
        Way("all", reading + sample.encode_seconds + sample.store_seconds, round(sample.n_tokens), disk_bytes),
    )
