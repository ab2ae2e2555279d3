"""A catalog like that of a folder, in SQLite's memory, copied from an index in PostgreSQL.

It holds only names, metadata, counts and failures; texts, vectors and term counts stay on the server. So filters,
fields and names have exactly the same meaning in both stores: SQLite evaluates them. PostgreSQL has other rules for
numbers, truth values and LIKE, and they are not used.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import starmap

from sqlalchemy import Connection

from engine.store.address import Address
from engine.store.catalog import memory_catalog
from engine.store.postgres.reading import Reader

_DOCUMENTS = """
SELECT id, doc_id, title, source, content_hash, metadata::text, n_chunks, n_sections, tokens_read, tokens_total
FROM documents ORDER BY id
"""
_INSERT = """
INSERT INTO documents (id, doc_id, title, source, content_hash, metadata, n_chunks, n_sections, tokens_read,
    tokens_total, pages, shard_id, document_row, section_row, chunk_row, first_chunk)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '[]', 0, 0, 0, 0, ?)
"""
_last = threading.local()  # the last mirror of each thread, used again while nothing is committed


def mirrored(reader: Reader) -> Connection:
    """Copy names, metadata, counts and failures."""
    connection = memory_catalog()
    driver = connection.connection.driver_connection
    assert driver is not None
    rows = enumerate(reader.rows(_DOCUMENTS))
    driver.executemany(_INSERT, starmap(lambda number, row: (*row, number), rows))
    failures = reader.rows("SELECT source, reason, doc_id FROM failures ORDER BY source")
    driver.executemany("INSERT INTO failures (source, reason) VALUES (?, ?)", [row[:2] for row in failures])
    named = [(source, doc_id) for source, _, doc_id in failures if doc_id]
    driver.executemany("INSERT INTO failed_doc_ids (source, doc_id) VALUES (?, ?)", named)
    driver.commit()
    return connection


@contextmanager
def open_mirror(address: Address) -> Iterator[Connection]:
    """The catalog as it is now; copied again only if something was committed since the last copy.

    Raises:
        IndexMismatch: there is no index, or one of another version.
        StorageError: the server does not answer, or refuses.
    """
    reader = Reader(address)
    try:
        state = address, reader.settings.get("made"), reader.settings.get("commits")
        if getattr(_last, "state", None) != state:
            _last.mirror, _last.state = mirrored(reader), state
    finally:
        reader.close()
    yield _last.mirror
