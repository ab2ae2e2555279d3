"""`longmatch plan`, and the plans that `index` prints: estimates before a run, deviations after it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING

import click

from engine.report.durations import duration
from indexer.cli.options import device_option, json_option
from indexer.cli.reading import read_memory_option, read_seconds_option
from indexer.cli.sizes import parse_bytes

if TYPE_CHECKING:
    from engine.encoders.encoder import Encoder
    from indexer.building.report import BuildReport
    from indexer.plan.partitioned import PartitionPlan
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
partitions_option = click.option(
    "-p", "--partitions", type=click.IntRange(1), metavar="N", help="Plan an index of N partitions, too."
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


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@encoder_option
@factory_option
@memory_option
@vram_option
@disk_option
@partitions_option
@click.option(
    "--machines", type=click.IntRange(1), metavar="N", help="Number of machines; by default as many as memory needs."
)
@click.option(
    "--documents",
    type=click.IntRange(1),
    metavar="N",
    help="Plan partitions for N documents of which PATH is a sample, up to 1e9 chunks.",
)
@read_seconds_option
@read_memory_option
@device_option
@json_option
def plan(
    paths: tuple[str, ...],
    encoder: str | None,
    factory: str,
    memory: int | None,
    vram: int | None,
    disk: int | None,
    partitions: int | None,
    machines: int | None,
    documents: int | None,
    read_seconds: float,
    read_memory: int,
    device: str | None,
    as_json: bool,
) -> None:
    """Estimate time, memory, GPU memory and disk of a new index of PATH; write nothing.

    The estimate comes from a sample of all formats and lengths, which is read and
    partly encoded. For an existing index: longmatch index INDEX PATH... --dry-run.

    With --partitions, the plan of an index in partitions follows, on machines like
    this one: the number of machines, the memory and disk of each, the time to index
    and the time of a query. Each figure is marked as measured, computed or assumed.

    \b
    Example:
        longmatch plan ./papers --memory 4G
        longmatch plan ./sample --partitions 64 --documents 2000000
    """
    if partitions is None and (machines or documents):
        raise click.UsageError("--machines and --documents belong to a plan of partitions; add --partitions N")
    from engine.encoders.loading import DEFAULT_ENCODER, load_encoder
    from indexer.building.budget import Budget
    from indexer.plan.estimate import make_plan
    from indexer.reading.reader import ReadLimits

    budget, limits = Budget(memory, vram, disk), ReadLimits(read_seconds, read_memory)
    loaded = load_encoder(encoder or DEFAULT_ENCODER, device=device)
    made = make_plan(None, paths, loaded, factory=factory, budget=budget, read_limits=limits)
    of_partitions = None
    if partitions is not None:
        of_partitions = planned_partitions(made, loaded, partitions, n_machines=machines, n_documents=documents)
    show_plan(made, as_json, of_partitions)


def planned_partitions(
    plan: Plan, encoder: Encoder, n_partitions: int, *, n_machines: int | None = None, n_documents: int | None = None
) -> PartitionPlan:
    """The plan of the same corpus in partitions, on machines like this one; see `plan_partitions`."""
    from indexer.plan.partitioned import plan_partitions, this_machine
    from indexer.plan.rates import measure_rates

    width = encoder.width
    return plan_partitions(
        plan,
        width,
        measure_rates(width),
        n_partitions,
        this_machine(),
        n_machines=n_machines,
        n_documents=n_documents,
    )


def show_plan(plan: Plan, as_json: bool, of_partitions: PartitionPlan | None = None) -> None:
    """Print a plan, and the plan of the same corpus in partitions, if there is one."""
    if as_json:
        more = {} if of_partitions is None else {"partitions": of_partitions.to_dict()}
        click.echo(json.dumps(plan.to_dict() | more))
        return
    click.echo(describe_plan(plan))
    if of_partitions is not None:
        click.echo(f"\n{describe_partition_plan(of_partitions)}")


def describe_partition_plan(plan: PartitionPlan) -> str:
    """The plan of an index in partitions line by line, with the source of the figures."""
    from engine.report.table import simple_table

    machine, records = plan.machine, ", ".join(dict.fromkeys(point.record for point in plan.points))
    of_machine = f"of {machine.cores} cores and {megabytes(machine.memory_bytes)}, as this one"
    room = "all in memory" if plan.are_shards_in_memory else "more than memory: queries read pages from disk"
    rows = [
        ("partitions", f"{plan.n_partitions:,}, about {plan.n_documents:,} documents in {plan.n_chunks:,} chunks"),
        (
            "machines",
            f"{plan.n_machines:,} {of_machine}",
        ),
        ("", f"  each with {plan.n_on_each:,} partitions ({plan.factory} each); computed"),
        ("memory", f"about {megabytes(plan.memory_bytes)} of a machine; a process measured, FAISS indexes computed"),
        ("", f"  and {megabytes(plan.mapped_bytes)} of mapped shards, {room}"),
        ("disk", f"about {megabytes(plan.disk_bytes)} of a machine; computed from the sample"),
        ("time to index", f"about {duration(plan.encode_seconds)} to read and encode; measured here on the sample"),
        ("", f"  and {duration(plan.publish_seconds)} to build FAISS indexes; computed from rates measured here"),
        ("time of a query", f"about {plan.query_ms:,.0f} ms, one query at a time; computed"),
        ("", f"  of which {plan.rank_ms:,.1f} ms to rank in one partition; {plan.basis}"),
        ("", f"  {plan.query_bytes / 1e6:,.1f} MB are sent between machines, at 1 ms a round and 1 Gbit/s; assumed"),
        ("measured", records),
    ]
    return simple_table(rows)


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
