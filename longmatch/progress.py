"""Decides whether and where a call shows progress: by default in terminals and notebooks, not in pipes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.text.outside import safe

if TYPE_CHECKING:
    from indexer.building.report import Progress


@dataclass(frozen=True, slots=True)
class Listener:
    """Functions that receive the progress and the log lines of a run."""

    progress: Progress | None
    log: Callable[[str], None]


def is_shown(progress: bool | None) -> bool:
    """The choice of the user; by default, whether standard error is a terminal or this is a notebook."""
    return (sys.stderr.isatty() or _is_notebook()) if progress is None else progress


def progress_log(progress: bool | None) -> Callable[[str], None]:
    """A function that prints a line on standard error if progress is shown, and otherwise does nothing."""
    return _print if is_shown(progress) else _ignore


@contextmanager
def listening(progress: bool | Progress | None, n_expected: int | None) -> Iterator[Listener]:
    """Show the progress of a build on standard error, pass it to a function, or show nothing.

    Args:
        progress: True, False, None for the default of `is_shown`, or a function that is called after each commit.
        n_expected: number of documents, if known.
    """
    if callable(progress):
        yield Listener(progress, _ignore)
    elif not is_shown(progress):
        yield Listener(None, _ignore)
    else:
        # Imports the command line, which a quiet run does not need.
        from indexer.cli.progress import BuildProgress

        with BuildProgress(n_expected) as bar:
            yield Listener(bar, bar.log)


def _is_notebook() -> bool:
    """Whether this process is the kernel of a notebook; does not import IPython to find out."""
    shell = sys.modules.get("IPython")
    session = shell.get_ipython() if shell is not None else None
    return getattr(session, "kernel", None) is not None


def _print(line: str) -> None:
    sys.stderr.write(safe(line) + "\n")
    sys.stderr.flush()


def _ignore(_: str) -> None:
    pass
