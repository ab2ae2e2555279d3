"""The one writer of an index: lock, commits, removals, generations, failures. Encodes nothing.

Order of every commit: file, fsync, rename, fsync of the folder, then one transaction that names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, delete, insert, select, update
from sqlalchemy.exc import DatabaseError

from engine.document import Document, MetadataValue
from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexBusy, IndexDamaged, IndexMismatch
from engine.store.ann import ANN_FOLDER
from engine.store.catalog import (
    CATALOG_FILE,
    SCHEMA_VERSION,
    DocumentRow,
    FailureRow,
    GenerationRow,
    ShardRow,
    connect,
    read_meta,
    write_meta,
)
from engine.store.documents import delete_documents, document_rows, insert_texts
from engine.store.durable import Checksum, fsync_folder
from engine.store.seal import break_seal, check_seal, is_sealed, is_unsealed, seal
from engine.store.shards import SHARD_FOLDER, Shard, shard_arrays, shard_file, write_shard

LOCK_FILE = "writer.lock"


@dataclass(frozen=True, slots=True)
class Indexed:
    """What the catalog knows of a document that is already there."""

    id: int
    content_hash: str
    metadata: Mapping[str, MetadataValue]
    source: str


class Writer:
    """Holds the writer lock of an index folder from opening to closing; makes the folder if need be."""

    def __init__(self, folder: Path, *, trust_catalog: bool = False) -> None:
        """Take the lock and open the catalog for writing.

        Args:
            folder: the index.
            trust_catalog: do not hold the catalog against its seal; for a repair that checked it otherwise.

        Raises:
            IndexBusy: another process holds the lock.
            IndexDamaged: the catalog is not what was written.
            IndexMismatch: the folder holds something else than an index.
        """
        self.folder = folder
        self.catalog = folder / CATALOG_FILE
        if folder.exists() and not folder.is_dir():
            raise IndexMismatch(f"{folder} is a file; an index is a folder: name another path")
        is_index = self.catalog.exists() or (folder / LOCK_FILE).exists()
        if folder.is_dir() and any(folder.iterdir()) and not is_index:
            raise IndexMismatch(f"{folder} is not empty and holds no index; name a new folder or an index")
        folder.mkdir(parents=True, exist_ok=True)
        # The lock comes first: it is what tells a run killed right here from a folder of something else.
        self._lock = FileLock(folder / LOCK_FILE)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise IndexBusy(f"another process is writing {folder}; wait for it to end") from None
        try:
            self._open(trust_catalog=trust_catalog)
        except BaseException:
            self._lock.release()
            raise

    def _open(self, *, trust_catalog: bool) -> None:
        for subfolder in (self.folder / SHARD_FOLDER, self.folder / ANN_FOLDER):
            subfolder.mkdir(exist_ok=True)
        # A catalog that was sealed and is gone is damage; beginning anew would sweep away the shards it named.
        if (self.catalog.exists() or is_sealed(self.catalog)) and not trust_catalog:
            check_seal(self.catalog)
        try:
            if self.catalog.exists() and not is_unsealed(self.catalog):
                with connect(self.catalog, read_only=True).connect() as reader:
                    read_meta(reader)  # an index of another version stays as it is, its seal too
            break_seal(self.catalog)
            self._engine = connect(self.catalog, read_only=False)
            # Held to the end: closing the last connection would move the log into the catalog behind the seal's back.
            self._held = self._engine.connect()
            self._file = _file_id(self.catalog)
            with self._transaction() as connection:
                self.meta = read_meta(connection)
                write_meta(connection, {"schema_version": SCHEMA_VERSION})
        except DatabaseError as error:
            reason = f"{self.catalog} cannot be read ({error.orig})"
            raise IndexDamaged(f"{reason}; check it: longmatch verify INDEX") from error
        self._sweep()

    def _check_place(self) -> None:
        """Make sure that the folder is still the one that was opened: the files of another are not ours to touch.

        Raises:
            IndexMismatch: it was moved, removed, or replaced by another index.
        """
        if _file_id(self.catalog) != self._file:
            raise IndexMismatch(
                f"{self.folder} was moved or replaced by another folder while it was written; what was committed is "
                "where it was moved to, and nothing was written here: run the command again on the one that is meant"
            )

    def _sweep(self) -> None:
        """Delete files that the catalog does not name: what a killed run left."""
        self._check_place()
        with self.read() as connection:
            named = set(connection.execute(select(ShardRow.file)).scalars())
            named |= set(connection.execute(select(GenerationRow.file)).scalars())
        for path in (self.folder / SHARD_FOLDER).iterdir():
            if f"{SHARD_FOLDER}/{path.name}" not in named:
                path.unlink()
        for path in (self.folder / ANN_FOLDER).glob("*/*"):
            if f"{ANN_FOLDER}/{path.parent.name}/{path.name}" not in named:
                path.unlink()
        for path in (self.folder / ANN_FOLDER).iterdir():
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Seal the catalog and release the lock."""
        try:
            self._held.close()
            if _file_id(self.catalog) == self._file:
                seal(self.catalog, self._engine)
            self._engine.dispose()
        finally:
            self._lock.release()

    def read(self) -> Connection:
        """A connection for reading, for use as a context manager."""
        return self._engine.connect()

    def claim(self, encoder: Mapping[str, Any]) -> None:
        """Bind the index to an encoder, the first time.

        Args:
            encoder: its `name`, `fingerprint` and `width`.

        Raises:
            IndexMismatch: the index is bound to another one.
        """
        bound = self.meta.get("encoder")
        if bound is None:
            self.meta["encoder"] = dict(encoder)
            with self._transaction() as connection:
                write_meta(connection, {"encoder": dict(encoder)})
        elif bound["fingerprint"] != encoder["fingerprint"]:
            raise IndexMismatch(
                f"{self.folder} was built with encoder {bound['name']!r} ({bound['width']} wide, fingerprint "
                f"{bound['fingerprint'][:12]}), not {encoder['name']!r} ({encoder['width']} wide, "
                f"{encoder['fingerprint'][:12]}); pass --encoder {bound['name']}, or index into a new folder"
            )

    def indexed(self, doc_ids: Sequence[str]) -> dict[str, Indexed]:
        """What the catalog knows of the given names."""
        columns = (
            DocumentRow.doc_id,
            DocumentRow.id,
            DocumentRow.content_hash,
            DocumentRow.meta,
            DocumentRow.source,
        )
        with self.read() as connection:
            rows = connection.execute(select(*columns).where(DocumentRow.doc_id.in_(doc_ids)))
            return {row[0]: Indexed(*row[1:]) for row in rows}

    def commit(self, encoded: Sequence[tuple[Document, EncodedDocument]]) -> list[int]:
        """Write a batch of documents, replacing those of the same names, all in one transaction.

        Returns:
            Their catalog ids, in order. When this returns, they are on disk and can be found.

        Raises:
            IndexMismatch: the folder was moved, removed, or replaced by another index.
        """
        shard = shard_arrays([one for _, one in encoded])
        counters = self._counters()
        number = counters["shard"]
        file = shard_file(number)
        self._check_place()
        written = write_shard(self.folder / file, shard)
        ids = list(range(counters["document"], counters["document"] + len(encoded)))
        with self._transaction() as connection:
            names = [document.doc_id for document, _ in encoded]
            for block in _blocks(names):
                replaced = connection.execute(select(DocumentRow.id).where(DocumentRow.doc_id.in_(block)))
                delete_documents(connection, replaced.scalars().all())
            connection.execute(insert(ShardRow).values(_shard_row(number, file, written, shard)))
            connection.execute(insert(DocumentRow), document_rows(encoded, ids, number, counters["chunk"]))
            insert_texts(connection, zip(ids, (document for document, _ in encoded), strict=True))
            self._forget_failures(connection, [document.source for document, _ in encoded])
            counters = {
                "shard": number + 1,
                "document": counters["document"] + len(encoded),
                "chunk": counters["chunk"] + len(shard.chunks),
            }
            write_meta(connection, {"counters": counters})
        self.meta["counters"] = counters
        return ids

    def _counters(self) -> dict[str, int]:
        """The next ids. They only grow, and no id is used twice."""
        counters: dict[str, int] = self.meta.get("counters", {"shard": 1, "document": 1, "chunk": 1})
        return counters

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """One transaction, whose pages move from the log into the catalog at once.

        So a damaged log costs the last transaction at most. With several in it, some
        pages would come from the log, others, newer, from the catalog: nothing could be read.
        """
        with self._engine.begin() as connection:
            yield connection
        driver = self._held.connection.driver_connection
        assert driver is not None
        driver.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def replace_shards(
        self,
        numbers: Sequence[int],
        shard: Shard,
        document_ids: Sequence[int],
        n_sections: NDArray[np.int64],
        n_chunks: NDArray[np.int64],
    ) -> None:
        """Put one shard in the place of several; the ids of documents and chunks stay.

        Args:
            numbers: the shards that go.
            shard: vectors of their documents, one document after another.
            document_ids: catalog ids, in that order; without any, the shards only go.
            n_sections: (N,) sections of each.
            n_chunks: (N,) chunks of each.
        """
        counters = self._counters()
        number = counters["shard"]
        file = shard_file(number)
        self._check_place()
        written = write_shard(self.folder / file, shard) if document_ids else None
        section_rows, chunk_rows = np.cumsum(n_sections) - n_sections, np.cumsum(n_chunks) - n_chunks
        with self._transaction() as connection:
            if written is not None:
                connection.execute(insert(ShardRow).values(_shard_row(number, file, written, shard)))
                places = zip(document_ids, section_rows.tolist(), chunk_rows.tolist(), strict=True)
                connection.execute(
                    update(DocumentRow.__table__)  # type: ignore[arg-type]
                    .where(DocumentRow.id == bindparam("one"))
                    .values(
                        shard_id=number,
                        document_row=bindparam("row"),
                        section_row=bindparam("section"),
                        chunk_row=bindparam("chunk"),
                    ),
                    [
                        {"one": one, "row": row, "section": section, "chunk": chunk}
                        for row, (one, section, chunk) in enumerate(places)
                    ],
                )
            connection.execute(delete(ShardRow).where(ShardRow.id.in_(numbers)))
            write_meta(connection, {"counters": {**counters, "shard": number + 1}})
        self.meta["counters"] = {**counters, "shard": number + 1}
        self._sweep()

    def drop_shards(self, numbers: Sequence[int]) -> None:
        """Forget shards that no document needs any more, and delete their files."""
        with self._transaction() as connection:
            connection.execute(delete(ShardRow).where(ShardRow.id.in_(numbers)))
        self._sweep()

    def vacuum(self) -> None:
        """Give unused pages of the catalog back to the system."""
        driver = self._held.connection.driver_connection
        assert driver is not None
        driver.execute("VACUUM")

    def update_metadata(self, documents: Sequence[tuple[int, Document]]) -> None:
        """Set metadata and source of documents whose content is unchanged; nothing is encoded."""
        with self._transaction() as connection:
            for document_id, document in documents:
                values = {"metadata": dict(document.metadata), "source": document.source}
                connection.execute(update(DocumentRow).where(DocumentRow.id == document_id).values(values))

    def remove(self, document_ids: Sequence[int]) -> None:
        """Remove documents; at once they can no longer be found."""
        with self._transaction() as connection:
            delete_documents(connection, document_ids)

    def sources(self) -> list[tuple[int, str]]:
        """Catalog id and source of every document, by rising id."""
        with self.read() as connection:
            rows = connection.execute(select(DocumentRow.id, DocumentRow.source).order_by(DocumentRow.id))
            return [(row.id, row.source) for row in rows]

    def record_failure(self, source: str, reason: str) -> None:
        """Remember that a source could not be indexed, until it can."""
        with self._transaction() as connection:
            self._forget_failures(connection, [source])
            connection.execute(insert(FailureRow).values(source=source, reason=reason))

    def failed_sources(self) -> set[str]:
        """Sources that could not be indexed when they were last read."""
        with self.read() as connection:
            return set(connection.execute(select(FailureRow.source)).scalars())

    def forget_failures(self, sources: Sequence[str]) -> None:
        """Drop recorded failures of sources that are well now."""
        with self._transaction() as connection:
            self._forget_failures(connection, sources)

    def keep_failures(self, sources: Sequence[str]) -> None:
        """Drop all recorded failures but those of the given sources."""
        with self._transaction() as connection:
            recorded = set(connection.execute(select(FailureRow.source)).scalars())
            self._forget_failures(connection, sorted(recorded.difference(sources)))

    def _forget_failures(self, connection: Connection, sources: Sequence[str]) -> None:
        for block in _blocks(sources):
            connection.execute(delete(FailureRow).where(FailureRow.source.in_(block)))

    def next_generation_file(self) -> tuple[int, Path]:
        """Number and path of the generation that would come next; its folder exists."""
        with self.read() as connection:
            newest = connection.execute(select(GenerationRow.id).order_by(GenerationRow.id.desc())).scalars().first()
        self._check_place()
        number = max(newest or 0, self.meta.get("last_generation", 0)) + 1
        path = self.folder / ANN_FOLDER / f"{number:06d}" / "chunks.faiss"
        path.parent.mkdir(exist_ok=True)
        fsync_folder(path.parent.parent)
        return number, path

    def publish(self, generation: Mapping[str, Any]) -> None:
        """Name a generation whose file is on disk, in place of the ones before; values by column name."""
        with self._transaction() as connection:
            connection.execute(delete(GenerationRow))
            connection.execute(insert(GenerationRow).values(**generation))
            write_meta(connection, {"last_generation": generation["id"]})
        self.meta["last_generation"] = generation["id"]
        self._sweep()

    def withdraw_generations(self) -> None:
        """Forget all generations; queries are exact scans until one is published again."""
        with self._transaction() as connection:
            connection.execute(delete(GenerationRow))
        self._sweep()


def _file_id(path: Path) -> tuple[int, int] | None:
    """Device and number of a file, whatever its name; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _shard_row(number: int, file: str, written: Checksum, shard: Shard) -> dict[str, Any]:
    return {
        "id": number,
        "file": file,
        "size_bytes": written.size_bytes,
        "digest": written.digest,
        "n_documents": len(shard.documents),
        "n_chunks": len(shard.chunks),
    }


def _blocks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Runs short enough for one statement; SQLite binds 32,766 values in most builds."""
    for first in range(0, len(names), 1000):
        yield names[first : first + 1000]
