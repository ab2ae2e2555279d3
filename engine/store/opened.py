"""The tables of a catalog that do not grow with the documents, which every reader reads on opening.

The rows are read once, compared with their checksums (`engine.store.checks`), and then used. They are read through
SQLite's own connection, because SQLAlchemy would compile its statements again for each opened catalog.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

from sqlalchemy import Boolean, Connection

from engine.store.catalog import (
    GenerationRow,
    MetaRow,
    PostingsRow,
    ReferenceRow,
    ShardRow,
    Table,
    WordPostingsRow,
)

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
