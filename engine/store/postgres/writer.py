"""The one writer of an index in PostgreSQL: commits, removals, failures, the reference. Encodes nothing.

Each commit is one transaction of the server, so readers see either the old or the new version of a document. The lock
is also held by the server, and ends with the session: a killed writer does not block the next one.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from pgvector.psycopg import register_vector
from psycopg.types.json import Json

from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexBusy, IndexMismatch
from engine.store.address import Address
from engine.store.postgres.connection import Session, connect, has_tables, server_faults
from engine.store.postgres.insertion import insert_chunks, insert_counts, insert_documents, update_vectors
from engine.store.postgres.schema import create, drop_tables, read_settings, set_width, write_settings
from engine.store.postgres.snapshot import stored_documents
from engine.store.reference import Reference, write_reference
from engine.store.writer import Indexed, Writer
from engine.text.document import Document
from engine.words.counts import WordTables
from engine.words.packing import pack

_COMMITTED: dict[str, Any] = {"counters": {}}  # as in a catalog, marks a first commit; the server counts ids
_LOCK = 0x6C6D  # first key of the lock, next to the hash of the schema's name; other programs use other keys


class PostgresWriter(Writer):
    """Commits to an index in PostgreSQL, whose lock it holds from opening to closing; see `Writer`."""

    has_files = False
    folder: Address

    def __init__(self, address: Address) -> None:
        """Take the lock; create the tables if they are missing.

        Raises:
            IndexBusy: another session holds the lock.
            IndexMismatch: another version of this program made the tables.
            StorageError: the server does not answer, or refuses.
        """
        self.folder = address
        self._session: Session = connect(address)
        try:
            with server_faults(address):
                lock = self._session.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [_LOCK, address.schema])
                if lock.fetchone() != (True,):
                    raise IndexBusy(f"another session is writing {address}; wait for it to end")
                if not has_tables(self._session, address):
                    create(self._session, address)
                register_vector(self._session)
                self.meta: dict[str, Any] = read_settings(self._session, address)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the lock and end the session.

        The server notices the end of a session a moment later. Until then, a lock that was not released would block
        the next writer. A broken session no longer holds the lock.
        """
        with suppress(psycopg.Error):
            self._session.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", [_LOCK, self.folder.schema])
        self._session.close()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever committed."""
        return "counters" not in self.meta

    def drop(self) -> None:
        """Remove the tables of the index; the schema stays."""
        with server_faults(self.folder), self._session.transaction():
            drop_tables(self._session)

    @contextmanager
    def one_commit(self) -> Iterator[None]:
        """Make all commits inside appear together, or not at all."""
        with server_faults(self.folder), self._session.transaction():
            yield

    @contextmanager
    def _commit(self) -> Iterator[Session]:
        """One transaction of the server."""
        commits = int(self.meta.get("commits", 0)) + 1
        with server_faults(self.folder), self._session.transaction():
            yield self._session
            write_settings(self._session, {"commits": commits})
        self.meta["commits"] = commits

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with server_faults(self.folder):
            return self._session.execute(statement.encode(), values or None).fetchall()

    def _set_meta(self, values: dict[str, Any]) -> None:
        with self._commit() as session:
            write_settings(session, values)
            if encoder := values.get("encoder"):
                set_width(session, int(encoder["width"]))
        self.meta |= values

    def documents(self, document_ids: Sequence[int]) -> list[Document]:
        """Documents by id, in that order; removed documents are left out."""
        found = stored_documents(self._rows, document_ids)
        return [found[one][0] for one in document_ids if one in found]

    def refusal(self, document: Document) -> str | None:
        """The reason why the server cannot store a document; None if it can."""
        if _holds_nul(document):
            return "it holds the character NUL, which PostgreSQL does not store; clean it, or leave it out"
        return None

    def indexed(self, doc_ids: Sequence[str]) -> dict[str, Indexed]:
        """Stored values of the given names, without those that are not indexed."""
        rows = self._rows(
            "SELECT doc_id, id, content_hash, metadata, source FROM documents WHERE doc_id = ANY(%s)", list(doc_ids)
        )
        return {row[0]: Indexed(row[1], row[2], json.loads(row[3]), row[4]) for row in rows}

    def commit(self, encoded: Sequence[tuple[Document, EncodedDocument]], words: WordTables | None = None) -> list[int]:
        """Write a batch of documents, replacing those of the same names, all in one transaction.

        Args:
            encoded: documents with their vectors.
            words: their term counts, if `count_words` already counted them.

        Returns:
            Their ids, in order. When this returns, the server has committed them and they can be found.

        Raises:
            IndexMismatch: a text holds the character NUL, which PostgreSQL does not store.
        """
        documents = [document for document, _ in encoded]
        for document in documents:
            if (reason := self.refusal(document)) is not None:
                raise IndexMismatch(f"{document.doc_id!r} cannot be stored: {reason}")
        counted = words if words is not None and words.apart is not None else self.count_words(documents)
        assert counted is not None
        packed = pack(counted)
        with self._commit() as session:
            session.execute("DELETE FROM documents WHERE doc_id = ANY(%s)", [[one.doc_id for one in documents]])
            numbers = session.execute(
                "SELECT nextval(pg_get_serial_sequence('documents', 'id')) FROM generate_series(1, %s)", [len(encoded)]
            )
            ids = [int(str(row[0])) for row in numbers]
            insert_documents(session, ids, encoded, packed)
            insert_chunks(session, [(one, vectors) for one, (_, vectors) in zip(ids, encoded, strict=True)], self.width)
            insert_counts(session, ids, packed)
            session.execute("DELETE FROM failures WHERE source = ANY(%s)", [[one.source for one in documents]])
            write_settings(session, _COMMITTED)
        self.meta |= _COMMITTED
        return ids

    def add_vectors(
        self, document_ids: Sequence[int], encoded: Sequence[EncodedDocument], words: WordTables | None = None
    ) -> int:
        """Give vectors to documents that have none, in one transaction; their other values stay.

        Documents that were removed, or have vectors by now, are left out.

        Returns:
            The number of documents that got vectors.
        """
        with self._commit() as session:
            still = self.still_unencoded(document_ids)
            chosen = [(one, vectors) for one, vectors in zip(document_ids, encoded, strict=True) if one in still]
            update_vectors(session, chosen)
            insert_chunks(session, chosen, self.width)
            session.execute("DELETE FROM demand WHERE document_id = ANY(%s)", [[one for one, _ in chosen]])
        return len(chosen)

    def still_unencoded(self, document_ids: Sequence[int]) -> set[int]:
        """The given ids that exist and have no vectors."""
        statement = "SELECT id FROM documents WHERE n_chunks = 0 AND id = ANY(%s)"
        return {row[0] for row in self._rows(statement, list(document_ids))}

    def unencoded(self) -> list[int]:
        """Ids of all documents without vectors, by falling number of queries that needed them, then by rising id."""
        statement = (
            "SELECT id FROM documents LEFT JOIN demand ON document_id = id WHERE n_chunks = 0 "
            "ORDER BY coalesce(n_queries, 0) DESC, id"
        )
        return [row[0] for row in self._rows(statement)]

    def add_demand(self, document_ids: Sequence[int]) -> None:
        """Record that a query needed the vectors of documents that have none, and ran without them."""
        if not document_ids:
            return
        statement = (
            "INSERT INTO demand SELECT id, 1 FROM documents WHERE id = ANY(%s) "
            "ON CONFLICT (document_id) DO UPDATE SET n_queries = demand.n_queries + 1"
        )
        with server_faults(self.folder):
            self._session.execute(statement, [list(document_ids)])  # not a commit that readers have to notice

    def update_metadata(self, documents: Sequence[tuple[int, Document]]) -> None:
        """Set metadata and source of documents whose content is unchanged; nothing is encoded."""
        with self._commit() as session:
            for one, document in documents:
                values = [Json(dict(document.metadata)), document.source, one]
                session.execute("UPDATE documents SET metadata = %s, source = %s WHERE id = %s", values)

    def remove(self, document_ids: Sequence[int]) -> None:
        """Remove documents; when this returns, they can no longer be found."""
        with self._commit() as session:
            session.execute("DELETE FROM documents WHERE id = ANY(%s)", [list(document_ids)])

    def sources(self) -> list[tuple[int, str]]:
        """Id and source of every document, by rising id."""
        return [(row[0], row[1]) for row in self._rows("SELECT id, source FROM documents ORDER BY id")]

    def record_failure(self, source: str, reason: str, doc_id: str = "") -> None:
        """Record that a source could not be indexed, until it can be; see `FailureLog`."""
        statement = (
            "INSERT INTO failures VALUES (%s, %s, %s) ON CONFLICT (source) "
            "DO UPDATE SET reason = excluded.reason, doc_id = excluded.doc_id"
        )
        values = [text.replace("\0", "�") for text in (source, reason, doc_id)]
        with self._commit() as session:
            session.execute(statement, values)

    def failed_sources(self) -> set[str]:
        """Sources that could not be indexed when they were last read."""
        return {row[0] for row in self._rows("SELECT source FROM failures")}

    def forget_failures(self, sources: Sequence[str]) -> None:
        """Drop recorded failures of sources that can be indexed now."""
        if sources:
            with self._commit() as session:
                session.execute("DELETE FROM failures WHERE source = ANY(%s)", [list(sources)])

    def keep_failures(self, sources: Sequence[str]) -> None:
        """Drop all recorded failures except those of the given sources."""
        with self._commit() as session:
            session.execute("DELETE FROM failures WHERE source <> ALL(%s)", [list(sources)])

    def publish_reference(self, reference: Reference, *, is_partial: bool = False) -> None:
        """Write a reference in place of the previous one.

        Args:
            reference: its version is `next_reference`.
            is_partial: whether its sample was drawn while documents had no vectors.
        """
        with tempfile.TemporaryDirectory(prefix="longmatch-") as folder:
            file = Path(folder) / "reference.safetensors"
            written = write_reference(file, reference)
            content = file.read_bytes()
        values = {"last_reference": reference.version, "partial_reference": is_partial}
        row = [reference.version, reference.n_corpus, reference.n_documents, written.digest, content]
        with self._commit() as session:
            session.execute("DELETE FROM reference")
            session.execute("INSERT INTO reference VALUES (%s, %s, %s, %s, %b)", row)
            write_settings(session, values)
        self.meta |= values

    def withdraw_reference(self) -> None:
        """Delete the reference; one is drawn for each search until another is published."""
        with self._commit() as session:
            session.execute("DELETE FROM reference")


def remove_empty(address: Address) -> None:
    """Remove the tables of an index into which nothing was ever committed; any other index stays.

    Raises:
        StorageError: the server does not answer, or refuses.
        IndexBusy: another session writes the index.
    """
    with PostgresWriter(address) as writer:
        if writer.is_empty:
            writer.drop()


def _holds_nul(document: Document) -> bool:
    texts = (document.doc_id, document.title, document.source, document.text)
    headings = (part for section in document.sections for part in (section.heading, *section.path))
    return any("\0" in text for text in (*texts, *headings)) or "\\u0000" in json.dumps(dict(document.metadata))
