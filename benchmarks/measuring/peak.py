"""Memory of this process as Linux counts it: now, and the most there was."""

from __future__ import annotations

from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_FORGET_PEAK = "5"  # see proc_pid_clear_refs(5)


def rss_mib() -> float:
    """Resident memory now."""
    return _status_mib("VmRSS")


def peak_rss_mib() -> float:
    """The most there was since the process began, or since `forget_peak`."""
    return _status_mib("VmHWM")


def forget_peak() -> None:
    """Let the peak begin anew from what is resident now."""
    _CLEAR.write_text(_FORGET_PEAK)


def _status_mib(field: str) -> float:
    fields = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
    return int(fields[field].split()[0]) / 1024
