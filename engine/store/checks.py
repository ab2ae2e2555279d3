"""Checksums of the catalog's rows, so that a reader can trust rows without reading the whole catalog.

A document has two checksums, one of its row and one of its text and sections; each is compared whenever the document
is read. The other tables have one checksum each. All are written in the transaction that changes the rows.

A reader compares the tables that it needs when it opens the catalog, and all rows before an operation that reads all
of them, such as a filter. A writer compares the tables when it opens, and the rows of a block before it changes one.

The number of commits is also in a file beside the catalog, since SQLite ignores what is damaged in its log, and an
older catalog is as valid as a newer one. A writer writes the number after each commit, before it reports the commit;
so the file can be one commit behind the catalog, but never ahead.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xxhash

from engine.errors import IndexDamaged, IndexMismatch
from engine.store.catalog import (
    FORMAT,
    OPENED_TABLES,
    AnyConnection,
    DocumentRow,
    FailureRow,
    MetaRow,
    SectionRow,
    StagedShardRow,
    StoredRows,
    Table,
    TextRow,
    all_rows,
    column,
    driver,
    has_table,
    quoted_names,
)
from engine.store.durable import fsync_folder
from engine.store.locations import BLOCK_IDS, LocationBlockRow, check_blocks, write_blocks

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlalchemy.orm import Mapped

# Demand is left out: it changes with queries, and only orders the documents that are encoded later.
_TABLES: tuple[type[Table], ...] = (*OPENED_TABLES, FailureRow, LocationBlockRow, StagedShardRow)
_LOW = 0xFFFFFFFF
_BLOCK_CHECKS = f"SELECT block, n_documents, checksum FROM {LocationBlockRow.__tablename__} ORDER BY block"
_IDS_PER_STATEMENT = 500
_DAMAGED_TABLE = "table {name} of {place} is not what was written; check it: longmatch upkeep verify INDEX"


class DocumentCheckRow(Table):
    """The checksums of one document."""

    __tablename__ = "document_checks"
    document_id: Mapped[int] = column(of="documents", primary_key=True)
    row_check: Mapped[int]  # of its row in `documents`
    content_check: Mapped[int]  # see `content_check`


class TableCheckRow(Table):
    """The checksum of one table, or of the row checksums of all documents."""

    __tablename__ = "table_checks"
    name: Mapped[str] = column(primary_key=True)
    n_rows: Mapped[int]
    check: Mapped[int] = column("checksum")


def read_meta(connection: AnyConnection, place: str) -> dict[str, Any]:
    """All named values, compared with their checksum before they are decoded.

    Raises:
        IndexDamaged: the values are not what was written.
        IndexMismatch: the catalog has another format than this program reads, or no table yet.
    """
    if not has_table(connection, MetaRow):
        raise IndexMismatch("the index was begun but holds nothing yet; fill it: longmatch index INDEX PATH...")
    rows = driver(connection).execute(all_rows(MetaRow)).fetchall()
    stored = _stored_checks(connection) if has_table(connection, TableCheckRow) else {}
    if stored and "schema_version" not in dict(rows):  # which formats before the first had, with other checksums
        _compare(stored, MetaRow, rows, place)
    # A column of JSON holds a number as a number.
    values = {key: json.loads(value) if isinstance(value, str) else value for key, value in rows}
    if values and values.get("format") != FORMAT:
        raise IndexMismatch(
            f"the index has format {values.get('format', 0)}, this program reads format {FORMAT}; index the corpus "
            "again into a new folder: longmatch index NEW_FOLDER PATH..."
        )
    return values


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
    """Write the checksums and blocks of documents whose rows were written in this transaction; of all by default."""
    from sqlalchemy import delete, insert

    chosen = None if document_ids is None else [int(document_id) for document_id in document_ids]
    write_blocks(connection, chosen)
    if chosen is None:
        chosen = [row[0] for row in driver(connection).execute("SELECT id FROM documents")]
    for first in range(0, len(chosen), _IDS_PER_STATEMENT):
        block = chosen[first : first + _IDS_PER_STATEMENT]
        marks = ",".join("?" * len(block))
        statement = f"SELECT document_id, content_check FROM document_checks WHERE document_id IN ({marks})"
        # Texts never change, so damage of one must not get a new checksum.
        known = {} if document_ids is None else dict(driver(connection).execute(statement, block))
        new = [document for document in block if document not in known]
        contents = known | _content_checks(connection, ",".join("?" * len(new)), new)
        rows = [
            {"document_id": one, "row_check": check, "content_check": contents.get(one, 0)}
            for one, check in _row_checks(connection, f"WHERE id IN ({marks})", block)
        ]
        connection.execute(delete(DocumentCheckRow).where(DocumentCheckRow.document_id.in_(block)))
        if rows:
            connection.execute(insert(DocumentCheckRow), rows)


def record_tables(connection: Connection) -> None:
    """Write the checksums of the other tables; the last step of a transaction."""
    from sqlalchemy import delete, insert

    now = [{"name": name, "n_rows": n_rows, "checksum": check} for name, n_rows, check in _table_checks(connection)]
    connection.execute(delete(TableCheckRow))
    connection.execute(insert(TableCheckRow), now)


def check_opened(connection: AnyConnection, rows: StoredRows, place: str) -> None:
    """Compare the tables that every reader needs with their checksums.

    Args:
        rows: of these tables, read in the same transaction.

    Raises:
        IndexDamaged: a table is not what was written.
    """
    stored = _stored_checks(connection)
    for table, of_table in rows.items():
        _compare(stored, table, of_table, place)


def check_location_table(connection: AnyConnection, place: str) -> None:
    """Compare the table of location blocks with its checksum; the arrays have checksums of their own."""
    _compare(_stored_checks(connection), LocationBlockRow, _checked_rows(connection, LocationBlockRow), place)


def _compare(
    stored: Mapping[str, tuple[int, int]], table: type[Table], rows: Iterable[Sequence[Any]], place: str
) -> None:
    name, *now = _table_check(table, rows)
    if stored.get(name) != tuple(now):
        raise IndexDamaged(_DAMAGED_TABLE.format(name=name, place=place))


def check_catalog(connection: AnyConnection, place: str) -> None:
    """Compare all rows of a catalog with their checksums; texts and sections are compared when read.

    Raises:
        IndexDamaged: a row is not what was written, is missing, or should not exist.
    """
    check_tables(connection, place)
    if damaged := damaged_documents(connection):
        raise IndexDamaged(
            f"{len(damaged)} documents of {place}, the first is {damaged[0]!r}, are not what was written; "
            "check it: longmatch upkeep verify INDEX"
        )
    check_blocks(connection, place)
    check_names(connection, place)


def check_tables(connection: AnyConnection, place: str) -> None:
    """Compare the tables that do not grow with the documents with their checksums; errors as in `check_catalog`."""
    if (table := damaged_table(connection)) is not None:
        raise IndexDamaged(_DAMAGED_TABLE.format(name=table, place=place))


def check_block_rows(connection: AnyConnection, block: int, place: str) -> None:
    """Compare the rows of one block of documents with their checksums; errors as in `check_catalog`."""
    between = f"BETWEEN {block * BLOCK_IDS} AND {(block + 1) * BLOCK_IDS - 1}"
    statement = f"SELECT document_id, row_check FROM document_checks WHERE document_id {between}"
    if dict(driver(connection).execute(statement)) != dict(_row_checks(connection, f"WHERE id {between}")):
        raise IndexDamaged(
            f"documents {block * BLOCK_IDS} to {(block + 1) * BLOCK_IDS - 1} of {place} are not what was written; "
            "check it: longmatch upkeep verify INDEX"
        )


def check_names(connection: AnyConnection, place: str) -> None:
    """Check that documents can be looked up by name; errors as in `check_catalog`."""
    for (line,) in driver(connection).execute("PRAGMA integrity_check(documents)"):
        if line != "ok":  # its indexes, by which names are looked up
            raise IndexDamaged(f"{place} cannot be read ({line}); check it: longmatch upkeep verify INDEX")


def check_contents(connection: AnyConnection, place: str) -> None:
    """Compare the texts and sections of all documents with their checksums; errors as in `check_catalog`."""
    stored = driver(connection).execute("SELECT document_id, content_check FROM document_checks").fetchall()
    for first in range(0, len(stored), _IDS_PER_STATEMENT):
        block = stored[first : first + _IDS_PER_STATEMENT]
        contents = _content_checks(connection, ",".join("?" * len(block)), [one for one, _ in block])
        if any(contents.get(one) != check for one, check in block):
            raise IndexDamaged(f"texts of {place} are not what was indexed; check it: longmatch upkeep verify INDEX")


def committed_state(connection: AnyConnection) -> list[tuple[str, int, int]]:
    """The checksums of all tables, which differ after every change."""
    rows = driver(connection).execute("SELECT name, n_rows, checksum FROM table_checks ORDER BY name")
    return [tuple(row) for row in rows]


def damaged_table(connection: AnyConnection) -> str | None:
    """The first table whose rows are not what was written; None if all are."""
    stored = _stored_checks(connection)
    for name, n_rows, check in _table_checks(connection):
        if stored.pop(name, None) != (n_rows, check):
            return name
    return next(iter(stored), None)


def _stored_checks(connection: AnyConnection) -> dict[str, tuple[int, int]]:
    rows = driver(connection).execute("SELECT name, n_rows, checksum FROM table_checks")
    return {name: (n_rows, check) for name, n_rows, check in rows}


def damaged_documents(connection: AnyConnection) -> list[str]:
    """The names of documents whose row is not what was written."""
    stored = dict(driver(connection).execute("SELECT document_id, row_check FROM document_checks"))
    wrong = [one for one, check in _row_checks(connection) if stored.pop(one, None) != check]
    rows = [driver(connection).execute("SELECT doc_id FROM documents WHERE id = ?", [one]).fetchone() for one in wrong]
    # A damaged page can hold a row that a search for its number does not reach.
    names = [f"number {one}" if row is None else str(row[0]) for one, row in zip(wrong, rows, strict=True)]
    return names + [f"number {one}" for one in stored]


def _table_checks(connection: AnyConnection) -> Iterator[tuple[str, int, int]]:
    """Name, number of rows and checksum of each table, and of the checksums of documents."""
    for table in _TABLES:
        yield _table_check(table, _checked_rows(connection, table))
    n_rows, low, high = (
        driver(connection)
        .execute(
            f"SELECT count(*), coalesce(sum(row_check & {_LOW}), 0), coalesce(sum((row_check >> 32) & {_LOW}), 0) "
            "FROM document_checks"
        )
        .fetchone()
    )
    yield DocumentRow.__tablename__, n_rows, _signed(xxhash.xxh3_64_intdigest(_canonical([n_rows, low, high])))


def _checked_rows(connection: AnyConnection, table: type[Table]) -> Iterable[Sequence[Any]]:
    """The rows of one table as its checksum covers them; location blocks have checksums in place of arrays."""
    rows: Iterable[Sequence[Any]] = driver(connection).execute(
        _BLOCK_CHECKS if table is LocationBlockRow else all_rows(table)
    )
    return rows


def _table_check(table: type[Table], rows: Iterable[Sequence[Any]]) -> tuple[str, int, int]:
    """Name, number of rows and checksum of one table."""
    digest, n_rows = xxhash.xxh3_64(), 0
    for row in rows:
        digest.update(_canonical(row))
        n_rows += 1
    return table.__tablename__, n_rows, _signed(digest.intdigest())


def _row_checks(connection: AnyConnection, where: str = "", values: Sequence[int] = ()) -> Iterator[tuple[int, int]]:
    statement = f"SELECT {quoted_names(DocumentRow)} FROM {DocumentRow.__tablename__} {where}"
    for row in driver(connection).execute(statement, values):
        yield row[0], _signed(xxhash.xxh3_64_intdigest(_canonical(row)))


def stored_rows(connection: AnyConnection, document_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The rows of documents as SQLite holds them, by catalog id, each with its `content_check`.

    An id that does not exist is left out.

    Args:
        document_ids: few enough for one statement.

    Raises:
        IndexDamaged: a row is not what was written.
    """
    columns = ", ".join(f'documents."{name}"' for name in DocumentRow.names)
    names = [*DocumentRow.names, "content_check"]
    marks = ",".join("?" * len(document_ids))
    joined = f"{DocumentRow.__tablename__} LEFT JOIN {DocumentCheckRow.__tablename__} ON document_id = id"
    statement = f"SELECT {columns}, content_check, row_check FROM {joined} WHERE id IN ({marks})"
    found = {}
    for row in driver(connection).execute(statement, document_ids):
        if row[-1] != _signed(xxhash.xxh3_64_intdigest(_canonical(row[:-2]))):
            raise IndexDamaged(
                f"the row of {row[1]!r} is not what was written; check it: longmatch upkeep verify INDEX"
            )
        found[row[0]] = dict(zip(names, row, strict=False))
    return found


def _content_checks(connection: AnyConnection, marks: str, ids: Sequence[int]) -> dict[int, int]:
    sections: dict[int, list[Sequence[Any]]] = {one: [] for one in ids}
    columns = "document_id, heading, path, start, stop, n_merged, part, n_parts"
    for row in driver(connection).execute(
        f"SELECT {columns} FROM {SectionRow.__tablename__} WHERE document_id IN ({marks}) "
        "ORDER BY document_id, position",
        ids,
    ):
        sections[row[0]].append(row[1:])
    texts = driver(connection).execute(
        f"SELECT document_id, deflated FROM {TextRow.__tablename__} WHERE document_id IN ({marks})", ids
    )
    return {one: content_check(deflated, sections[one]) for one, deflated in texts}


def _canonical(row: Sequence[Any]) -> bytes:
    return ascii(row).encode()  # twice as fast as JSON


def _signed(digest: int) -> int:
    """A digest as the signed integer of 64 bits that SQLite holds."""
    return digest - (1 << 64) if digest >> 63 else digest


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
