"""`longmatch index`: create or update."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.report.durations import duration
from indexer.cli.planning import (
    describe_outcome,
    describe_plan,
    disk_option,
    encoder_option,
    factory_option,
    memory_option,
    show_plan,
    vram_option,
)
from indexer.cli.reading import document_reader, read_memory_option, read_seconds_option
from indexer.cli.shared import FAILED, PARTLY, device_option, index_argument, json_option

if TYPE_CHECKING:
    from engine.encoders.encoder import Encoder
    from indexer.build_report import BuildReport
    from indexer.builder import EncodeNow
    from indexer.plan import Plan

_WAYS = {  # said before a run
    "none": "words alone: no vectors, no model (--encode later adds vectors as queries need them)",
    "later": "words now, vectors of a sample now and others as queries need them (--encode all: all vectors now)",
    "all": "words and vectors of all documents (--encode later: first answers much sooner)",
}


@click.command()
@index_argument
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--encode",
    type=click.Choice(["none", "later", "all"]),
    help="Vectors of no document, of a sample now and of others as queries need them, or of all. "
    "[default: later; all without PATH]",
)
@click.option("--prune", is_flag=True, help="Remove documents that are not under PATH... any more.")
@click.option("--dry-run", is_flag=True, help="Say what would be done and what it costs; write nothing.")
@encoder_option
@click.option("--language", metavar="NAME", help="Language of the text, for stems and stop words; detected by default.")
@factory_option
@memory_option
@vram_option
@disk_option
@read_seconds_option
@read_memory_option
@device_option
@json_option
def index(
    index: Path,
    paths: tuple[str, ...],
    encode: EncodeNow | None,
    prune: bool,
    dry_run: bool,
    encoder: str | None,
    language: str | None,
    factory: str,
    memory: int | None,
    vram: int | None,
    disk: int | None,
    read_seconds: float,
    read_memory: int,
    device: str | None,
    as_json: bool,
) -> None:
    """Create or update INDEX from files, folders or patterns ('-' reads JSON lines from stdin).

    Unchanged documents are skipped, changed ones replaced. A run that was
    stopped goes on where it was: run the same command again. With --memory, --vram
    or --disk it is planned first, and refused at once if it cannot stay inside.

    Words are indexed at once. Vectors take most of the time: with --encode later
    a query encodes the few documents that come near it. Without PATH the
    documents that have no vectors yet are encoded, those that queries wanted first.

    Formats: .txt .rst .md .html .pdf .docx .odt .epub .xml (JATS, TEI, patents)
    .tex .json .jsonl, each also with .gz.

    \b
    Example:
        longmatch index papers.lm ./papers notes/*.md
    """
    from engine.words.languages import check_language
    from indexer.budget import Budget
    from indexer.builder import build, encoder_for
    from indexer.cli.progress import BuildProgress
    from indexer.corpus import STDIN, count_files, read_corpus
    from indexer.planning import make_plan
    from indexer.reading import ReadLimits

    if language is not None:
        check_language(language)
    if not paths:
        _check_continues(index, prune=prune, dry_run=dry_run)
    encode = encode or ("later" if paths else "all")
    budget = Budget(memory, vram, disk)
    used: Encoder | str | None = encoder
    plan = None
    if dry_run or (budget.is_limited and paths and STDIN not in paths and encode != "none"):
        used = encoder_for(index, encoder, device)
        limits = ReadLimits(read_seconds, read_memory)
        plan = make_plan(index, paths, used, factory=factory, budget=budget, read_limits=limits)
        if dry_run:
            show_plan(plan, as_json)
            return
    n_files = count_files(paths) if paths else None
    with document_reader(paths, read_seconds, read_memory) as reader, BuildProgress(n_files, plan=plan) as progress:
        progress.tell(_WAYS[encode])
        if plan is not None:
            progress.tell(describe_plan(plan))
        report = build(
            index,
            read_corpus(paths, reader) if paths else (),
            encoder=used,
            device=device,
            factory=factory,
            memory_bytes=memory,
            vram_bytes=vram,
            disk_bytes=disk,
            language=language,
            encode=encode,
            prune=prune,
            progress=progress,
            tell=progress.tell,
        )
    _tell_build(index, report, plan, as_json)
    if report.failures:
        sys.exit(PARTLY if report.n_seen > len(report.failures) else FAILED)


def _check_continues(index: Path, *, prune: bool, dry_run: bool) -> None:
    """Whether a run without PATH makes sense.

    Raises:
        click.UsageError: there is no index, or an option needs PATH.
    """
    from engine.store.catalog import CATALOG_FILE

    if prune or dry_run:
        raise click.UsageError(f"--{'prune' if prune else 'dry-run'} needs PATH...: the corpus as it is now")
    if not (index / CATALOG_FILE).exists():
        raise click.UsageError(f"{index} holds no index; name what to index: longmatch index {index} PATH...")


def _tell_build(index: Path, report: BuildReport, plan: Plan | None, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(asdict(report) | ({} if plan is None else {"plan": plan.to_dict()})))
        return
    click.echo(
        f"{report.n_added:,} added, {report.n_replaced:,} replaced, {report.n_unchanged:,} unchanged, "
        f"{report.n_removed:,} removed, {len(report.failures):,} failed; "
        f"{report.n_encoded:,} encoded: {report.n_tokens:,} tokens in {duration(report.seconds)}"
    )
    if report.n_missing:
        click.echo(_missing_line(index, report))
    if report.n_sections_merged or report.n_sections_cut:
        click.echo(
            f"{report.n_sections_merged:,} tiny sections were joined with a neighbour, "
            f"{report.n_sections_cut:,} are parts of long ones"
        )
    if plan is not None:
        click.echo(describe_outcome(plan, report))
    for failure in report.failures[:20]:
        click.echo(f"failed: {failure.source}: {failure.reason}", err=True)
    if len(report.failures) > 20:
        click.echo(f"and {len(report.failures) - 20:,} more: longmatch info INDEX --failures", err=True)


def _missing_line(index: Path, report: BuildReport) -> str:
    """What is left to encode, by the speed of this run where it encoded."""
    left = f"{report.n_missing:,} documents have no vectors yet: about {report.tokens_missing:,} tokens"
    if report.n_tokens and report.encode_seconds:
        left += f", {duration(report.tokens_missing / report.n_tokens * report.encode_seconds)}"
    return f"{left}; queries encode what they need, this encodes all: longmatch index {index}"
