"""Where the vectors of each document lie: the columns of the catalog that every query needs. Reads no vector."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from engine.store.catalog import DocumentRow


@dataclass(frozen=True, slots=True)
class Roster:
    """Where the vectors of each document lie; all arrays are (N,), in the order of catalog ids."""

    ids: NDArray[np.int64]
    shard: NDArray[np.int64]
    document_row: NDArray[np.int64]
    section_row: NDArray[np.int64]
    n_sections: NDArray[np.int64]
    chunk_row: NDArray[np.int64]
    first_chunk: NDArray[np.int64]
    n_chunks: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def moved(self, positions: NDArray[np.int64], **columns: NDArray[np.int64]) -> Roster:
        """The same with other values in some columns of some documents.

        Args:
            positions: (R,) documents.
            columns: (R,) new values, by the name of the column.
        """
        changed = {name: getattr(self, name).copy() for name in columns}
        for name, values in columns.items():
            changed[name][positions] = values
        return replace(self, **changed)


def read_roster(connection: Connection) -> Roster:
    """All documents, as the transaction that is open sees them.

    Raises:
        sqlite3.DatabaseError: SQLite cannot read them.
    """
    columns = (
        DocumentRow.id,
        DocumentRow.shard_id,
        DocumentRow.document_row,
        DocumentRow.section_row,
        DocumentRow.n_sections,
        DocumentRow.chunk_row,
        DocumentRow.first_chunk,
        DocumentRow.n_chunks,
    )
    statement = select(*columns).order_by(DocumentRow.id)
    driver = connection.connection.driver_connection
    assert driver is not None
    # By the driver, in the transaction that is open: rows of SQLAlchemy take sixteen times as long (50,000 documents).
    rows = driver.execute(str(statement.compile(connection)))
    table = np.fromiter(chain.from_iterable(rows), np.int64).reshape(-1, len(columns))
    return Roster(*table.T.copy())
