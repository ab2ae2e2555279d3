"""Progress of a build on standard error: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import NoReturn, TextIO

import tqdm

from indexer.pipeline import BuildReport

_SECONDS_BETWEEN_LINES = 5.0


class BuildProgress:
    """Hears of commits and tells of them: documents that are on disk, rate, time left."""

    def __init__(self, n_files: int | None = None, stream: TextIO | None = None) -> None:
        """Tell of a run.

        Args:
            n_files: files of the corpus, where known; documents may be more.
            stream: standard error by default.
        """
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._n_files = n_files
        self._last = time.monotonic()
        self._bar: tqdm.tqdm[NoReturn] | None = None
        if self._is_terminal:
            self._bar = tqdm.tqdm(total=n_files, unit="doc", file=self._stream, dynamic_ncols=True, leave=False)

    def __enter__(self) -> BuildProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, report: BuildReport) -> None:
        """Take note of a commit."""
        if self._bar is not None:
            if self._n_files is not None and report.n_seen > self._n_files:
                self._bar.total = None
            self._bar.set_postfix_str(f"{report.n_tokens / max(report.seconds, 1e-9):,.0f} tokens/s")
            self._bar.update(report.n_seen - self._bar.n)
        elif time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            self.tell(self._line(report))

    def _line(self, report: BuildReport) -> str:
        rate = report.n_tokens / max(report.seconds, 1e-9)
        told = f"{report.n_seen:,} documents"
        if self._n_files is not None and report.n_seen <= self._n_files:
            left = report.seconds / max(report.n_seen, 1) * (self._n_files - report.n_seen)
            told += f" of {self._n_files:,}, about {left:,.0f} s left"
        return f"{told}, {report.n_tokens:,} tokens, {rate:,.0f} tokens/s"

    def tell(self, line: str) -> None:
        """Print one line without disturbing the bar."""
        if self._bar is not None:
            self._bar.write(line, file=self._stream)
        else:
            self._stream.write(line + "\n")
            self._stream.flush()
