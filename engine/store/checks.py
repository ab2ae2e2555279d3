"""Checksums of the catalog's rows, so that a catalog under no seal is as safe as a sealed one.

A document has two: of its row, compared when a reader or a writer opens an unsealed catalog, and of its
text and sections, compared whenever they are read. The other tables have one each. All are written
in the transaction that changes the rows. Catalogs of schema versions before 4 have none.

The seal makes the first comparison needless: it covers every page, and is read at the speed of the disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import xxhash
from sqlalchemy import Connection, ForeignKey, delete, insert
from sqlalchemy.orm import Mapped, mapped_column

from engine.errors import IndexDamaged
from engine.store.catalog import (
    DocumentRow,
    FailedIdRow,
    FailureRow,
    GenerationRow,
    MetaRow,
    PostingsRow,
    ReferenceRow,
    SectionRow,
    ShardDigestRow,
    ShardRow,
    Table,
    TextRow,
    WordPostingsRow,
)

# Demand is left out: it orders what is encoded later, and changes with queries.
_SMALL_TABLES = (
    MetaRow,
    ShardRow,
    ShardDigestRow,
    GenerationRow,
    PostingsRow,
    WordPostingsRow,
    ReferenceRow,
    FailureRow,
    FailedIdRow,
)
FIRST_CHECKED_VERSION = 4  # of the schema
_LOW = 0xFFFFFFFF
_IDS_PER_STATEMENT = 500


class DocumentCheckRow(Table):
    """The checksums of one document."""

    __tablename__ = "document_checks"
    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True)
    row_check: Mapped[int]  # of its row in `documents`
    content_check: Mapped[int]  # see `content_check`


class TableCheckRow(Table):
    """The checksum of one table, or of the row checksums of all documents."""

    __tablename__ = "table_checks"
    name: Mapped[str] = mapped_column(primary_key=True)
    n_rows: Mapped[int]
    check: Mapped[int] = mapped_column("checksum")


def has_checks(meta: Mapping[str, Any]) -> bool:
    """Whether a catalog with these named values holds checksums; one that was begun and not yet filled does not."""
    return int(meta.get("schema_version", 0)) >= FIRST_CHECKED_VERSION


def content_check(deflated: bytes, sections: Iterable[Sequence[Any]]) -> int:
    """The checksum of a document's text, as it is stored, and of its sections.

    Args:
        deflated: the stored text.
        sections: heading, path (JSON as stored), start, stop, n_merged, part and n_parts of each, in order.
    """
    digest = xxhash.xxh3_64(deflated)
    digest.update(_canonical(list(map(list, sections))))
    return _signed(digest.intdigest())


def record_documents(connection: Connection, document_ids: Iterable[int] | None = None) -> None:
    """Write the checksums of documents whose rows were written in this transaction; of all by default."""
    if document_ids is None:
        document_ids = [row[0] for row in _driver(connection).execute("SELECT id FROM documents")]
    chosen = [int(one) for one in document_ids]
    for first in range(0, len(chosen), _IDS_PER_STATEMENT):
        block = chosen[first : first + _IDS_PER_STATEMENT]
        marks = ",".join("?" * len(block))
        contents = _content_checks(connection, marks, block)
        rows = [
            {"document_id": one, "row_check": check, "content_check": contents.get(one, 0)}
            for one, check in _row_checks(connection, f"WHERE id IN ({marks})", block)
        ]
        connection.execute(delete(DocumentCheckRow).where(DocumentCheckRow.document_id.in_(block)))
        if rows:
            connection.execute(insert(DocumentCheckRow), rows)


def record_tables(connection: Connection) -> None:
    """Write the checksums of the other tables; the last step of a transaction."""
    now = [{"name": name, "n_rows": n_rows, "checksum": check} for name, n_rows, check in _table_checks(connection)]
    connection.execute(delete(TableCheckRow))
    connection.execute(insert(TableCheckRow.__table__), now)  # type: ignore[arg-type]


def check_catalog(connection: Connection, meta: Mapping[str, Any], place: str) -> None:
    """Compare the rows of an unsealed catalog with their checksums; texts and sections are compared when read.

    Args:
        connection: in a transaction.
        meta: the named values of the catalog.
        place: the catalog, for messages.

    Raises:
        IndexDamaged: a row is not what was written, is missing, or is one too many.
    """
    if not has_checks(meta):
        return
    if (table := damaged_table(connection)) is not None:
        raise IndexDamaged(f"table {table} of {place} is not what was written; check it: longmatch verify INDEX")
    if damaged := damaged_documents(connection):
        raise IndexDamaged(
            f"{len(damaged)} documents of {place}, the first is {damaged[0]!r}, are not what was written; "
            "check it: longmatch verify INDEX"
        )
    for (line,) in _driver(connection).execute("PRAGMA integrity_check(documents)"):
        if line != "ok":  # its indexes, by which names are looked up
            raise IndexDamaged(f"{place} cannot be read ({line}); check it: longmatch verify INDEX")


def damaged_table(connection: Connection) -> str | None:
    """The first table whose rows are not what was written; None where all are."""
    stored = {
        name: (n_rows, check)
        for name, n_rows, check in _driver(connection).execute("SELECT name, n_rows, checksum FROM table_checks")
    }
    for name, n_rows, check in _table_checks(connection):
        if stored.pop(name, None) != (n_rows, check):
            return name
    return next(iter(stored), None)


def damaged_documents(connection: Connection) -> list[str]:
    """The names of documents whose row is not what was written."""
    stored = dict(_driver(connection).execute("SELECT document_id, row_check FROM document_checks"))
    wrong = [one for one, check in _row_checks(connection) if stored.pop(one, None) != check]
    names = [_driver(connection).execute("SELECT doc_id FROM documents WHERE id = ?", [one]) for one in wrong]
    return [str(found.fetchone()[0]) for found in names] + [f"number {one}" for one in stored]


def _table_checks(connection: Connection) -> Iterator[tuple[str, int, int]]:
    """Name, number of rows and checksum of each table, and of the checksums of documents."""
    driver = _driver(connection)
    for table in _SMALL_TABLES:
        keys = ", ".join(column.name for column in table.__table__.primary_key)
        digest, n_rows = xxhash.xxh3_64(), 0
        for row in driver.execute(f"SELECT {_columns(table)} FROM {table.__tablename__} ORDER BY {keys}"):
            digest.update(_canonical(row))
            n_rows += 1
        yield table.__tablename__, n_rows, _signed(digest.intdigest())
    n_rows, low, high = driver.execute(
        f"SELECT count(*), coalesce(sum(row_check & {_LOW}), 0), coalesce(sum((row_check >> 32) & {_LOW}), 0) "
        "FROM document_checks"
    ).fetchone()
    (n_documents,) = driver.execute("SELECT count(*) FROM documents NOT INDEXED").fetchone()
    yield DocumentRow.__tablename__, n_documents, _signed(xxhash.xxh3_64_intdigest(_canonical([n_rows, low, high])))


def _row_checks(connection: Connection, where: str = "", values: Sequence[int] = ()) -> Iterator[tuple[int, int]]:
    statement = f"SELECT {_columns(DocumentRow)} FROM {DocumentRow.__tablename__} {where}"
    for row in _driver(connection).execute(statement, values):
        yield row[0], _signed(xxhash.xxh3_64_intdigest(_canonical(row)))


def _content_checks(connection: Connection, marks: str, ids: Sequence[int]) -> dict[int, int]:
    sections: dict[int, list[Sequence[Any]]] = {one: [] for one in ids}
    columns = "document_id, heading, path, start, stop, n_merged, part, n_parts"
    for row in _driver(connection).execute(
        f"SELECT {columns} FROM {SectionRow.__tablename__} WHERE document_id IN ({marks}) "
        "ORDER BY document_id, position",
        ids,
    ):
        sections[row[0]].append(row[1:])
    texts = _driver(connection).execute(
        f"SELECT document_id, deflated FROM {TextRow.__tablename__} WHERE document_id IN ({marks})", ids
    )
    return {one: content_check(deflated, sections[one]) for one, deflated in texts}


def _columns(table: type[Table]) -> str:
    return ", ".join(f'"{column.name}"' for column in table.__table__.columns)


def _driver(connection: Connection) -> Any:  # noqa: ANN401
    """SQLite's own connection, in the same transaction: rows of SQLAlchemy take many times as long."""
    driver = connection.connection.driver_connection
    assert driver is not None
    return driver


def _canonical(row: Sequence[Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False, default=bytes.hex).encode()


def _signed(digest: int) -> int:
    """As SQLite holds 64 bits."""
    return digest - (1 << 64) if digest >> 63 else digest
