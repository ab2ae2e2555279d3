"""Intercepts every change that this process makes below one folder, and can make it fail; records nothing itself.

Python changes files through functions of `os`; SQLite through the methods of its VFS, which are replaced here by
`ctypes`. Files that libraries write themselves (safetensors, FAISS) are detected when they are synced or renamed.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import errno
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from stat import S_ISDIR
from typing import Any, TypeAlias


class Change(StrEnum):
    """What a call does to the folder."""

    WRITE = "write"  # bytes of a file, by SQLite
    TRUNCATE = "truncate"
    CONTENT = "content"  # all bytes of a file that something else wrote
    SYNC = "sync"
    SYNC_FOLDER = "sync folder"
    RENAME = "rename"
    UNLINK = "unlink"
    MKDIR = "mkdir"
    RMDIR = "rmdir"


@dataclass(frozen=True, slots=True)
class Call:
    """One change, before it is made."""

    change: Change
    path: str  # below the folder
    other: str = ""  # the new name
    offset: int = 0  # of the bytes; the new size where a file is truncated
    data: bytes = b""


Hook: TypeAlias = Callable[[Call], None]  # may raise OSError, or end the process
_CHANGES = {"unlink": Change.UNLINK, "remove": Change.UNLINK, "mkdir": Change.MKDIR, "rmdir": Change.RMDIR}

_WRITE_FAILED, _SYNC_FAILED, _TRUNCATE_FAILED, _DELETE_FAILED, _FULL = 778, 1034, 1546, 2570, 13  # of SQLite
_N_METHODS = 18
_AT_WRITE, _AT_TRUNCATE, _AT_SYNC = 2, 3, 4  # places after xClose


class _Methods(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int), ("methods", ctypes.c_void_p * _N_METHODS)]


class _Vfs(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int),
        ("file_bytes", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("open", ctypes.c_void_p),
        ("delete", ctypes.c_void_p),
    ]


_OPEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_DELETE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
_WRITE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64)
_TRUNCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64)
_SYNC = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


class _Watched:
    """Calls the hook for changes in the folder, of which it knows files by their place below it."""

    def __init__(self, folder: Path, hook: Hook) -> None:
        self._folder = folder.resolve()
        self._hook = hook
        self._whole: dict[str, tuple[int, int]] = {}  # file number and time of files whose content was reported
        self._opened: set[str] = set()  # for writing, by Python; reported before the next change

    def place(self, path: Any, dir_fd: int | None = None) -> str | None:  # noqa: ANN401 - as os takes it
        full = _full(path, dir_fd).absolute()
        real = full.parent.resolve() / full.name  # a link is renamed or deleted itself
        is_here = self._folder in (real, *real.parents)
        return real.relative_to(self._folder).as_posix() if is_here else None

    def open(self, path: Any, mode: str | None, flags: int) -> None:  # noqa: ANN401 - as os takes it
        is_written = any(letter in mode for letter in "wax+") if mode else flags & (os.O_WRONLY | os.O_RDWR)
        if is_written and isinstance(path, str | bytes | os.PathLike):
            place = self.place(os.fspath(path))
            if place is not None:
                self._opened.add(place)

    def call(self, call: Call) -> None:
        for place in sorted(self._opened - {call.path}):
            self.report_content(place)
        self._hook(call)

    def report_content(self, place: str) -> None:
        """Report a file whose writes were not intercepted, once for each content."""
        path = self._folder / place
        try:
            found = path.stat()
        except FileNotFoundError:
            return
        version = (found.st_ino, found.st_mtime_ns)
        if S_ISDIR(found.st_mode) or self._whole.get(place) == version:
            return
        self._whole[place] = version
        self._hook(Call(Change.CONTENT, place, data=path.read_bytes()))


def watch(folder: Path, hook: Hook) -> None:
    """Call a hook before every change of this process below a folder, from now to its end.

    An `OSError` that the hook raises is the result of the call. If a write of SQLite fails, half of its bytes are
    written first.
    """
    watched = _Watched(folder, hook)
    for name in ("replace", "rename"):
        setattr(os, name, _renaming(getattr(os, name), watched))
    for name, change in _CHANGES.items():
        setattr(os, name, _changing(getattr(os, name), change, watched))
    sys.addaudithook(lambda event, given: watched.open(*given) if event == "open" else None)
    setattr(os, "fsync", _syncing(os.fsync, watched))  # noqa: B010 - mypy lets no function be replaced
    _watch_sqlite(watched)


def _renaming(original: Callable[..., None], watched: _Watched) -> Callable[..., None]:
    def rename(source: Any, target: Any, **options: Any) -> None:  # noqa: ANN401
        place, other = watched.place(source), watched.place(target)
        if place is not None and other is not None:
            watched.report_content(place)
            watched.call(Call(Change.RENAME, place, other))
        original(source, target, **options)

    return rename


def _changing(original: Callable[..., None], change: Change, watched: _Watched) -> Callable[..., None]:
    def make(path: Any, *rest: Any, dir_fd: int | None = None, **options: Any) -> None:  # noqa: ANN401
        place = watched.place(path, dir_fd)
        if place is not None and (change is Change.MKDIR) != os.path.lexists(_full(path, dir_fd)):
            watched.call(Call(change, place))
        original(path, *rest, dir_fd=dir_fd, **options)

    return make


def _full(path: Any, dir_fd: int | None) -> Path:  # noqa: ANN401 - as os takes it
    if isinstance(path, int):
        return Path(f"/proc/self/fd/{path}").readlink()
    return Path(os.fsdecode(path)) if dir_fd is None else _full(dir_fd, None) / os.fsdecode(path)


def _syncing(original: Callable[[Any], None], watched: _Watched) -> Callable[[Any], None]:
    def fsync(descriptor: Any) -> None:  # noqa: ANN401
        number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
        place = watched.place(number)
        if place is not None:
            is_folder = S_ISDIR(os.fstat(number).st_mode)
            if not is_folder:
                watched.report_content(place)
            watched.call(Call(Change.SYNC_FOLDER if is_folder else Change.SYNC, place))
        original(descriptor)

    return fsync


_kept: list[Any] = []  # what SQLite points to must outlive every connection


def _watch_sqlite(watched: _Watched) -> None:
    library = ctypes.CDLL(_sqlite3.__file__)
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    vfs = library.sqlite3_vfs_find(None).contents
    original_open, original_delete = _OPEN(vfs.open), _DELETE(vfs.delete)
    places: dict[int, str] = {}  # by address of SQLite's file
    tables: dict[int, _Methods] = {}  # by address of the methods that they replace

    def opened(vfs_at: int, name_at: int | None, file_at: int, flags: int, out: int) -> int:
        # SQLite keeps the address of the name, so it is passed on unchanged.
        code = int(original_open(vfs_at, name_at, file_at, flags, out))
        place = None if name_at is None else watched.place(ctypes.string_at(name_at))
        if code or place is None:
            return code
        places[file_at] = place
        slot = ctypes.cast(file_at, ctypes.POINTER(ctypes.c_void_p))
        if slot[0] not in tables:
            tables[slot[0]] = _methods(slot[0], places, watched)
        slot[0] = ctypes.addressof(tables[slot[0]])
        return code

    def delete(vfs_at: int, name_at: int, is_durable: int) -> int:
        name = ctypes.string_at(name_at)
        place = watched.place(name) if os.path.lexists(name) else None
        code = 0 if place is None else _failure(watched, Call(Change.UNLINK, place), _DELETE_FAILED)
        code = code or int(original_delete(vfs_at, name_at, is_durable))
        if place is not None and is_durable and not code:  # SQLite has synced the folder by itself
            code = _failure(watched, Call(Change.SYNC_FOLDER, Path(place).parent.as_posix()), _DELETE_FAILED)
        return code

    _kept.extend([opened_c := _OPEN(opened), delete_c := _DELETE(delete), original_open, original_delete, tables])
    vfs.open = ctypes.cast(opened_c, ctypes.c_void_p).value
    vfs.delete = ctypes.cast(delete_c, ctypes.c_void_p).value


def _methods(address: int, places: dict[int, str], watched: _Watched) -> _Methods:
    """A copy of SQLite's methods of a file, in which writes, truncations and syncs call the hook."""
    made = _Methods.from_buffer_copy(ctypes.cast(address, ctypes.POINTER(_Methods)).contents)
    write, truncate = _WRITE(made.methods[_AT_WRITE]), _TRUNCATE(made.methods[_AT_TRUNCATE])
    sync = _SYNC(made.methods[_AT_SYNC])

    def written(file_at: int, data_at: int, size: int, offset: int) -> int:
        data = ctypes.string_at(data_at, size)
        if code := _failure(watched, Call(Change.WRITE, places[file_at], offset=offset, data=data), _WRITE_FAILED):
            write(file_at, data_at, size // 2, offset)
            return code
        return int(write(file_at, data_at, size, offset))

    def cut(file_at: int, size: int) -> int:
        call = Call(Change.TRUNCATE, places[file_at], offset=size)
        return _failure(watched, call, _TRUNCATE_FAILED) or int(truncate(file_at, size))

    def synced(file_at: int, flags: int) -> int:
        return _failure(watched, Call(Change.SYNC, places[file_at]), _SYNC_FAILED) or int(sync(file_at, flags))

    replaced = {_AT_WRITE: _WRITE(written), _AT_TRUNCATE: _TRUNCATE(cut), _AT_SYNC: _SYNC(synced)}
    for place, replacement in replaced.items():
        made.methods[place] = ctypes.cast(replacement, ctypes.c_void_p).value
    _kept.extend([write, truncate, sync, replaced])
    return made


def _failure(watched: _Watched, call: Call, code: int) -> int:
    """SQLite's code for the error that the hook raises; 0 without one."""
    try:
        watched.call(call)
    except OSError as error:
        return _FULL if error.errno == errno.ENOSPC and call.change is Change.WRITE else code
    return 0
