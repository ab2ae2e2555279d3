"""Checks on a real index that the way of searching changes no score or rank, and counts hits that lists miss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import click
import faiss
from threadpoolctl import threadpool_limits

from benchmarks.behaviour.records import StabilityRecord
from benchmarks.markdown import markdown, origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.program import program
from benchmarks.speed.recall import sampled_queries
from engine import Index

Hits: TypeAlias = list[tuple[str, float]]

HEAD = 200  # first ranks, which are compared for every way
PAGE = 10
DEPTHS = (10, 100, HEAD)  # at which an approximate ranking is compared with the scan
DEEP = 1_100  # ranks that are checked for rising scores, across the borders of tiers at 200 and 1,000
_NOTE = (
    "Each way to search is compared with the first 200 hits on one thread: hits in both lists whose score differs, "
    "and queries whose order differs although it must not. Scan, missed: hits among the first 10, 100 and 200 of the "
    "scan that the ANN index does not rank among its first 10, 100 and 200. Largest shift: the largest difference "
    "between the two ranks of a hit. Rises: hits below rank 200 with a higher score than the hit before, which the "
    "borders of tiers permit."
)


@dataclass
class Tally:
    """Counts of comparisons over all queries, by way of searching."""

    n_hits: dict[str, int] = field(default_factory=dict)
    n_other_scores: dict[str, int] = field(default_factory=dict)
    n_other_orders: dict[str, int] = field(default_factory=dict)
    n_missed: dict[str, int] = field(default_factory=lambda: {str(depth): 0 for depth in DEPTHS})
    largest_shift: dict[str, int] = field(default_factory=lambda: {str(depth): 0 for depth in DEPTHS})
    n_deep: int = 0
    n_rises: int = 0

    def compare(self, way: str, found: Hits, head: Hits, *, is_ordered: bool) -> None:
        """Compare hits with the first ones of `head`; with `is_ordered` their order must be the same."""
        scores, truth = dict(found), dict(head)
        both = scores.keys() & truth.keys()
        self._add(self.n_hits, way, len(both))
        self._add(self.n_other_scores, way, sum(scores[doc_id] != truth[doc_id] for doc_id in both))
        if is_ordered:
            self._add(self.n_other_orders, way, int(found != head[: len(found)]))

    def drift(self, head: Hits, scan: Hits) -> None:
        """Count the hits of the scan that `head` misses, and their shifts in rank."""
        ranks = {doc_id: rank for rank, (doc_id, _) in enumerate(head)}
        for depth in DEPTHS:
            found = [ranks.get(doc_id) for doc_id, _ in scan[:depth]]
            self.n_missed[str(depth)] += sum(rank is None or rank >= depth for rank in found)
            shifts = [abs(rank - place) for place, rank in enumerate(found) if rank is not None]
            self.largest_shift[str(depth)] = max(self.largest_shift[str(depth)], *shifts, 0)

    def rises(self, deep: Hits) -> None:
        """Count rising scores behind the head."""
        pairs = list(pairwise(score for _, score in deep[HEAD - 1 :]))
        self.n_deep += len(pairs)
        self.n_rises += sum(after > before for before, after in pairs)

    def _add(self, counts: dict[str, int], way: str, n: int) -> None:
        counts[way] = counts.get(way, 0) + n


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Limit matrix products and FAISS to `n` threads."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n)
    try:
        with threadpool_limits(n):
            yield
    finally:
        faiss.omp_set_num_threads(before)


def examine(index: Index, queries: Sequence[str], where: str) -> Tally:
    """Search with every query in every way.

    Raises:
        QueryError: the filter does not parse.
    """
    tally = Tally()

    def search(doc_id: str, k: int, *, offset: int = 0, where: str | None = None, exact: bool = False) -> Hits:
        result = index.search_id(doc_id, k=k, offset=offset, where=where, exact=exact)
        return [(hit.doc_id, hit.score) for hit in result.hits]

    for doc_id in queries:
        with threads(1):
            head = search(doc_id, HEAD)
            for k in DEPTHS[:-1]:
                tally.compare(f"k = {k}", search(doc_id, k), head, is_ordered=True)
            pages = [hit for offset in range(0, HEAD, PAGE) for hit in search(doc_id, PAGE, offset=offset)]
            tally.compare(f"pages of {PAGE}", pages, head, is_ordered=True)
            tally.compare("filter", search(doc_id, HEAD, where=where), head, is_ordered=False)
            scan = search(doc_id, HEAD, exact=True)
            tally.compare("scan", scan, head, is_ordered=False)
            tally.drift(head, scan)
            tally.rises(search(doc_id, DEEP))
        with threads(2):
            tally.compare("2 threads", search(doc_id, HEAD), head, is_ordered=True)
    return tally


def stability_table(records: Sequence[StabilityRecord]) -> str:
    """A row for each index, a column for each way of searching."""
    ways = list(dict.fromkeys(way for record in records for way in record.n_hits))
    head = ["Index", "Factory", "Documents (queries)", *ways, "Scan, missed", "Largest shift", "Rises"]
    rows = [
        [
            record.index,
            record.factory or "none",
            f"{record.n_documents:,} ({record.n_queries})",
            *(_cell(record, way) for way in ways),
            " / ".join(map(str, record.n_missed.values())),
            " / ".join(map(str, record.largest_shift.values())),
            f"{record.n_rises} of {record.n_deep:,}",
        ]
        for record in records
    ]
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *origins(records)])


def _cell(record: StabilityRecord, way: str) -> str:
    scores = f"{record.n_other_scores[way]} of {record.n_hits[way]:,}"
    return f"{scores}, {record.n_other_orders[way]} orders" if way in record.n_other_orders else scores


@program
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--queries", "n_queries", default=50, type=click.IntRange(1), help="Documents to search with.")
@click.option("--where", default="doc_id >= 'm'", help="Filter that some documents match.")
@measurement()
def main(run: Measurement, path: Path, n_queries: int, where: str) -> None:
    """Search INDEX with the same queries in several ways, and record what differs.

    \b
    Example:
        python -m benchmarks study stability papers.lm --queries 50
    """
    with Index.open(path) as index:
        queries = sampled_queries(index.snapshot.doc_ids(), n_queries, run.seed)
        generation = index.snapshot.generation_row
        tally = examine(index, queries, where)
        record = StabilityRecord(
            index=path.stem.partition("@")[0],
            factory=generation.factory if generation is not None else "",
            n_documents=index.n_documents,
            n_chunks=index.n_chunks,
            where=where,
            n_queries=len(queries),
            **vars(tally),
            seconds=run.seconds,
            origin=run.origin,
        )
    run.publish([record], stability_table)
