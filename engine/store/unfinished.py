"""Folders and files that appear complete or not at all; what a killed run left is removed by the next one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from engine.errors import IndexBusy, IndexMismatch
from engine.store.durable import fsync_folder


@contextmanager
def unfinished_folder(out: Path) -> Iterator[Path]:
    """An empty folder beside `out` to write into, which is removed at the end.

    A lock file beside the folder marks it as ours, so that a run after a killed one removes it.

    Raises:
        IndexMismatch: a folder of something else has its name.
        IndexBusy: another process writes there.
    """
    folder, lock_file = (out.with_name(f"{out.name}{suffix}") for suffix in (".unfinished", ".unfinished.lock"))
    if folder.exists() and not lock_file.exists():
        raise IndexMismatch(f"{folder} is in the way; move it away, then run the command again")
    out.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(lock_file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise IndexBusy(f"another process writes {folder}; wait for it to end") from None
    try:
        fsync_folder(out.parent)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():  # otherwise the lock file marks the folder for a later run
            lock_file.unlink(missing_ok=True)
        lock.release()


@contextmanager
def appearing(out: Path) -> Iterator[Path]:
    """A folder to write into, which becomes `out` on success; see `unfinished_folder`. `out` may be an empty folder."""
    with unfinished_folder(out) as folder:
        yield folder
        if out.exists():
            out.rmdir()
        folder.rename(out)
        fsync_folder(out.parent)
