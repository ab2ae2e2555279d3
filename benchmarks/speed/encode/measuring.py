"""Runs every way once in every round, each in a fresh process, and makes the record."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from benchmarks.datasets import read_documents
from benchmarks.measuring.isolation import run_fresh
from benchmarks.measuring.timing import limited_threads
from benchmarks.speed.encode.limits import LayerSizes, chunk_flops, encoder_shapes, profile_encoder
from benchmarks.speed.encode.ways import END_TO_END, WAYS, Job, Sample, Way, chunk_texts, first_chunks
from benchmarks.speed.products import measure_products
from benchmarks.speed.records import Fidelity, IndexingParts, Pass, ThroughputRecord, WayRun
from engine.encoders.encoder import SegmentedDocument, Vectors
from engine.errors import EngineError
from indexer.origin import Origin

PROFILED_CHUNKS = 512
FIDELITY_CHUNKS = 2000
_ENCODE, _GENERATE = "encode_seconds", "generation_seconds"


def measure(
    job: Job,
    sample: Sample,
    sizes: LayerSizes,
    rounds: int,
    *,
    label: str,
    is_quick: bool,
    origin: Origin,
    log: Callable[[str], None],
) -> ThroughputRecord:
    """Measure a sample; the ways run in their order in one round, and in reverse order in the next.

    Args:
        job: the job of each process.
        sample: whose files the job names.
        sizes: of the encoder.
        rounds: at least one.
        label: of the whole dataset, name@checksum.
        is_quick: see `ThroughputRecord`.
        origin: of the record.
        log: gets a line after each turn.

    Raises:
        EngineError: a way failed, or did not encode as many chunks as the sample has.
    """
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
                indexing.append(IndexingParts(round(answer[_ENCODE], 3), round(answer[_GENERATE], 3)))
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


RIVAL_CHUNKS = 256


def measure_fidelity(job: Job, n_chunks: int) -> dict[str, Any]:
    """Encode the first documents of a sample as they are indexed, in float32, and by the rival.

    Args:
        job: of the run.
        n_chunks: least number of chunks, or all.

    Returns:
        The fields of `Fidelity`.
    """
    import torch

    from benchmarks.peers.shared_weights import sentence_encoder
    from engine.encoders.backbone.model_folder import quiet_transformers
    from engine.encoders.loading import load_encoder
    from engine.search.query import as_stored

    def encoded(segmented: list[SegmentedDocument], dtype: torch.dtype | None) -> Vectors:
        used = load_encoder(job.config.encoder, device="cpu", dtype=dtype)
        return np.concatenate(
            [
                (as_stored(one) if dtype is None else one).chunks
                for document in segmented
                for one in used.encode_segmented([document])
            ]
        )

    with limited_threads(job.config.threads, width=job.config.width):
        encoder = load_encoder(job.config.encoder, device=job.device)
        documents = (encoder.segment(document) for document in read_documents(job.dataset))
        segmented = first_chunks(documents, n_chunks)
        exact = encoded(segmented, torch.float32)
        texts = list(chunk_texts(segmented))[:RIVAL_CHUNKS]
        with quiet_transformers():
            model = sentence_encoder(replace(job.config, dtype="float32"), job.config.max_tokens)
        ours, rival = (
            cosines(encoded(segmented, None), exact),
            cosines(model.encode(texts, show_progress_bar=False), exact[: len(texts)]),
        )
    return asdict(
        Fidelity(len(ours), float(ours.mean()), float(ours.min()), len(rival), float(rival.mean()), float(rival.min()))
    )


def cosines(one: Vectors, other: Vectors) -> Vectors:
    """(N,) cosines of the rows of two arrays (N, D), which need not be of unit length."""
    norms = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    found: Vectors = (one * other).sum(1) / norms
    return found
