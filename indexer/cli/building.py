"""`longmatch index`: create or update."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from indexer.cli.planning import (
    describe_outcome,
    describe_plan,
    disk_option,
    duration,
    encoder_option,
    factory_option,
    memory_option,
    show_plan,
    vram_option,
)
from indexer.cli.shared import FAILED, PARTLY, device_option, index_argument, json_option

if TYPE_CHECKING:
    from engine.encoders.encoder import Encoder
    from indexer.build_report import BuildReport
    from indexer.plan import Plan


@click.command()
@index_argument
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--prune", is_flag=True, help="Remove documents that are not under PATH... any more.")
@click.option("--dry-run", is_flag=True, help="Say what would be done and what it costs; write nothing.")
@encoder_option
@click.option("--language", metavar="NAME", help="Language of the text, for stems and stop words; detected by default.")
@factory_option
@memory_option
@vram_option
@disk_option
@device_option
@json_option
def index(
    index: Path,
    paths: tuple[str, ...],
    prune: bool,
    dry_run: bool,
    encoder: str | None,
    language: str | None,
    factory: str,
    memory: int | None,
    vram: int | None,
    disk: int | None,
    device: str | None,
    as_json: bool,
) -> None:
    """Create or update INDEX from files, folders or patterns ('-' reads JSON lines from stdin).

    Unchanged documents are skipped, changed ones replaced. A run that was
    stopped goes on where it was: run the same command again. With --memory, --vram
    or --disk it is planned first, and refused at once if it cannot stay inside.

    Formats: .txt .rst .md .html .pdf .docx .xml (JATS, TEI) .tex .json .jsonl,
    each also with .gz.

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

    if language is not None:
        check_language(language)
    budget = Budget(memory, vram, disk)
    used: Encoder | str | None = encoder
    plan = None
    if dry_run or (budget.is_limited and STDIN not in paths):
        used = encoder_for(index, encoder, device)
        plan = make_plan(index, paths, used, factory=factory, budget=budget)
        if dry_run:
            show_plan(plan, as_json)
            return
    with BuildProgress(count_files(paths), plan=plan) as progress:
        if plan is not None:
            progress.tell(describe_plan(plan))
        report = build(
            index,
            read_corpus(paths),
            encoder=used,
            device=device,
            factory=factory,
            memory_bytes=memory,
            vram_bytes=vram,
            disk_bytes=disk,
            language=language,
            prune=prune,
            progress=progress,
            tell=progress.tell,
        )
    _tell_build(report, plan, as_json)
    if report.failures:
        sys.exit(PARTLY if report.n_seen > len(report.failures) else FAILED)


def _tell_build(report: BuildReport, plan: Plan | None, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(asdict(report) | ({} if plan is None else {"plan": plan.to_dict()})))
        return
    click.echo(
        f"{report.n_added:,} added, {report.n_replaced:,} replaced, {report.n_unchanged:,} unchanged, "
        f"{report.n_removed:,} removed, {len(report.failures):,} failed; "
        f"{report.n_tokens:,} tokens in {duration(report.seconds)}"
    )
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
