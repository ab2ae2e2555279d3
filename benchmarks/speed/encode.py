"""Measures how fast long documents are indexed, with sentence-transformers in the same run.

Every way to encode runs once in every round, each time in a fresh process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks.datasets import checksum, open_dataset
from benchmarks.isolation import run_fresh
from benchmarks.measurement import Measurement, measurement
from benchmarks.packages import require
from benchmarks.peers.peer import EXTRA, SAME_DTYPE, peer_config
from benchmarks.program import log, program
from benchmarks.quick import SUFFIX
from benchmarks.runs import RESULTS, Case, Run
from benchmarks.speed.ways import DEFAULTS, END_TO_END, TITLES, WAYS, Job, Way, draw_sample
from benchmarks.tables.pivot import case_tables
from engine.encoders.loading import DEFAULT_ENCODER, load_encoder
from engine.environment import check_device
from engine.errors import EngineError

CHUNKS, QUICK_CHUNKS = 4000, 150
ROUNDS, QUICK_ROUNDS = 5, 2
_RIVAL = {"sentence_transformers": "sentence-transformers"}
_WITH_GENERATION = "longmatch, documents to index with its FAISS index"
_NOTE = (
    "All ways encode the same chunks with the same weights and threads, each in a fresh process, in turn within each "
    "round; loading and a first pass over a few chunks are not counted. Documents to index: reading, segmenting, "
    "tokenizing, encoding, storing. Encoder alone: documents read, segmented and tokenized beforehand. Defaults: "
    "`encode` with float32 weights in batches of 32 sorted by length, torch and its idle threads as they come; our "
    "settings: torch multiplies float32 by oneDNN where that rounds nothing, and idle threads sleep. Ratio: how many "
    "times as fast as the defaults in the same round, median, lowest, highest. Cores: processor time by time. Memory: "
    "the most resident, libraries and weights included."
)


def measure(job: Job, rounds: int) -> list[Case]:
    """Measure a sample; the ways run in their order in one round, and in reverse order in the next."""
    passes: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    for number in range(rounds):
        for name in list(WAYS)[:: 1 if number % 2 == 0 else -1]:
            answer, peak_mib = _turn(job, name, WAYS[name], job.sample.n_chunks)
            passes[name].append({**answer, "peak_mib": peak_mib})
            log(f"round {number + 1} of {rounds}, {name}: {job.sample.n_chunks:,} chunks in {answer['seconds']:.1f} s")
    rival = [one["seconds"] for one in passes[DEFAULTS]]
    cases = []
    for name, way in WAYS.items():
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
