"""Reads batches in parallel on the CPU, each in a thread of its own with its share of torch's threads.

Threads that share one batch wait for each other after every operation, and for Python between two operations.
Threads with a batch each do not wait.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import torch
from torch import Tensor

MOST_READERS = 16  # all of them share one interpreter

Read = Callable[[Sequence[int]], Tensor]


def n_readers(threads: int) -> int:
    """The number of batches read at once, given the number of torch's threads."""
    return min(threads, MOST_READERS)


def read_side_by_side(batches: Sequence[Sequence[int]], read: Read, threads: int) -> list[Tensor]:
    """Read batches in inference mode, several at once.

    Args:
        batches: the slowest first, so that all threads end at about the same time.
        read: from a batch to its rows; called by several threads at once.
        threads: of torch, divided among the batches that are read at once.

    Returns:
        The rows of each batch, in their order.
    """

    def one(batch: Sequence[int]) -> Tensor:
        with torch.inference_mode():
            return read(batch)

    readers = _readers(threads)
    waiting = [readers.submit(one, batch) for batch in batches]
    try:
        return [rows.result() for rows in waiting]
    finally:
        for rows in waiting:
            rows.cancel()


@lru_cache(maxsize=1)
def _readers(threads: int) -> ThreadPoolExecutor:
    """Persistent threads, since torch keeps compiled kernels for each thread separately."""
    n = n_readers(threads)
    readers = ThreadPoolExecutor(n, "longmatch-encode")
    all_begun = threading.Barrier(n)

    def begin(own: int) -> None:
        torch.get_num_threads()  # the first use of torch in a thread gives it all of torch's threads
        torch.set_num_threads(own)
        all_begun.wait()

    for _ in readers.map(begin, _shares(threads, n)):
        pass
    torch.set_num_threads(threads)  # for threads that start later
    return readers


def _shares(threads: int, n: int) -> Iterator[int]:
    for reader in range(n):
        yield threads // n + (reader < threads % n)


os.register_at_fork(after_in_child=_readers.cache_clear)  # a child has no thread but the one that forked
