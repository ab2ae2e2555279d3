"""A small real index, made on the spot from the demo's documents, asked on the GPU and on the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

from benchmarks.gpus.record import EndToEnd
from benchmarks.measuring.latency import percentiles
from engine.acceleration import Acceleration
from engine.document import Document, Section
from engine.encoders.encoder import Encoder
from engine.errors import EngineError
from engine.query import Query, as_stored
from engine.result import Result
from engine.search import Searcher
from engine.store.snapshot import Snapshot
from engine.store.writer import Writer
from engine.words.counts import count_words
from engine.words.segmenter import segmenter_of
from indexer.generation import publish_generation
from indexer.reference import refresh_reference

DEMO = Path(__file__).resolve().parents[2] / "demo"
FILES = ("*.txt", "*.md")
SECTION_LINES = 60  # files are read as lines, not by their format, which would need a package each
FACTORY = "IVF64,PQ64x4fs"  # of a kind that no GPU holds, as most published generations are
K = 10


def demo_documents(n: int | None = None) -> list[Document]:
    """Documents of the demo's corpus in plain formats, cut into sections of so many lines.

    Args:
        n: as many at most.

    Raises:
        EngineError: the demo is not there.
    """
    files = sorted(file for pattern in FILES for file in (DEMO / "corpus").rglob(pattern))[:n]
    if not files:
        raise EngineError(f"{DEMO / 'corpus'} holds no {' or '.join(FILES)}; run from a checkout of the project")
    return [_document(file.relative_to(DEMO).as_posix(), file.read_text("utf-8")) for file in files]


def _document(doc_id: str, text: str) -> Document:
    lines = text.splitlines(keepends=True)
    runs = ["".join(lines[first : first + SECTION_LINES]) for first in range(0, len(lines), SECTION_LINES)]
    stops = [0, *accumulate(map(len, runs))]
    sections = tuple(Section("", (), start, stop) for start, stop in pairwise(stops))
    return Document(doc_id, doc_id, text, sections, {}, doc_id)


def measure_demo(
    folder: Path,
    documents: Sequence[Document],
    encoder: Encoder,
    accelerate: Callable[[Snapshot], Acceleration],
    factory: str = FACTORY,
) -> EndToEnd:
    """Index documents, and ask with each of them.

    Args:
        folder: for the index.
        documents: some dozens.
        encoder: on the device.
        accelerate: copies the index there.
        factory: of the generation.

    Raises:
        EngineError: the GPU could not be used, and why.
    """
    started = time.perf_counter()
    encoded = list(zip(documents, encoder.encode(documents), strict=True))
    with Writer(folder) as writer:
        writer.claim({"name": encoder.name, "fingerprint": encoder.fingerprint, "width": encoder.width})
        writer.commit(encoded)
        refresh_reference(writer, lambda _: None)
        publish_generation(writer, factory, recall_floor=0.0)
    index_seconds = time.perf_counter() - started
    started = time.perf_counter()
    with Snapshot(folder) as snapshot:
        acceleration = accelerate(snapshot)
        open_seconds = time.perf_counter() - started
        if acceleration.replica is None:
            raise EngineError(acceleration.told)
        segmenter = segmenter_of(snapshot.language or "none")
        words = [count_words(segmenter, [document.text]) for document in documents]
        queries = [Query(one, as_stored(own), tables) for (one, own), tables in zip(encoded, words, strict=True)]
        gpu, gpu_ms = _ask(Searcher(snapshot, acceleration=acceleration), queries, exact=False)
        _, cpu_ms = _ask(Searcher(snapshot), queries, exact=False)
        exact, exact_ms = _ask(Searcher(snapshot), queries, exact=True)
        n_documents, n_chunks = snapshot.n_documents, snapshot.n_chunks
        acceleration.close()
    pairs = list(zip(gpu, exact, strict=True))
    return EndToEnd(
        n_documents=n_documents,
        n_chunks=n_chunks,
        factory=factory,
        index_seconds=round(index_seconds, 2),
        open_seconds=round(open_seconds, 2),
        n_queries=len(queries),
        gpu=percentiles(gpu_ms),
        cpu=percentiles(cpu_ms),
        cpu_exact=percentiles(exact_ms),
        equal_hits=round(sum(_names(one) == _names(other) for one, other in pairs) / len(pairs), 4),
        score_error=max(_difference(one, other) for one, other in pairs),
        told=acceleration.told,
    )


def _ask(searcher: Searcher, queries: Sequence[Query], *, exact: bool) -> tuple[list[Result], list[float]]:
    """The result of each query, and its milliseconds; one goes before."""

    def ask(query: Query) -> Result:
        return searcher.search(query, k=K, without=query.document.doc_id, exact=exact)

    ask(queries[0])
    results, times = [], []
    for query in queries:
        started = time.perf_counter()
        results.append(ask(query))
        times.append(1000 * (time.perf_counter() - started))
    return results, times


def _names(result: Result) -> list[str]:
    return [hit.doc_id for hit in result.hits]


def _difference(one: Result, other: Result) -> float:
    scores = zip(one.hits, other.hits, strict=False)
    return max((abs(first.score - second.score) for first, second in scores), default=0.0)
