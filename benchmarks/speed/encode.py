"""Measures how fast long documents are indexed, with sentence-transformers in the same run.

Every way to encode runs once in every round, each time in a fresh process, and returns plain values. Loading, and a
first pass over a few chunks, are not timed.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

import click
import numpy as np

from benchmarks.datasets import Dataset, checksum, open_dataset, read_documents
from benchmarks.formats.trec import read_lines
from benchmarks.isolation import limited_threads, run_fresh
from benchmarks.packages import require
from benchmarks.peers.peer import EXTRA, SAME_DTYPE, PeerConfig, peer_config
from benchmarks.program import Measurement, log, measurement, program
from benchmarks.quick import SUFFIX
from benchmarks.runs import RESULTS, Case, Run
from benchmarks.tables.findings import END_TO_END as INDEXED
from benchmarks.tables.pivot import case_tables
from engine.encoders.cpu import Dtype
from engine.encoders.encoder import Encoder, SegmentedDocument
from engine.encoders.loading import DEFAULT_ENCODER, load_encoder
from engine.environment import check_device
from engine.errors import EngineError

WARM_UP = 64  # chunks that are encoded, and not counted, before a measurement
END_TO_END, IN_INT8, ENCODER_ALONE = "longmatch", "longmatch-int8", "longmatch-encoder"
DEFAULTS, BFLOAT16 = "st-float32", "st-bfloat16"
TITLES = {
    END_TO_END: INDEXED,
    IN_INT8: f"{INDEXED}, int8",
    ENCODER_ALONE: "longmatch, encoder alone",
    DEFAULTS: "sentence-transformers, defaults",
    BFLOAT16: "sentence-transformers, bfloat16 weights",
}
# libgomp's default where no policy is set. The policy of longmatch, under which idle threads sleep, is
# inherited by every process of a run; a rival that is measured with its defaults must not pay for it.
_UNTOUCHED = MappingProxyType({"GOMP_SPINCOUNT": "300000"})


@dataclass(frozen=True)
class Job:
    """The input of the process of each way."""

    config: PeerConfig  # the shared weights, and threads
    sample: Sample
    work: Path  # folder for indexes, which are removed
    device: str = "cpu"  # of all encoders


@dataclass(frozen=True)
class Way:
    """A way to encode a sample."""

    run: Callable[..., dict[str, Any]]
    given: tuple[Any, ...] = ()  # arguments of `run`, after the job
    dtype: str = ""  # of the weights; "" for that of the job's configuration
    variables: Mapping[str, str] = field(default_factory=dict)  # of the environment of its process


def index_all(job: Job, dtype: Dtype | None = None) -> dict[str, Any]:
    """Read, segment, tokenize, encode and store into a fresh index, as `longmatch index` does; then its generation."""
    from benchmarks.prepare import check_failures
    from indexer.building.builder import build

    commits: list[float] = []  # processor time when each batch was committed
    fresh = tempfile.TemporaryDirectory(prefix="index-", dir=job.work)
    with limited_threads(job.config.threads, width=job.config.width), fresh as folder:
        encoder = load_encoder(job.config.encoder, device=job.device, dtype=dtype)
        encoder.encode_segmented(first_chunks(segment_all(encoder, job.sample.dataset), WARM_UP))
        started, started_cpu = _now()
        documents, index = read_documents(job.sample.dataset), Path(folder) / "index.lm"
        report = build(index, documents, encoder=encoder, progress=lambda _: commits.append(time.process_time()))
        seconds = time.perf_counter() - started
    check_failures(report)
    return {
        "n_chunks": report.n_chunks,
        "seconds": seconds - report.generation_seconds,
        "cpu_seconds": commits[-1] - started_cpu,  # up to the last commit: the generation comes after it
        "encode_seconds": report.encode_seconds,
        "generation_seconds": report.generation_seconds,
    }


def encode_all(job: Job) -> dict[str, Any]:
    """Encode the same batches of documents, read and segmented beforehand, and do nothing else."""
    with limited_threads(job.config.threads, width=job.config.width):
        encoder = load_encoder(job.config.encoder, device=job.device)
        segmented = list(segment_all(encoder, job.sample.dataset))
        encoder.encode_segmented(first_chunks(iter(segmented), WARM_UP))
        started = _now()
        n_chunks = sum(len(one.chunks) for batch in batches(segmented) for one in encoder.encode_segmented(batch))
        return _spent(n_chunks, started)


def encode_texts(job: Job, dtype: str) -> dict[str, Any]:
    """Let sentence-transformers encode the texts of chunks in one call, with torch as it comes: batches of 32."""
    with _threads_alone(job.config.threads):
        from benchmarks.peers.peer import sentence_encoder
        from engine.encoders.files import quiet_transformers

        texts = job.sample.texts
        with quiet_transformers():
            model = sentence_encoder(replace(job.config, dtype=dtype), job.config.max_tokens).to(job.device)
        model.encode(texts[:WARM_UP], show_progress_bar=False)
        started = _now()
        vectors = model.encode(texts, show_progress_bar=False)
        return _spent(len(vectors), started)


WAYS: Mapping[str, Way] = {
    END_TO_END: Way(index_all),
    IN_INT8: Way(index_all, ("int8",), "int8"),  # on processors alone
    ENCODER_ALONE: Way(encode_all),
    DEFAULTS: Way(encode_texts, ("float32",), "float32", _UNTOUCHED),
    BFLOAT16: Way(encode_texts, ("bfloat16",), "bfloat16", _UNTOUCHED),
}


def batches(segmented: Sequence[SegmentedDocument]) -> Iterator[list[SegmentedDocument]]:
    """Documents as `indexer.building.pipeline` encodes them together: until they have `BATCH_CHARS` characters."""
    from indexer.building.pipeline import BATCH_CHARS

    batch: list[SegmentedDocument] = []
    n_chars = 0
    for one in segmented:
        batch.append(one)
        n_chars += len(one.document.text)
        if n_chars >= BATCH_CHARS:
            yield batch
            batch, n_chars = [], 0
    if batch:
        yield batch


def first_chunks(segmented: Iterator[SegmentedDocument], n_chunks: int) -> list[SegmentedDocument]:
    """The first documents that have at least `n_chunks` chunks together, or all."""
    first, n_there = list[SegmentedDocument](), 0
    for one in segmented:
        first.append(one)
        n_there += len(one.chunks)
        if n_there >= n_chunks:
            break
    return first


def segment_all(encoder: Encoder, dataset: Dataset) -> Iterator[SegmentedDocument]:
    """The documents of a dataset, cut into chunks."""
    return (encoder.segment(document) for document in read_documents(dataset))


@contextmanager
def _threads_alone(threads: int) -> Iterator[None]:
    """Set the threads of torch and of tokenizers, and change nothing else."""
    import torch

    os.environ["RAYON_NUM_THREADS"] = str(threads)
    torch.set_num_threads(threads)
    yield


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _spent(n_chunks: int, since: tuple[float, float]) -> dict[str, Any]:
    """The result of a way: chunks, wall time, and processor time of all cores."""
    seconds, cpu_seconds = (now - then for now, then in zip(_now(), since, strict=True))
    return {"n_chunks": n_chunks, "seconds": seconds, "cpu_seconds": cpu_seconds}


_MOST_CHARS = 2000  # of a chunk, mean over a sample; 126 tokens of English are some 600


@dataclass(frozen=True)
class Sample:
    """Documents, and the chunks that an encoder of longmatch cuts them into."""

    dataset: Dataset  # its corpus is the sample; its judgments are those of the whole dataset
    texts: list[str]  # of the chunks, in reading order
    n_documents: int
    n_tokens: int  # of all chunks, special ones left out
    chunk_tokens: list[int]  # of each chunk, special ones left out, in reading order

    @property
    def n_chunks(self) -> int:
        """Chunks of all documents."""
        return len(self.chunk_tokens)


def draw_sample(dataset: Dataset, encoder: Encoder, n_chunks: int, folder: Path, *, seed: int) -> Sample:
    """Write documents until they have `n_chunks` chunks, or the whole corpus where it has fewer, into an empty folder.

    Documents are drawn in the order of seeded hashes of their ids; the last one is kept whole. The sample keeps
    the order of the corpus, and each line unchanged.
    """
    drawn = _drawn(dataset, encoder, n_chunks, seed)
    corpus = folder / dataset.corpus.name
    _copy_lines(dataset.corpus, corpus, drawn)
    part = replace(dataset, corpus=corpus)
    segmented = list(segment_all(encoder, part))
    chunks = [(one.document.text, chunk) for one in segmented for chunk in one.chunks]
    chunk_tokens = [chunk.n_tokens for _, chunk in chunks]
    texts = [text[chunk.start : chunk.stop] for text, chunk in chunks]
    return Sample(part, texts, len(segmented), sum(chunk_tokens), chunk_tokens)


def _drawn(dataset: Dataset, encoder: Encoder, n_chunks: int, seed: int) -> set[str]:
    """Ids of the sample; holds only the documents of the corpus that can be needed."""
    sizes = {document.doc_id: len(document.text) for document in read_documents(dataset)}
    ordered = sorted(sizes, key=lambda doc_id: hashlib.sha256(f"{seed} {doc_id}".encode()).digest())
    n_enough = int(np.searchsorted(np.cumsum([sizes[doc_id] for doc_id in ordered]), n_chunks * _MOST_CHARS)) + 1
    candidates = dict.fromkeys(ordered[:n_enough])
    held = {document.doc_id: document for document in read_documents(dataset) if document.doc_id in candidates}
    segmented = (encoder.segment(held[doc_id]) for doc_id in candidates)
    return {one.document.doc_id for one in first_chunks(segmented, n_chunks)}


def _copy_lines(source: Path, target: Path, doc_ids: Collection[str]) -> None:
    with gzip.open(target, "wb") if target.suffix == ".gz" else target.open("wb") as file:
        for _, line in read_lines(source):
            record = json.loads(line)
            if str(record.get("_id", record.get("id"))) in doc_ids:
                file.write(line.encode() + b"\n")


CHUNKS, QUICK_CHUNKS = 4000, 150
ROUNDS, QUICK_ROUNDS = 5, 2
_RIVAL = {"sentence_transformers": "sentence-transformers"}
_WITH_GENERATION = "longmatch, documents to index with its FAISS index"
_NOTE = (
    "All ways encode the same chunks with the same weights and threads, each in a fresh process, in turn within each "
    "round; loading and a first pass over a few chunks are not counted. Documents to index: reading, segmenting, "
    "tokenizing, encoding, storing. Encoder alone: documents read, segmented and tokenized beforehand. Defaults: "
    "`encode` with float32 weights in batches of 32 sorted by length, torch and its idle threads as they come. Ratio: "
    "how many times as fast as the defaults in the same round, median, lowest, highest. Cores: processor time by time. "
    "Memory: the most resident, libraries and weights included."
)


def measure(job: Job, rounds: int) -> list[Case]:
    """Measure a sample; the ways run in their order in one round, and in reverse order in the next."""
    ways = {name: way for name, way in WAYS.items() if name != IN_INT8 or job.device == "cpu"}
    passes: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for number in range(rounds):
        for name in list(ways)[:: 1 if number % 2 == 0 else -1]:
            answer, peak_mib = _turn(job, name, ways[name], job.sample.n_chunks)
            passes[name].append({**answer, "peak_mib": peak_mib})
            log(f"round {number + 1} of {rounds}, {name}: {job.sample.n_chunks:,} chunks in {answer['seconds']:.1f} s")
    rival = [one["seconds"] for one in passes[DEFAULTS]]
    cases = []
    for name, way in ways.items():
        dtype, of_way = way.dtype or job.config.dtype, passes[name]
        cases.append(_case(job, TITLES[name], dtype, of_way, [one["seconds"] for one in of_way], rival))
        if name == END_TO_END:
            seconds = [one["seconds"] + one["generation_seconds"] for one in of_way]
            cases.append(_case(job, _WITH_GENERATION, dtype, of_way, seconds, rival))
    return cases


def _case(
    job: Job,
    title: str,
    dtype: str,
    passes: Sequence[Mapping[str, float]],
    seconds: Sequence[float],
    rival: Sequence[float],
) -> Case:
    sample, middle = job.sample, median(seconds)
    ratios = [other / own for other, own in zip(rival, seconds, strict=True)]
    cores = {"cores": round(median(one["cpu_seconds"] / one["seconds"] for one in passes), 2)}
    return Case(
        id=title,
        labels={"device": f"{job.device}, {job.config.threads} threads", "weights": dtype},
        values={
            "documents": sample.n_documents,
            "chunks": sample.n_chunks,
            "documents/s": round(sample.n_documents / middle, 2),
            "chunks/s": round(sample.n_chunks / middle, 1),
            "tokens/s": round(sample.n_tokens / middle),
            "ratio": round(median(ratios), 2),
            "lowest": round(min(ratios), 2),
            "highest": round(max(ratios), 2),
            **(cores if title != _WITH_GENERATION else {}),
            "memory, MiB": round(max(one["peak_mib"] for one in passes)),
        },
    )


def _turn(job: Job, name: str, way: Way, n_chunks: int) -> tuple[dict[str, Any], float]:
    """The result of a way, and the peak memory of its process in MiB."""
    answer, memory = run_fresh(way.run, job, *way.given, variables=way.variables)
    if answer["n_chunks"] != n_chunks:
        raise EngineError(f"{name} encoded {answer['n_chunks']:,} chunks, the sample has {n_chunks:,}; report this")
    return answer, memory.peak


@program
@click.argument("name", metavar="DATASET")
@click.option("--chunks", "n_chunks", type=click.IntRange(1), help=f"Of the sample, about.  [default: {CHUNKS}]")
@click.option("--rounds", type=click.IntRange(1), help=f"Below {ROUNDS} no run without --out.  [default: {ROUNDS}]")
@click.option("--encoder", default=DEFAULT_ENCODER, help="Whose weights all share.")
@click.option("--threads", default=os.cpu_count() or 1, show_default="all cores", type=click.IntRange(1))
@click.option("--device", default="cpu", help="Of all encoders; cuda:N for a GPU.")
@measurement(
    seed="Of the sample.",
    quick=f"{QUICK_CHUNKS} chunks, {QUICK_ROUNDS} rounds",
    data=True,
    work="Folder in which indexes are written and removed.",
)
def main(
    run: Measurement, name: str, n_chunks: int | None, rounds: int | None, encoder: str, threads: int, device: str
) -> None:
    """Index a sample of DATASET, a task by name or a folder, and encode its chunks by sentence-transformers in turn.

    Everything runs on one device, the processor by default.

    \b
    Example:
        python -m benchmarks study encode proposals --quick
        python -m benchmarks study encode proposals --rounds 7 --threads 2
        python -m benchmarks study encode proposals --device cuda:0
    """
    rounds = rounds or (QUICK_ROUNDS if run.is_quick else ROUNDS)
    is_whole = not run.is_quick and rounds >= ROUNDS
    check_device(device)
    require("the rival sentence-transformers", _RIVAL, EXTRA)
    config = peer_config(encoder, dtype=SAME_DTYPE, threads=threads)
    dataset = open_dataset(name, run.data)
    with run.folder() as work, tempfile.TemporaryDirectory(prefix="longmatch-encode-", dir=work) as folder:
        wanted = n_chunks or (QUICK_CHUNKS if run.is_quick else CHUNKS)
        own = load_encoder(encoder, device=device)
        sample = draw_sample(dataset, own, wanted, Path(folder), seed=run.seed)
        log(f"{dataset.name}: {sample.n_documents:,} documents, {sample.n_chunks:,} chunks")
        job = Job(config, sample, Path(folder), device)
        cases = measure(job, rounds)
    if not is_whole and run.out == RESULTS:
        run = replace(run, out=None)
    found = Run(
        task="throughput",
        dataset=f"{dataset.name}{SUFFIX * run.is_quick}@{checksum(dataset)}",
        system="way to encode",
        encoder=config.label,
        variant=f"{device.replace(':', '')}-threads{threads}",
        n_tokens=sample.n_tokens,
        details={"note": _NOTE},
        origin=run.origin,
        cases=cases,
    )
    run.publish([found], case_tables)
