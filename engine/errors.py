"""Everything that this program raises on purpose; no handling, no printing.

    EngineError
    ├── DocumentError    a document cannot be read, or is over a limit
    ├── EncoderError     weights are missing, changed, or not what was asked
    ├── IndexMismatch    the index was made by another encoder or version
    ├── IndexChanged     a served partition has other documents than the search began with
    ├── PartitionUnavailable  a served partition does not answer, or with something else
    ├── ClusterError     a Ray cluster does not answer, or its processes die again and again
    ├── IndexDamaged     a file of the index is not the one that was written
    ├── IndexBusy        another process is writing the index
    ├── StorageError     the system does not read or write a file
    ├── BudgetExceeded   a stated budget, or what the machine has, cannot be kept
    ├── RecallTooLow     a generation finds too little of the exact answer
    ├── TrainingError    data or settings that nothing can be learned from
    ├── QueryError       a filter, a doc_id or a number that cannot be answered
    └── MissingExtra     an optional package is not installed

A message says what does not fit, both values, and the next step.
"""

from __future__ import annotations


class EngineError(Exception):
    """Base of all errors raised on purpose; the command line shows it as one line."""


class DocumentError(EngineError):
    """Raised by a reader or by segmentation; a bulk job records it and goes on."""


class EncoderError(EngineError):
    """Raised while loading an encoder or its backbone."""


class IndexMismatch(EngineError):
    """Raised when an index and what is asked of it do not belong together."""


class IndexChanged(EngineError):
    """Raised when a served partition was written between two rounds of a search; a search begins again once."""


class PartitionUnavailable(EngineError):
    """Raised when a served partition gives no answer that can be used before the deadline of a round."""


class ClusterError(EngineError):
    """Raised when Ray does not start or answer, or when its processes die more often than work is tried again."""


class IndexDamaged(EngineError):
    """Raised before a file is parsed whose size or checksum is not the recorded one."""


class IndexBusy(EngineError):
    """Raised when the writer lock of an index is held by another process."""


class StorageError(EngineError):
    """Raised when the system refuses a file: no permission, a failing disk, too many open files."""


class BudgetExceeded(EngineError):
    """Raised when memory, disk or GPU cannot hold what was asked: before work starts where that can be told."""


class RecallTooLow(EngineError):
    """Raised when no setting of a generation reaches the recall floor; the old generation stays."""


class QueryError(EngineError):
    """Raised at the door of a search."""


class TrainingError(EngineError):
    """Raised when training data do not fit together, or a run cannot go on."""


class MissingExtra(EngineError):
    """Raised when a feature is asked for whose package is not installed."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(f"{feature} needs {package}; install it: pip install 'longmatch[{extra}]'")
