"""Latency of an index that is built, for single query chunks and for whole query documents, and memory meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.measuring.latency import Percentiles, percentiles
from benchmarks.measuring.peak import forget_peak, peak_rss_mib
from benchmarks.vectors.asking import Asked, asks_documents, nearest, ranked
from benchmarks.vectors.candidate import VectorIndex
from benchmarks.vectors.collection import Collection
from engine.encoders.encoder import Vectors

WARM_UP = 10  # queries that are asked, and not counted, before a measurement
DOCUMENT_CHUNKS = 40  # of the document whose latency is measured
MOST_TIMED = 500  # single query chunks


@dataclass(frozen=True)
class Timed:
    """What searches with one setting take."""

    chunk: Percentiles
    document: Percentiles | None  # None where `asks_documents` says no
    peak_mib: float  # the most resident in this process meanwhile


def time_searches(index: VectorIndex, collection: Collection, k: int) -> Timed:
    """Ask with single chunks, then with documents; whatever was resident before and is no more does not count."""
    forget_peak()
    chunk = chunk_latency(index, collection, k)
    document = document_latency(index, collection, k) if asks_documents(index) else None
    return Timed(chunk, document, peak_rss_mib())


def chunk_latency(index: VectorIndex, collection: Collection, k: int) -> Percentiles:
    """Of single query chunks, spread over all."""
    picked = np.linspace(0, len(collection.queries) - 1, min(MOST_TIMED, len(collection.queries))).astype(int)
    return _timed([collection.queries[[row]] for row in picked], lambda query: nearest(index, collection, query, k))


def document_latency(index: VectorIndex, collection: Collection, k: int) -> Percentiles:
    """Of documents of `DOCUMENT_CHUNKS` chunks, from vectors to ranking; shorter ones are repeated, longer ones cut."""
    documents = [np.resize(chunks, (DOCUMENT_CHUNKS, chunks.shape[1])) for chunks in collection.query_documents()]
    asked = Asked(index, collection)
    return _timed(documents, lambda chunks: ranked(asked, chunks, k))


def _timed(queries: Sequence[Vectors], ask: Callable[[Vectors], object]) -> Percentiles:
    for query in queries[:WARM_UP]:
        ask(query)
    times_ms = []
    for query in queries:
        started = time.perf_counter()
        ask(query)
        times_ms.append(1000 * (time.perf_counter() - started))
    return percentiles(times_ms)
