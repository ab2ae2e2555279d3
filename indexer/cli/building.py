"""`longmatch index`: create or update."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from indexer.cli.shared import FAILED, PARTLY, device_option, index_argument, json_option
from indexer.cli.sizes import parse_bytes

if TYPE_CHECKING:
    from indexer.pipeline import BuildReport


@click.command()
@index_argument
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--prune", is_flag=True, help="Remove documents that are not under PATH... any more.")
@click.option("--dry-run", is_flag=True, help="Say what would be done and what it costs; write nothing.")
@click.option("--encoder", help="Encoder or backbone: a folder, a hub name, or the bundled longmatch-minilm.")
@click.option("--factory", default="auto", show_default=True, help="FAISS factory string, as Flat or IVF1024,PQ64x4fs.")
@click.option("--memory", type=parse_bytes, metavar="SIZE", help="Most memory of the FAISS index, as 2G or 500M.")
@device_option
@json_option
def index(
    index: Path,
    paths: tuple[str, ...],
    prune: bool,
    dry_run: bool,
    encoder: str | None,
    factory: str,
    memory: int | None,
    device: str | None,
    as_json: bool,
) -> None:
    """Create or update INDEX from files, folders or patterns ('-' reads JSON lines from stdin).

    Unchanged documents are skipped, changed ones replaced. A run that was
    stopped goes on where it was: run the same command again.

    Formats: .txt .rst .md .html .pdf .docx .xml (JATS, TEI) .tex .json .jsonl,
    each also with .gz.

    \b
    Example:
        longmatch index papers.lm ./papers notes/*.md
    """
    if dry_run:
        _show_plan(index, paths, encoder, factory, memory, device, as_json)
        return
    from indexer.builder import build
    from indexer.cli.progress import BuildProgress
    from indexer.corpus import count_files, read_corpus

    with BuildProgress(count_files(paths)) as progress:
        report = build(
            index,
            read_corpus(paths),
            encoder=encoder,
            device=device,
            factory=factory,
            memory_bytes=memory,
            prune=prune,
            progress=progress,
            tell=progress.tell,
        )
    _tell_build(report, as_json)
    if report.failures:
        sys.exit(PARTLY if report.n_seen > len(report.failures) else FAILED)


def _show_plan(
    index: Path,
    paths: tuple[str, ...],
    encoder: str | None,
    factory: str,
    memory: int | None,
    device: str | None,
    as_json: bool,
) -> None:
    from engine.report.table import simple_table
    from indexer.builder import encoder_for
    from indexer.corpus import read_corpus
    from indexer.plan import make_plan

    loaded = encoder_for(index, encoder, device)
    plan = make_plan(index, read_corpus(paths), loaded, factory=factory, memory_bytes=memory)
    if as_json:
        click.echo(json.dumps(asdict(plan)))
        return
    rows = [
        ("new", f"{plan.n_new:,} documents"),
        ("changed", f"{plan.n_changed:,}"),
        ("unchanged", f"{plan.n_unchanged:,}"),
        ("unreadable", f"{plan.n_unreadable:,}"),
        ("to encode", f"about {plan.n_tokens:,} tokens in {plan.n_chunks:,} chunks"),
        ("time", f"about {_duration(plan.seconds)}"),
        ("disk", f"about {plan.disk_bytes / 1e6:,.1f} MB more"),
        ("FAISS index", f"{plan.factory}, about {plan.ann_bytes / 1e6:,.1f} MB of memory"),
    ]
    click.echo(simple_table(rows))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _tell_build(report: BuildReport, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(asdict(report)))
        return
    click.echo(
        f"{report.n_added:,} added, {report.n_replaced:,} replaced, {report.n_unchanged:,} unchanged, "
        f"{report.n_removed:,} removed, {len(report.failures):,} failed; "
        f"{report.n_tokens:,} tokens in {_duration(report.seconds)}"
    )
    if report.n_sections_merged or report.n_sections_cut:
        click.echo(
            f"{report.n_sections_merged:,} tiny sections were joined with a neighbour, "
            f"{report.n_sections_cut:,} are parts of long ones"
        )
    for failure in report.failures[:20]:
        click.echo(f"failed: {failure.source}: {failure.reason}", err=True)
    if len(report.failures) > 20:
        click.echo(f"and {len(report.failures) - 20:,} more: longmatch info INDEX --failures", err=True)
