"""Similarities inside and between documents of a collection, for comparison with those of a grown one.

Letters in shapes: Q sampled chunks, B documents of a block, C their chunks, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed.growth.source import Block
from benchmarks.speed.records import CandidateLists
from engine.encoders.encoder import Vectors
from engine.scoring.lists import segment_max

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
CHUNKS_OF_A_DOCUMENT = 4  # sampled; chunks of one document are alike, so more of them add little
_ROWS = 256  # sampled vectors that are compared with the chunks of a block at once

Numbers = NDArray[np.int64]
Blocks = Callable[[], Iterator[Block]]  # the same stream from its beginning, each time it is called


@dataclass(frozen=True, slots=True)
class Sample:
    """Vectors whose neighbours are searched for; numbers count documents in the order of the stream."""

    numbers: NDArray[np.int64]  # documents, rising
    documents: Vectors
    chunks: Vectors  # (Q, D)
    owners: NDArray[np.int64]  # (Q,) number of each chunk's document
    within: NDArray[np.float32]  # cosines of all pairs of sampled chunks of one document


def neighbours(blocks: Blocks, chosen: NDArray[np.int64], seed: int) -> CandidateLists:
    """Measure a collection at some of its documents, by their numbers in the stream; streams it twice."""
    sample = draw(blocks(), chosen, np.random.default_rng(seed))
    n_documents = n_chunks = 0
    nearest_chunk = np.full(len(sample.chunks), -1, np.float32)
    nearest_document = np.full(len(sample.documents), -1, np.float32)
    for numbers, block in _numbered(blocks()):
        _raise_to(nearest_chunk, sample.chunks, sample.owners, block.chunks, block.starts, numbers)
        alone = np.arange(len(numbers))
        _raise_to(nearest_document, sample.documents, sample.numbers, block.documents, alone, numbers)
        n_documents, n_chunks = n_documents + len(numbers), n_chunks + len(block.chunks)
    cosines = (sample.within, nearest_chunk, nearest_document)
    return CandidateLists(n_documents, n_chunks, *(_quantiles(values) for values in cosines))


def nearest_by_document(blocks: Blocks, n_documents: int, seed: int) -> NDArray[np.float32]:
    """(N,) for each document the median, over some of its chunks, of the cosine to the nearest chunk of another one."""
    sample = draw(blocks(), np.arange(n_documents), np.random.default_rng(seed))
    nearest = np.full(len(sample.chunks), -1, np.float32)
    for numbers, block in _numbered(blocks()):
        _raise_to(nearest, sample.chunks, sample.owners, block.chunks, block.starts, numbers)
    edges = np.searchsorted(sample.owners, np.arange(1, n_documents))
    return np.array([np.median(cosines) for cosines in np.split(nearest, edges)], np.float32)


def draw(stream: Iterator[Block], chosen: NDArray[np.int64], rng: np.random.Generator) -> Sample:
    """Read a stream once and keep the chosen documents, with a few chunks of each."""
    chosen = np.sort(chosen)
    documents, chunks, owners, within = [], [], [], []
    for numbers, block in _numbered(stream):
        starts = block.starts
        for number in chosen[(chosen >= numbers[0]) & (chosen <= numbers[-1])].tolist():
            row = number - numbers[0]
            size = int(block.n_chunks[row])
            kept = np.sort(rng.permutation(size)[:CHUNKS_OF_A_DOCUMENT]) + starts[row]
            rows = block.chunks[kept]
            documents.append(block.documents[row])
            chunks.append(rows)
            owners.append(np.full(len(rows), number))
            within.append((rows @ rows.T)[np.triu_indices(len(rows), 1)])
    return Sample(chosen, np.stack(documents), np.concatenate(chunks), np.concatenate(owners), np.concatenate(within))


def _numbered(stream: Iterator[Block]) -> Iterator[tuple[Numbers, Block]]:
    """Blocks with the numbers of their documents."""
    first = 0
    for block in stream:
        yield np.arange(first, first + len(block.documents)), block
        first += len(block.documents)


def _raise_to(
    nearest: Vectors, queries: Vectors, owners: Numbers, rows: Vectors, starts: Numbers, numbers: Numbers
) -> None:
    """Raise the nearest cosines of queries to those in a block, own documents left out."""
    for first in range(0, len(queries), _ROWS):
        part = slice(first, first + _ROWS)
        best = segment_max(queries[part] @ rows.T, starts)  # (Q, C) -> (Q, B)
        best[owners[part][:, None] == numbers] = -1
        np.maximum(nearest[part], best.max(axis=1), out=nearest[part])


def _quantiles(cosines: NDArray[np.float32]) -> list[float]:
    return [round(float(value), 4) for value in np.quantile(cosines, QUANTILES)] if len(cosines) else []


def distance(one: CandidateLists, other: CandidateLists) -> float:
    """Mean difference of the quantiles to nearest chunks and documents: how much two collections differ in density."""
    chunk = np.abs(np.subtract(one.nearest_chunk, other.nearest_chunk)).mean()
    document = np.abs(np.subtract(one.nearest_document, other.nearest_document)).mean()
    return float(chunk + document) / 2
