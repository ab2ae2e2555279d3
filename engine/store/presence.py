"""Which documents an index holds, looked up while another process may write. Reads only catalogs.

A catalog is opened for each statement, so that no reader keeps a writer from sealing it, and any thread
can call these functions. In a partitioned index, all partitions are looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, select

from engine.faults import named_faults
from engine.store.catalog import CATALOG_FILE, DocumentRow, FailureRow, MetaRow, connect
from engine.store.checks import read_meta
from engine.store.manifest import index_folders, is_partitioned, read_manifest


@contextmanager
def _catalog(folder: Path) -> Iterator[Connection]:
    engine = connect(folder / CATALOG_FILE, read_only=True)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def catalogs(folder: Path) -> Iterator[Connection]:
    """The catalog of an index, or of each of its partitions; each is open until the next one is requested."""
    for part in index_folders(folder):
        with _catalog(part) as connection:
            yield connection


def stored_hashes(folder: Path, doc_ids: Sequence[str]) -> dict[str, str]:
    """The content hashes of the given documents, by name, without those that are not committed now.

    Args:
        folder: the index.
        doc_ids: at most 30,000 names.
    """
    columns = select(DocumentRow.doc_id, DocumentRow.content_hash).where(DocumentRow.doc_id.in_(doc_ids))
    return {row.doc_id: row.content_hash for catalog in catalogs(folder) for row in catalog.execute(columns)}


def stored_sources(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and source of all documents that are committed now."""
    for connection in catalogs(folder):
        if inspect(connection).has_table(DocumentRow.__tablename__):
            for row in connection.execute(select(DocumentRow.doc_id, DocumentRow.source)):
                yield row.doc_id, row.source


def stored_failures(folder: Path) -> list[tuple[str, str]]:
    """Source and doc_id of the documents that could not be indexed, by source; doc_id "" if unknown."""
    failures: list[tuple[str, str]] = []
    for catalog in catalogs(folder):
        if inspect(catalog).has_table(FailureRow.__tablename__):
            failures.extend((row.source, row.doc_id) for row in catalog.execute(select(FailureRow.__table__)))
    return sorted(failures)


@named_faults
def stored_meta(folder: Path) -> dict[str, Any]:
    """The named values of an index; empty if there is none, or if it was begun and holds nothing.

    Raises:
        IndexMismatch: the index has a format that this program does not read.
        IndexDamaged: the values are not what was written.
    """
    if is_partitioned(folder):
        manifest = read_manifest(folder)
        first = stored_meta(index_folders(folder)[0])
        return first | {"language": manifest.language, **({"encoder": manifest.encoder} if manifest.encoder else {})}
    if not (folder / CATALOG_FILE).exists():
        return {}
    with _catalog(folder) as connection:
        has_values = inspect(connection).has_table(MetaRow.__tablename__)
        return read_meta(connection, str(folder / CATALOG_FILE)) if has_values else {}
