"""Measures candidates by words alone: postings over an index of any size, built, written, mapped and read.

Building a FAISS index takes hours at ten million chunks, and the cost of words does not depend on it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.markdown import markdown, origins
from benchmarks.measuring.isolation import Memory, run_fresh
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.measuring.timing import Percentiles, percentiles
from benchmarks.program import program
from benchmarks.record_file import Recorded
from benchmarks.speed.growth.queries import WARM_UP, draw_names
from engine.errors import QueryError
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search.local_partition import LocalPartition
from engine.store.ann import AnnIndex
from engine.store.durable import Checksum
from engine.store.postings import Postings
from engine.store.snapshot import OpenGeneration, Snapshot
from indexer.cli.reading import parse_bytes
from indexer.generation.new_generation import build_postings, last_chunk
from indexer.origin import Origin

_NOTE = (
    "The postings of the words and pairs of a query give every document an estimate of its score. Queries are "
    "documents of about {n} chunks, one after another, warm: real documents, and synthetic ones that the index was "
    "grown with. Building: the process that inverts the term counts and writes the file."
)


@dataclass(frozen=True)
class WordPostingsRecord(Recorded, kind="word_postings", file="word-postings-{index}-{n_chunks}"):
    """The size and cost of the postings of words and pairs over an index, and the time of a query."""

    index: str
    n_documents: int
    n_chunks: int
    n_postings: dict[str, int]  # of words and of pairs
    file_bytes: int
    cap_bytes: int | None
    threads: int
    n_queries: dict[str, int]  # real and made documents
    query_chunks: int
    latency: dict[str, Percentiles]  # of each kind of query
    n_read: dict[str, list[int]]  # of each kind: postings of the words and of the pairs of a query, mean
    build_seconds: float
    build_memory: Memory
    search_memory: Memory
    origin: Origin


def write_postings(path: Path, out: Path) -> dict[str, Any]:
    """Build the postings over all documents of an index, and write them."""
    started = time.perf_counter()
    with Snapshot(path) as snapshot:
        postings = build_postings(snapshot)
        if postings is None:
            raise QueryError(f"{path} holds no words; build it again: longmatch index")
        written = postings.write(out)
        counts = {kind: sum(len(block.weights) for block in getattr(postings, kind)) for kind in ("words", "pairs")}
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "size": written.size_bytes, "digest": written.digest, "n_postings": counts}


def search(path: Path, file: Path, written: tuple[int, str], names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """By kind of query, the milliseconds of each query and the mean number of postings that a query reads."""
    with Index.open(path) as index:
        snapshot, searcher = index.snapshot, index.searcher()
        postings = Postings.open(file, Checksum(*written))
        vectors, _ = snapshot.chunk_vectors(np.array([0]))  # estimates of words use no vectors, so one document will do
        blocks = iter([(np.arange(len(vectors)), vectors)])
        ann = AnnIndex.build("Flat", snapshot.width, lambda: vectors, blocks, n_vectors=len(vectors))
        generation = OpenGeneration(ann, last_chunk(snapshot), False, postings)
        partition = LocalPartition(snapshot, Scoring(), generation)
        allowed = np.ones(snapshot.n_documents, bool)
        found = {}
        for kind, members in names.items():
            times, read = [], []
            for name in [*members[:WARM_UP], *members]:
                prepared = searcher.prepare(index.stored_query(name))
                started = time.perf_counter()
                partition._estimated_words(prepared, allowed)
                times.append(1000 * (time.perf_counter() - started))
                read.append([_n_read(postings, part, getattr(prepared, part).terms) for part in ("words", "pairs")])
            found[kind] = {"ms": times[-len(members) :], "n_read": np.rint(np.mean(read, axis=0)).astype(int).tolist()}
    return found


def _n_read(postings: Postings, kind: str, terms: np.ndarray) -> int:
    total = 0
    for block in getattr(postings, kind):
        at = np.minimum(np.searchsorted(block.terms, terms), max(0, len(block.terms) - 1))
        kept = at[block.terms[at] == terms] if len(block.terms) else at[:0]
        total += int((block.starts[kept + 1].astype(np.int64) - block.starts[kept]).sum())
    return total


def word_postings_table(records: Sequence[WordPostingsRecord]) -> str:
    """A row for each index and kind of query."""
    head = ["Index", "Documents", "Chunks", "Postings, words / pairs", "File, MB", "Queries", "p50 / p95 / p99, ms"]
    head += ["Threads", "Postings of a query, words / pairs", "Building, s", "Memory building / searching, MiB"]
    rows = [
        [
            record.index,
            f"{record.n_documents:,}",
            f"{record.n_chunks:,}",
            " / ".join(f"{n / 1e6:.1f} M" for n in record.n_postings.values()),
            f"{record.file_bytes / 1e6:,.0f}",
            f"{record.n_queries[kind]} {kind}",
            f"{latency.p50_ms:.1f} / {latency.p95_ms:.1f} / {latency.p99_ms:.1f}",
            str(record.threads),
            " / ".join(f"{n:,}" for n in record.n_read[kind]),
            f"{record.build_seconds:.0f}",
            f"{record.build_memory.peak_anonymous:,.0f} / {record.search_memory.peak_anonymous:,.0f}",
        ]
        for record in sorted(records, key=lambda record: record.n_chunks)
        for kind, latency in record.latency.items()
    ]
    note = _NOTE.format(n=" or ".join(dict.fromkeys(str(record.query_chunks) for record in records)))
    return "\n".join([*markdown(head, rows), "", note, "", *origins(records)])


@program
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--queries", "n_queries", default=100, type=click.IntRange(1), help="Queries of each kind.")
@click.option("--query-chunks", default=40, type=click.IntRange(1), help="Approximate chunks of a query.")
@click.option("--threads", default=1, type=click.IntRange(1), help="Threads of a search.")
@click.option("--cap", "cap_bytes", type=parse_bytes, metavar="SIZE", help="Cap of the private memory of each process.")
@measurement(work="Folder for the file of postings; a temporary one by default.")
def main(run: Measurement, path: Path, n_queries: int, query_chunks: int, threads: int, cap_bytes: int | None) -> None:
    """Build postings over INDEX, with or without a FAISS index, and time the choice of candidates by words.

    \b
    Example:
        python -m benchmarks study word_postings papers.lm --cap 6GiB
    """
    with Snapshot(path) as snapshot:
        n_documents, n_chunks = snapshot.n_documents, snapshot.n_chunks
        drawn = draw_names(snapshot, n_queries, query_chunks, run.seed)
    names = {kind: members for kind, members in drawn.items() if members}
    with run.folder() as work:
        file = work / f"{path.stem}.postings"
        built, building = run_fresh(write_postings, path, file, cap_bytes=cap_bytes)
        checksum = built["size"], built["digest"]
        asked, searching = run_fresh(search, path, file, checksum, names, cap_bytes=cap_bytes, threads=threads)
    record = WordPostingsRecord(
        index=path.stem.partition("@")[0],
        n_documents=n_documents,
        n_chunks=n_chunks,
        n_postings=built["n_postings"],
        file_bytes=built["size"],
        cap_bytes=cap_bytes,
        threads=threads,
        n_queries={kind: len(members) for kind, members in names.items()},
        query_chunks=query_chunks,
        latency={kind: percentiles(one["ms"]) for kind, one in asked.items()},
        n_read={kind: one["n_read"] for kind, one in asked.items()},
        build_seconds=round(built["seconds"], 1),
        build_memory=building,
        search_memory=searching,
        origin=run.origin,
    )
    run.publish([record], word_postings_table)
