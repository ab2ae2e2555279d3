"""Prints the report at the end of a run of `longmatch index`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.report.durations import duration
from indexer.cli.plan import describe_outcome

if TYPE_CHECKING:
    from indexer.building.report import BuildReport
    from indexer.plan.values import Plan

_FAILURES = 20  # most failures that are printed
_SUFFIXES = 8  # most suffixes that are printed


def print_build(
    index: Path, report: BuildReport, plan: Plan | None, unsupported_files: Mapping[str, int], *, as_json: bool
) -> None:
    """Print the report of a run; `unsupported_files` counts files without a supported format by suffix."""
    if as_json:
        planned = {} if plan is None else {"plan": plan.to_dict()}
        click.echo(json.dumps(asdict(report) | {"unsupported_files": dict(unsupported_files)} | planned))
        return
    click.echo(
        f"{report.n_added:,} added, {report.n_replaced:,} replaced, {report.n_unchanged:,} unchanged, "
        f"{report.n_removed:,} removed, {len(report.failures):,} failed; "
        f"{report.n_encoded:,} encoded: {report.n_tokens:,} tokens in {duration(report.seconds)}"
    )
    if report.n_chunks_reused:
        click.echo(f"{report.n_chunks_reused:,} unchanged chunks of changed documents kept their vectors")
    if report.n_missing:
        click.echo(_missing_line(index, report))
    if report.n_sections_merged or report.n_sections_cut:
        click.echo(
            f"{report.n_sections_merged:,} tiny sections were joined with a neighbour, "
            f"{report.n_sections_cut:,} are parts of long ones"
        )
    if unsupported_files:
        shown = [f"{suffix} ({n:,})" for suffix, n in unsupported_files.items()]
        others = ["..."] if len(shown) > _SUFFIXES else []
        click.echo(f"not indexed, no supported format: {', '.join([*shown[:_SUFFIXES], *others])}")
    if plan is not None:
        click.echo(describe_outcome(plan, report))
    for failure in report.failures[:_FAILURES]:
        click.echo(f"failed: {failure.source}: {failure.reason}", err=True)
    if len(report.failures) > _FAILURES:
        click.echo(f"and {len(report.failures) - _FAILURES:,} more: longmatch show INDEX --failures", err=True)


def _missing_line(index: Path, report: BuildReport) -> str:
    """Documents and tokens left to encode, the time if this run encoded any, and the command that encodes them."""
    from engine.store.presence import stored_meta

    some = "1 document has" if report.n_missing == 1 else f"{report.n_missing:,} documents have"
    left = f"{some} no vectors yet: about {report.tokens_missing:,} tokens"
    if report.n_tokens and report.encode_seconds:
        left += f", {duration(report.tokens_missing / report.n_tokens * report.encode_seconds)}"
    if "encoder" not in stored_meta(index):
        return f"{left}; the index holds words alone, this adds vectors: longmatch index {index}"
    return f"{left}; queries encode what they need, this encodes all: longmatch index {index}"
