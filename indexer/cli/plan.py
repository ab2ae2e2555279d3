"""The plans that `longmatch index` prints: estimates before a run, deviations after it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING

import click

from engine.report.durations import duration
from indexer.cli.sizes import parse_bytes

if TYPE_CHECKING:
    from indexer.building.report import BuildReport
    from indexer.plan.values import Parts, Plan, Way

memory_option = click.option(
    "--memory", type=parse_bytes, metavar="SIZE", help="Memory limit of the process, for example 2G or 500M."
)
vram_option = click.option(
    "--vram", type=parse_bytes, metavar="SIZE", help="GPU memory limit, for parameters and batches."
)
disk_option = click.option("--disk", type=parse_bytes, metavar="SIZE", help="Disk space limit of the index.")
encoder_option = click.option(
    "--encoder", help="Encoder of a new index: a folder, a hub name, or longmatch-minilm (bundled, the default)."
)
factory_option = click.option(
    "--factory",
    default="auto",
    show_default=True,
    help="FAISS factory string, for example Flat or IVF1024,PQ64x4fs; auto chooses one; scan makes no FAISS index.",
)

_MEANING = {
    "reading": "reading and segmenting that the encoder waits for",
    "encoding": "encoding",
    "storing": "storing",
    "generation": "building the FAISS index",
    "program": "the program",
    "weights": "parameters of the encoder",
    "batches": "documents and vectors on their way",
    "index": "the FAISS index",
    "building": "training and adding, or measuring recall",
    "batch": "a batch",
    "catalog": "catalog: texts and sections",
    "shards": "shards: vectors",
    "replaced_generation": "the old FAISS index, until it is replaced",
}
_WAYS = {
    "none": "words alone",
    "later": "words, and a sample of vectors; queries encode what they need",
    "all": "words and all vectors",
}
_MEANING_OF_MEMORY = {"encoding": "reading and encoding a batch"}
_MEANING_OF_DISK = {
    "generation": "FAISS index and postings of words",
    "reference": "sample of documents, and statistics of words",
}


def show_plan(plan: Plan, as_json: bool) -> None:
    """Print a plan."""
    click.echo(json.dumps(plan.to_dict()) if as_json else describe_plan(plan))


def describe_plan(plan: Plan) -> str:
    """A plan line by line: each total with its parts."""
    from engine.report.table import simple_table

    about = "" if plan.is_counted else "about "
    rows = [
        ("new", f"{about}{plan.n_new:,} documents"),
        ("changed", f"{about}{plan.n_changed:,}"),
        ("unchanged", f"{about}{plan.n_unchanged:,}"),
        ("unreadable", f"{about}{plan.n_unreadable:,}"),
        ("to encode", f"{about}{plan.n_tokens:,} tokens in {plan.n_chunks:,} chunks"),
        *(_way(way) for way in plan.ways),
        ("time", f"about {duration(plan.seconds.total)}, of --encode all as all below"),
        *_parts(plan.seconds, duration),
        ("memory", f"about {megabytes(plan.memory.total)} at most"),
        *_parts(plan.memory, megabytes, _MEANING_OF_MEMORY),
        ("", f"(and up to {megabytes(plan.mapped_bytes)} of mapped shards, given back when memory is short)"),
    ]
    if plan.vram is None:
        rows.append(("GPU memory", "none, the encoder runs on the CPU"))
    else:
        rows += [("GPU memory", f"about {megabytes(plan.vram.total)} at most"), *_parts(plan.vram, megabytes)]
    rows += [
        ("disk", f"about {megabytes(plan.disk.total)} at most, {megabytes(plan.disk.afterwards)} afterwards"),
        *_parts(plan.disk, megabytes, _MEANING_OF_DISK),
    ]
    rows += [("FAISS index" if not number else "", line) for number, line in enumerate(plan.ladder or ("none is due",))]
    return simple_table(rows)


def _way(way: Way) -> tuple[str, str]:
    """The cost of one way of encoding, and its result."""
    takes = f"about {duration(way.seconds)}, {way.tokens:,} tokens encoded, {megabytes(way.disk_bytes)} on disk"
    return f"--encode {way.encode}", f"{takes}: {_WAYS[way.encode]}"


def _parts(
    parts: Parts, shown: Callable[[float], str], meanings: dict[str, str] | None = None
) -> list[tuple[str, str]]:
    known = _MEANING | (meanings or {})
    values = [(known[field.name], getattr(parts, field.name)) for field in fields(parts)]
    return [("", f"  {shown(value)}  {meaning}") for meaning, value in values if value]


def describe_outcome(plan: Plan, report: BuildReport) -> str:
    """Planned and actual time, memory and disk, side by side."""
    took = report.seconds + report.generation_seconds
    rows = [
        ("time", duration(plan.seconds.total), duration(took)),
        ("memory", megabytes(plan.memory.total), megabytes(report.peak_memory_bytes)),
        ("disk", megabytes(plan.disk.afterwards), megabytes(report.disk_bytes)),
    ]
    return "\n".join(f"{name:<8}{planned:>14} planned {came:>14} taken" for name, planned, came in rows)


def megabytes(size: float) -> str:
    """A number of bytes as a text in megabytes (10^6 bytes)."""
    return f"{size / 1e6:,.1f} MB"
