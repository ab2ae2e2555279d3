"""Numbers for Prometheus: requests, times, batches of the encoder, the index, the process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from starlette.types import Scope

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
