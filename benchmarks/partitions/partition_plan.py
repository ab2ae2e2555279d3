"""Compares planned with measured costs of an index in several numbers of partitions: time, memory and bytes.

`split` and `search` run in processes of their own; they return plain values.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import click

from benchmarks.markdown import markdown, origins
from benchmarks.measuring.isolation import run_fresh
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.measuring.timing import percentiles
from benchmarks.options import log
from benchmarks.partitions.records import PartitionPlanRecord, PlannedRow
from benchmarks.program import program
from benchmarks.speed.recall import sampled_queries
from engine.index import Index
from engine.remote.frames import pack
from engine.remote.values import pack_query, pack_ranks, pack_shown
from engine.search.local_partition import LocalPartition
from engine.search.partition import Selection
from engine.store.ann import index_bytes
from engine.store.partitioned import open_snapshot
from indexer.generation.footprint import Footprint, folder_bytes
from indexer.partitions.splitting import partition
from indexer.plan.partition_points import Point
from indexer.plan.partitioned import query_ms, ranking_ms

K, WARM_UP = 10, 5
NUMBERS = (1, 2, 4, 8, 16)  # of partitions
_HELP = "Number of partitions to measure; may be repeated."
_NOTE = (
    "One process on one machine, with one thread for each partition. Queries are documents of the index, one after "
    "another, warm. Planned: by the equation of `longmatch plan --partitions`, from the processor time of rankings in "
    "partitions of other sizes, for cores that no other program uses. cpu: mean processor time of all threads. "
    "Recall: of the ten best by --exact. Split: copying documents and building FAISS indexes and postings; nothing is "
    "encoded. Bytes: total of all partitions if they were served: queries sent, ranks returned, and documents of the "
    "hits returned."
)


def split(path: Path, out: Path, n_partitions: int) -> dict[str, Any]:
    """Copy an index into partitions."""
    started = time.perf_counter()
    partition(path, out, n_partitions)
    return {"seconds": time.perf_counter() - started}


def search(path: Path, names: Sequence[str], exact: bool) -> dict[str, Any]:
    """Search with documents of the index, and rank in the first partition alone.

    Returns:
        The milliseconds and hits of each search, with `exact` the hits of exact searches, and fields of `PlannedRow`.
    """
    footprint = Footprint()
    with Index.open(path) as index:
        searcher, times, cpu, found, exactly = index.searcher(), [], [], [], []
        warm_up = names[:WARM_UP]
        for number, name in enumerate([*warm_up, *names]):
            query = index.stored_query(name)
            began, used = time.perf_counter(), time.process_time()
            result = searcher.search(query, k=K, without=name)
            if number >= len(warm_up):
                times.append(1000 * (time.perf_counter() - began))
                cpu.append(1000 * (time.process_time() - used))
                found.append([hit.doc_id for hit in result])
        own = footprint.own_bytes()
        if exact:
            exactly = [[hit.doc_id for hit in index.search_id(name, k=K, exact=True)] for name in names]
        alone = [_alone(index, name) for name in [*warm_up, *names]][len(warm_up) :]
        first = index.snapshot.parts[0]
    rank_ms, *sizes = zip(*alone, strict=True)
    query_bytes, rank_bytes, shown_bytes = (round(mean(column)) for column in sizes)
    row = {
        "factory": first.generation_row.factory if first.generation_row else "",
        "n_chunks": int(first.n_chunks),
        "cpu_ms": round(mean(cpu), 2),
        "rank_ms": round(median(rank_ms), 2),
        "own_bytes": own,
        "query_bytes": query_bytes,
        "rank_bytes": rank_bytes,
        "shown_bytes": shown_bytes,
    }
    return {"ms": times, "found": found, "exact": exactly, "row": row}


def _alone(index: Index, name: str) -> tuple[float, int, int, int]:
    """Processor milliseconds of ranking in the first partition, and the bytes sent if all partitions are served."""
    searcher = index.searcher()
    prepared, selection = searcher.prepare(index.stored_query(name)), Selection(None, (name,))
    parts = [LocalPartition(part, searcher.scoring) for part in index.snapshot.parts]
    began = time.thread_time()
    ranks = [parts[0].rank(prepared, selection, K)]
    took = 1000 * (time.thread_time() - began)
    ranks += [part.rank(prepared, selection, K) for part in parts[1:]]
    out = len(parts) * len(pack(*pack_query(prepared, searcher.scoring, selection, K)))
    best = searcher.ranks(prepared, selection, K).best.exact.positions
    return took, out, sum(len(pack(*pack_ranks(one))) for one in ranks), len(pack(*pack_shown(searcher.show(best))))


def measured(path: Path, names: Sequence[str], work: Path, numbers: Sequence[int]) -> list[PlannedRow]:
    """A row for each number of partitions."""
    rows: list[PlannedRow] = []
    exact: list[list[str]] = []
    for n_partitions in numbers:
        out = work / f"{n_partitions}.parts"
        made, memory = run_fresh(split, path, out, n_partitions)
        asked, _ = run_fresh(search, out, names, not exact, threads=1)
        exact = exact or asked["exact"]
        row = PlannedRow(
            n_partitions=n_partitions,
            split_seconds=round(made["seconds"], 1),
            split_mib=memory.peak_anonymous,
            disk_bytes=folder_bytes(out),
            latency=percentiles(asked["ms"]),
            recall=_recall(asked["found"], exact),
            **asked["row"],
        )
        rows.append(row)
        log(f"{n_partitions} partitions measured")
    return rows


def _recall(found: Sequence[Sequence[str]], exact: Sequence[Sequence[str]]) -> float:
    """The mean share of the exact hits found."""
    pairs = zip(found, exact, strict=True)
    return round(mean(len(set(mine) & set(theirs)) / max(1, len(theirs)) for mine, theirs in pairs), 4)


def planned(record: PartitionPlanRecord) -> list[tuple[float, float]]:
    """The planned milliseconds of a query and bytes of the process for each row, computed from the other rows.

    The time of a ranking comes from the rankings of all other rows, so that no row plans itself; values that do not
    depend on the number of partitions are those of the first row.
    """
    process = process_bytes(record)
    plans: list[tuple[float, float]] = []
    for row in record.rows:
        others = sorted((one for one in record.rows if one is not row), key=lambda one: one.n_chunks)
        points = [Point(one.n_chunks, one.rank_ms, record.name) for one in others]
        alone = ranking_ms(row.n_chunks, points)
        ms = query_ms(row.n_partitions, record.origin.machine.cores, alone, 0, once_ms(record))
        plans.append((ms, process + row.n_partitions * _held(row, record.width)))
    return plans


def once_ms(record: PartitionPlanRecord) -> float:
    """Processor milliseconds of a query of one index, without its ranking."""
    return max(0.0, record.rows[0].cpu_ms - record.rows[0].rank_ms)


def process_bytes(record: PartitionPlanRecord) -> int:
    """Own memory of the process that searched one index, without its FAISS index."""
    return record.rows[0].own_bytes - _held(record.rows[0], record.width)


def _held(row: PlannedRow, width: int) -> int:
    return index_bytes(row.factory, row.n_chunks, width) if row.factory else 0


def partition_plan_table(records: Sequence[PartitionPlanRecord]) -> str:
    """A row for each number of partitions: planned and measured values."""
    head = ["Index", "Partitions", "FAISS index of each", "ms per query, planned", "p50 / p95, ms", "cpu, ms"]
    head += ["Ranking in one, ms", "Memory planned / measured, MB", "Recall", "Split, s (MiB)", "Disk, MB"]
    head += ["Bytes out / ranks / documents"]
    rows = [
        [
            record.index,
            str(row.n_partitions),
            f"{row.factory or 'scan'} over {row.n_chunks:,}",
            f"{ms:.1f}",
            f"{row.latency.p50_ms:.1f} / {row.latency.p95_ms:.1f}",
            f"{row.cpu_ms:.1f}",
            f"{row.rank_ms:.1f}",
            f"{own / 1e6:,.0f} / {row.own_bytes / 1e6:,.0f}",
            f"{row.recall:.3f}",
            f"{row.split_seconds:.1f} ({row.split_mib:,.0f})",
            f"{row.disk_bytes / 1e6:,.0f}",
            f"{row.query_bytes:,} / {row.rank_bytes:,} / {row.shown_bytes:,}",
        ]
        for record in records
        for row, (ms, own) in zip(record.rows, planned(record), strict=True)
    ]
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *origins(records)])


@program
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--queries", "n_queries", default=100, type=click.IntRange(1), help="Documents to search with.")
@click.option("-p", "--partitions", "numbers", multiple=True, default=NUMBERS, type=click.IntRange(1), help=_HELP)
@measurement(work="Folder for the partitions; a temporary one by default.")
def main(run: Measurement, path: Path, n_queries: int, numbers: tuple[int, ...]) -> None:
    """Split INDEX into 1, 2, 4, 8 and 16 partitions, and record the measured and the planned cost of each.

    Give -p for each number that is wanted, at least two: a row is planned from the others.

    \b
    Example:
        python -m benchmarks study partition_plan papers.lm
        python -m benchmarks study partition_plan papers.lm -p 1 -p 4
    """
    if len(set(numbers)) < 2:
        raise click.UsageError(f"-p {numbers[0]} alone leaves nothing to plan its row from; give another number, too")
    with open_snapshot(path) as snapshot:
        names = sampled_queries(snapshot.doc_ids(), n_queries, run.seed)
        n_documents, n_chunks, width = snapshot.n_documents, int(snapshot.n_chunks), snapshot.width
    with run.folder() as work:
        rows = measured(path, names, work, sorted(set(numbers)))
    name = path.stem.partition("@")[0]
    record = PartitionPlanRecord(name, n_documents, n_chunks, width, K, len(names), rows, run.seconds, run.origin)
    run.publish([record], partition_plan_table)
