"""Measures how fast long documents are indexed, with sentence-transformers and the machine's limit in the same run.

Every way to encode runs once in every round, each time in a fresh process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.datasets import checksum, open_dataset
from benchmarks.measuring.isolation import run_fresh
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.measuring.timing import limited_threads
from benchmarks.options import log
from benchmarks.packages import require
from benchmarks.peers.peer import EXTRA
from benchmarks.peers.shared_weights import SAME_DTYPE, peer_config
from benchmarks.program import program
from benchmarks.record_file import RESULTS
from benchmarks.speed.encode.limits import LayerSizes, chunk_flops, encoder_shapes, profile_encoder, read_sizes
from benchmarks.speed.encode.tables import limit_table, throughput_table
from benchmarks.speed.encode.ways import END_TO_END, WAYS, Job, Way, chunk_texts, draw_sample, first_chunks, segment_all
from benchmarks.speed.products import measure_products
from benchmarks.speed.records import Fidelity, IndexingParts, Pass, ThroughputRecord, WayRun
from engine.devices import check_device
from engine.encoders.backbone.openvino_bert import Precision
from engine.encoders.encoder import SegmentedDocument, Vectors
from engine.encoders.loading import DEFAULT_ENCODER, load_encoder
from engine.errors import EngineError
from indexer.origin import Origin

CHUNKS, QUICK_CHUNKS = 4000, 150
ROUNDS, QUICK_ROUNDS = 5, 2
PROFILED_CHUNKS = 512
FIDELITY_CHUNKS, RIVAL_CHUNKS = 2000, 256
_RIVAL = {"sentence_transformers": "sentence-transformers"}


def measure(
    job: Job, sizes: LayerSizes, rounds: int, *, label: str, is_quick: bool, origin: Origin
) -> ThroughputRecord:
    """Measure a sample; the ways run in their order in one round, and in reverse order in the next."""
    sample = job.sample
    passes: dict[str, list[Pass]] = {name: [] for name in WAYS}
    indexing: list[IndexingParts] = []
    products: list[dict[str, float]] = []
    for number in range(rounds):
        answer, _ = run_fresh(measure_products, encoder_shapes(sizes), job.config.threads, job.config.width, job.device)
        products.append(answer)
        for name in list(WAYS)[:: 1 if number % 2 == 0 else -1]:
            answer, peak_mib = _turn(job, name, WAYS[name], sample.n_chunks)
            passes[name].append(Pass(round(answer["seconds"], 3), round(answer["cpu_seconds"], 3), peak_mib))
            if name == END_TO_END:
                parts = (answer["encode_seconds"], answer["generation_seconds"])
                indexing.append(IndexingParts(*(round(seconds, 3) for seconds in parts)))
            log(f"round {number + 1} of {rounds}, {name}: {sample.n_chunks:,} chunks in {answer['seconds']:.1f} s")
    # torch's profiler of the CPU records a GPU's products only as the calls that start them.
    operators = run_fresh(profile_encoder, job, PROFILED_CHUNKS)[0] if job.device == "cpu" else {}
    fidelity, _ = run_fresh(measure_fidelity, job, FIDELITY_CHUNKS)
    lengths = [n_tokens + job.config.n_special for n_tokens in sample.chunk_tokens]
    return ThroughputRecord(
        task=sample.dataset.name,
        dataset=label,
        is_quick=is_quick,
        encoder=job.config.label,
        threads=job.config.threads,
        n_documents=sample.n_documents,
        n_chunks=sample.n_chunks,
        n_tokens=sample.n_tokens,
        gflop=round(chunk_flops(sizes, lengths) / 1e9, 3),
        ways={name: WayRun(WAYS[name].dtype or job.config.dtype, passes[name]) for name in WAYS},
        indexing=indexing,
        products=products,
        operator_seconds={group: round(seconds, 4) for group, seconds in operators.items()},
        fidelity=Fidelity(**fidelity),
        origin=origin,
        device=job.device,
    )


def _turn(job: Job, name: str, way: Way, n_chunks: int) -> tuple[dict[str, Any], float]:
    """The result of a way, and the peak memory of its process in MiB."""
    with _variables(way.variables):
        answer, memory = run_fresh(way.run, job, *way.given)
    if answer["n_chunks"] != n_chunks:
        raise EngineError(f"{name} encoded {answer['n_chunks']:,} chunks, the sample has {n_chunks:,}; report this")
    return answer, memory.peak


@contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for processes that are started inside."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def measure_fidelity(job: Job, n_chunks: int) -> dict[str, Any]:
    """The fields of `Fidelity`, over at least `n_chunks` chunks of the first documents of a sample, or all."""
    from benchmarks.peers.shared_weights import sentence_encoder
    from engine.encoders.backbone.model_folder import quiet_transformers
    from engine.search.query import as_stored

    def encoded(segmented: list[SegmentedDocument], precision: Precision | None) -> Vectors:
        used = load_encoder(job.config.encoder, device="cpu", precision=precision)
        return np.concatenate(
            [
                (as_stored(one) if precision is None else one).chunks
                for document in segmented
                for one in used.encode_segmented([document])
            ]
        )

    with limited_threads(job.config.threads, width=job.config.width):
        encoder = load_encoder(job.config.encoder, device=job.device)
        segmented = first_chunks(segment_all(encoder, job.sample.dataset), n_chunks)
        exact = encoded(segmented, "f32")
        texts = list(chunk_texts(segmented))[:RIVAL_CHUNKS]
        with quiet_transformers():
            model = sentence_encoder(replace(job.config, dtype="float32"), job.config.max_tokens)
        ours = cosines(encoded(segmented, None), exact)
        rival = cosines(model.encode(texts, show_progress_bar=False), exact[: len(texts)])
    return asdict(
        Fidelity(len(ours), float(ours.mean()), float(ours.min()), len(rival), float(rival.mean()), float(rival.min()))
    )


def cosines(one: Vectors, other: Vectors) -> Vectors:
    """(N,) cosines of the rows of two arrays (N, D), which need not be of unit length."""
    norms = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    found: Vectors = (one * other).sum(1) / norms
    return found


@program
@click.argument("name", metavar="DATASET")
@click.option("--chunks", "n_chunks", type=click.IntRange(1), help=f"Of the sample, about.  [default: {CHUNKS}]")
@click.option("--rounds", type=click.IntRange(1), help=f"Below {ROUNDS} no record without --out.  [default: {ROUNDS}]")
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
    sizes = read_sizes(config.backbone)
    dataset = open_dataset(name, run.data)
    with run.folder() as work, tempfile.TemporaryDirectory(prefix="longmatch-encode-", dir=work) as folder:
        wanted = n_chunks or (QUICK_CHUNKS if run.is_quick else CHUNKS)
        own = load_encoder(encoder, device=device)
        sample = draw_sample(dataset, own, wanted, Path(folder), seed=run.seed)
        log(f"{dataset.name}: {sample.n_documents:,} documents, {sample.n_chunks:,} chunks")
        job = Job(config, sample, Path(folder), device)
        label = f"{dataset.name}@{checksum(dataset)}"
        record = measure(job, sizes, rounds, label=label, is_quick=not is_whole, origin=run.origin)
    click.echo(f"{throughput_table([record])}\n\n{limit_table([record])}")
    if is_whole or run.out != RESULTS:
        run.keep(record)
