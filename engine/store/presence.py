"""Which documents an index holds, looked up while another process may write. Reads the catalog alone.

The catalog is opened for one statement each time, so that no reader keeps a writer from sealing it,
and any thread may call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, select

from engine.store.catalog import CATALOG_FILE, DocumentRow, FailedIdRow, FailureRow, MetaRow, connect, read_meta


@contextmanager
def _catalog(folder: Path) -> Iterator[Connection]:
    engine = connect(folder / CATALOG_FILE, read_only=True)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def stored_hashes(folder: Path, doc_ids: Sequence[str]) -> dict[str, str]:
    """The content hashes of those of the given documents that are committed now.

    Args:
        folder: the index.
        doc_ids: at most 30,000 names.
    """
    with _catalog(folder) as connection:
        columns = select(DocumentRow.doc_id, DocumentRow.content_hash)
        rows = connection.execute(columns.where(DocumentRow.doc_id.in_(doc_ids)))
        return {row.doc_id: row.content_hash for row in rows}


def stored_copies(folder: Path, content_hash: str) -> list[str]:
    """The names of the documents that are committed now and have a content hash, in order.

    Args:
        folder: the index.
        content_hash: see `engine.store.documents.content_hash`.
    """
    with _catalog(folder) as connection:
        same = select(DocumentRow.doc_id).where(DocumentRow.content_hash == content_hash)
        return list(connection.execute(same.order_by(DocumentRow.doc_id)).scalars())


def stored_sources(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and source of all documents that are committed now."""
    with _catalog(folder) as connection:
        if inspect(connection).has_table(DocumentRow.__tablename__):
            for row in connection.execute(select(DocumentRow.doc_id, DocumentRow.source)):
                yield row.doc_id, row.source


def stored_failures(folder: Path) -> list[tuple[str, str]]:
    """Source and doc_id of the documents that could not be indexed, by source; doc_id "" where it is not known."""
    with _catalog(folder) as connection:
        has = inspect(connection).has_table
        if not has(FailureRow.__tablename__):
            return []
        sources = connection.execute(select(FailureRow.source).order_by(FailureRow.source)).scalars().all()
        names = {}
        if has(FailedIdRow.__tablename__):
            names = {row.source: row.doc_id for row in connection.execute(select(FailedIdRow.__table__))}
        return [(source, names.get(source, "")) for source in sources]


def stored_meta(folder: Path) -> dict[str, Any]:
    """The named values of an index; empty where there is none, or where it was begun and holds nothing.

    Raises:
        IndexMismatch: the index has a version that this program does not read.
    """
    if not (folder / CATALOG_FILE).exists():
        return {}
    with _catalog(folder) as connection:
        return read_meta(connection) if inspect(connection).has_table(MetaRow.__tablename__) else {}
