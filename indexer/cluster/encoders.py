"""Encoders as tasks of Ray: batches of documents go out, vectors come back, in order. Commits nothing.

A task keeps nothing but the encoder, which stays loaded in its process for the next task. Where a process or a
machine dies, Ray runs the task again elsewhere. The vectors of a batch depend on the batch alone.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import ray

from engine.encoders.encoder import Encoder
from engine.errors import IndexMismatch
from indexer.building.pipeline import StoredBatch, Vectors, encode_batch
from indexer.cluster.session import fetched

if TYPE_CHECKING:
    Pending: TypeAlias = ray.ObjectRef[Any]

_MOST_RETRIES = 5  # of a batch whose process died


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """The encoder that every process of a job loads."""

    name: str  # as `load_encoder` takes it, on every machine
    fingerprint: str
    device: str | None
    on_gpu: bool  # whether each one takes a GPU

    @classmethod
    def of(cls, encoder: Encoder, *, on_gpu: bool) -> EncoderSettings:
        """The settings of an encoder that is loaded in this process."""
        folder = Path(encoder.name)
        name = str(folder.absolute()) if folder.is_dir() else encoder.name
        return cls(name, encoder.fingerprint, "cuda" if on_gpu else "cpu", on_gpu)


def submitted(settings: EncoderSettings, batch: StoredBatch) -> Pending:
    """Send a batch to whichever process is free."""
    return _task(on_gpu=settings.on_gpu).remote(settings, batch)


@lru_cache(maxsize=2)
def _task(*, on_gpu: bool) -> Any:  # noqa: ANN401 - Ray makes its class
    # By default, a process with a GPU would end after one call.
    return ray.remote(num_cpus=1, num_gpus=int(on_gpu), max_retries=_MOST_RETRIES, max_calls=0)(encode_stored)


def encode_stored(settings: EncoderSettings, batch: StoredBatch) -> tuple[Vectors, float]:
    """Encode a batch in the process of a task; returns its vectors and the seconds."""
    encoder = _loaded(settings)
    started = time.perf_counter()
    return encode_batch(batch, encoder, encoder.encode_segmented), time.perf_counter() - started


@lru_cache(maxsize=1)
def _loaded(settings: EncoderSettings) -> Encoder:
    # The processes of writers need no encoder.
    from engine.encoders.loading import load_encoder

    encoder = load_encoder(settings.name, device=settings.device)
    if encoder.fingerprint != settings.fingerprint:
        raise IndexMismatch(
            f"machine {ray.util.get_node_ip_address()} has another encoder {settings.name!r} (fingerprint "
            f"{encoder.fingerprint[:12]}, the index {settings.fingerprint[:12]}); copy the encoder's files there"
        )
    return encoder


def spread(
    batches: Iterator[StoredBatch], submit: Callable[[StoredBatch], Pending], n_at_once: int
) -> Iterator[tuple[StoredBatch, Vectors, float]]:
    """Encode batches at the same time, and return them in their order, with vectors and seconds.

    Raises:
        ClusterError: the process of a batch died again in every retry.
        EngineError: raised by the encoder.
    """
    waiting: deque[tuple[StoredBatch, Pending]] = deque()
    is_over = False
    while True:
        unfinished = _unfinished(waiting)
        while not is_over and len(unfinished) < n_at_once and len(waiting) < 2 * n_at_once:
            batch = next(batches, None)
            is_over = batch is None
            if batch is not None:
                waiting.append((batch, submit(batch)))
                unfinished.append(waiting[-1][1])
        if not waiting:
            return
        if is_over or len(waiting) >= 2 * n_at_once or waiting[0][1] not in unfinished:
            batch, first = waiting.popleft()
            vectors, seconds = fetched(first)
            yield batch, vectors, seconds
        else:
            ray.wait(unfinished, num_returns=1)


def _unfinished(waiting: deque[tuple[StoredBatch, Pending]]) -> list[Pending]:
    if not waiting:
        return []
    _, others = ray.wait([one for _, one in waiting], num_returns=len(waiting), timeout=0)
    return list(others)
