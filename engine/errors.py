"""Everything that this program raises on purpose, and errors of the system and of libraries turned into it.

    EngineError
    ├── DocumentError    a document cannot be read, or is over a limit
    ├── EncoderError     parameters are missing, changed, or not those requested
    ├── IndexMismatch    the index was made by another encoder or version
    ├── ClusterError     a Ray cluster does not answer, or its processes die repeatedly
    ├── IndexDamaged     a file of the index is not the one that was written
    ├── IndexBusy        another process is writing the index
    ├── StorageError     the operating system does not read or write a file
    ├── BudgetExceeded   the capacity of the machine is too small
    ├── RecallTooLow     a generation finds too few of the exact results
    ├── TrainingError    data or settings that nothing can be learned from
    ├── QueryError       a filter, a doc_id or a number that cannot be used
    └── MissingExtra     an optional package is not installed

A message states what does not fit, both values, and the next step.

Public functions and classes are decorated with `named_faults`, so that errors of the system, SQLite and safetensors
reach callers as `EngineError`. Safetensors is recognised by name, so that no command imports it without using it.

`step` divides the work for one request, so that a server can end it: at a deadline, or before it takes too much memory.
"""

import errno
import functools
import inspect
import re
import shlex
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar, cast


class EngineError(Exception):
    """Base of all errors raised on purpose; the command line shows it as one line."""


class DocumentError(EngineError):
    """Raised by a reader or by segmentation; a bulk job records it and goes on.

    `n_scanned` is the number of pages of a document that OCR may read.
    """

    n_scanned = 0


class EncoderError(EngineError):
    """Raised while loading an encoder or its backbone."""


class IndexMismatch(EngineError):
    """Raised when there is no index at a place, or it does not fit the request, the encoder or this version."""


class ClusterError(EngineError):
    """Raised when Ray does not start or answer, or when its processes die more often than work is retried."""


class IndexDamaged(EngineError):
    """Raised when a file is missing, unreadable, or has another size or checksum than the recorded one."""


def damaged_catalog(what: str) -> IndexDamaged:
    """The error of rows that are not what was written, with the command that finds all of them."""
    return IndexDamaged(f"{what}; check it: longmatch upkeep verify INDEX")


def damaged_file(what: str) -> IndexDamaged:
    """The error of a file that is not what was written, with the command that makes it again or leaves it out."""
    return IndexDamaged(f"{what}; repair it: longmatch upkeep repair INDEX")


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


def command_line(*words: object) -> str:
    """A command of longmatch for a message, quoted for a shell: command_line("index", folder, "PATH...")."""
    texts = (f"./{word}" if isinstance(word, Path) and str(word).startswith("-") else str(word) for word in words)
    return shlex.join(["longmatch", *texts])


def install_command(extra: str, package: str) -> str:
    """The pip command that installs what an extra of longmatch names, or `package` where the extra is not known.

    It names packages of the registry, since longmatch is installed from a clone.
    """
    from importlib.metadata import PackageNotFoundError, requires  # loads the parsers of mail

    try:
        required = requires("longmatch") or []
    except PackageNotFoundError:
        required = []
    parts = (line.partition(";") for line in required)
    names = [name.strip() for name, _, marker in parts if re.search(rf"extra == ['\"]{extra}['\"]", marker)]
    return f"pip install {' '.join(map(shlex.quote, names or [package.lower()]))}"


DecoratedT = TypeVar("DecoratedT", bound=Callable[..., Any] | type)

_FULL = "free some space and run the same command again: what was committed is safe"
_ALLOW = "allow it (chmod, chown), or name another folder"
_NEXT_STEPS = {
    errno.EACCES: _ALLOW,
    errno.EPERM: _ALLOW,
    errno.EROFS: "the file system is mounted read-only: name another folder",
    errno.EIO: "the disk may be failing: look into the system's log, then run longmatch upkeep verify INDEX",
    errno.EMFILE: "raise the limit of open files: ulimit -n 4096",
    errno.ENFILE: "end other programs that hold files open",
    errno.ENOENT: "check the path, and that no other program moves or deletes files of the index",
    errno.ENAMETOOLONG: "give it a shorter name",
    errno.ESTALE: "the network file system lost the file: run the command again",
}
_OTHERWISE = "check that the file can be read and written, then run the command again"
_OS_CODE = re.compile(r"\b(?:code: |os error )(\d+)")  # formats in which safetensors reports errors of the system
_LIBRARIES = ("safetensors_rust", "safetensors")
# SQLite's extended codes for data that differs from the data written.
_UNREADABLE = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS)


def fault(error: BaseException, place: str = "") -> EngineError | None:
    """Convert an error into one that a user can act on.

    Returns:
        None for an error of this program, for a `ConnectionError`, and for an error from anywhere else than the
        system or the libraries above.
    """
    if isinstance(error, EngineError | ConnectionError):  # a closed pipe of the command line is no fault
        return None
    if isinstance(error, sqlite3.Error):
        return _of_sqlite(error, place)
    if isinstance(error, OSError):
        return _of_system(error.errno, error.strerror or str(error), str(error.filename or place))
    if any(kind.__module__.partition(".")[0] in _LIBRARIES for kind in type(error).__mro__):
        code = _OS_CODE.search(str(error))
        if code is not None:
            return _of_system(int(code[1]), str(error), place)
        return damaged_catalog(f"{place or 'a file'} cannot be read ({error})")
    if isinstance(error, RuntimeError) and "inline_container" in str(error):  # torch's writer names no cause
        return BudgetExceeded(f"{place or 'a file'} could not be written, as on a full disk; {_FULL}")
    return None


def _of_system(code: int | None, reason: str, file: str) -> EngineError:
    what = f"{file}: {reason}" if file else reason
    if code in (errno.ENOSPC, errno.EDQUOT):
        return BudgetExceeded(f"{what}; {_FULL}")
    return StorageError(f"{what}; {_NEXT_STEPS.get(code or 0, _OTHERWISE)}")


def _of_sqlite(error: sqlite3.Error, place: str) -> EngineError:
    code = getattr(error, "sqlite_errorcode", 0)  # the driver's own errors have none
    what, primary = f"{place or 'the catalog'}: {error}", code & 0xFF
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return IndexBusy(f"{what}; another process uses it: wait for it to end, then run the command again")
    if primary == sqlite3.SQLITE_FULL:
        return BudgetExceeded(f"{what}; {_FULL}")
    if primary == sqlite3.SQLITE_CANTOPEN and place and not Path(place).exists():
        return damaged_catalog(f"{place} is missing")
    if code == sqlite3.SQLITE_READONLY_ROLLBACK:
        return IndexMismatch(f"{place} was begun but holds nothing yet; fill it: longmatch index INDEX PATH...")
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StorageError(f"{what}; see whether file and folder can be read and written, or name another folder")
    if primary == sqlite3.SQLITE_IOERR and code not in _UNREADABLE:
        return StorageError(f"{what}; {_NEXT_STEPS[errno.EIO]}")
    if primary == sqlite3.SQLITE_CONSTRAINT:
        return damaged_catalog(what)
    return damaged_catalog(f"{place or 'the catalog'} cannot be read ({error})")


@contextmanager
def faults_named(place: str = "") -> Iterator[None]:
    """Raise errors of the system and the libraries as errors of this program; `place` is that of `fault`."""
    try:
        yield
    except Exception as error:
        if (named := fault(error, place)) is None:
            raise
        raise named from error


def named_faults(decorated: DecoratedT) -> DecoratedT:
    """Decorate a public function, or all public methods of a class, with `faults_named`."""
    if not isinstance(decorated, type):
        return cast(DecoratedT, _guarded(decorated))
    for name, member in list(vars(decorated).items()):
        if name.startswith("_") and name not in ("__init__", "__enter__", "__exit__"):
            continue
        if isinstance(member, classmethod):
            setattr(decorated, name, classmethod(_guarded(member.__func__)))
        elif isinstance(member, property) and member.fget is not None:
            setattr(decorated, name, property(_guarded(member.fget), member.fset, member.fdel, member.__doc__))
        elif inspect.isfunction(member):
            setattr(decorated, name, _guarded(member))
    return decorated


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        with faults_named():
            return function(*arguments, **options)

    return call


_STEP: ContextVar[Callable[[int], None] | None] = ContextVar("step", default=None)


def step(n_bytes: int = 0) -> None:
    """Begin the next step of a search, a breakdown or a report, which takes about so many bytes of memory.

    Raises:
        Exception: the work ends here; see `limited`.
    """
    if (called := _STEP.get()) is not None:
        called(n_bytes)


@contextmanager
def limited(called: Callable[[int], None]) -> Iterator[None]:
    """Call a function at each step of this thread; it raises where the work is to end."""
    token = _STEP.set(called)
    try:
        yield
    finally:
        _STEP.reset(token)
