"""Measures how fast long documents are indexed, with sentence-transformers and the machine's limit in the same run."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from benchmarks.datasets import checksum, open_dataset
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.packages import require
from benchmarks.peers.peer import EXTRA
from benchmarks.peers.shared_weights import SAME_DTYPE, peer_config
from benchmarks.program import program
from benchmarks.record_file import RESULTS
from benchmarks.speed.encode.limits import read_sizes
from benchmarks.speed.encode.measuring import measure
from benchmarks.speed.encode.tables import limit_table, throughput_table
from benchmarks.speed.encode.ways import Job, draw_sample
from engine.devices import check_device
from engine.encoders.loading import DEFAULT_ENCODER, load_encoder

CHUNKS, QUICK_CHUNKS = 4000, 150
ROUNDS, QUICK_ROUNDS = 5, 2
_RIVAL = {"sentence_transformers": "sentence-transformers"}


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
        job = Job(config, sample.dataset, sample.texts, Path(folder), device)
        label = f"{dataset.name}@{checksum(dataset)}"
        record = measure(job, sample, sizes, rounds, label=label, is_quick=not is_whole, origin=run.origin, log=log)
    click.echo(f"{throughput_table([record])}\n\n{limit_table([record])}")
    if is_whole or run.out != RESULTS:
        run.keep(record)
