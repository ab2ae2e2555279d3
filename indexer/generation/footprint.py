"""Memory of this process, now and at its peak, without memory-mapped index files. Measures only; decides nothing."""

from __future__ import annotations

import resource
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

_STATUS = Path("/proc/self/status")
_SECONDS_BETWEEN_LOOKS = 0.05


class Footprint:
    """The memory of this process.

    Own memory is what it allocated, and the program itself as far as it was loaded when
    this object was made. Files mapped later, the shards of an index, are not in it: the
    system takes their pages back when memory is short.
    """

    def __init__(self) -> None:
        """Count the files that are mapped now as the program."""
        self._program = _resident()[1]

    def own_bytes(self) -> int:
        """Own memory now."""
        return _resident()[0] + self._program


class Watch:
    """Records the peak of own memory between entering and leaving."""

    def __init__(self, footprint: Footprint) -> None:
        """Watch a footprint; a context manager."""
        self._footprint = footprint
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._look, name="longmatch-memory", daemon=True)
        self.peak_bytes = footprint.own_bytes()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        self._thread.join()
        self._note()

    def _look(self) -> None:
        while not self._left.wait(_SECONDS_BETWEEN_LOOKS):
            self._note()

    def _note(self) -> None:
        self.peak_bytes = max(self.peak_bytes, self._footprint.own_bytes())


def _resident() -> tuple[int, int]:
    """Bytes allocated, and bytes of mapped files; without Linux's /proc the peak of resident memory, and 0."""
    if not _STATUS.exists():
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, 0
    status = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
    allocated, shared, mapped = (int(status[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem", "RssFile"))
    return allocated + shared, mapped


def folder_bytes(folder: Path) -> int:
    """Size of all files below a folder; 0 where there is none."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
