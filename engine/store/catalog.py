"""The tables of `catalog.sqlite`, the only source of truth of an index, how they are opened, and raw rows.

Tables that do not grow with the documents are read whole by every reader on opening: once, compared with their
checksums (`engine.store.checks`), and then used. Readers use SQLite's own connection, and writers SQLAlchemy's, which
is loaded when a writer or a filter first uses a table: its import takes longer than a search.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias
from urllib.parse import quote

from engine.errors import IndexDamaged, StorageError, fault, faults_named

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, FromClause
    from sqlalchemy import Table as SqlTable
    from sqlalchemy.engine import ExceptionContext
    from sqlalchemy.orm import Mapped

FORMAT = 1  # of an index on disk, the rules of terms and of kinds of sections included; no other is read
CATALOG_FILE = "catalog.sqlite"
ANN_FOLDER = "ann"
BUSY_SECONDS = 30  # limit on the time that a statement waits for another process


@dataclass(frozen=True, slots=True)
class _Column:
    """The properties of a column besides its type."""

    name: str | None = None  # in the catalog; by default that of the attribute
    table: str | None = None  # that its values are ids of
    settings: Mapping[str, Any] | None = None


def column(name: str | None = None, *, of: str | None = None, **settings: Any) -> Any:  # noqa: ANN401
    """A column that is a key, has an index, another name than its attribute, or ids of another table."""
    return _Column(name, of, settings)


class _Tables(type):
    """Makes the table of SQLAlchemy, and its columns, when one of them is first used."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:  # noqa: ANN401
            if name == "__table__":
                cls.__table__ = _sql_table(cls)
                return cls.__table__
            if name not in cls.__dict__.get("_columns", ()):
                raise AttributeError(f"{cls.__name__} has no column {name!r}")
            return cls.__table__.c[cls._columns[name].name or name]


class Table(metaclass=_Tables):
    """Base of the tables; each annotation is a column."""

    __tablename__: ClassVar[str]
    _columns: ClassVar[Mapping[str, _Column]]
    names: ClassVar[Sequence[str]]  # of the columns, in the catalog
    keys: ClassVar[Sequence[str]]  # those of the primary key
    if TYPE_CHECKING:
        __table__: ClassVar[FromClause]

    def __init_subclass__(cls) -> None:
        """Take the columns, so that attributes are found by `_Tables`."""
        cls._columns = {name: cls.__dict__.get(name, _Column()) for name in cls.__annotations__}
        for name in cls._columns.keys() & cls.__dict__.keys():
            delattr(cls, name)
        cls.names = [own.name or name for name, own in cls._columns.items()]
        cls.keys = [name for name, own in cls._columns.items() if (own.settings or {}).get("primary_key")]

    @classmethod
    def __clause_element__(cls) -> SqlTable:
        return cls.__table__  # type: ignore[return-value]


@cache
def _metadata() -> Any:  # noqa: ANN401
    from sqlalchemy import MetaData

    return MetaData()


def _sql_table(table: type[Table]) -> SqlTable:
    import sqlalchemy

    kinds = {"str": sqlalchemy.String, "int": sqlalchemy.Integer, "float": sqlalchemy.Float, "bool": sqlalchemy.Boolean}
    kinds |= {"bytes": sqlalchemy.LargeBinary}  # all others are JSON
    columns = []
    for name, own in table._columns.items():
        kind = kinds.get(table.__annotations__[name].removeprefix("Mapped[").removesuffix("]"), sqlalchemy.JSON)
        settings = own.settings or {}
        rule = "CASCADE" if settings.get("primary_key") else None
        key = [] if own.table is None else [sqlalchemy.ForeignKey(f"{own.table}.id", ondelete=rule)]
        columns.append(sqlalchemy.Column(own.name or name, kind, *key, **{"nullable": False, **settings}))
    return sqlalchemy.Table(table.__tablename__, _metadata(), *columns)


class MetaRow(Table):
    """One named value: schema version, encoder, counters."""

    __tablename__ = "meta"
    key: Mapped[str] = column(primary_key=True)
    value: Mapped[Any]


class ShardRow(Table):
    """One immutable file of vectors."""

    __tablename__ = "shards"
    id: Mapped[int] = column(primary_key=True)
    file: Mapped[str]  # relative to the index folder
    size_bytes: Mapped[int]
    digest: Mapped[str]
    n_documents: Mapped[int]
    n_chunks: Mapped[int]
    part_digests: Mapped[dict[str, Any]]  # by tensor, and that of the header; see `engine.store.shards`


class StagedShardRow(Table):
    """A shard with vectors of another encoder, to which the index switches once all documents have such vectors."""

    __tablename__ = "staged_shards"
    shard_id: Mapped[int] = column(of="shards", primary_key=True)
    fingerprint: Mapped[str]  # of the encoder
    documents: Mapped[list[Any]]  # ids and places, see `engine.store.staging`


class DocumentRow(Table):
    """One document that can be found, the places of its vectors, and the tokens that were read.

    Its chunks have the ids `first_chunk` to `first_chunk + n_chunks - 1`, which are
    also the ids of their vectors in FAISS.
    """

    __tablename__ = "documents"
    id: Mapped[int] = column(primary_key=True)
    doc_id: Mapped[str] = column(unique=True)
    title: Mapped[str]
    source: Mapped[str]
    content_hash: Mapped[str]
    meta: Mapped[dict[str, Any]] = column("metadata")
    pages: Mapped[list[Any]]
    pins: Mapped[list[Any]]
    shard_id: Mapped[int] = column(of="shards", index=True)
    document_row: Mapped[int]  # its row in the shard's document vectors
    section_row: Mapped[int]  # its first row in the shard's section vectors
    chunk_row: Mapped[int]  # its first row in the shard's chunk vectors
    first_chunk: Mapped[int] = column(unique=True)
    n_chunks: Mapped[int]
    n_sections: Mapped[int]
    tokens_read: Mapped[int]
    tokens_total: Mapped[int]


class TextRow(Table):
    """The text of a document, deflated; apart, so that scans of documents do not read it."""

    __tablename__ = "texts"
    document_id: Mapped[int] = column(of="documents", primary_key=True)
    deflated: Mapped[bytes]


class SectionRow(Table):
    """One section of a document; offsets count characters of its text."""

    __tablename__ = "sections"
    document_id: Mapped[int] = column(of="documents", primary_key=True)
    position: Mapped[int] = column(primary_key=True)
    heading: Mapped[str]
    path: Mapped[list[Any]]
    start: Mapped[int]
    stop: Mapped[int]
    n_merged: Mapped[int]
    part: Mapped[int]
    n_parts: Mapped[int]


class GenerationRow(Table):
    """One published FAISS index over all chunks with ids up to `through_chunk`."""

    __tablename__ = "generations"
    id: Mapped[int] = column(primary_key=True)
    factory: Mapped[str]
    nprobe: Mapped[int]  # 0 where the index type has none
    through_chunk: Mapped[int]
    n_vectors: Mapped[int]
    is_exact: Mapped[bool]
    recall: Mapped[float]  # share of the exact top 10 documents that is found, in [0, 1]
    recall_queries: Mapped[int]
    file: Mapped[str]
    size_bytes: Mapped[int]
    digest: Mapped[str]


class PostingsRow(Table):
    """The postings of words that belong to a generation: the file by which words choose candidates."""

    __tablename__ = "postings"
    generation_id: Mapped[int] = column(of="generations", primary_key=True)
    file: Mapped[str]
    size_bytes: Mapped[int]
    digest: Mapped[str]


class WordPostingsRow(Table):
    """Postings of words over documents without vectors that no generation covers."""

    __tablename__ = "word_postings"
    id: Mapped[int] = column(primary_key=True)
    n_documents: Mapped[int]
    file: Mapped[str]
    size_bytes: Mapped[int]
    digest: Mapped[str]


class ReferenceRow(Table):
    """The reference in force: the sample that thresholds are taken over, and the statistics of words."""

    __tablename__ = "reference"
    version: Mapped[int] = column(primary_key=True)
    n_corpus: Mapped[int]  # documents of the index when it was drawn
    n_documents: Mapped[int]  # of the sample
    file: Mapped[str]
    size_bytes: Mapped[int]
    digest: Mapped[str]


class DemandRow(Table):
    """How often a document without vectors was among the candidates of a query, and was not encoded for it."""

    __tablename__ = "demand"
    document_id: Mapped[int] = column(of="documents", primary_key=True)
    n_queries: Mapped[int]


class FailureRow(Table):
    """A document that the last run over its source could not index, and why."""

    __tablename__ = "failures"
    source: Mapped[str] = column(primary_key=True)
    reason: Mapped[str]
    doc_id: Mapped[str]  # that the document would have; empty if unknown


@contextmanager
def catalog_faults(path: Path) -> Iterator[None]:
    """Raise errors of SQLite as errors of this program.

    No checksum covers the catalog as a whole, so SQLite can find damage at any statement.
    """
    try:
        with faults_named(str(path)):
            yield
    except UnicodeDecodeError as error:  # names of tables and columns are text too
        raise IndexDamaged(f"{path} cannot be read ({error}); check it: longmatch upkeep verify INDEX") from error


def open_reader(path: Path) -> sqlite3.Connection:
    """Open the catalog read-only, in a transaction, so that it shows one state; several threads may use it.

    Raises:
        StorageError: the folder cannot be written, and the newest commits are only in the log.
        IndexDamaged: SQLite cannot open it.
    """
    with catalog_faults(path):
        connection = _opened(path, read_only=True)
        connection.execute("BEGIN")
    return connection


def _opened(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """SQLite's connection. Closing one that is read-only never checkpoints."""
    query = "mode=ro" if read_only else "mode=rwc"
    if read_only and not os.access(path.parent, os.W_OK):
        _refuse_log(path)
        query += "&immutable=1"
    connection = sqlite3.connect(
        f"file:{quote(str(path.resolve()))}?{query}",
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )
    try:
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA trusted_schema=OFF")  # a stranger's catalog may define views and triggers
        connection.execute("PRAGMA cell_size_check=ON")
        if not read_only:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def connect(path: Path, *, read_only: bool) -> Engine:
    """Open the catalog with SQLAlchemy; a writer creates the file and missing tables.

    In a folder that cannot be written, the file is opened as immutable.

    Raises:
        StorageError: the folder cannot be written, and the newest commits are only in the log.
    """
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import NullPool

    if read_only and not os.access(path.parent, os.W_OK):
        _refuse_log(path)
    engine = create_engine(
        "sqlite://",
        creator=lambda: _opened(path, read_only=read_only),
        poolclass=NullPool,
        json_serializer=_dumps,
    )

    @event.listens_for(engine, "handle_error")
    def _name(context: ExceptionContext) -> None:
        error = context.original_exception
        with catalog_faults(path):
            if isinstance(error, UnicodeDecodeError) or fault(error) is not None:
                raise error

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # The driver begins no transaction for a SELECT, and so would not pin a reader.
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    if not read_only:
        for table in Table.__subclasses__():
            table.__clause_element__()
        _metadata().create_all(engine)
    return engine


def has_log(folder: Path) -> bool:
    """Whether a writer is at work in an index folder, or was killed there."""
    log = folder / f"{CATALOG_FILE}-wal"
    return log.exists() and log.stat().st_size > 0


def _refuse_log(catalog: Path) -> None:
    """Refuse a catalog whose newest commits are in a log that cannot be read: SQLite would ignore them."""
    if has_log(catalog.parent):
        raise StorageError(
            f"{catalog.parent} cannot be written, and {catalog.name}-wal holds commits that are not in the catalog; "
            "open the index once where its folder can be written (longmatch show INDEX), or back it up there and "
            "restore the backup here: longmatch upkeep backup INDEX FILE"
        )


def check_file_names(names: Iterable[str], place: str) -> None:
    """Refuse a file outside of the index folder; checksums do not help against a forged catalog.

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


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def write_meta(connection: Connection, values: dict[str, Any]) -> None:
    """Set named values, leaving the others."""
    from sqlalchemy.dialects.sqlite import insert

    for key, value in values.items():
        statement = insert(MetaRow).values(key=key, value=value)
        connection.execute(statement.on_conflict_do_update(index_elements=["key"], set_={"value": value}))


OPENED_TABLES: tuple[type[Table], ...] = (  # they grow only with the shards
    MetaRow,
    ShardRow,
    GenerationRow,
    PostingsRow,
    WordPostingsRow,
    ReferenceRow,
)
StoredRows: TypeAlias = Mapping[type[Table], Sequence[Sequence[Any]]]  # by rising key, values as SQLite holds them
AnyConnection: TypeAlias = "sqlite3.Connection | Connection"  # of a reader, or of a writer
NamedRow: TypeAlias = Any  # a tuple whose values have the names of their columns


def read_opened(connection: AnyConnection) -> StoredRows:
    """All rows of `OPENED_TABLES`, as the open transaction sees them."""
    return {table: driver(connection).execute(all_rows(table)).fetchall() for table in OPENED_TABLES}


def driver(connection: AnyConnection) -> sqlite3.Connection:
    """SQLite's own connection, in the same transaction: rows of SQLAlchemy take many times as long."""
    if isinstance(connection, sqlite3.Connection):
        return connection
    if not connection.in_transaction():
        connection.begin()
    own: sqlite3.Connection | None = connection.connection.driver_connection
    assert own is not None
    return own


def has_table(connection: AnyConnection, table: type[Table]) -> bool:
    """Whether a table was made."""
    statement = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return driver(connection).execute(statement, [table.__tablename__]).fetchone() is not None


def named_rows(stored: StoredRows, table: type[Table]) -> list[NamedRow]:
    """The rows of one table with names, JSON as text."""
    made, booleans = _names(table)
    rows = [made(*row) for row in stored[table]]
    if not booleans:
        return rows
    return [row._replace(**{name: bool(getattr(row, name)) for name in booleans}) for row in rows]


def newest(stored: StoredRows, table: type[Table]) -> NamedRow | None:
    """The row of the highest key; None if the table is empty."""
    rows = named_rows(stored, table)
    return rows[-1] if rows else None


@cache
def all_rows(table: type[Table]) -> str:
    """The statement that reads all columns of a table, by rising key."""
    return f"SELECT {quoted_names(table)} FROM {table.__tablename__} ORDER BY {', '.join(table.keys)}"


def quoted_names(table: type[Table]) -> str:
    """All columns of a table, for a statement."""
    return ", ".join(f'"{name}"' for name in table.names)


@cache
def _names(table: type[Table]) -> tuple[Any, list[str]]:
    """A class of named rows, and the columns that are true or false, which SQLite holds as numbers."""
    made = namedtuple(table.__name__, table.names)  # type: ignore[misc]
    return made, [name for name, kind in table.__annotations__.items() if kind == "Mapped[bool]"]
