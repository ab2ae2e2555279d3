"""Measures how fast this machine compares and moves vectors, to estimate the time of a generation. Reads no index.

    seconds = (L (R n + N) + 16 N + Q C N) / comparisons a second + (S N 2D + 2 B) / bytes a second

for N vectors D wide, of which n train L lists in R rounds of k-means; 16 centroids for
each product code; Q queries of C chunks to measure the recall, each of which scans all
vectors; S readings of the shards, 1 to add the vectors and 1 for each pass of queries;
and a file of B bytes that is written and checksummed. An exact type has neither lists
nor queries. Two smaller costs are left out: the queries with the new index, and training
the codes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from engine.search.searcher import PASS_CHUNKS
from engine.store.ann import KMEANS_ROUNDS, AnnIndex, is_exact_factory, n_lists_of, training_size
from indexer.generation.extension import EXTENSION_QUERIES
from indexer.generation.index_choice import SCAN, Rung, Size
from indexer.generation.recall import RECALL_QUERIES

_N_ROWS = 8192
_N_CENTROIDS = 1024
_CODE_CENTROIDS = 16


@dataclass(frozen=True, slots=True)
class Rates:
    """The speed of this machine at present."""

    comparisons_per_second: float  # of two vectors, the nearest kept
    bytes_per_second: float  # of float16 rows gathered into float32


def measure_rates(width: int) -> Rates:
    """Compare and move a few thousand random vectors, once to warm up and once to time."""
    rows = np.random.default_rng(0).standard_normal((_N_ROWS, width)).astype(np.float16)
    order = np.random.default_rng(1).permutation(_N_ROWS)
    moved = np.empty((_N_ROWS, width), np.float32)
    centroids = AnnIndex.build(
        "Flat", width, lambda: moved[:0], [(np.arange(_N_CENTROIDS), rows[:_N_CENTROIDS].astype(np.float32))]
    )
    moving = comparing = 0.0
    for _ in range(2):
        started = time.perf_counter()
        moved[order] = rows[order]
        moving = time.perf_counter() - started
        centroids.search(moved, 1)
        comparing = time.perf_counter() - started - moving
    return Rates(_N_ROWS * _N_CENTROIDS / max(comparing, 1e-9), rows.nbytes / max(moving, 1e-9))


def extension_seconds(rung: Rung, size: Size, n_added: int, rates: Rates) -> float:
    """Seconds to add `n_added` chunks to the published generation: without training, and with fewer queries."""
    n_query_chunks, n_passes = _query_chunks(rung, size, EXTENSION_QUERIES)
    n_compared = n_lists_of(rung.factory) * n_added + _encoded(rung) * n_added + n_query_chunks * size.n_chunks
    n_bytes = (n_added + n_passes * size.n_chunks) * 2 * size.width + 3 * rung.index_bytes  # one to read the old file
    return n_compared / rates.comparisons_per_second + n_bytes / rates.bytes_per_second


def generation_seconds(rung: Rung, size: Size, rates: Rates) -> float:
    """Seconds to build a generation, by the equation of this module; 0 if nothing is built."""
    if rung.factory == SCAN or not size.n_chunks:
        return 0.0
    n_train = min(training_size(rung.factory, rung.sizes.points_per_list), size.n_chunks)
    n_compared = n_lists_of(rung.factory) * (KMEANS_ROUNDS * n_train + size.n_chunks)
    n_query_chunks, n_passes = _query_chunks(rung, size, RECALL_QUERIES)
    n_compared += (_encoded(rung) + n_query_chunks) * size.n_chunks
    n_bytes = (1 + n_passes) * size.n_chunks * 2 * size.width + 2 * rung.index_bytes
    return n_compared / rates.comparisons_per_second + n_bytes / rates.bytes_per_second


def _encoded(rung: Rung) -> int:
    """Centroids that each vector is compared with to be encoded."""
    return _CODE_CENTROIDS if "PQ" in rung.factory else 0


def _query_chunks(rung: Rung, size: Size, n_queries: int) -> tuple[int, int]:
    """Query chunks that the recall is measured with, and passes over the shards."""
    if is_exact_factory(rung.factory):
        return 0, 0
    n_query_chunks = round(min(n_queries, size.n_documents) * size.n_chunks / max(1, size.n_documents))
    return n_query_chunks, -(-n_query_chunks // PASS_CHUNKS)
