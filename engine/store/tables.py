"""The tables of the catalog for writers, who change them through SQLAlchemy. Readers use SQLite's own connection.

The import takes longer than a search, so that nothing that a reader loads imports this file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    bindparam,
    create_engine,
    event,
    update,
)
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.pool import StaticPool
from sqlalchemy.types import TypeEngine

from engine.store.catalog import COLUMNS, as_json, columns

Row: TypeAlias = Mapping[str, Any]  # values by column
# The type of a column follows from its name; of all others it is `Integer`.
_TYPES: Mapping[type[TypeEngine[Any]], str] = {
    String: "key file digest fingerprint doc_id title source content_hash heading factory reason name",
    JSON: "value part_digests documents metadata pages pins path",
    LargeBinary: "deflated arrays",
    Boolean: "is_exact",
    Float: "recall",
}
_TYPE_OF = {name: kind for kind, names in _TYPES.items() for name in names.split()}
_OF_TABLE = {"shard_id": "shards", "document_id": "documents", "generation_id": "generations"}
_UNIQUE = {("documents", "doc_id"), ("documents", "first_chunk")}
_METADATA = MetaData()


def _column(table: str, name: str) -> Column[Any]:
    is_key = name in columns(table)[: 2 if table == "sections" else 1]
    keys = []
    if name in _OF_TABLE:
        keys.append(ForeignKey(f"{_OF_TABLE[name]}.id", ondelete="CASCADE" if is_key else None))
    return Column(
        name,
        _TYPE_OF.get(name, Integer),
        *keys,
        primary_key=is_key,
        nullable=False,
        unique=(table, name) in _UNIQUE or None,
        index=name == "shard_id" and not is_key,
    )


TABLES = {name: Table(name, _METADATA, *(_column(name, own) for own in columns(name))) for name in COLUMNS}


def engine_of(connection: sqlite3.Connection) -> Engine:
    """An engine over a connection of SQLite, whose transactions write at once; errors stay those of SQLite."""
    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool, json_serializer=as_json)

    @event.listens_for(engine, "begin")
    def _begin(writing: Connection) -> None:
        writing.exec_driver_sql("BEGIN IMMEDIATE")  # the driver would begin none for a SELECT

    @event.listens_for(engine, "handle_error")
    def _unwrap(context: ExceptionContext) -> None:
        raise context.original_exception

    return engine


def create_tables(writing: Connection) -> None:
    """Make the tables that are missing."""
    _METADATA.create_all(writing)


def insert_rows(writing: Connection, table: str, rows: Iterable[Row]) -> None:
    """Insert rows with equal columns; lists and dicts become JSON."""
    if listed := list(rows):
        writing.execute(insert(TABLES[table]), listed)


def update_documents(writing: Connection, rows: Iterable[Row]) -> None:
    """Change the same columns of documents; `id` says of which."""
    changes = [{"changed": row["id"], **{name: value for name, value in row.items() if name != "id"}} for row in rows]
    if changes:
        documents = TABLES["documents"]
        writing.execute(update(documents).where(documents.c.id == bindparam("changed")), changes)


def write_meta(writing: Connection, values: Mapping[str, Any]) -> None:
    """Set named values, leaving the others."""
    for key, value in values.items():
        statement = insert(TABLES["meta"]).values(key=key, value=value)
        writing.execute(statement.on_conflict_do_update(index_elements=["key"], set_={"value": value}))
