"""Documents that could not be indexed, kept in the catalog until they can be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, bindparam, delete, insert, select

from engine.store.catalog import FailureRow
from engine.store.writable import WritableIndex


class FailureLog(WritableIndex):
    """An index held for writing: records failures, and drops those of documents that can be indexed."""

    def record_failure(self, source: str, reason: str, doc_id: str = "") -> None:
        """Record that a source could not be indexed, until it can be.

        Args:
            source: a path, or a line of a file of JSON lines.
            reason: for users.
            doc_id: that the document would have; empty if unknown.
        """
        with self._transaction() as connection:
            self._forget_failures(connection, [source])
            connection.execute(insert(FailureRow).values(source=source, reason=reason, doc_id=doc_id))

    def failed_sources(self) -> set[str]:
        """Sources that could not be indexed when they were last read."""
        with self.read() as connection:
            return set(connection.execute(select(FailureRow.source)).scalars())

    def forget_failures(self, sources: Sequence[str]) -> None:
        """Drop recorded failures of sources that can be indexed now."""
        with self._transaction() as connection:
            self._forget_failures(connection, sources)

    def keep_failures(self, sources: Sequence[str]) -> None:
        """Drop all recorded failures except those of the given sources."""
        with self._transaction() as connection:
            recorded = set(connection.execute(select(FailureRow.source)).scalars())
            self._forget_failures(connection, sorted(recorded.difference(sources)))

    def _forget_failures(self, connection: Connection, sources: Iterable[str]) -> None:
        if rows := [{"one": source} for source in sources]:
            connection.execute(delete(FailureRow).where(FailureRow.source == bindparam("one")), rows)
