"""Holds plans against runs: time, memory and disk as `longmatch plan` tells them, and as `longmatch index` takes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import click

from benchmarks.budgets.record import PlanRecord
from benchmarks.budgets.running import draw_corpus, plan_and_run
from benchmarks.budgets.table import plan_table
from benchmarks.datasets import checksum, open_dataset
from benchmarks.options import data_option, log, out_option
from benchmarks.program import origin_of, program
from benchmarks.record_file import RESULTS, write_record
from engine.encoders.loading import DEFAULT_ENCODER
from indexer.cli.sizes import parse_bytes

ROUNDS, QUICK_ROUNDS = 5, 1
QUICK_DOCUMENTS = 20


@program
@click.argument("name", metavar="DATASET")
@click.option("--documents", "n_documents", type=click.IntRange(1), help="Drawn of it; all by default.")
@click.option("--memory", "memory_bytes", type=parse_bytes, metavar="SIZE", help="Budget of plan and run.")
@click.option("--rounds", type=click.IntRange(1), help=f"Of plan and run.  [default: {ROUNDS}]")
@click.option("--encoder", default=DEFAULT_ENCODER, show_default=True, help="Name or folder.")
@click.option("--seed", default=0, show_default=True, help="Of the draw.")
@click.option("--quick", is_flag=True, help="Few documents, one round; a record only with --out.")
@data_option
@out_option
@click.pass_context
def main(
    context: click.Context,
    name: str,
    n_documents: int | None,
    memory_bytes: int | None,
    rounds: int | None,
    encoder: str,
    seed: int,
    quick: bool,
    data: Path,
    out: Path | None,
) -> None:
    """Plan an index of DATASET, a task by name or a folder, and make it, several times.

    \b
    Example:
        python -m benchmarks study plans proposals --documents 300
        python -m benchmarks study plans proposals --documents 300 --memory 600M
    """
    origin = origin_of(context, seed)
    n_rounds = rounds or (QUICK_ROUNDS if quick else ROUNDS)
    done = []
    dataset = open_dataset(name, data)
    with tempfile.TemporaryDirectory(prefix="longmatch-plans-") as place:
        corpus, folder = Path(place) / "corpus.jsonl", Path(place) / "index.lm"
        wanted = n_documents or (QUICK_DOCUMENTS if quick else None)
        n_drawn = draw_corpus(dataset.corpus, wanted, seed, corpus)
        for number in range(1, n_rounds + 1):
            done.append(plan_and_run(corpus, n_drawn, encoder, memory_bytes, folder))
            shutil.rmtree(folder)
            kept = done[-1].kept
            log(f"round {number} of {n_rounds}: {kept.planned_seconds:.1f} s planned, {kept.seconds:.1f} s taken")
    record = PlanRecord(
        dataset=f"{dataset.name}@{checksum(dataset)}",
        is_quick=quick,
        n_documents=n_drawn,
        n_tokens=done[0].n_tokens,
        encoder=encoder,
        memory_bytes=memory_bytes,
        factory=done[0].factory,
        rounds=[one.kept for one in done],
        origin=origin,
    )
    if out or not quick:
        write_record(record, out or RESULTS)
    click.echo(plan_table([record]))
