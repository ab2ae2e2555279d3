"""Removes documents from an index, from whichever partition they are in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.errors import QueryError, named_faults
from engine.store.manifest import partition_of
from engine.store.partition_writers import open_writers
from engine.store.writer import Writer


@named_faults
def remove(path: str | Path, doc_ids: Sequence[str]) -> int:
    """Remove documents; their space on disk comes back with `compact`.

    Raises:
        QueryError: there is no such document; nothing was removed.
        IndexBusy: another process writes the index.
    """
    with open_writers(Path(path)) as target:
        of_part: list[list[str]] = [[] for _ in target.parts]
        for doc_id in dict.fromkeys(doc_ids):
            of_part[partition_of(doc_id, len(target.parts))].append(doc_id)
        ids = [_known(writer, names, path) for writer, names in zip(target.parts, of_part, strict=True)]
        for writer, known in zip(target.parts, ids, strict=True):
            if known:
                writer.remove(known)
    return sum(map(len, ids))


def _known(writer: Writer, names: Sequence[str], path: str | Path) -> list[int]:
    found = writer.indexed(names)
    if absent := [name for name in names if name not in found]:
        raise QueryError(f"no document {absent[0]!r} in {path}; nothing was removed: longmatch show {path} --documents")
    return [there.id for there in found.values()]
