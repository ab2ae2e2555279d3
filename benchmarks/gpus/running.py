"""Runs stages one after another until the time is up; what each adds to the record is written at once."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.gpus.record import GpuRecord
from benchmarks.resuming import keep
from engine.errors import EngineError

Stage = Callable[[GpuRecord], GpuRecord]


class OutOfTime(EngineError):
    """Raised inside a stage when the time is up."""


def run_stages(
    begun: GpuRecord,
    stages: Mapping[str, Stage],
    limit_seconds: float,
    out: Path | None,
    tell: Callable[[str], None] = lambda _: None,
    now: Callable[[], float] = time.perf_counter,
) -> GpuRecord:
    """Run stages in their order.

    A stage that fails, or that time or memory does not suffice for, costs no other; what it
    had measured before it failed is lost, so stages are small.

    Args:
        begun: the record, without measurements.
        stages: by name; each returns the record with what it measured.
        limit_seconds: for all of them together. One that is running then is stopped, if
            Python comes to run meanwhile; those after it are not begun.
        out: folder in which the record is kept after each stage; None keeps nothing.
        tell: hears which stage begins, and why one failed.
        now: seconds.
    """
    record, started = begun, now()
    for name, stage in stages.items():
        left = limit_seconds - (now() - started)
        tell(f"{now() - started:.0f} s: {name}")
        since = now()
        try:
            with _alarm(left):
                record = stage(record)
        except Exception as error:  # noqa: BLE001 - whatever a machine is met with for the first time costs one stage
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            record = replace(record, failed={**record.failed, name: reason})
            tell(f"{name} failed: {reason}")
        record = replace(record, stage_seconds={**record.stage_seconds, name: round(now() - since, 2)})
        if out is not None:
            keep(record, out)
    return record


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    told = "the time of --limit-seconds was up"

    def ring(_number: int, _frame: object) -> None:
        raise OutOfTime(told)

    if seconds <= 0:
        raise OutOfTime(told)
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
