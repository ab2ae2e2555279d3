"""Which documents an index holds, looked up by name beside a running writer. Reads the catalog alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import select

from engine.store.catalog import CATALOG_FILE, DocumentRow, connect


def stored_hashes(folder: Path, doc_ids: Sequence[str]) -> dict[str, str]:
    """The content hashes of those of the given documents that are committed now.

    The catalog is opened for this one statement, so that no reader keeps a writer from sealing it,
    and any thread may call.

    Args:
        folder: the index.
        doc_ids: at most 30,000 names.
    """
    engine = connect(folder / CATALOG_FILE, read_only=True)
    try:
        with engine.connect() as connection:
            columns = select(DocumentRow.doc_id, DocumentRow.content_hash)
            rows = connection.execute(columns.where(DocumentRow.doc_id.in_(doc_ids)))
            return {row.doc_id: row.content_hash for row in rows}
    finally:
        engine.dispose()
