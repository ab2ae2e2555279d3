"""What `longmatch index` prints before and after a run: its plan, its report, and how they differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from engine.report.lines import duration
from indexer.cli.terminal import echo, echo_text, log

if TYPE_CHECKING:
    from indexer.building.corpus import CorpusFiles
    from indexer.building.report import BuildReport
    from indexer.plan import Plan

_MAX_FAILURES = 20  # that are printed
_MAX_NAMED = 8  # suffixes or files
_WAYS = {
    "none": "words alone",
    "later": "words, and a sample of vectors; queries encode what they need",
    "all": "words and all vectors",
}


def describe_plan(plan: Plan) -> str:
    """A plan line by line."""
    about = "" if plan.is_counted else "about "
    rows = [
        ("new", f"{about}{plan.n_new:,} documents"),
        ("changed", f"{about}{plan.n_changed:,}"),
        ("unchanged", f"{about}{plan.n_unchanged:,}"),
        ("unreadable", f"{about}{plan.n_unreadable:,}"),
        ("to encode", f"{about}{plan.n_tokens:,} tokens in {plan.n_chunks:,} chunks"),
        *(
            (
                f"--encode {way.encode}",
                f"about {duration(way.seconds)}, {way.n_tokens:,} tokens encoded, {megabytes(way.disk_bytes)} on disk: "
                f"{_WAYS[way.encode]}",
            )
            for way in plan.ways
        ),
        ("memory", f"about {megabytes(plan.memory_bytes)} at most"),
        ("GPU memory", _of_gpu(plan)),
        ("disk", f"about {megabytes(plan.disk_bytes)} at most"),
        ("FAISS index", plan.factory or "none is built"),
    ]
    return "\n".join(f"{name:<16} {text}" for name, text in rows)


def _of_gpu(plan: Plan) -> str:
    if plan.vram_bytes is None:
        return "none, the encoder runs on the CPU"
    return f"about {megabytes(plan.vram_bytes)} at most"


def print_build(
    index: Path,
    report: BuildReport,
    files: CorpusFiles | None = None,
    *,
    plan: Plan | None = None,
    encode: str = "all",
    as_json: bool,
) -> None:
    """Print the report of a run over files."""
    unsupported = dict(files.unsupported) if files else {}
    parts = files.latex_parts if files else ()
    if as_json:
        planned = {} if plan is None else {"plan": plan.to_dict()}
        left_out = {"unsupported_files": unsupported, "latex_parts": list(map(str, parts))}
        echo(json.dumps(asdict(report) | left_out | planned))
        return
    echo(
        f"{report.n_added:,} added, {report.n_replaced:,} replaced, {report.n_unchanged:,} unchanged, "
        f"{report.n_removed:,} removed, {len(report.failures):,} failed; "
        f"{report.n_encoded:,} encoded: {report.n_tokens:,} tokens in {duration(report.seconds)}"
    )
    if report.n_chunks_reused:
        echo(f"{report.n_chunks_reused:,} unchanged chunks of changed documents kept their vectors")
    if report.n_missing:
        echo(_missing_line(index, report))
    if report.n_sections_merged or report.n_sections_cut:
        echo(
            f"{report.n_sections_merged:,} tiny sections were joined with a neighbour, "
            f"{report.n_sections_cut:,} are parts of long ones"
        )
    if unsupported:
        echo(f"not indexed, no supported format: {_first([f'{suffix} ({n:,})' for suffix, n in unsupported.items()])}")
    if parts:
        count = "1 file" if len(parts) == 1 else f"{len(parts):,} files"
        echo(f"part, figure or draft of a LaTeX document, {count}: {_first([part.name for part in parts])}")
    if plan is not None:
        echo_text(describe_outcome(plan, report, encode))
    _print_faults(index, report)


def _print_faults(index: Path, report: BuildReport) -> None:
    """Print the documents that could not be read, and those that were perhaps not read whole."""
    for failure in report.failures[:_MAX_FAILURES]:
        log(f"failed: {failure.source}: {failure.reason}")
    if len(report.failures) > _MAX_FAILURES:
        n_more = len(report.failures) - _MAX_FAILURES
        log(f"and {n_more:,} more: longmatch show {index} --failures")
    for doubt in report.doubts[:_MAX_FAILURES]:
        log(f"warning: {doubt.source}: {doubt.reason}")
    if len(report.doubts) > _MAX_FAILURES:
        log(f"warnings about {len(report.doubts) - _MAX_FAILURES:,} more documents: --json lists them")


def _first(names: Sequence[str]) -> str:
    return ", ".join([*names[:_MAX_NAMED], *(["..."] if len(names) > _MAX_NAMED else [])])


def _missing_line(index: Path, report: BuildReport) -> str:
    """Documents and tokens left to encode, the time if this run encoded any, and the command that encodes them."""
    from engine.store.lookup import stored_meta

    some = "1 document has" if report.n_missing == 1 else f"{report.n_missing:,} documents have"
    left = f"{some} no vectors yet: about {report.tokens_missing:,} tokens"
    if report.n_tokens and report.encode_seconds:
        left += f", {duration(report.tokens_missing / report.n_tokens * report.encode_seconds)}"
    meta = stored_meta(index)
    if "encoder" not in meta:
        other = "" if meta.get("language") in ("english", "none", None) else " --encoder NAME"
        return f"{left}; the index holds words alone, this adds vectors: longmatch index {index}{other}"
    return f"{left}; queries encode what they need, this encodes all: longmatch index {index}"


def describe_outcome(plan: Plan, report: BuildReport, encode: str) -> str:
    """Planned and actual time, memory and disk, side by side."""
    way = plan.way(encode)
    rows = [
        ("time", duration(way.seconds), duration(report.seconds + report.generation_seconds)),
        ("memory", megabytes(plan.memory_bytes), megabytes(report.peak_memory_bytes)),
        ("disk", megabytes(way.disk_bytes), megabytes(report.disk_bytes)),
    ]
    return "\n".join(f"{name:<8}{planned:>14} planned {actual:>14} taken" for name, planned, actual in rows)


def megabytes(size: float) -> str:
    """A number of bytes as a text in megabytes (10^6 bytes)."""
    return f"{size / 1e6:,.1f} MB"
