"""Synthetic chunk vectors drawn on a device by the law of `benchmarks.vectors.collection`, and exact search among them.

The law is that one; the numbers are torch's, so that ten million rows take seconds on a GPU.

Letters in shapes: C chunks, Q query documents, I chunks of all of them, K results, D width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.vectors.collection import Law
from engine.encoders.encoder import Vectors
from engine.store.ann import Ids

BLOCK_DOCUMENTS = 1024
BLOCK_ROWS = 65_536
_TOPICS, _DOCUMENTS, _QUERIES = 1, 2, 3  # keep the random numbers of the three apart


@dataclass(frozen=True)
class Drawn:
    """Chunk vectors and query documents, unit rows."""

    rows: NDArray[np.float16]  # (C, D)
    queries: Vectors  # (I, D) float32 of half precision
    query_chunks: int  # of each query document

    def blocks(self) -> Iterator[tuple[Ids, Vectors]]:
        """All rows as float32, with their numbers as ids."""
        for first in range(0, len(self.rows), BLOCK_ROWS):
            rows = self.rows[first : first + BLOCK_ROWS].astype(np.float32)
            yield np.arange(first, first + len(rows)), rows

    def query_documents(self) -> Iterator[Vectors]:
        """The chunks of one query document after another."""
        yield from np.split(self.queries, len(self.queries) // self.query_chunks)


def draw(law: Law, n_queries: int, device: str, seed: int) -> Drawn:
    """Draw a collection; the same for the same seed, kind of device and version of torch."""
    spectrum = torch.arange(1, law.width + 1, device=device, dtype=torch.float32) ** -0.5
    topics = torch.randn(law.n_topics, law.width, device=device, generator=_generator(device, seed, _TOPICS)) * spectrum
    rows = np.empty((law.n_documents * law.n_chunks, law.width), np.float16)
    source = _generator(device, seed, _DOCUMENTS)
    for first in range(0, law.n_documents, BLOCK_DOCUMENTS):
        stop = min(first + BLOCK_DOCUMENTS, law.n_documents)
        rows[first * law.n_chunks : stop * law.n_chunks] = _drawn(law, topics, spectrum, stop - first, source)
    queries = _drawn(law, topics, spectrum, n_queries, _generator(device, seed, _QUERIES))
    return Drawn(rows, queries.astype(np.float32), law.n_chunks)


def _generator(device: str, seed: int, part: int) -> torch.Generator:
    return torch.Generator(device).manual_seed(1000 * seed + part)


def _drawn(
    law: Law, topics: torch.Tensor, spectrum: torch.Tensor, n: int, source: torch.Generator
) -> NDArray[np.float16]:
    """(n * n_chunks, D) of n documents."""
    device, width = topics.device, law.width
    shares = 1 / torch.arange(1, law.n_topics + 1, device=device)
    topic = torch.multinomial(shares, n, replacement=True, generator=source)
    noise = torch.randn(n, width, device=device, generator=source)
    documents = topics[topic] + law.document_noise * spectrum * noise
    noise = torch.randn(n, law.n_chunks, width, device=device, generator=source)
    chunks = documents[:, None] + law.chunk_noise * spectrum * noise  # (n, n_chunks, D)
    halves: NDArray[np.float16] = torch.nn.functional.normalize(chunks, dim=-1).half().cpu().numpy()
    return halves.reshape(-1, width)


def exact_best(drawn: Drawn, k: int, device: str) -> Ids:
    """(I, K) the rows nearest to each query chunk, best first, by float32 products on a device, without FAISS."""
    usual = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        return _best(drawn, k, device)
    finally:
        torch.set_float32_matmul_precision(usual)


def _best(drawn: Drawn, k: int, device: str) -> Ids:
    queries = torch.tensor(drawn.queries, device=device)
    best = torch.full((len(queries), k), -torch.inf, device=device)
    ids = torch.full((len(queries), k), -1, device=device)
    for first in range(0, len(drawn.rows), BLOCK_ROWS):
        rows = torch.tensor(drawn.rows[first : first + BLOCK_ROWS], device=device).float()
        found, at = (queries @ rows.T).topk(min(k, len(rows)), dim=1)
        best, order = torch.cat([best, found], dim=1).topk(k, dim=1)
        ids = torch.cat([ids, at + first], dim=1).gather(1, order)
    numbers: Ids = ids.cpu().numpy()
    return numbers


def best_by_numpy(drawn: Drawn, queries: Vectors, k: int) -> Ids:
    """(n, K) the same of some queries, in the memory of the CPU."""
    similarities = np.concatenate([queries @ rows.T for _, rows in drawn.blocks()], axis=1)
    kept = np.argpartition(-similarities, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(similarities, kept, axis=1), axis=1, kind="stable")
    return np.take_along_axis(kept, order, axis=1)
