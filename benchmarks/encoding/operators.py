"""Where the time of an encoder goes, by groups of torch's operators."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.datasets import read_documents
from benchmarks.encoding.ways import WARM_UP, Job, batches, first_chunks
from benchmarks.measuring.thread_limits import limited_threads

PRODUCTS, ATTENTION, GELU, NORMS = "linear layers", "attention", "GELU", "LayerNorm"
OTHER, OUTSIDE = "other operators", "outside of operators"
# By what the name of an operator holds; the first that fits. Where attention is no operator of its own, its products
# are those of batches of matrices. GELU that is applied as a product is written counts as that product.
_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (ATTENTION, ("attention", "bmm", "softmax", "exp2")),
    (PRODUCTS, ("addmm", "::mm", "linear", "matmul")),
    (GELU, ("gelu",)),
    (NORMS, ("layer_norm",)),
)


def group_of(operator: str) -> str:
    """The group of an operator by its name, as aten::addmm."""
    return next((group for group, parts in _GROUPS if any(part in operator for part in parts)), OTHER)


def group_seconds(own_seconds: Iterable[tuple[str, float]], wall_seconds: float) -> dict[str, float]:
    """Add up operators by group.

    Args:
        own_seconds: names, and time in each operator itself, without that of operators that it calls.
        wall_seconds: of the whole; what no operator took is Python, and copying between tensors and arrays.

    Returns:
        Seconds by group, all groups there; they sum to `wall_seconds`.
    """
    seconds = dict.fromkeys([group for group, _ in _GROUPS] + [OTHER], 0.0)
    for operator, own in own_seconds:
        seconds[group_of(operator)] += own
    return {**seconds, OUTSIDE: max(0.0, wall_seconds - sum(seconds.values()))}


def profile_encoder(job: Job, n_chunks: int) -> dict[str, Any]:
    """Encode the first documents of a sample under torch's profiler, in a process that does nothing else.

    One thread encodes, for the profiler sees no other; where several read batches side by side, each does the same. The
    profiler costs time itself, most where operators are short: shares are to be read, not seconds.

    Args:
        job: of the run.
        n_chunks: at least so many, or all.

    Returns:
        As `group_seconds`.
    """
    from torch.profiler import ProfilerActivity, profile

    from engine.encoders.loading import load_encoder

    with limited_threads(1, width=job.config.width):
        encoder = load_encoder(job.config.encoder, device="cpu")
        segmented = first_chunks((encoder.segment(document) for document in read_documents(job.dataset)), n_chunks)
        encoder.encode_segmented(first_chunks(iter(segmented), WARM_UP))
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            started = time.perf_counter()
            for batch in batches(segmented):
                encoder.encode_segmented(batch)
            seconds = time.perf_counter() - started
    own = ((event.key, event.self_cpu_time_total / 1e6) for event in profiled.key_averages())
    return group_seconds(own, seconds)


def shares(seconds: Mapping[str, float]) -> dict[str, float]:
    """The same as shares of the whole, in [0, 1]."""
    whole = sum(seconds.values())
    return {group: own / whole for group, own in seconds.items()}
