"""The number of commits of an index, in a file beside its catalog, so that a catalog which lost commits is noticed.

SQLite ignores what is damaged in its log, and an older catalog is as valid as a newer one. A writer writes the number
after each commit, before it reports the commit; so the file can be one commit behind the catalog, but never ahead.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xxhash

from engine.errors import IndexDamaged
from engine.store.durable import fsync_folder

COMMITS_FILE = "commits"
COMMITS = "commits"  # the named value in the catalog
_SLOT_BYTES = 512  # written at once by a disk; each number is written over the one before the last
_REPAIR = "restore a copy of the whole folder, or go on without them: longmatch upkeep repair INDEX"


class CommitLog:
    """The file, held open by a writer."""

    def __init__(self, folder: Path) -> None:
        """Open the file; create it if it is missing."""
        path = folder / COMMITS_FILE
        is_new = not path.exists()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        if is_new:
            os.write(self._file, bytes(2 * _SLOT_BYTES))
            os.fsync(self._file)
            fsync_folder(folder)
        self._number = reported_commits(folder)

    def report(self, number: int) -> None:
        """Write the number of commits, unless it is written already."""
        if number != self._number:
            os.lseek(self._file, number % 2 * _SLOT_BYTES, os.SEEK_SET)
            os.write(self._file, _slot(number))
            os.fsync(self._file)
            self._number = number

    def reset(self, number: int) -> None:
        """Write a number that may be lower than the one before."""
        self.report(number - 1)  # into the other slot
        self.report(number)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def reported_commits(folder: Path) -> int:
    """The number of commits that were reported; 0 without a file, or where both numbers in it are damaged.

    A reader calls this before it reads the catalog, which may have got more commits in between.
    """
    try:
        content = (folder / COMMITS_FILE).read_bytes()
    except FileNotFoundError:
        return 0
    slots = [content[first : first + _SLOT_BYTES] for first in (0, _SLOT_BYTES)]
    numbers = [int(slot[:20]) for slot in slots if slot[:20].isdigit() and slot == _slot(int(slot[:20]))]
    return max(numbers, default=0)


def commits_of(meta: Mapping[str, Any]) -> int:
    """The number of commits that a catalog holds, by its named values."""
    return int(meta.get(COMMITS, 0))


def lost_commits(meta: Mapping[str, Any], reported: int) -> str | None:
    """What is wrong where a catalog lacks reported commits; None where it has all."""
    if commits_of(meta) >= reported:
        return None
    return (
        f"it holds {commits_of(meta):,} commits of {reported:,}: an older catalog was put back, or its log was damaged "
        "or lost"
    )


def check_commits(meta: Mapping[str, Any], reported: int, place: str) -> None:
    """Refuse a catalog that lacks reported commits.

    Raises:
        IndexDamaged: it does.
    """
    if (lost := lost_commits(meta, reported)) is not None:
        raise IndexDamaged(f"{place} lost commits ({lost}); {_REPAIR}")


def _slot(number: int) -> bytes:
    digits = f"{number:020d}".encode()
    return f"{number:020d} {xxhash.xxh3_64_hexdigest(digits)}\n".encode().ljust(_SLOT_BYTES)
