"""The plan of a run before it starts: time and disk, from a sample of the corpus. Writes no index.

The sample is read and segmented, a part of it is encoded, and committed to an index in a temporary folder. Its seconds
and bytes, times the size of the corpus, are the plan. The time to build a FAISS index is left out. The sample is
stratified: a stratum holds files of one format, or lines of JSON, whose sizes differ by a factor of two at most, and
which the index holds all or none of.
"""

import gzip
import os
import random
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

import numpy as np

from engine.encoders.encoder import Encoder, SegmentedDocument, segmented
from engine.errors import named_faults
from engine.readers import Unreadable, is_readable
from engine.readers.fields import Fields
from engine.readers.jsonl import ACTION
from engine.store.catalog import ANN_FOLDER, index_folders
from engine.store.checks import content_hash
from engine.store.partitioned import open_snapshot, stored_meta
from engine.store.reference import SAMPLE_CHUNKS
from engine.text.cleaning import MAX_DOCUMENT_BYTES
from engine.text.document import Document
from engine.text.segmentation import Coverage
from indexer.building.builder import build
from indexer.building.corpus import CorpusFiles, FileIds, list_corpus
from indexer.generation.reference import ALL_TOKENS, FEWEST_FIRST, FIRST_DOCUMENTS, FIRST_TOKENS
from indexer.generation.resources import (
    AUTO,
    SCAN,
    check_factory_option,
    factory_for,
    folder_bytes,
    index_bytes,
    is_exact_factory,
)
from indexer.reading.reader import DocumentReader, ReadLimits, ReadRequest, is_json_lines

_MOST = 16  # most units drawn from a stratum
_LEAST = 6
_BYTES = 1 << 20  # about the most bytes drawn from a stratum, but at least `_LEAST` units
_MAX_LINE_BYTES = 4 * MAX_DOCUMENT_BYTES  # a longer line is refused, so its rest is not kept
_KEPT_CHARS = 2_000_000  # of the sample, to be encoded and stored
_LANGUAGE = "english"  # of the sample; the size of term counts is nearly the same in other languages
_SPAN_BYTES = 16  # for each chunk, beside its row
# Postings, relative to an index of words without them: 0.65 of its term counts, by four corpora, which are a quarter of
# the index of the demo corpus.
_POSTINGS_SHARE = 0.16

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
    ways: tuple[Way, ...]

    def way(self, encode: str) -> Way:
        """The cost with a value of `--encode`: none, later or all."""
        return next(way for way in self.ways if way.encode == encode)


@dataclass(frozen=True)
class Existing:
    """The index before the run: content hashes and numbers of chunks by name."""

    hashes: dict[str, str] = field(default_factory=dict)
    n_chunks_of: dict[str, int] = field(default_factory=dict)


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
    word_bytes: int = 0
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
    factory: str = AUTO,
    read_limits: ReadLimits | None = None,
    id_prefix: str = "",
) -> Plan:
    """Estimate a run from a sample. The encoder is measured, so nothing else should run.

    Raises:
        DocumentError: a path does not exist, or nothing readable was found.
        IndexMismatch: FAISS does not know the factory string.
    """
    check_factory_option(factory, encoder.width)
    existing = _existing(path)
    drawn = draw(units_of(paths, FileIds(id_prefix, path)), existing.hashes)
    with DocumentReader(read_limits) as reader:
        sample = read_sample(drawn, encoder, existing, lambda unit: unit.read(reader))
    if sample.kept:
        sample.encode_seconds = sample.n_tokens / tokens_per_second(sample.kept, encoder)
        _store(sample, is_new=not existing.hashes)
    shown = ("n_new", "n_changed", "n_unchanged", "n_unreadable", "n_tokens", "n_chunks")
    counts = {name: round(getattr(sample, name)) for name in shown}
    return Plan(**counts, is_counted=sample.is_counted, ways=_ways(sample, existing, encoder, factory, path))


def _existing(path: Path) -> Existing:
    if not stored_meta(path).keys() & {"encoder", "counters"}:
        return Existing()
    with open_snapshot(path) as snapshot:
        return Existing(snapshot.content_hashes(), snapshot.chunk_counts())


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
    """All units of a corpus; lines are read, not parsed."""
    files = paths if isinstance(paths, CorpusFiles) else list_corpus(paths)
    if files.reads_stdin:
        yield from _lines(sys.stdin.buffer, "stdin", "", files.fields)
    for file, doc_id in files.named(ids):
        if is_json_lines(file.name):
            yield from _lines_of(file, doc_id, files.fields)
        else:
            yield ReadRequest(str(file), doc_id, fields=files.fields), file.stat().st_size


def _lines_of(file: Path, doc_id: str, fields: Fields) -> Iterator[Unit]:
    is_packed = file.name.lower().endswith(".gz")
    try:
        with cast(BinaryIO, gzip.open(file)) if is_packed else file.open("rb") as stream:
            yield from _lines(stream, str(file), doc_id, fields)
    except (OSError, EOFError, zlib.error):
        return  # the run reports the failure


def _lines(stream: BinaryIO, source: str, doc_id: str, fields: Fields) -> Iterator[Unit]:
    for number, line in enumerate(iter(partial(stream.readline, _MAX_LINE_BYTES), b"")):
        size, part = len(line), line
        while not part.endswith(b"\n") and (part := stream.readline(_MAX_LINE_BYTES)):
            size += len(part)
        if line.strip() and not ACTION.match(line):
            yield ReadRequest(source, doc_id, line=line, n_skipped=number, fields=fields), size


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
        elif isinstance(document, Unreadable) or (cut := segmented(encoder, document)) is None:
            sample.n_unreadable += unit.n_units
        else:
            _count(sample, unit, cut, existing.n_chunks_of)
            if n_kept < _KEPT_CHARS:
                sample.kept.append(cut)
                n_kept += len(cut.document.text)
        sample.read_seconds += unit.share * (time.perf_counter() - started)
    return sample


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


_DOCUMENT_TOKENS = 4096  # of one document, so that a long document is not the whole measurement
_GROUP_TOKENS = (8192, 32768)  # encoded in one call
_ENOUGH_SECONDS = 2.0  # after a group that takes longer, no larger group is encoded


def tokens_per_second(documents: Sequence[SegmentedDocument], encoder: Encoder) -> float:
    """Encode the first of the documents, then more of them, and time the larger group.

    Chunks of many documents are more alike in length than those of few, so a group is read
    faster the larger it is, and a run reads larger ones still.
    """
    encoder.encode_segmented([_cut(documents[0], 512)])
    cut = [_cut(document) for document in documents]
    ends = np.cumsum([document.coverage.tokens_read for document in cut])
    for most_tokens in _GROUP_TOKENS:
        n = min(len(cut), 1 + int(np.searchsorted(ends, most_tokens)))
        started = time.perf_counter()
        encoder.encode_segmented(cut[:n])
        seconds = max(time.perf_counter() - started, 1e-9)
        if n == len(cut) or seconds > _ENOUGH_SECONDS:
            break
    return float(ends[n - 1] / seconds)


def _cut(document: SegmentedDocument, most_tokens: int = _DOCUMENT_TOKENS) -> SegmentedDocument:
    """A document with only its first chunks, at least one."""
    ends = np.cumsum([chunk.n_tokens for chunk in document.chunks])
    n = max(1, int(np.searchsorted(ends, most_tokens, side="right")))
    n_tokens = int(ends[n - 1])
    coverage = Coverage(n_tokens, n_tokens)
    return replace(document, chunks=document.chunks[:n], token_ids=document.token_ids[:n], coverage=coverage)


def _store(sample: Sample, *, is_new: bool) -> None:
    """Index the kept documents by words, and take the cost of the corpus from them.

    An index of one document comes first: it loads what a run loads once, and its size is that of an empty index.
    """
    kept = [segmented.document for segmented in sample.kept]
    with tempfile.TemporaryDirectory(prefix="longmatch-plan-") as name:
        first, folder = Path(name) / "first.lm", Path(name) / "sample.lm"
        build(first, kept[:1], encode="none", language=_LANGUAGE)
        report = build(folder, kept, encode="none", language=_LANGUAGE)
        empty, stored = folder_bytes(first), folder_bytes(folder)
    share = sample.n_chars / sum(len(document.text) for document in kept)
    sample.store_seconds = share * report.seconds
    sample.word_bytes = round(share * (stored - empty)) + (empty if is_new else 0)


def _ways(sample: Sample, existing: Existing, encoder: Encoder, factory: str, path: Path) -> tuple[Way, ...]:
    """The cost with each value of --encode; the vectors of `later` are estimated as a share of all vectors."""
    first = sample.n_tokens
    if first > ALL_TOKENS:
        each = first / max(1.0, sample.n_documents)
        first = min(first, max(FEWEST_FIRST * each, min(FIRST_TOKENS, FIRST_DOCUMENTS * each)))
    share = first / max(1.0, sample.n_tokens)
    beside = sample.read_seconds + sample.store_seconds
    # Reading has a thread of its own beside encoding, but takes a share of the cores.
    is_on_gpu = encoder.device.startswith("cuda")
    slowing = 0.0 if is_on_gpu else sample.read_seconds / (os.cpu_count() or 1)
    reading = max(slowing, sample.read_seconds - sample.encode_seconds)
    words, vectors = _disk_bytes(sample, existing, encoder.width, factory, path)
    return (
        Way("none", beside, 0, words),
        Way("later", beside + share * sample.encode_seconds, round(first), words + round(share * vectors)),
        Way("all", reading + sample.encode_seconds + sample.store_seconds, round(sample.n_tokens), words + vectors),
    )


def _disk_bytes(sample: Sample, existing: Existing, width: int, factory: str, path: Path) -> tuple[int, int]:
    """Bytes of the index after the run without the new vectors, and of these with the FAISS index over all vectors."""
    n_documents = len(existing.hashes) + sample.n_new
    n_chunks = max(0, round(sum(existing.n_chunks_of.values()) - sample.n_chunks_replaced + sample.n_chunks))
    built = factory_for(n_chunks, width) if factory == AUTO else factory
    before = replaced = 0
    if existing.hashes:
        before = folder_bytes(path)
        replaced = sum(folder_bytes(home / ANN_FOLDER) for home in {path, *index_folders(path)})
    word_bytes = sample.word_bytes * n_documents / max(1.0, sample.n_documents)
    postings = 0.0 if is_exact_factory(built) else _POSTINGS_SHARE * word_bytes
    rows = sample.n_documents + sample.n_sections + sample.n_chunks
    vectors = round(2 * width * rows + _SPAN_BYTES * sample.n_chunks)
    if not existing.hashes:
        vectors += width * min(n_chunks, SAMPLE_CHUNKS)  # of the reference
    faiss = 0 if built == SCAN else index_bytes(built, n_chunks, width)
    return before - replaced + sample.word_bytes + round(postings), vectors + faiss
