"""Runs the work of requests in threads, and counts it for Prometheus.

Running and waiting work and its memory are limited, and work ends at a deadline.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from starlette.types import Scope

from engine.errors import limited
from indexer.serving.answers import Refusal, too_busy, too_large
from indexer.serving.settings import MOST_WORK_BYTES

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_COUNTS = (1, 2, 4, 8, 16, 32, 64)
_METHODS = frozenset({"GET", "HEAD", "POST"})


@dataclass
class Observed:
    """The outcome of a request."""

    status: int = 499  # of a client that went away before the response


class Metrics:
    """The numbers of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        labels = ("method", "path", "status")
        self._requests = Counter("longmatch_requests", "Requests.", labels, registry=self._registry)
        self._seconds = Histogram(
            "longmatch_request_seconds",
            "Duration of requests, bodies included.",
            ("path",),
            registry=self._registry,
            buckets=_SECONDS,
        )
        self._running = Gauge("longmatch_requests_running", "Requests that have begun.", registry=self._registry)
        self._batches = Histogram(
            "longmatch_encoder_batch_requests",
            "Requests whose documents were encoded together.",
            registry=self._registry,
            buckets=_COUNTS,
        )
        self._encoded = Counter("longmatch_encoded_documents", "Documents encoded.", registry=self._registry)

    @contextmanager
    def request(self, scope: Scope) -> Iterator[Observed]:
        """Count one request; requests to unknown paths are counted under one label."""
        observed, started = Observed(), time.perf_counter()
        self._running.inc()
        try:
            yield observed
        finally:
            self._running.dec()
            path = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._requests.labels(method, path, str(observed.status)).inc()
            self._seconds.labels(path).observe(time.perf_counter() - started)

    def batch(self, n_requests: int, n_documents: int) -> None:
        """Count one batch of the encoder."""
        self._batches.observe(n_requests)
        self._encoded.inc(n_documents)

    def follow(self, name: str, description: str, value: Callable[[], float]) -> None:
        """Show a number that another object holds."""
        Gauge(f"longmatch_{name}", description, registry=self._registry).set_function(value)

    def text(self) -> bytes:
        """All numbers in the format of Prometheus."""
        return generate_latest(self._registry)


AnswerT = TypeVar("AnswerT")

_PLACES: ContextVar[threading.Semaphore | None] = ContextVar("places", default=None)  # of the pool of this thread
BODY_BYTES: ContextVar[int] = ContextVar("body", default=0)  # of the request that is handled
LARGE_BODY = 256 * 2**10  # bytes; half of the threads work on larger ones
_ALL_WORK_BYTES = MOST_WORK_BYTES  # of all requests at one time
_ARENA_MAX, _MMAP_THRESHOLD = -8, -3  # M_ARENA_MAX and M_MMAP_THRESHOLD of malloc.h
_MAPPED_BYTES = 4 * 2**20  # arrays from this size on go back to the system as soon as they are free
_SHORTER = "send shorter documents or fewer candidates, or use the command line"


class RequestWork:
    """The memory of one request, and whether it is still waited for; called at each step (`engine.errors`)."""

    def __init__(self, workers: Workers) -> None:
        self.n_bytes = 0
        self.is_stopped = False
        self._workers = workers

    def __call__(self, n_bytes: int) -> None:
        """Begin a step that takes so much memory.

        Raises:
            Refusal: nobody waits any more, or the memory would be over a limit.
        """
        if self.is_stopped:
            raise Refusal(499, "stopped", "nobody waits for the answer any more", "send the request again")
        if not n_bytes:
            return
        with self._workers.lock:
            if (n := self.n_bytes + n_bytes) > MOST_WORK_BYTES:
                raise too_large("too_much_work", "bytes for pairs of sections", n, MOST_WORK_BYTES, _SHORTER)
            if self._workers.n_bytes + n_bytes > _ALL_WORK_BYTES:
                raise too_busy("other requests take the memory for pairs of sections")
            self.n_bytes += n_bytes
            self._workers.n_bytes += n_bytes

    def end(self) -> None:
        """Give the memory back."""
        with self._workers.lock:
            self._workers.n_bytes -= self.n_bytes


class Workers:
    """A pool of threads with a limit of admitted work."""

    def __init__(self, n_threads: int, n_admitted: int, timeout: float) -> None:
        """Start no thread yet.

        Args:
            n_threads: that work at the same time.
            n_admitted: pieces of work that run or wait for a thread.
            timeout: seconds until a client gets an error instead, and the work ends at its next step.
        """
        self._places = threading.Semaphore(n_threads)  # a thread that waits for the encoder leaves its place
        self._threads = ThreadPoolExecutor(
            max(n_threads, n_admitted), "request", initializer=_PLACES.set, initargs=(self._places,)
        )
        self._n_most = n_admitted
        self._timeout = timeout
        self._large = asyncio.Semaphore(max(1, n_threads // 2))
        self._n_large = 0
        self.n_admitted = 0
        self.n_bytes = 0  # of memory, for the steps of all requests
        self.lock = threading.Lock()

    async def run(self, answer: Callable[[], AnswerT]) -> AnswerT:
        """Do work in a thread; work that has not begun at the end of the time is dropped.

        Raises:
            Refusal: too much is running, or it takes too long.
        """
        is_large = BODY_BYTES.get() > LARGE_BODY
        if self.n_admitted >= self._n_most or (is_large and self._n_large >= max(1, self._n_most // 2)):
            raise too_busy(f"{self.n_admitted} requests are running or waiting, the limit is {self._n_most}")
        work = RequestWork(self)
        self._count(1, is_large=is_large)

        def ended() -> None:
            self._count(-1, is_large=is_large)
            if is_large:
                self._large.release()

        def working() -> AnswerT:
            try:
                with limited(work), self._places:
                    work(0)
                    return answer()
            finally:
                work.end()

        loop, running = asyncio.get_running_loop(), None
        try:
            async with asyncio.timeout(self._timeout):
                if is_large:
                    await self._large.acquire()
                running = self._threads.submit(working)
                running.add_done_callback(lambda _: _in_loop(loop, ended))
                return await asyncio.wrap_future(running)
        except TimeoutError:
            raise too_slow(self._timeout) from None
        finally:
            work.is_stopped = True
            if running is None:
                self._count(-1, is_large=is_large)
            else:
                running.cancel()
            del running  # else its error holds this frame, and both the document until garbage is collected

    def _count(self, change: int, *, is_large: bool) -> None:
        self.n_admitted += change
        self._n_large += change if is_large else 0

    def close(self) -> None:
        """Start no further work."""
        self._threads.shutdown(wait=False, cancel_futures=True)


@contextmanager
def elsewhere() -> Iterator[None]:
    """Leave the place of this thread to another request, while this one waits for its vectors."""
    if (places := _PLACES.get()) is None:
        yield
        return
    places.release()
    try:
        yield
    finally:
        places.acquire()


def _in_loop(loop: asyncio.AbstractEventLoop, action: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop has ended, and with it the count
        loop.call_soon_threadsafe(action)


def few_arenas() -> None:
    """Let threads share the memory that malloc keeps, without large arrays, where that is glibc's."""
    with suppress(OSError, AttributeError):
        malloc = ctypes.CDLL(None)
        malloc.mallopt(_ARENA_MAX, 1)
        malloc.mallopt(_MMAP_THRESHOLD, _MAPPED_BYTES)


def return_memory() -> None:
    """Return memory that is free to the system, where malloc is glibc's."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def too_slow(seconds: float) -> Refusal:
    """For a request that did not end in time."""
    return Refusal(
        504,
        "timeout",
        f"the request took longer than {seconds:g} s",
        "send a shorter document or fewer candidates, or start the server with a larger --timeout",
    )
