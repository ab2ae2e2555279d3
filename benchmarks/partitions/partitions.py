"""Compares the answers of one index with those of its partitions: here, behind servers, on Ray and in PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.markdown import markdown, origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.partitions.faults import served
from benchmarks.partitions.records import PartitionRecord, PartitionRow
from benchmarks.program import program
from benchmarks.speed.recall import sampled_queries
from engine import Index, Result
from engine.remote.exchange import Access, Channel
from engine.result import Hit
from engine.store.address import Address
from indexer.cli.cluster import placed_partitions
from indexer.partitions.connecting import connect
from indexer.partitions.splitting import partition

K = 10
NUMBERS = (4, 16)  # of partitions
_NOTE = (
    "Queries are documents of the index, each left out of its own hits. Different hits, orders, counts: number of "
    "queries with another result than one index; counts are n_found, n_evident, n_searched and the status. Score, "
    "part: largest difference. here: partitions in one process. http: a server process for each partition, on the "
    "loopback interface of the same machine. ray: an actor for each partition. postgresql: a schema for each "
    "partition; 1 is an address as INDEX. exact: every document is scored, by --exact. cpu: processor time of the "
    "process that searches."
)


def answers(index: Index, queries: Sequence[str], *, exact: bool = False) -> tuple[list[Result], float, float]:
    """The results, and their wall and processor seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = [index.search_id(doc_id, k=K, exact=exact) for doc_id in queries]
    return found, time.perf_counter() - wall, time.process_time() - cpu


def compared(
    way: str, n_partitions: int, found: tuple[list[Result], float, float], truth: Sequence[Result]
) -> PartitionRow:
    """Compare results with the results of one index for the same queries, which can be more."""
    results, wall, cpu = found
    pairs = list(zip(results, truth[: len(results)], strict=True))
    hits = [(mine, theirs) for one, other in pairs for mine, theirs in zip(one, other, strict=False)]
    names = [([hit.doc_id for hit in one], [hit.doc_id for hit in other]) for one, other in pairs]
    parts = [(_parts(mine), _parts(theirs)) for mine, theirs in hits]
    differences = [abs(a.get(key, 0.0) - b.get(key, 0.0)) for a, b in parts for key in a.keys() | b.keys()]
    return PartitionRow(
        way,
        n_partitions,
        len(results),
        n_other_hits=sum(set(mine) != set(theirs) for mine, theirs in names),
        n_other_orders=sum(mine != theirs for mine, theirs in names),
        n_other_counts=sum(_counts(one) != _counts(other) for one, other in pairs),
        largest_score=max((abs(mine.score - theirs.score) for mine, theirs in hits), default=0.0),
        largest_part=max(differences, default=0.0),
        wall_ms=round(1000 * wall / len(results), 1),
        cpu_ms=round(1000 * cpu / len(results), 1),
    )


def _counts(result: Result) -> tuple[object, ...]:
    return result.n_found, result.n_evident, result.n_searched, result.status


def _parts(hit: Hit) -> dict[tuple[int, int], float]:
    return {(pair.query_section, pair.target_section): pair.contribution for pair in hit.pairs}


def partitions_table(records: Sequence[PartitionRecord]) -> str:
    """A row for each number of partitions and way to reach them."""
    head = ["Index", "Partitions", "Queries", "Different hits", "Different orders", "Different counts", "Score", "Part"]
    head += ["ms per query (cpu)"]
    rows = [
        [
            f"{record.corpus}, exact" if record.is_exact else record.corpus,
            f"{row.n_partitions} {row.way}",
            *map(str, (row.n_queries, row.n_other_hits, row.n_other_orders, row.n_other_counts)),
            f"{row.largest_score:.0e}",
            f"{row.largest_part:.0e}",
            f"{row.wall_ms:.1f} ({row.cpu_ms:.1f})",
        ]
        for record in records
        for row in record.rows
    ]
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *origins(records)])


@contextmanager
def schemas(database: str, folders: Sequence[Path]) -> Iterator[list[Address]]:
    """Copies of indexes in schemas of a database, which are dropped afterwards."""
    from engine.store.postgres.writer import PostgresWriter

    def drop(place: Address) -> None:
        with PostgresWriter(place) as writer:
            writer.drop()

    places = [Address.of(database).with_schema(f"longmatch_study_{number}") for number in range(len(folders))]
    try:
        for folder, place in zip(folders, places, strict=True):
            drop(place)
            partition(folder, place, 1)
        yield places
    finally:
        for place in places:
            drop(place)


@dataclass(frozen=True)
class Trial:
    """An index, its queries, and their true results."""

    path: Path
    queries: Sequence[str]
    exact: bool
    truth: Sequence[Result]

    def row(self, way: str, n_partitions: int, place: Path, channel: Channel | None = None) -> PartitionRow:
        """The answers of an index at some place, compared with those of one index."""
        with Index.open(place, access=Access(300.0, channel=channel)) as index:
            row = compared(way, n_partitions, answers(index, self.queries, exact=self.exact), self.truth)
        log(str(row))
        return row

    def rows(self, work: Path, database: str | None, *, on_ray: bool) -> Iterator[PartitionRow]:
        """Rows of all numbers of partitions and ways."""
        if database is not None:
            with schemas(database, [self.path]) as (place,):
                yield self.row("postgresql", 1, place)
        for n_partitions in NUMBERS:
            parts, net = work / f"{n_partitions}.parts", work / f"{n_partitions}.net"
            partition(self.path, parts, n_partitions)
            folders = [parts / f"{number:04d}.lm" for number in range(n_partitions)]
            yield self.row("here", n_partitions, parts)
            with served(folders) as servers:
                connect(net, [one.address for one in servers])
                yield self.row("http", n_partitions, net)
            if on_ray:
                with placed_partitions(parts, "local") as channel:
                    yield self.row("ray", n_partitions, parts, channel)
            if database is not None and n_partitions == NUMBERS[0]:
                with schemas(database, folders) as places:
                    connect(work / "schemas.net", [str(place) for place in places])
                    yield self.row("postgresql", n_partitions, work / "schemas.net")


@program
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--queries", "n_queries", default=500, type=click.IntRange(1), help="Documents to search with.")
@click.option("--exact", is_flag=True, help="Score every document, as PostgreSQL always does; needed with vectors.")
@click.option("--postgres", "database", metavar="URL", help="Database for schemas, which are dropped at the end.")
@click.option("--ray", "on_ray", is_flag=True, help="Search actors of Ray also.")
@measurement(work="Folder for the partitions; a temporary one by default.")
def main(run: Measurement, path: Path, n_queries: int, exact: bool, database: str | None, on_ray: bool) -> None:
    """Search INDEX and its 4 and 16 partitions, here, over HTTP, in PostgreSQL and on Ray; record what differs.

    \b
    Example:
        python -m benchmarks study partitions papers.lm --exact --postgres postgresql:///papers
    """
    with Index.open(path) as one:
        queries = sampled_queries(one.snapshot.doc_ids(), n_queries, run.seed)
        found, n_documents = answers(one, queries, exact=exact), one.n_documents
        rows = [compared("here", 1, found, found[0])]
        with run.folder() as work:
            rows += Trial(path, queries, exact, found[0]).rows(work, database, on_ray=on_ray)
    record = PartitionRecord(path.stem.partition("@")[0], n_documents, K, rows, run.seconds, run.origin, exact)
    run.publish([record], partitions_table)
