"""Whether a call shows what it does: in terminals and notebooks, not in pipes; and where it shows it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from indexer.building.report import Progress


@dataclass(frozen=True, slots=True)
class Listener:
    """What hears of a run."""

    progress: Progress | None
    log: Callable[[str], None]


def is_shown(progress: bool | None) -> bool:
    """What a user asked for; by default whether somebody reads standard error: a terminal, or a notebook."""
    return (sys.stderr.isatty() or _is_notebook()) if progress is None else progress


def progress_log(progress: bool | None) -> Callable[[str], None]:
    """What prints a line on standard error where progress is shown, and nothing elsewhere."""
    return _print if is_shown(progress) else _ignore


@contextmanager
def listening(progress: bool | Progress | None, n_expected: int | None) -> Iterator[Listener]:
    """Show the progress of a build on standard error, hand it to a function, or keep quiet.

    Args:
        progress: True, False, None for `is_shown`, or what is called after each commit.
        n_expected: documents, where that is known.
    """
    if callable(progress):
        yield Listener(progress, _ignore)
    elif not is_shown(progress):
        yield Listener(None, _ignore)
    else:
        # Loads the command line, which a quiet run does without.
        from indexer.cli.progress import BuildProgress

        with BuildProgress(n_expected) as bar:
            yield Listener(bar, bar.log)


def _is_notebook() -> bool:
    """Whether this is the kernel of a notebook; IPython is not loaded to find out."""
    shell = sys.modules.get("IPython")
    session = shell.get_ipython() if shell is not None else None
    return getattr(session, "kernel", None) is not None


def _print(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _ignore(_: str) -> None:
    pass
