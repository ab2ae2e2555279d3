"""`longmatch --log-json COMMAND`: standard error as JSON, one object a line, for programs that collect logs."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TextIO

from engine.text.outside import json_text

OPTION = "--log-json"
_LEVELS = {"Error: ": "error", "Usage: ": "error", "Warning: ": "warning", "WARNING ": "warning"}


class JsonLines(io.TextIOBase):
    """A stream that writes its lines as JSON objects to another stream; not a terminal, so that no bar is drawn."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`."""
        self._stream = stream
        self._begun = ""
        self._lock = threading.Lock()  # progress is written by several threads

    def writable(self) -> bool:
        """True."""
        return True

    def isatty(self) -> bool:
        """False."""
        return False

    def write(self, text: str) -> int:
        """Write every line that is complete after `text`; the rest is kept."""
        with self._lock:
            *lines, self._begun = (self._begun + text).split("\n")
            for line in lines:
                self._write_line(line)
        return len(text)

    def flush(self) -> None:
        """Flush the other stream; an incomplete line is kept."""
        self._stream.flush()

    def end(self) -> None:
        """Write the last line, if it is incomplete."""
        with self._lock:
            line, self._begun = self._begun, ""
            self._write_line(line)

    def _write_line(self, line: str) -> None:
        line = line.rpartition("\r")[2].rstrip()
        if not line:
            return
        level = next((level for mark, level in _LEVELS.items() if line.startswith(mark)), "info")
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._stream.write(json_text({"time": now, "level": level, "message": line}) + "\n")
        self._stream.flush()


@contextmanager
def json_log() -> Iterator[None]:
    """Turn standard error into JSON lines, until the end of the context."""
    plain, sys.stderr = sys.stderr, JsonLines(sys.stderr)
    try:
        yield
    finally:
        sys.stderr.end()
        sys.stderr = plain
