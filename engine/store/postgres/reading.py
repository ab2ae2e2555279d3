"""One session that reads an index in PostgreSQL as it was at one commit. Interprets no row."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from engine.errors import IndexDamaged
from engine.store.address import Address
from engine.store.postgres.binary import VECTOR, decode
from engine.store.postgres.connection import check_tables, connect, server_faults
from engine.store.postgres.schema import read_settings


class Reader:
    """A transaction in which all statements see the same rows, whatever is committed meanwhile."""

    def __init__(self, address: Address) -> None:
        """Begin to read; `close` ends the transaction.

        Raises:
            IndexMismatch: there is no index, or one of another version.
            StorageError: the server does not answer, or refuses.
        """
        self.address = address
        self._session = connect(address)
        self._lock = threading.Lock()  # the rows of a COPY must not be mixed with those of another thread
        try:
            with server_faults(address):
                # Between two statements a reader waits for its user, for any length of time.
                self._session.execute("SET idle_in_transaction_session_timeout = 0")
                self._session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                check_tables(self._session, address)
                self.settings: dict[str, Any] = read_settings(self._session, address)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the session."""
        self._session.close()

    @property
    def file_descriptor(self) -> int:
        """File descriptor of the connection."""
        return self._session.fileno()

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        with self._lock, server_faults(self.address):
            return self._session.execute(statement.encode(), values or None, binary=True).fetchall()

    def between(
        self, table: str, fields: Mapping[str, str], ids: tuple[int, int], order: str, *, width: int = 0
    ) -> NDArray[np.void]:
        """Rows of documents with consecutive ids: numbers, and a vector if a width is given.

        Args:
            table: to read.
            fields: names and types of its columns.
            ids: of the first and the last document.
            order: columns to order by; the first is the id of the document.
            width: D of the column `vector`, whose rows without a vector are left out; 0 to leave the column out.

        Returns:
            (R,) rows with the fields, and `vector` (D,).

        Raises:
            IndexDamaged: the rows are not those of an index.
        """
        columns: list[sql.Composable] = [
            sql.SQL("{}::{}").format(sql.Identifier(name), sql.SQL(kind)) for name, kind in fields.items()
        ]
        if width:
            columns.append(sql.Identifier(VECTOR))
        query = sql.SQL(
            "COPY (SELECT {columns} FROM {table} WHERE {key} BETWEEN {first} AND {last} {only} ORDER BY {order}) "
            "TO STDOUT (FORMAT binary)"
        ).format(
            columns=sql.SQL(", ").join(columns),
            table=sql.Identifier(table),
            key=sql.Identifier(order.partition(",")[0]),
            first=sql.Literal(ids[0]),
            last=sql.Literal(ids[1]),
            only=sql.SQL(f"AND {VECTOR} IS NOT NULL" if width else ""),
            order=sql.SQL(order),
        )
        content = bytearray()
        with self._lock, server_faults(self.address), self._session.cursor().copy(query) as copy:
            for block in copy:
                content += block
        try:
            return decode(content, fields, width)
        except ValueError as error:
            raise IndexDamaged(f"table {table} of {self.address}: {error}; copy the index there again") from error
