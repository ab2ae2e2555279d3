"""The tables of `catalog.sqlite`, the only source of truth of an index, how they are opened, and raw rows.

Tables that do not grow with the documents are read whole by every reader on opening: once, compared with their
checksums (`engine.store.checks`), and then used. They are read through SQLite's own connection, because SQLAlchemy
would compile its statements again for each opened catalog.
"""

from __future__ import annotations

import json
import os
from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from threading import RLock
from typing import Any, TypeAlias
from urllib.parse import quote

from sqlalchemy import JSON, URL, Boolean, Connection, Engine, ForeignKey, LargeBinary, create_engine, event
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.pool import NullPool

from engine.errors import IndexDamaged, StorageError, fault

FORMAT = 1  # of an index on disk, the rules of terms and of kinds of sections included; no other is read
CATALOG_FILE = "catalog.sqlite"
ANN_FOLDER = "ann"
BUSY_SECONDS = 30  # limit on the time that a statement waits for another process


class Table(DeclarativeBase):
    """Base of the tables."""

    type_annotation_map = {dict[str, Any]: JSON, list[Any]: JSON, bytes: LargeBinary}  # noqa: RUF012


class MetaRow(Table):
    """One named value: schema version, encoder, counters."""

    __tablename__ = "meta"
    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[Any] = mapped_column(JSON)


class ShardRow(Table):
    """One immutable file of vectors."""

    __tablename__ = "shards"
    id: Mapped[int] = mapped_column(primary_key=True)
    file: Mapped[str]  # relative to the index folder
    size_bytes: Mapped[int]
    digest: Mapped[str]
    n_documents: Mapped[int]
    n_chunks: Mapped[int]
    part_digests: Mapped[dict[str, Any]]  # by tensor, and that of the header; see `engine.store.shards`


class StagedShardRow(Table):
    """A shard with vectors of another encoder, to which the index switches once all documents have such vectors."""

    __tablename__ = "staged_shards"
    shard_id: Mapped[int] = mapped_column(ForeignKey("shards.id", ondelete="CASCADE"), primary_key=True)
    fingerprint: Mapped[str]  # of the encoder
    documents: Mapped[list[Any]]  # ids and places, see `engine.store.staging`


class DocumentRow(Table):
    """One document that can be found, the places of its vectors, and the tokens that were read.

    Its chunks have the ids `first_chunk` to `first_chunk + n_chunks - 1`, which are
    also the ids of their vectors in FAISS.
    """

    __tablename__ = "documents"
    id: Mapped[int] = mapped_column(primary_key=True)
    doc_id: Mapped[str] = mapped_column(unique=True)
    title: Mapped[str]
    source: Mapped[str]
    content_hash: Mapped[str]
    meta: Mapped[dict[str, Any]] = mapped_column("metadata")
    pages: Mapped[list[Any]]
    pins: Mapped[list[Any]]
    shard_id: Mapped[int] = mapped_column(ForeignKey("shards.id"), index=True)
    document_row: Mapped[int]  # its row in the shard's document vectors
    section_row: Mapped[int]  # its first row in the shard's section vectors
    chunk_row: Mapped[int]  # its first row in the shard's chunk vectors
    first_chunk: Mapped[int] = mapped_column(unique=True)
    n_chunks: Mapped[int]
    n_sections: Mapped[int]
    tokens_read: Mapped[int]
    tokens_total: Mapped[int]


class TextRow(Table):
    """The text of a document, deflated; apart, so that scans of documents do not read it."""

    __tablename__ = "texts"
    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True)
    deflated: Mapped[bytes]


class SectionRow(Table):
    """One section of a document; offsets count characters of its text."""

    __tablename__ = "sections"
    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
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
    id: Mapped[int] = mapped_column(primary_key=True)
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
    generation_id: Mapped[int] = mapped_column(ForeignKey("generations.id", ondelete="CASCADE"), primary_key=True)
    file: Mapped[str]
    size_bytes: Mapped[int]
    digest: Mapped[str]


class WordPostingsRow(Table):
    """Postings of words over documents without vectors that no generation covers."""

    __tablename__ = "word_postings"
    id: Mapped[int] = mapped_column(primary_key=True)
    n_documents: Mapped[int]
    file: Mapped[str]
    size_bytes: Mapped[int]
    digest: Mapped[str]


class ReferenceRow(Table):
    """The reference in force: the sample that thresholds are taken over, and the statistics of words."""

    __tablename__ = "reference"
    version: Mapped[int] = mapped_column(primary_key=True)
    n_corpus: Mapped[int]  # documents of the index when it was drawn
    n_documents: Mapped[int]  # of the sample
    file: Mapped[str]
    size_bytes: Mapped[int]
    digest: Mapped[str]


class DemandRow(Table):
    """How often a document without vectors was among the candidates of a query, and was not encoded for it."""

    __tablename__ = "demand"
    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True)
    n_queries: Mapped[int]


class FailureRow(Table):
    """A document that the last run over its source could not index, and why."""

    __tablename__ = "failures"
    source: Mapped[str] = mapped_column(primary_key=True)
    reason: Mapped[str]
    doc_id: Mapped[str]  # that the document would have; empty if unknown


class SharedConnection(Connection):
    """A connection for several threads: a statement runs, and its rows are fetched, before the next one begins."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._turn = RLock()

    def execute(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        """Run a statement; the rows of the result are in memory."""
        with self._turn:
            return super().execute(*arguments, **options).freeze()()


def connect(path: Path, *, read_only: bool) -> Engine:
    """Open the catalog; a writer creates the file and missing tables.

    Readers open SQLite read-only, so that closing one never checkpoints. In a folder that
    cannot be written, the file is opened as immutable.

    Raises:
        StorageError: the folder cannot be written, and the newest commits are only in the log.
    """
    mode = "ro" if read_only else "rwc"
    query = {"mode": mode, "uri": "true"}
    if read_only and not os.access(path.parent, os.W_OK):
        _refuse_log(path)
        query["immutable"] = "1"
    engine = create_engine(
        URL.create("sqlite", database=f"file:{quote(str(path.resolve()))}", query=query),
        poolclass=NullPool,
        connect_args={"check_same_thread": False, "timeout": BUSY_SECONDS, "isolation_level": None},
        json_serializer=_dumps,
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:  # noqa: ANN401
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA trusted_schema=OFF")  # a stranger's catalog may define views and triggers
        connection.execute("PRAGMA cell_size_check=ON")
        if not read_only:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")

    @event.listens_for(engine, "handle_error")
    def _name(context: ExceptionContext) -> None:
        # No checksum covers the catalog as a whole, so SQLite can find damage at any statement.
        error = context.original_exception
        if isinstance(error, UnicodeDecodeError):  # names of tables and columns are text too
            raise IndexDamaged(f"{path} cannot be read ({error}); check it: longmatch upkeep verify INDEX") from error
        if (named := fault(error, str(path))) is not None:
            raise named from error

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # The driver begins no transaction for a SELECT, and so would not pin a reader.
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    if not read_only:
        Table.metadata.create_all(engine)
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
NamedRow: TypeAlias = Any  # a tuple whose values have the names of their columns


def read_opened(connection: Connection) -> StoredRows:
    """All rows of `OPENED_TABLES`, as the open transaction sees them."""
    driver = connection.connection.driver_connection
    assert driver is not None
    return {table: driver.execute(all_rows(table)).fetchall() for table in OPENED_TABLES}


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
    names = ", ".join(f'"{column.name}"' for column in table.__table__.columns)
    keys = ", ".join(column.name for column in table.__table__.primary_key)
    return f"SELECT {names} FROM {table.__tablename__} ORDER BY {keys}"


@cache
def _names(table: type[Table]) -> tuple[Any, list[str]]:
    """A class of named rows, and the columns that are true or false, which SQLite holds as numbers."""
    columns = list(table.__table__.columns)
    made = namedtuple(table.__name__, [column.name for column in columns])  # type: ignore[misc]
    return made, [column.name for column in columns if isinstance(column.type, Boolean)]
