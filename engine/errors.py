"""Everything that this program raises on purpose; no handling, no printing.

    EngineError
    ├── DocumentError    a document cannot be read, or is over a limit
    ├── EncoderError     parameters are missing, changed, or not those requested
    ├── IndexMismatch    the index was made by another encoder or version
    ├── ClusterError     a Ray cluster does not answer, or its processes die repeatedly
    ├── IndexDamaged     a file of the index is not the one that was written
    ├── IndexBusy        another process is writing the index
    ├── StorageError     the operating system does not read or write a file
    ├── BudgetExceeded   a stated budget, or the capacity of the machine, is too small
    ├── RecallTooLow     a generation finds too few of the exact results
    ├── TrainingError    data or settings that nothing can be learned from
    ├── QueryError       a filter, a doc_id or a number that cannot be used
    └── MissingExtra     an optional package is not installed

A message states what does not fit, both values, and the next step.
"""

from __future__ import annotations

import re
import shlex
from importlib.metadata import PackageNotFoundError, requires


class EngineError(Exception):
    """Base of all errors raised on purpose; the command line shows it as one line."""


class DocumentError(EngineError):
    """Raised by a reader or by segmentation; a bulk job records it and goes on."""


class EncoderError(EngineError):
    """Raised while loading an encoder or its backbone."""


class IndexMismatch(EngineError):
    """Raised when there is no index at a place, or it does not fit the request, the encoder or this version."""


class ClusterError(EngineError):
    """Raised when Ray does not start or answer, or when its processes die more often than work is retried."""


class IndexDamaged(EngineError):
    """Raised when a file is missing, unreadable, or has another size or checksum than the recorded one."""


class IndexBusy(EngineError):
    """Raised when the writer lock of an index is held by another process."""


class StorageError(EngineError):
    """Raised when the operating system refuses a file: no permission, a failing disk, too many open files."""


class BudgetExceeded(EngineError):
    """Raised when memory, disk or GPU cannot hold the requested work; raised before it starts where possible."""


class RecallTooLow(EngineError):
    """Raised when no setting of a generation reaches the recall floor; the old generation stays."""


class QueryError(EngineError):
    """Raised when an argument of a search, or of a method of its results, cannot be used."""


class TrainingError(EngineError):
    """Raised when training data do not fit together, or a run cannot go on."""


class MissingExtra(EngineError):
    """Raised when a feature is requested whose package is not installed."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(f"{feature} needs {package}; install it: {install_command(extra, package)}")


def install_command(extra: str, package: str) -> str:
    """The pip command that installs what an extra of longmatch names, or `package` where the extra is not known.

    It names packages of the registry, since longmatch is installed from a clone.
    """
    try:
        required = requires("longmatch") or []
    except PackageNotFoundError:
        required = []
    parts = (line.partition(";") for line in required)
    names = [name.strip() for name, _, marker in parts if re.search(rf"extra == ['\"]{extra}['\"]", marker)]
    return f"pip install {' '.join(map(shlex.quote, names or [package.lower()]))}"
