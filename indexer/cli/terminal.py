"""What the commands print: safe lines, in colours on a terminal, progress on standard error, JSON with `--log-json`."""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self, TextIO, TypeAlias

import click

from engine.errors import faults_named
from engine.report.lines import Line, Style, plain
from engine.text.cleaning import json_text, safe

if TYPE_CHECKING:
    from rich.table import Table

    from engine.training.trainer import Step
    from indexer.building.report import Activity, BuildReport

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
}


class Interrupted(click.ClickException):
    """The error after Ctrl-C, with a shell's exit status for SIGINT.

    Args:
        state: what is kept, and how to continue.
    """

    exit_code = 130

    def __init__(self, state: str) -> None:
        super().__init__(f"interrupted; {state}")


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


def echo(line: str) -> None:
    """Print one line, made `safe`: a name with a line break does not begin another one."""
    with faults_named("standard output"):
        click.echo(safe(line))


def log(line: str) -> None:
    """Print one safe line on standard error."""
    click.echo(safe(line), err=True)


_PATIENCE_SECONDS = 1.0


@contextmanager
def waiting(note: str) -> Iterator[None]:
    """Show a note on a terminal while the work of the context takes more than a second; nothing elsewhere."""
    stream = sys.stderr
    if not stream.isatty():
        yield
        return
    timer = threading.Timer(_PATIENCE_SECONDS, lambda: click.echo(f"{note} …\r", stream, nl=False))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        click.echo(f"{' ' * len(f'{note} …')}\r", stream, nl=False)


def echo_text(text: str, *, nl: bool = True) -> None:
    """Print a text of several lines; made `safe` on a terminal, exact in a file or a pipe."""
    with faults_named("standard output"):
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
    for shown in lines:
        runs = [(run.text, _STYLES.get(run.style, "")) for run in shown]
        console.print(Text.assemble(*runs, no_wrap=True, overflow="ignore"), soft_wrap=True)


class JsonLines(io.TextIOBase):
    """A stream that writes its lines as JSON objects to another stream; not a terminal, so that no bar is drawn."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = ""
        self._lock = threading.Lock()  # progress is written by several threads

    def writable(self) -> bool:
        """True."""
        return True

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


_SECONDS_BETWEEN_LINES = 5.0
_DRAWN_PER_SECOND = 4
_State: TypeAlias = tuple[str, float | None, str]  # the count before a bar, its share if that is known, the note after


class _Bar:
    """A bar on a terminal; it draws the state that a function returns a few times a second."""

    def __init__(self, stream: TextIO, state: Callable[[], _State]) -> None:
        # Rich is imported for terminals alone.
        from rich.console import Console
        from rich.live import Live

        self._state = state
        self.console = Console(file=stream)
        self._live = Live(
            console=self.console,
            get_renderable=self._row,
            refresh_per_second=_DRAWN_PER_SECOND,
            transient=True,
            redirect_stdout=False,
        )
        self.refresh, self.close = self._live.refresh, self._live.stop
        self._live.start()

    def _row(self) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        count, share, note = self._state()
        row = Table.grid(padding=(0, 1), expand=True)
        row.add_column(no_wrap=True)
        row.add_column()
        row.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        bar = ProgressBar(total=None if share is None else 1.0, completed=share or 0.0, width=10)
        row.add_row(Text(count), bar, Text(note, style="dim"))
        return row

    def write(self, text: str) -> None:
        """Print lines above the bar."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


class _Progress:
    """A bar on a terminal, or a line every few seconds."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Write to a stream, standard error by default."""
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._last = time.monotonic()
        self._bar: _Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def _is_due(self) -> bool:
        """Whether the last line is some seconds old."""
        if time.monotonic() - self._last < _SECONDS_BETWEEN_LINES:
            return False
        self._last = time.monotonic()
        return True

    def log(self, line: str) -> None:
        """Print one safe line without disturbing the bar."""
        line = safe(line)
        if self._bar is not None:
            self._bar.write(line)
        else:
            self._stream.write(line + "\n")
            self._stream.flush()


class BuildProgress(_Progress):
    """Shows the progress of a run: documents, tokens per second, time left; a bar also moves between commits."""

    def __init__(self, n_files: int | None = None, stream: TextIO | None = None) -> None:
        """Show a run over `n_files` files."""
        super().__init__(stream)
        self._n_files = n_files
        self._activity: Activity | None = None
        self._report: BuildReport | None = None
        if self._is_terminal:
            self._bar = _Bar(self._stream, self._state)

    def begin(self, activity: Activity) -> None:
        """Follow the activity of the run between commits; see `indexer.building.report.Progress`."""
        self._activity = activity

    def __call__(self, report: BuildReport) -> None:
        """Show the report of a commit."""
        self._report = report
        if self._bar is None and self._is_due():
            self.log(self._line(report))

    def _state(self) -> _State:
        """What the bar shows: the report of the activity, or without one that of the last commit."""
        activity = self._activity
        report = self._report if activity is None else activity.report
        if report is None:
            return "reading", None, ""
        n_part = 0.0 if activity is None else activity.n_being_encoded
        if activity is not None and activity.n_to_encode:
            n_done, n_all = report.n_encoded + n_part, activity.n_to_encode
            return f"{int(n_done):,} of {n_all:,} encoded", n_done / n_all, self._note(report)
        n_done = report.n_seen + n_part
        is_known = self._n_files is not None and report.n_seen <= self._n_files
        count = f"{int(n_done):,} of {self._n_files:,} documents" if is_known else f"{int(n_done):,} documents"
        if activity is not None and activity.n_read > n_done:
            count += f", {activity.n_read:,} read"
        share = min(1.0, n_done / max(1, self._n_files)) if is_known and self._n_files is not None else None
        return count, share, self._note(report)

    def _note(self, report: BuildReport) -> str:
        """Speed."""
        return f"{report.n_tokens / max(report.seconds, 1e-9):,.0f} tokens/s" if report.n_tokens else ""

    def _line(self, report: BuildReport) -> str:
        """The documents, of all where their number is known, with the time left at the speed of this run."""
        n_done, n_all, noun = report.n_seen, self._n_files, "documents"
        if self._activity is not None and self._activity.n_to_encode:
            n_done, n_all, noun = report.n_encoded, self._activity.n_to_encode, "documents encoded"
        parts = [f"{n_done:,} {noun}"]
        if n_all is not None and n_done <= n_all:
            seconds = report.seconds / max(n_done, 1) * (n_all - n_done)
            parts = [f"{parts[0]} of {n_all:,}", f"about {seconds:,.0f} s left"]
        speed = [f"{report.n_tokens:,} tokens", self._note(report)] if report.n_tokens else []
        return ", ".join([*parts, *speed])


class PairsProgress(_Progress):
    """Shows the documents of a pass over pairs as lines."""

    def __init__(self) -> None:
        super().__init__()
        self._began = time.monotonic()

    def __call__(self, what: str, n_done: int, n_documents: int) -> None:
        """Show the progress of a pass."""
        if self._is_due():
            self.log(f"{n_done:,} of {n_documents:,} documents {what}, {time.monotonic() - self._began:.0f} s")


class TrainingProgress(_Progress):
    """Shows the steps of a run: loss, tokens per second, the last nDCG@10 on valid, time left."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Show the progress of a run on a stream, standard error by default."""
        super().__init__(stream)
        self._first: int | None = None  # first step of this process, which may continue a run
        self._began = 0.0

    def __call__(self, step: Step) -> None:
        """Show a step."""
        self._step = step
        if self._first is None:
            self._first, self._began = step.number, time.monotonic()
            if self._is_terminal:
                self._bar = _Bar(self._stream, self._state)
        if self._bar is None and self._is_due():
            count = f"step {step.number:,} of {step.of:,}"
            self.log(", ".join([count, *_figures(step), *self._time_left(step)]))

    def _state(self) -> _State:
        step = self._step
        note = ", ".join([*_figures(step), *self._time_left(step)])
        return f"{step.number:,}/{step.of:,}", step.number / step.of, note

    def _time_left(self, step: Step) -> list[str]:
        made = step.number - (self._first or 0)
        if not made:
            return []
        seconds = (time.monotonic() - self._began) / made * (step.of - step.number)
        return [f"about {seconds / 60:,.0f} min left" if seconds >= 90 else f"about {seconds:,.0f} s left"]


def _figures(step: Step) -> list[str]:
    valid = [] if step.valid is None else [f"valid {step.valid:.4f}"]
    return [f"loss {step.loss:.4f}", f"{step.tokens_per_second:,.0f} tokens/s", *valid]
