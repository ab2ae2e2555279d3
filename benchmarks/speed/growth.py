"""Grows indexes of given sizes from a real one, and measures building and searching them, each step in its own process.

First come the real documents themselves, copy 0, then copy 1 of the whole corpus, copy 2, and so on, each in an order
of its own; a stream that is cut off is the beginning of every longer one. Copy c turns by the angle TURN * g_c,p in
plane p of the corpus, g_c standard normal: documents that are near each other stay near, so topics stay topics. A copy
has the term counts of its original, but rare terms of its own, so that the vocabulary grows with the corpus. Texts are
tiny: one word a chunk.

Letters in shapes: B documents of a block, S their sections, C their chunks, R rows, D width, P planes.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.isolation import percentiles, run_fresh
from benchmarks.prepare import check_vectors
from benchmarks.program import Measurement, log, measurement, program, read_numbers
from benchmarks.runs import Case, Run
from benchmarks.speed.timed import forget_pages
from benchmarks.tables.pivot import case_tables
from engine.encoders.encoder import EncodedDocument, Vectors
from engine.errors import IndexMismatch
from engine.index import Index
from engine.search.partition import Selection
from engine.search.query import stored_queries
from engine.search.request import Request
from engine.search.searcher import Searcher
from engine.store.partitioned import Snapshot
from engine.store.snapshot import IndexSnapshot, Positions
from engine.store.writer import Writer
from engine.text.document import Document
from engine.text.segmentation import Chunk, Coverage, Section
from engine.words.apart import Apart
from engine.words.counts import TermTable, WordTables, counted
from engine.words.likelihood import TermStatistics
from indexer.cli.options import parse_bytes
from indexer.generation.generations import RECALL_FLOOR, SHARD_CHUNKS, chosen_factory, publish_generation
from indexer.generation.reference import refresh_reference
from indexer.generation.resources import AUTO, folder_bytes

COPY_MARK = "#copy"  # in the names of documents that were made
TURN = 1.1  # radians: the turn that commit a221d6f calibrated, at the median distance of neighbours in proposals
_SAMPLE_CHUNKS = 20_000  # enough for the principal directions of the corpus
_RARE = 1e-4  # probability of a term, below which each copy of the corpus has its own
_ORDER, _ANGLES, _TERMS = 1, 2, 3  # keep the random numbers apart
_WORD = "word "  # the text of a chunk


@dataclass(frozen=True, slots=True)
class Block:
    """Some documents, their vectors one after another."""

    originals: Positions  # (B,) rows of the source
    copies: NDArray[np.int64]  # (B,) 0 for the document itself, from 1 on for those made from it
    documents: Vectors  # (B, D) float32
    sections: Vectors  # (S, D)
    chunks: Vectors  # (C, D)
    n_sections: NDArray[np.int64]  # (B,)
    n_chunks: NDArray[np.int64]  # (B,)
    spans: NDArray[np.int32]  # (C, 4) section in its document, start, stop, tokens


class Source:
    """The documents of an open index, and those made from them."""

    def __init__(self, snapshot: IndexSnapshot, seed: int) -> None:
        if not snapshot.n_documents:
            raise IndexMismatch(f"{snapshot.folder} holds no document, at least 1 is needed; index some first")
        self.names = snapshot.doc_ids()
        if any(COPY_MARK in name for name in self.names):
            raise IndexMismatch("the index was itself grown from another one; name that one")
        self.snapshot, self.seed = snapshot, seed
        self.n_chunks: NDArray[np.int64] = snapshot.locations.n_chunks

    @property
    def checksum(self) -> str:
        """First 12 hex digits of a SHA-256 over the encoder, names and contents."""
        hashes = self.snapshot.content_hashes()
        lines = [str(self.snapshot.meta["encoder"]["fingerprint"]), *(f"{name} {hashes[name]}" for name in self.names)]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]

    def order(self, n_chunks: int) -> tuple[Positions, NDArray[np.int64]]:
        """The rows and copies of the shortest stream of at least `n_chunks` chunks."""
        n_copies = -(-n_chunks // int(self.n_chunks.sum()))
        shuffled = (np.random.default_rng([self.seed, _ORDER, copy]).permutation(len(self.names)) for copy in
                    range(n_copies))  # fmt: skip
        originals = np.concatenate(list(shuffled))
        copies = np.repeat(np.arange(n_copies), len(self.names))
        n_documents = int(np.searchsorted(np.cumsum(self.n_chunks[originals]), n_chunks)) + 1
        return originals[:n_documents], copies[:n_documents]

    def blocks(
        self, originals: Positions, copies: NDArray[np.int64], block_chunks: int = SHARD_CHUNKS
    ) -> Iterator[Block]:
        """The documents of a stream with their vectors, about `block_chunks` chunks at once; no block mixes copies."""
        basis: Vectors | None = None
        for copy in np.unique(copies).tolist():
            rows = originals[copies == copy]
            edges = np.flatnonzero(np.diff((np.cumsum(self.n_chunks[rows]) - 1) // block_chunks)) + 1
            for part in np.split(rows, edges):
                block = self.read(part)
                if copy:
                    basis = principal_directions(self) if basis is None else basis
                    block = self._turned(block, copy, basis)
                yield block

    def read(self, rows: Positions) -> Block:
        """Documents with all their vectors, in the order given."""
        chunks, _ = self.snapshot.chunk_vectors(rows)
        return Block(
            originals=rows,
            copies=np.zeros(len(rows), np.int64),
            documents=self.snapshot.document_rows(rows).astype(np.float32),
            sections=np.concatenate([self.snapshot.section_vectors(row) for row in rows.tolist()]),
            chunks=chunks,
            n_sections=self.snapshot.locations.n_sections[rows],
            n_chunks=self.n_chunks[rows],
            spans=np.concatenate([self.snapshot.spans(row) for row in rows.tolist()]),
        )

    def _turned(self, block: Block, copy: int, basis: Vectors) -> Block:
        n_planes = (len(basis) - 1) // 2
        angles = TURN * np.random.default_rng([self.seed, _ANGLES, copy]).standard_normal(n_planes)
        rows = (turned(rows, basis, angles) for rows in (block.documents, block.sections, block.chunks))
        documents, sections, chunks = rows
        copies = np.full_like(block.copies, copy)
        return replace(block, copies=copies, documents=documents, sections=sections, chunks=chunks)

    def words(self, block: Block) -> WordTables:
        """The term counts of the documents of a block, all of whose sections are body text."""
        counts, statistics = self.snapshot.words(block.originals), self.snapshot.reference.statistics
        copy = int(block.copies[0])
        drawn = np.random.default_rng([self.seed, _TERMS, copy]).integers(1 << 32)
        key = np.uint32(drawn if copy else 0)
        words, pairs = _renamed(counts.words, statistics.words, key), _renamed(counts.pairs, statistics.pairs, key)
        starts = np.cumsum([0, *block.n_sections.tolist()], dtype=np.int64)
        no_groups = np.zeros(len(starts), np.int64)
        by_kind = Apart(np.zeros(int(starts[-1]), np.uint8), starts, np.empty(0, np.uint8), no_groups, counted([]))
        return replace(counts, words=words, pairs=pairs, apart=by_kind)


def _renamed(table: TermTable, statistics: TermStatistics, key: np.uint32) -> TermTable:
    """The same counts, with other ids for rare terms; the key 0 changes none."""
    is_rare = statistics.probabilities(table.terms) < _RARE
    terms, rows = np.where(is_rare, table.terms ^ key, table.terms), table.rows()
    order = np.lexsort((terms, rows))
    return TermTable(terms[order], table.counts[order], table.starts, table.occurrences)


def principal_directions(source: Source) -> Vectors:
    """(D, D) an orthonormal basis: columns 2p and 2p + 1 span plane p; the mean direction, last, never turns."""
    order = np.random.default_rng(source.seed).permutation(len(source.names))
    enough = int(np.searchsorted(np.cumsum(source.n_chunks[order]), _SAMPLE_CHUNKS)) + 1
    sample = source.read(np.sort(order[:enough])).chunks.astype(np.float64)
    mean = sample.mean(axis=0)
    length = np.linalg.norm(mean)
    direction = mean / length if length > 0 else np.eye(sample.shape[1])[0]
    rest = sample - np.outer(sample @ direction, direction)
    # The mean direction is given a variance below all others, which sorts it last.
    _, directions = np.linalg.eigh(rest.T @ rest / len(rest) - np.outer(direction, direction))  # rising
    return np.ascontiguousarray(directions[:, ::-1], np.float32)


def turned(rows: Vectors, basis: Vectors, angles: NDArray[np.floating]) -> Vectors:
    """Turn vectors (R, D) by angles (P,) in the planes of a basis; lengths and cosines among them stay."""
    coordinates: Vectors = rows @ basis
    # A plane's two coordinates are one complex number, and a turn is a product.
    coordinates[:, : 2 * len(angles)].view(np.complex64)[:] *= np.exp(1j * angles).astype(np.complex64)
    back: Vectors = (coordinates @ basis.T).astype(np.float32, copy=False)
    return back


def made_documents(block: Block, names: list[str]) -> Iterator[tuple[Document, EncodedDocument]]:
    """Tiny documents with the sections, vectors and token counts of a block; a made one has its original and copy."""
    chunk_edges = pairwise([0, *np.cumsum(block.n_chunks).tolist()])
    section_edges = pairwise([0, *np.cumsum(block.n_sections).tolist()])
    for number, (of_chunks, of_sections) in enumerate(zip(chunk_edges, section_edges, strict=True)):
        original, copy = names[block.originals[number]], int(block.copies[number])
        name = f"{original}{COPY_MARK}{copy}" if copy else original
        spans = block.spans[slice(*of_chunks)]
        n_sections = of_sections[1] - of_sections[0]
        ends = len(_WORD) * np.cumsum(np.bincount(spans[:, 0], minlength=n_sections))
        sections = tuple(Section("", (), start, stop) for start, stop in pairwise([0, *ends.tolist()]))
        chunks = tuple(
            Chunk(section, len(_WORD) * at, len(_WORD) * (at + 1) - 1, n_tokens)
            for at, (section, n_tokens) in enumerate(spans[:, [0, 3]].tolist())
        )
        n_tokens = int(spans[:, 3].sum())
        metadata = {"original": original, "copy": copy}
        yield (
            Document(name, name, _WORD * len(spans), sections, metadata, "grown"),
            EncodedDocument(
                document=block.documents[number],
                sections=block.sections[slice(*of_sections)],
                chunks=block.chunks[slice(*of_chunks)],
                chunk_spans=chunks,
                coverage=Coverage(n_tokens, n_tokens),
            ),
        )


def grow(index: Path, folder: Path, n_chunks: int, seed: int) -> dict[str, Any]:
    """Add documents to a grown index until it holds at least `n_chunks` chunks; a killed run resumes."""
    started = time.perf_counter()
    with IndexSnapshot(index) as snapshot, Writer(folder) as writer:
        source = Source(snapshot, seed)
        originals, copies = source.order(n_chunks)
        counters: dict[str, int] = writer.meta.get("counters", {"document": 1})
        n_there = counters["document"] - 1
        if n_there > len(originals):
            raise IndexMismatch(
                f"{folder} holds {n_there:,} documents, {len(originals):,} make {n_chunks:,} chunks; name sizes from "
                "small to large, or another --work folder"
            )
        writer.claim(snapshot.meta["encoder"])
        assert snapshot.language is not None
        writer.set_language(snapshot.language)
        for block in source.blocks(originals[n_there:], copies[n_there:]):
            writer.commit(list(made_documents(block, source.names)), source.words(block))
    return {"seconds": time.perf_counter() - started, "n_added": len(originals) - n_there}


def publish(folder: Path) -> dict[str, Any]:
    """Pin a reference, and publish a generation over all documents, so that none is left to be scanned.

    An existing generation of the same documents and of this type is kept.
    """
    started = time.perf_counter()
    with Writer(folder) as writer:
        refresh_reference(writer, lambda _: None)
        with IndexSnapshot(folder) as snapshot:
            row, n_chunks = snapshot.generation_row, snapshot.n_chunks
            chosen = chosen_factory(snapshot, AUTO)
        if row is None or (row.n_vectors, row.factory) != (n_chunks, chosen):
            publish_generation(writer, AUTO, recall_floor=RECALL_FLOOR)
    return {"seconds": time.perf_counter() - started}


DEFAULT_CHUNKS = (1_000_000,)
_QUERY_CHUNKS, _K = 40, 10  # about the chunks of a query; targets to return
_WARM_UP = 10  # queries that are searched with, and not counted, before a measurement
_NOTE = (
    "Queries are real and synthetic documents of the index, each left out of its own hits. p50, p99: of a search with "
    "ten hits and their breakdown, without encoding. Recall: of the exact best targets. Open, first answer: without "
    "page cache. Memory: private memory of the process that searches."
)


@dataclass(frozen=True)
class Trial:
    """How each size is built and searched."""

    index: Path
    source: str  # with checksum
    folder: Path  # of the grown index
    seed: int
    cap_bytes: int | None  # private memory that each process may use
    n_queries: int  # of each kind
    threads: int


def draw_names(snapshot: Snapshot, n_queries: int, n_chunks: int, seed: int) -> dict[str, list[str]]:
    """Documents to search with, "real" and "synthetic": drawn from those whose size is nearest to a number of chunks.

    They are drawn from four times as many, so that another seed draws others.
    """
    names = np.array(snapshot.doc_ids())
    is_made = np.char.find(names, COPY_MARK) >= 0
    rng = np.random.default_rng(seed)
    drawn = {}
    for kind, rows in (("real", np.flatnonzero(~is_made)), ("synthetic", np.flatnonzero(is_made))):
        difference = np.abs(snapshot.locations.n_chunks[rows] - n_chunks)
        nearest = rows[np.argsort(difference, kind="stable")[: 4 * n_queries]]
        drawn[kind] = names[np.sort(rng.permutation(nearest)[:n_queries])].tolist()
    return {kind: members for kind, members in drawn.items() if members}


def exact_answers(folder: Path, n_queries: int, n_chunks: int, seed: int, k: int) -> dict[str, Any]:
    """Queries by kind, and the exact best targets of each, all found in few passes over the index."""
    with Index.open(folder) as index:
        by_kind = draw_names(index.snapshot, n_queries, n_chunks, seed)
        names = [name for members in by_kind.values() for name in members]
        positions = np.array([index.position(name) for name in names])
        queries = [*zip(positions.tolist(), stored_queries(index.snapshot, positions), strict=True)]
        tops = Searcher(index.snapshot).tops(queries, Selection(exact=True), k=k)
        doc_ids = index.snapshot.doc_ids()
        targets = {name: [doc_ids[row] for row in rows] for name, (rows, _) in zip(names, tops, strict=True)}
    return {"names": by_kind, "targets": targets}


def latency(folder: Path, names: dict[str, list[str]], k: int) -> dict[str, Any]:
    """Seconds of opening and of the very first answer, then milliseconds and targets of each warm query, by kind."""
    started = time.perf_counter()
    with Index.open(folder) as index:
        opened = time.perf_counter()
        everyone = [name for members in names.values() for name in members]
        index.search(everyone[0], Request(k=k))
        first = time.perf_counter()
        for name in everyone[:_WARM_UP]:
            index.search(name, Request(k=k))
        kinds: dict[str, Any] = {}
        for kind, members in names.items():
            times, targets = [], {}
            for name in members:
                before = time.perf_counter()
                hits = index.search(name, Request(k=k)).hits
                times.append(1000 * (time.perf_counter() - before))
                targets[name] = [hit.doc_id for hit in hits]
            kinds[kind] = {"ms": times, "targets": targets}
    return {"open_seconds": opened - started, "first_seconds": first - opened, "kinds": kinds}


def throughput(folder: Path, names: Sequence[str], k: int, workers: int) -> dict[str, Any]:
    """Many queries at once: each worker is a thread with an open index of its own, and multiplies on one thread."""
    shares = [names[first::workers] for first in range(min(workers, len(names)))]
    ready = threading.Barrier(len(shares))

    def work(share: Sequence[str]) -> tuple[float, float]:
        threadpool_limits(1)  # OpenMP keeps the number for each calling thread
        with Index.open(folder) as index:
            index.search(share[0], Request(k=k))
            ready.wait()
            started = time.perf_counter()
            for name in share:
                index.search(name, Request(k=k))
            return started, time.perf_counter()

    with ThreadPoolExecutor(len(shares)) as pool:
        started, ended = zip(*pool.map(work, shares), strict=True)
    return {"queries_per_second": len(names) / (max(ended) - min(started))}


def measure(trial: Trial, n_chunks: int) -> list[Case]:
    """Grow, publish and search one size; a case for each kind of query."""
    folder, cap, mib = trial.folder, trial.cap_bytes, 1 << 20
    log(f"{n_chunks:,} chunks: growing")
    grown, _ = run_fresh(grow, trial.index, folder, n_chunks, trial.seed, cap_bytes=cap)
    log("publishing")
    published, publishing = run_fresh(publish, folder, cap_bytes=cap)
    log("searching")
    exact, _ = run_fresh(exact_answers, folder, trial.n_queries, _QUERY_CHUNKS, trial.seed, _K)
    forget_pages(folder)
    timed, searching = run_fresh(latency, folder, exact["names"], _K, cap_bytes=cap, threads=trial.threads)
    batch, _ = run_fresh(throughput, folder, list(exact["targets"]), _K, trial.threads, cap_bytes=cap)
    with IndexSnapshot(folder) as snapshot:
        row = snapshot.generation_row
        assert row is not None
        labels = {"factory": row.factory, "nprobe": str(row.nprobe or "")}
        sizes = {"documents": snapshot.n_documents, "chunks": snapshot.n_chunks}
    costs = {
        "open, s": round(timed["open_seconds"], 3),
        "first answer, s": round(timed["first_seconds"], 3),
        "queries/s": round(batch["queries_per_second"], 1),
        "memory searching, MiB": round(searching.peak_anonymous),
        "memory publishing, MiB": round(publishing.peak_anonymous),
        "disk, MiB": round(folder_bytes(folder) / mib),
        "grow, s": round(grown["seconds"], 1),
        "publish, s": round(published["seconds"], 1),
    }
    return [
        Case(
            id=f"{sizes['chunks']:,} chunks, {kind} queries",
            labels=labels,
            values={**sizes, **_of_queries(timed["kinds"][kind], exact["targets"]), **costs},
        )
        for kind in exact["names"]
    ]


def document_recall(found: Sequence[str], truth: Sequence[str]) -> float:
    """The share of a query's exact targets that was found, in [0, 1]; 1 where there are none."""
    return len(set(found) & set(truth)) / len(truth) if truth else 1.0


def _of_queries(kind: dict[str, Any], targets: dict[str, list[str]]) -> dict[str, float]:
    shares = [document_recall(found, targets[name]) for name, found in kind["targets"].items()]
    times = percentiles(kind["ms"])
    return {
        "queries": len(shares),
        "p50, ms": round(median(kind["ms"]), 1),
        "p99, ms": round(times.p99_ms, 1),
        "recall": round(fmean(shares), 4),
        "lowest recall": round(min(shares), 4),
    }


_CORES = os.cpu_count() or 1
_COUNT = click.IntRange(1)


@program
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--chunks", callback=read_numbers, help=f"Sizes, separated by commas.  [default: {DEFAULT_CHUNKS[0]}]")
@click.option("--cap", "cap_bytes", type=parse_bytes, metavar="SIZE", help="Cap of the private memory of a process.")
@click.option("--queries", "n_queries", default=100, type=_COUNT, help="Queries of each kind.")
@click.option("--threads", default=_CORES, type=_COUNT, help="Threads of a search, and workers of a batch.")
@measurement(seed="Seed of growth and queries.", work="Folder for grown indexes; kept and resumed.")
def main(
    run: Measurement,
    path: Path,
    chunks: tuple[int, ...],
    cap_bytes: int | None,
    n_queries: int,
    threads: int,
) -> None:
    """Grow INDEX to one or more sizes, in one folder from small to large, and measure each.

    \b
    Example:
        python -m benchmarks study growth papers.lm --chunks 250000,500000,1000000
        python -m benchmarks study growth papers.lm --chunks 1000000 --cap 6GiB
    """
    check_vectors(path)
    with IndexSnapshot(path) as snapshot:
        source = Source(snapshot, run.seed)
        name = f"{path.stem.partition('@')[0]}@{source.checksum}"
    run.work.mkdir(parents=True, exist_ok=True)
    folder = run.work / f"grown-{name}-seed{run.seed}.lm"
    trial = Trial(path, name, folder, run.seed, cap_bytes, n_queries, threads)
    cases = [case for n_chunks in sorted(chunks or DEFAULT_CHUNKS) for case in measure(trial, n_chunks)]
    details = {"note": _NOTE}
    run.publish(
        [Run(task="scale", dataset=name, system="grown index", cases=cases, details=details, origin=run.origin)],
        case_tables,
    )
