"""Bounds that hold in every sound index, checked before its numbers and names are used.

Checksums find damage. They do not help against a catalog that somebody forged, checksums included. So file
names must stay below the folder, and the rows of documents inside their shards. This is checked before they are
used to read or allocate anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from sqlalchemy import Row

from engine.errors import IndexDamaged
from engine.store.roster import Roster

MAX_TEXT_BYTES = 1 << 30  # of one document; SQLite holds no larger value


def check_file_names(names: Iterable[str], place: str) -> None:
    """Refuse a file outside of the index folder.

    Args:
        names: of files that the catalog names.
        place: the catalog, for messages.

    Raises:
        IndexDamaged: a name leads out of the folder.
    """
    for name in names:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or len(path.parts) < 2:
            raise IndexDamaged(
                f"{place} names the file {name!r}, which lies outside of the index; restore a backup, or index the "
                "corpus again"
            )


def check_roster(roster: Roster, shards: Mapping[int, Row[Any]], place: str) -> None:
    """Refuse documents whose vectors would lie outside of their shard.

    Args:
        roster: of all documents.
        shards: rows of the catalog, by number.
        place: the catalog, for messages.

    Raises:
        IndexDamaged: a document has a row that its shard does not have.
    """
    if not len(roster):
        return
    numbers = np.array(sorted(shards), np.int64)
    at = np.minimum(np.searchsorted(numbers, roster.shard), max(0, len(numbers) - 1))
    is_there = numbers[at] == roster.shard if len(numbers) else np.zeros(len(roster), bool)
    n_documents, n_chunks = (
        np.array([getattr(shards[number], column) for number in numbers.tolist()] or [0], np.int64)[at]
        for column in ("n_documents", "n_chunks")
    )
    # Differences, because a sum of two forged numbers can overflow.
    fits = (
        is_there
        & (roster.document_row >= 0)
        & (roster.document_row < n_documents)
        & (roster.n_chunks >= 0)
        & (roster.chunk_row >= 0)
        & (roster.chunk_row <= n_chunks - np.minimum(roster.n_chunks, n_chunks))
        & (roster.n_chunks <= n_chunks)
        & (roster.section_row >= 0)
        & (roster.n_sections >= 0)
    )
    if not fits.all():
        wrong = int(roster.ids[int(np.argmin(fits))])
        raise IndexDamaged(
            f"{place} places document number {wrong} outside of its shard; check it: longmatch upkeep verify INDEX"
        )
