"""Fills replicas with synthetic chunk vectors, and asks them with one query document at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import faiss
import numpy as np

from benchmarks.gpus.record import Probed, Searched
from benchmarks.gpus.vectors import Drawn, best_by_numpy
from benchmarks.measuring.latency import percentiles
from engine.encoders.encoder import Vectors
from engine.neighbours import FIRST_DEPTH
from engine.store.ann import KMEANS_ROUNDS, TRAINING_POINTS_PER_LIST, Ids, n_lists_for
from engine.store.gpu_types import flat_parts, list_parts
from engine.store.gpus import Gpus
from engine.store.replica import Part, Replica
from engine.store.replication import SAMPLE_CHUNKS

FLAT = "Flat, float16"
CODES = {"SQfp16": "QT_fp16", "SQ8": "QT_8bit"}
NPROBES = (8, 16, 32, 64, 128, 256)
K = 10
_WARM_UP = 3
_ON_THE_CPU = 2  # query documents asked of numpy too


@dataclass(frozen=True)
class Trial:
    """What is searched, and with what it is compared."""

    drawn: Drawn
    best: Ids  # (I, K) exact
    gpus: Gpus
    is_gpu: bool
    rounds: int  # that all query documents are asked, each a latency
    seed: int


def measure_flat(trial: Trial, *, compare: bool) -> Searched:
    """All vectors compared.

    Args:
        trial: the vectors.
        compare: ask numpy too.
    """
    rows = trial.drawn.rows
    return _measured(
        trial, FLAT, 0, (0,), lambda: flat_parts(trial.gpus, trial.drawn.blocks(), *rows.shape), compare=compare
    )


def measure_lists(trial: Trial, code: str) -> Searched:
    """Inverted lists.

    Args:
        trial: the vectors.
        code: of `CODES`.
    """
    n, width = trial.drawn.rows.shape
    n_lists = n_lists_for(n)
    sample = _sample(trial, min(n, TRAINING_POINTS_PER_LIST * n_lists))

    def fill() -> list[Part]:
        kmeans = faiss.Kmeans(
            width, n_lists, niter=KMEANS_ROUNDS, spherical=True, gpu=trial.is_gpu, seed=1 + trial.seed,
            max_points_per_centroid=TRAINING_POINTS_PER_LIST,
        )  # fmt: skip
        kmeans.train(sample)
        assert kmeans.centroids is not None
        return list_parts(trial.gpus, kmeans.centroids, CODES[code], sample[:SAMPLE_CHUNKS], trial.drawn.blocks())

    nprobes = [nprobe for nprobe in NPROBES if nprobe <= n_lists]
    return _measured(trial, f"IVF{n_lists},{code}", n_lists, nprobes, fill, compare=False)


def _sample(trial: Trial, n: int) -> Vectors:
    chosen = np.random.default_rng(trial.seed).choice(len(trial.drawn.rows), n, replace=False)
    return trial.drawn.rows[np.sort(chosen)].astype(np.float32)


def _measured(
    trial: Trial, factory: str, n_lists: int, nprobes: Sequence[int], fill: Callable[[], list[Part]], *, compare: bool
) -> Searched:
    numbers = trial.gpus.numbers
    before, started = sum(map(trial.gpus.free_bytes, numbers)), time.perf_counter()
    replica = Replica(fill(), nprobe=nprobes[0], n_lists=n_lists)
    seconds, after = time.perf_counter() - started, sum(map(trial.gpus.free_bytes, numbers))
    points = [_probed(trial, replica, nprobe) for nprobe in nprobes]
    asked = trial.drawn.queries[: _ON_THE_CPU * trial.drawn.query_chunks]
    equal = None
    if compare:
        ids, _ = replica.search(asked, K)
        equal = round(float((ids == best_by_numpy(trial.drawn, asked, K)).mean()), 5)
    replica.close()
    return Searched(
        factory=factory,
        n_vectors=replica.n_vectors,
        width=trial.drawn.rows.shape[1],
        n_lists=n_lists,
        n_queries=len(trial.drawn.queries) // trial.drawn.query_chunks,
        query_chunks=trial.drawn.query_chunks,
        depth=FIRST_DEPTH,
        k=K,
        fill_seconds=round(seconds, 2),
        size_bytes=max(0, before - after),
        points=points,
        equal_to_cpu=equal,
    )


def _probed(trial: Trial, replica: Replica, nprobe: int) -> Probed:
    documents = list(trial.drawn.query_documents())
    for chunks in documents[:_WARM_UP]:
        replica.search(chunks, FIRST_DEPTH, nprobe=nprobe)
    times, found = [], []
    for number in range(trial.rounds):
        for chunks in documents:
            started = time.perf_counter()
            ids, _ = replica.search(chunks, FIRST_DEPTH, nprobe=nprobe)
            times.append(1000 * (time.perf_counter() - started))
            if not number:
                found.append(ids[:, :K])
    together = np.concatenate(found)
    shares = [len(np.intersect1d(one, other)) / K for one, other in zip(together, trial.best, strict=True)]
    return Probed(nprobe, percentiles(times), round(float(np.mean(shares)), 5))
