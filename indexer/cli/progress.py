"""Progress on standard error: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import TYPE_CHECKING, Self, TextIO

from engine.text.outside import safe

if TYPE_CHECKING:
    from indexer.building.report import Activity, BuildReport
    from indexer.plan import Way
    from indexer.training import Step

_SECONDS_BETWEEN_LINES = 5.0
_SECONDS_BETWEEN_TICKS = 0.25  # interval at which a bar is drawn


class _Bar:
    """A bar on a terminal, with a count before it and a note after it; it draws itself a few times a second."""

    def __init__(self, stream: TextIO) -> None:
        # Rich is imported for terminals alone.
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        whole, rest = Column(no_wrap=True), Column(no_wrap=True, overflow="ellipsis", ratio=1)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False, table_column=whole),
            BarColumn(bar_width=10),
            TextColumn("{task.fields[note]}", style="dim", markup=False, table_column=rest),
            console=Console(file=stream),
            expand=True,
            refresh_per_second=1 / _SECONDS_BETWEEN_TICKS,
            transient=True,
            redirect_stdout=False,
        )
        self._task = self._progress.add_task("", total=None, note="")
        self._progress.start()

    def show(self, count: str, share: float | None, note: str) -> None:
        """Show a count before the bar, the share that is done (None if it is not known), and a note after it."""
        total = None if share is None else 1.0
        self._progress.update(self._task, description=count, total=total, completed=share or 0.0, note=note)

    def write(self, text: str) -> None:
        """Print lines above the bar."""
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def refresh(self) -> None:
        """Draw the bar now."""
        self._progress.refresh()

    def close(self) -> None:
        """Remove the bar."""
        self._progress.stop()


class _Ticker(Thread):
    """Calls a function a few times a second, until `end` is called."""

    def __init__(self, tick: Callable[[], None]) -> None:
        super().__init__(name="longmatch-progress", daemon=True)
        self._tick = tick
        self._has_ended = Event()

    def run(self) -> None:
        while not self._has_ended.wait(_SECONDS_BETWEEN_TICKS):
            self._tick()

    def end(self) -> None:
        """Stop, and return when no call is running any more."""
        self._has_ended.set()
        self.join()


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

    def __init__(self, n_files: int | None = None, stream: TextIO | None = None, *, way: Way | None = None) -> None:
        """Show a run over `n_files` files; with its planned cost the time left comes from the tokens left."""
        super().__init__(stream)
        self._n_files = n_files
        self._way = way
        self._activity: Activity | None = None
        self._ticker: _Ticker | None = None
        if self._is_terminal:
            self._bar = _Bar(self._stream)
            self._bar.show("reading", None, "")

    def __exit__(self, *_: object) -> None:
        if self._ticker is not None:
            self._ticker.end()
        super().__exit__()

    def begin(self, activity: Activity) -> None:
        """Follow the activity of the run between commits; see `indexer.building.report.LiveProgress`."""
        self._activity = activity
        if self._bar is not None and self._ticker is None:
            self._ticker = _Ticker(self._draw)
            self._ticker.start()

    def __call__(self, report: BuildReport) -> None:
        """Show the report of a commit."""
        if self._bar is not None:
            self._draw(report)
        elif self._is_due():
            self.log(self._line(report))

    def _draw(self, report: BuildReport | None = None) -> None:
        """Show the state of the run on the bar: the report of the activity, or without one the given report."""
        activity = self._activity
        report = activity.report if activity is not None else report
        if self._bar is None or report is None:
            return
        n_part = 0.0 if activity is None else activity.n_being_encoded
        if activity is not None and activity.n_to_encode:
            n_done, n_all = report.n_encoded + n_part, activity.n_to_encode
            self._bar.show(f"{int(n_done):,} of {n_all:,} encoded", n_done / n_all, self._note(report))
            return
        n_done = report.n_seen + n_part
        is_known = self._n_files is not None and report.n_seen <= self._n_files
        count = f"{int(n_done):,} of {self._n_files:,} documents" if is_known else f"{int(n_done):,} documents"
        if activity is not None and activity.n_read > n_done:
            count += f", {activity.n_read:,} read"
        share = min(1.0, n_done / max(1, self._n_files)) if is_known and self._n_files is not None else None
        self._bar.show(count, share, self._note(report))

    def _note(self, report: BuildReport) -> str:
        """Speed, and with a plan the time left: tokens predict it better than documents of different lengths."""
        if not report.n_tokens:
            return ""
        rate = f"{report.n_tokens / max(report.seconds, 1e-9):,.0f} tokens/s"
        return ", ".join([rate, *(self._time_left(report) if self._way else []), *_reused(report)])

    def _line(self, report: BuildReport) -> str:
        rate = report.n_tokens / max(report.seconds, 1e-9)
        parts = [f"{report.n_seen:,} documents"]
        if report.n_encoded > report.n_added + report.n_replaced:
            parts = [f"{report.n_encoded:,} documents encoded"]
        elif self._n_files is not None and report.n_seen <= self._n_files:
            parts[0] += f" of {self._n_files:,}"
        parts += [*self._time_left(report), f"{report.n_tokens:,} tokens", f"{rate:,.0f} tokens/s"]
        return ", ".join([*parts, *_reused(report)])

    def _time_left(self, report: BuildReport) -> list[str]:
        """The time left at the speed of this run: by tokens if they were planned, otherwise by documents."""
        if self._way is not None:
            left = max(0, self._way.n_tokens - report.n_tokens) / max(1, self._way.n_tokens)
            pace = report.seconds * self._way.n_tokens / report.n_tokens if report.n_tokens else self._way.seconds
            seconds = left * pace
        elif self._n_files is not None and report.n_seen <= self._n_files:
            seconds = report.seconds / max(report.n_seen, 1) * (self._n_files - report.n_seen)
        else:
            return []
        return [f"about {seconds:,.0f} s left"]


def _reused(report: BuildReport) -> list[str]:
    return [f"{report.n_chunks_reused:,} chunks reused"] if report.n_chunks_reused else []


class TrainingProgress(_Progress):
    """Shows the steps of a run: loss, tokens per second, the last nDCG@10 on valid, time left."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Show the progress of a run on a stream, standard error by default."""
        super().__init__(stream)
        self._first: int | None = None  # first step of this process, which may continue a run
        self._began = 0.0

    def __call__(self, step: Step) -> None:
        """Show a step."""
        if self._first is None:
            self._first, self._began = step.number, time.monotonic()
            if self._is_terminal:
                self._bar = _Bar(self._stream)
        if self._bar is not None:
            count = f"{step.number:,}/{step.of:,}"
            self._bar.show(count, step.number / step.of, ", ".join([*_figures(step), *self._time_left(step)]))
        elif self._is_due():
            count = f"step {step.number:,} of {step.of:,}"
            self.log(", ".join([count, *_figures(step), *self._time_left(step)]))

    def _time_left(self, step: Step) -> list[str]:
        made = step.number - (self._first or 0)
        if not made:
            return []
        seconds = (time.monotonic() - self._began) / made * (step.of - step.number)
        return [f"about {seconds / 60:,.0f} min left" if seconds >= 90 else f"about {seconds:,.0f} s left"]


def _figures(step: Step) -> list[str]:
    valid = [] if step.valid is None else [f"valid {step.valid:.4f}"]
    return [f"loss {step.loss:.4f}", f"{step.tokens_per_second:,.0f} tokens/s", *valid]
