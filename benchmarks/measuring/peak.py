"""Memory of this process as Linux counts it: now, the peak, and the peak of its parts.

Private writable memory (heap, arrays, stacks, data of libraries) is what RLIMIT_DATA
can cap for an unprivileged process. Pages of mapped files are dropped when memory is
short, so that they are counted apart (RssFile); the peak of both together is VmHWM.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_FORGET_PEAK = "5"  # see proc_pid_clear_refs(5)
_SAMPLE_SECONDS = 0.01


@dataclass(frozen=True)
class Memory:
    """MiB of a process; the parts were sampled every 10 ms, the whole is the kernel's own peak."""

    start: float  # resident before the work: interpreter and libraries
    peak: float  # resident, pages of mapped files among it
    peak_anonymous: float  # resident, without pages of files: what a budget must hold
    peak_file: float  # resident pages of files, libraries among them


def rss_mib() -> float:
    """Resident memory now."""
    return _status_mib()["VmRSS"]


def peak_rss_mib() -> float:
    """The most there was since the process began, or since `forget_peak`."""
    return _status_mib()["VmHWM"]


def forget_peak() -> None:
    """Let the peak begin again from what is resident now."""
    _CLEAR.write_text(_FORGET_PEAK)


class MemorySampler:
    """Samples the parts of this process's memory in a thread, until it is left."""

    def __init__(self) -> None:
        """Note what is resident now."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)
        self._anonymous = self._file = 0.0
        self._start = rss_mib()

    def __enter__(self) -> MemorySampler:
        """Start."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._stopped.set()
        self._thread.join()

    @property
    def memory(self) -> Memory:
        """The most there was, rounded to tenths of a MiB."""
        self._sample()
        values = (self._start, peak_rss_mib(), self._anonymous, self._file)
        return Memory(*(round(value, 1) for value in values))

    def _watch(self) -> None:
        while not self._stopped.wait(_SAMPLE_SECONDS):
            self._sample()

    def _sample(self) -> None:
        now = _status_mib()
        self._anonymous, self._file = max(self._anonymous, now["RssAnon"]), max(self._file, now["RssFile"])


def _status_mib() -> dict[str, float]:
    lines = (line.split() for line in _STATUS.read_text().splitlines() if line.endswith(" kB"))
    return {name.rstrip(":"): int(size) / 1024 for name, size, _ in lines}
