"""What the commands print: safe lines, in colours on a terminal; with `--log-json`, JSON on standard error."""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TextIO, TypeAlias

import click

from engine.report.lines import Line, Style, plain
from engine.text.outside import json_text, safe

LOG_OPTION = "--log-json"
_LEVELS = {"Error: ": "error", "Usage: ": "error", "Warning: ": "warning", "WARNING ": "warning"}
PIPE_WIDTH = 80  # columns of a table that goes to a file or a program
_LEAST_WIDTH, _MOST_WIDTH = 60, 120
_STYLES = {  # of rich
    Style.TITLE: "bold",
    Style.NUMBER: "cyan",
    Style.MATCH: "bold yellow",
    Style.FAINT: "dim",
    Style.DELETED: "red strike",
    Style.INSERTED: "green underline",
    Style.SHADE_0: "grey30",
    Style.SHADE_1: "blue",
    Style.SHADE_2: "cyan",
    Style.SHADE_3: "yellow",
    Style.SHADE_4: "bold red",
}

Draw: TypeAlias = Callable[[int, bool], Sequence[Line]]


def has_styles() -> bool:
    """Whether standard output shows bold and colours: a terminal that is not dumb, and no NO_COLOR."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return False
    return os.environ.get("TERM", "dumb").lower() not in ("dumb", "unknown")


def width() -> int:
    """Columns for tables: those of the terminal within limits, `PIPE_WIDTH` elsewhere."""
    if not sys.stdout.isatty():
        return PIPE_WIDTH
    return max(_LEAST_WIDTH, min(shutil.get_terminal_size().columns, _MOST_WIDTH))


def counted(n: int, noun: str) -> str:
    """A number with its noun: 1 document, 1,234 documents."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def echo(line: str) -> None:
    """Print one line, made `safe`: a name with a line break does not begin another one."""
    click.echo(safe(line))


def log(line: str) -> None:
    """Print one safe line on standard error."""
    click.echo(safe(line), err=True)


def echo_text(text: str, *, nl: bool = True) -> None:
    """Print a text of several lines; made `safe` on a terminal, exact in a file or a pipe."""
    click.echo(safe(text, lines=True) if sys.stdout.isatty() else text, nl=nl)


def show(lines: Sequence[Line]) -> None:
    """Print lines on standard output."""
    has_any = any(run.style for line in lines for run in line)
    if not has_any or not has_styles():
        echo_text(plain(lines))
        return
    # Rich is imported for terminals alone.
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False)
    for one in lines:
        runs = [(run.text, _STYLES.get(run.style, "")) for run in one]
        console.print(Text.assemble(*runs, no_wrap=True, overflow="ignore"), soft_wrap=True)


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
