"""Progress on standard error: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self, TextIO

import tqdm

if TYPE_CHECKING:
    from indexer.build_report import BuildReport
    from indexer.plan import Plan
    from indexer.training import Step

_SECONDS_BETWEEN_LINES = 5.0


class _Progress:
    """A bar that is opened when there is something to show, or a line every few seconds."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Write to a stream, standard error by default."""
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._last = time.monotonic()
        self._bar: tqdm.tqdm[NoReturn] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def _open_bar(self, total: int | None, unit: str, initial: int = 0) -> tqdm.tqdm[NoReturn]:
        return tqdm.tqdm(total=total, initial=initial, unit=unit, file=self._stream, dynamic_ncols=True, leave=False)

    def _is_due(self) -> bool:
        """Whether the last line is some seconds old."""
        if time.monotonic() - self._last < _SECONDS_BETWEEN_LINES:
            return False
        self._last = time.monotonic()
        return True

    def tell(self, line: str) -> None:
        """Print one line without disturbing the bar."""
        if self._bar is not None:
            self._bar.write(line, file=self._stream)
        else:
            self._stream.write(line + "\n")
            self._stream.flush()


class BuildProgress(_Progress):
    """Hears of commits and tells of them: documents that are on disk, rate, time left."""

    def __init__(self, n_files: int | None = None, stream: TextIO | None = None, *, plan: Plan | None = None) -> None:
        """Tell of a run.

        Args:
            n_files: files of the corpus, where known; documents may be more.
            stream: standard error by default.
            plan: of the run, where one was made: time is then told by tokens that are left.
        """
        super().__init__(stream)
        self._n_files = n_files
        self._plan = plan
        if self._is_terminal:
            self._bar = self._open_bar(n_files, "doc")

    def __call__(self, report: BuildReport) -> None:
        """Take note of a commit."""
        if self._bar is not None:
            if self._n_files is not None and report.n_seen > self._n_files:
                self._bar.total = None
            rate = f"{report.n_tokens / max(report.seconds, 1e-9):,.0f} tokens/s"
            # The bar counts documents, whose lengths differ; tokens tell the time better.
            self._bar.set_postfix_str(", ".join([rate, *(self._time_left(report) if self._plan else [])]))
            self._bar.update(report.n_seen - self._bar.n)
        elif self._is_due():
            self.tell(self._line(report))

    def _line(self, report: BuildReport) -> str:
        rate = report.n_tokens / max(report.seconds, 1e-9)
        told = [f"{report.n_seen:,} documents"]
        if report.n_encoded > report.n_added + report.n_replaced:
            told = [f"{report.n_encoded:,} documents encoded"]
        elif self._n_files is not None and report.n_seen <= self._n_files:
            told[0] += f" of {self._n_files:,}"
        told += [*self._time_left(report), f"{report.n_tokens:,} tokens", f"{rate:,.0f} tokens/s"]
        return ", ".join(told)

    def _time_left(self, report: BuildReport) -> list[str]:
        """By the speed of this run: of tokens where they were planned, else of documents."""
        if self._plan is not None:
            left = max(0, self._plan.n_tokens - report.n_tokens) / max(1, self._plan.n_tokens)
            planned = self._plan.seconds.total - self._plan.seconds.generation
            pace = report.seconds * self._plan.n_tokens / report.n_tokens if report.n_tokens else planned
            seconds = left * pace + self._plan.seconds.generation
        elif self._n_files is not None and report.n_seen <= self._n_files:
            seconds = report.seconds / max(report.n_seen, 1) * (self._n_files - report.n_seen)
        else:
            return []
        return [f"about {seconds:,.0f} s left"]


class TrainingProgress(_Progress):
    """Hears of the steps of a run and tells of them: loss, rate, the last figure on valid, time left."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Tell of a run."""
        super().__init__(stream)
        self._first: int | None = None  # step that this process made first, as it may have taken up a run
        self._began = 0.0

    def __call__(self, step: Step) -> None:
        """Take note of a step."""
        if self._first is None:
            self._first, self._began = step.number, time.monotonic()
            if self._is_terminal:
                self._bar = self._open_bar(step.of, "step", step.number - 1)
        if self._bar is not None:
            self._bar.set_postfix_str(", ".join(_figures(step)), refresh=False)
            self._bar.update(step.number - self._bar.n)
        elif self._is_due():
            self.tell(", ".join([f"step {step.number:,} of {step.of:,}", *_figures(step), *self._time_left(step)]))

    def _time_left(self, step: Step) -> list[str]:
        made = step.number - (self._first or 0)
        if not made:
            return []
        seconds = (time.monotonic() - self._began) / made * (step.of - step.number)
        return [f"about {seconds / 60:,.0f} min left" if seconds >= 90 else f"about {seconds:,.0f} s left"]


def _figures(step: Step) -> list[str]:
    valid = [] if step.valid is None else [f"valid {step.valid:.4f}"]
    return [f"loss {step.loss:.4f}", f"{step.tokens_per_second:,.0f} tokens/s", *valid]
