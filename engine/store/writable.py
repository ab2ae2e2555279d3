"""An index folder opened for writing: its lock, tables and transactions, and what it holds besides documents.

That is recorded failures, and files derived from the shards: generations, postings of words and the reference; the
catalog names them. `engine.store.writer` decides what is written. The import takes longer than a search, so nothing
that a reader loads imports this file.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import RLock
from typing import Any, Self, TypeAlias

import sqlalchemy as sa
from filelock import FileLock, Timeout
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.pool import StaticPool
from sqlalchemy.types import TypeEngine

from engine.errors import IndexBusy, IndexDamaged, IndexMismatch, StorageError, named_faults
from engine.store import checks
from engine.store.catalog import (
    ANN_FOLDER,
    CATALOG_FILE,
    COLUMNS,
    FILE_TABLES,
    FORMAT,
    as_json,
    catalog_faults,
    check_file_names,
    columns,
    execute_in,
    has_table,
    open_catalog,
    reading,
)
from engine.store.durable import Checksum, fsync_folder
from engine.store.gathering import BLOCK_IDS
from engine.store.postings import WORD_POSTINGS_FOLDER, Postings
from engine.store.reference import REFERENCE_FOLDER, Reference, write_reference
from engine.store.shards import SHARD_FOLDER

Row: TypeAlias = Mapping[str, Any]  # values by column
# The type of a column follows from its name; of all others it is `Integer`.
_TYPES: Mapping[type[TypeEngine[Any]], str] = {
    sa.String: "key file digest doc_id title source content_hash heading factory reason name",
    sa.JSON: "value part_digests metadata pages pins path",
    sa.LargeBinary: "deflated arrays",
    sa.Boolean: "is_exact",
    sa.Float: "recall",
}
_TYPE_OF = {name: kind for kind, names in _TYPES.items() for name in names.split()}
_OF_TABLE = {"shard_id": "shards", "document_id": "documents", "generation_id": "generations"}
_UNIQUE = {("documents", "doc_id"), ("documents", "first_chunk")}
_METADATA = sa.MetaData()


def _column(table: str, name: str) -> sa.Column[Any]:
    is_key = name in columns(table)[: 2 if table == "sections" else 1]
    keys = []
    if name in _OF_TABLE:
        keys.append(sa.ForeignKey(f"{_OF_TABLE[name]}.id", ondelete="CASCADE" if is_key else None))
    return sa.Column(
        name,
        _TYPE_OF.get(name, sa.Integer),
        *keys,
        primary_key=is_key,
        nullable=False,
        unique=(table, name) in _UNIQUE or None,
        index=name == "shard_id",
    )


TABLES = {name: sa.Table(name, _METADATA, *(_column(name, column) for column in columns(name))) for name in COLUMNS}


def engine_of(connection: sqlite3.Connection) -> sa.Engine:
    """An engine over a connection of SQLite, whose transactions write at once; errors stay those of SQLite."""
    engine = sa.create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool, json_serializer=as_json)

    @sa.event.listens_for(engine, "begin")
    def _begin(writing: sa.Connection) -> None:
        writing.exec_driver_sql("BEGIN IMMEDIATE")  # the driver would begin none for a SELECT

    @sa.event.listens_for(engine, "handle_error")
    def _unwrap(context: ExceptionContext) -> None:
        raise context.original_exception

    return engine


def create_tables(writing: sa.Connection) -> None:
    """Make the tables that are missing."""
    _METADATA.create_all(writing)


def write_meta(writing: sa.Connection, values: Mapping[str, Any]) -> None:
    """Set named values, leaving the others."""
    for key, value in values.items():
        statement = insert(TABLES["meta"]).values(key=key, value=value)
        writing.execute(statement.on_conflict_do_update(index_elements=["key"], set_={"value": value}))


LOCK_FILE = "writer.lock"
FORGET = "DELETE FROM failures WHERE source IN ({marks})"
FIRST_IDS = {"shard": 1, "document": 1, "chunk": 1}
_LOST = (
    "{catalog} {what}, and writing would delete shards of committed documents; restore a copy of the catalog, or move "
    "those shards away to go on without their documents"
)


@named_faults
class WritableIndex:
    """Holds the writer lock of an index folder from opening to closing; creates the folder if it is missing."""

    def __init__(self, folder: Path, *, trust_catalog: bool = False) -> None:
        """Take the lock and open the catalog for writing.

        Args:
            trust_catalog: do not compare rows with their checksums; for a repair that checked them itself.

        Raises:
            IndexBusy: another process holds the lock.
            IndexDamaged: the catalog is not what was written.
            IndexMismatch: the folder holds something else than an index.
            StorageError: the folder cannot be written.
        """
        self.folder = folder
        self.catalog = folder / CATALOG_FILE
        if folder.exists() and not folder.is_dir():
            raise IndexMismatch(f"{folder} is a file; an index is a folder: name another path")
        is_index = self.catalog.exists() or (folder / LOCK_FILE).exists()
        if folder.is_dir() and any(folder.iterdir()) and not is_index:
            raise IndexMismatch(f"{folder} is not empty and holds no index; name a new folder or an index")
        _refuse_read_only(folder)
        folder.mkdir(parents=True, exist_ok=True)
        # The lock comes first: its file distinguishes an index whose run is killed here from any other folder.
        self._lock = FileLock(folder / LOCK_FILE)
        self._one_at_a_time = RLock()  # a run reads ahead in a thread, which records failures
        self._sound_blocks: set[int] = set()  # blocks of documents whose rows were compared, or written here
        self._has_sound_names = False
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise IndexBusy(f"another process is writing {folder}; wait for it to end") from None
        try:
            if not self.catalog.exists():
                fsync_folder(folder)  # a power loss must not leave subfolders without the lock file
            self._open(trust_catalog=trust_catalog)
        except BaseException:
            self._lock.release()
            raise

    def _open(self, *, trust_catalog: bool) -> None:
        for subfolder in (SHARD_FOLDER, ANN_FOLDER, REFERENCE_FOLDER):
            (self.folder / subfolder).mkdir(exist_ok=True)
        newest = newest_shard(self.folder)
        if newest and not self.catalog.exists():
            raise IndexDamaged(_LOST.format(catalog=self.catalog, what="is missing"))
        with catalog_faults(self.catalog):
            if self.catalog.exists():
                if self.catalog.with_name(f"{CATALOG_FILE}-journal").exists():  # a power loss ended its creation
                    with closing(sqlite3.connect(self.catalog.resolve())) as undoing:
                        undoing.execute("SELECT 1 FROM sqlite_master")
                with self.read() as reader:
                    if reader.execute("SELECT 1 FROM sqlite_master WHERE type = 'table'").fetchone():
                        checks.read_meta(reader, str(self.catalog))  # refuses another format before anything is changed
            # Open until `close`: closing the last connection moves the log into the catalog.
            self._connection = open_catalog(self.catalog, read_only=False)
            self._engine = engine_of(self._connection)
            self._file = _file_id(self.catalog)
            with self._engine.begin() as writing:
                create_tables(writing)
            with self.read() as connection:
                self.meta = checks.read_meta(connection, str(self.catalog))
                is_begun = bool(self.meta) or bool(checks.table_checks(connection))
                if is_begun and not trust_catalog:
                    checks.check_tables(connection, str(self.catalog))
                    checks.check_commits(self.meta, checks.reported_commits(self.folder), str(self.catalog))
                if newest > (next_shard(self.meta) if is_begun else 0):
                    raise IndexDamaged(_LOST.format(catalog=self.catalog, what="is older than the shards beside it"))
            self._commits = checks.CommitLog(self.folder)
            if trust_catalog or not is_begun:
                self._commits.reset(checks.commits_of(self.meta))
                with self._transaction({"format": FORMAT}) as connection:
                    if trust_catalog:
                        checks.record_documents(connection)
        self._sweep()

    def _check_rows(self, connection: sqlite3.Connection, document_ids: Iterable[int]) -> None:
        """Compare the rows of documents, and of those whose places are stored with theirs, before they are changed."""
        for block in sorted({int(document_id) // BLOCK_IDS for document_id in document_ids} - self._sound_blocks):
            checks.check_block_rows(connection, block, str(self.catalog))
            self._sound_blocks.add(block)

    def _check_names(self, connection: sqlite3.Connection) -> None:
        """Check once that documents can be looked up by name."""
        if not self._has_sound_names:
            checks.check_names(connection, str(self.catalog))
            self._has_sound_names = True

    def _check_place(self) -> None:
        """Check that the folder is still the one that was opened: files of another index must not be changed."""
        if _file_id(self.catalog) != self._file:
            raise IndexMismatch(
                f"{self.folder} was moved or replaced by another folder while it was written; what was committed is "
                "where it was moved to, and nothing was written here: run the command again on the one that is meant"
            )

    def _sweep(self) -> None:
        """Delete files that the catalog does not name, such as those of a killed run."""
        self._check_place()
        with self.read() as connection:
            named = named_files(connection)
        for path in index_files(self.folder):
            if path.relative_to(self.folder).as_posix() not in named:
                path.unlink()
        for path in (self.folder / ANN_FOLDER).iterdir():
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Move the log into the catalog, if no reader needs it, and release the lock."""
        try:
            if _file_id(self.catalog) == self._file:
                self._connection.execute("PRAGMA busy_timeout=0")  # a reader may stay for hours
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.close()
            self._commits.close()
        finally:
            self._lock.release()

    def read(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection for reading, in a transaction of its own."""
        return reading(self.catalog)

    @contextmanager
    def _transaction(self, values: Mapping[str, Any] | None = None) -> Iterator[sqlite3.Connection]:
        """One transaction, whose pages move from the log into the catalog at once.

        So a damaged log costs at most the last transaction. If a damaged log held several, some pages
        would come from the log and newer ones from the catalog, and nothing could be read.

        Args:
            values: named values that it sets, read at its end.
        """
        with self._one_at_a_time, catalog_faults(self.catalog):
            self._check_place()
            number = checks.commits_of(self.meta)
            self._commits.report(number)  # which a writer may have been killed before
            with self._engine.begin() as self._writing:
                yield self._connection
                changed = {**(values or {}), checks.COMMITS: number + 1}
                write_meta(self._writing, changed)
                checks.record_tables(self._connection)
            self.meta |= changed
            self._commits.report(checks.commits_of(self.meta))
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _insert(self, table: str, rows: Iterable[Row]) -> None:
        """Insert rows with equal columns in the open transaction; lists and dicts become JSON."""
        if listed := list(rows):
            self._writing.execute(insert(TABLES[table]), listed)

    def _update_documents(self, rows: Iterable[Row]) -> None:
        """Change the same columns of documents in the open transaction; `id` says of which."""
        changes = [{"changed": row["id"], **{name: row[name] for name in row if name != "id"}} for row in rows]
        if changes:
            documents = TABLES["documents"]
            self._writing.execute(sa.update(documents).where(documents.c.id == sa.bindparam("changed")), changes)

    def vacuum(self) -> None:
        """Return unused pages of the catalog to the system."""
        self._connection.execute("VACUUM")

    def record_failures(self, failures: Iterable[tuple[str, str, str]]) -> None:
        """Record sources that could not be indexed, until they can be: source, reason, and doc_id, empty if unknown."""
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO failures VALUES (?, ?, ?)", failures)

    def failed_sources(self) -> set[str]:
        """Sources that could not be indexed when they were last read."""
        with self.read() as connection:
            return {source for (source,) in connection.execute("SELECT source FROM failures")}

    def forget_failures(self, sources: Sequence[str]) -> None:
        """Drop recorded failures of sources that can be indexed now."""
        with self._transaction() as connection:
            execute_in(connection, FORGET, sources)

    def next_generation_file(self) -> tuple[int, Path]:
        """Number and path of the next generation; creates its folder."""
        number: int = self.meta.get("last_generation", 0) + 1
        return number, self._new_path(f"{ANN_FOLDER}/{number:06d}/chunks.faiss")

    def _new_path(self, file: str) -> Path:
        """The path of a file that is not yet named, in a folder that exists."""
        self._check_place()
        path = self.folder / file
        path.parent.mkdir(exist_ok=True)
        fsync_folder(path.parent.parent)
        return path

    def publish(
        self,
        generation: Mapping[str, Any],
        *,
        trained_vectors: int | None = None,
        postings: tuple[str, Checksum] | None = None,
    ) -> None:
        """Record in the catalog a generation whose files are on disk, in place of earlier ones.

        Args:
            trained_vectors: number of vectors when its type was last trained; by default the number that it holds.
            postings: file and checksum of its postings of words, if it has any.
        """
        trained = generation["n_vectors"] if trained_vectors is None else trained_vectors
        values = {"last_generation": generation["id"], "trained_vectors": trained}
        rows: dict[str, Mapping[str, Any]] = {"generations": generation}
        if postings is not None:
            file, written = postings
            rows["postings"] = {"generation_id": generation["id"], "file": file, **asdict(written)}
        self._replace(("generations", "word_postings"), rows, values)

    def _replace(
        self, tables: Sequence[str], rows: Mapping[str, Mapping[str, Any]], values: Mapping[str, Any] | None = None
    ) -> None:
        """Empty tables that name files, and insert a row into some, in one transaction; delete unnamed files."""
        with self._transaction(values) as connection:
            for table in tables:
                connection.execute(f"DELETE FROM {table}")
            for table, row in rows.items():
                self._insert(table, [row])
        self._sweep()

    def next_reference(self) -> int:
        """The version that the next reference gets; versions only grow."""
        version: int = self.meta.get("last_reference", 0)
        return version + 1

    def publish_reference(self, reference: Reference, *, is_partial: bool = False) -> None:
        """Write a reference and record it in the catalog, in place of the previous one.

        Args:
            is_partial: whether its sample was drawn while documents had no vectors.
        """
        self._check_place()
        pinned = write_reference(self.folder, reference)
        values = {"last_reference": reference.version, "partial_reference": is_partial}
        self._replace(["reference"], {"reference": asdict(pinned)}, values)

    def withdraw(self, *tables: str) -> None:
        """Empty tables that name derived files, and delete the files; until they are published again, queries compute
        what they need from the shards.
        """
        self._replace(tables, {})

    def publish_word_postings(self, postings: Postings) -> None:
        """Write and record postings over documents that no generation covers, in place of earlier ones."""
        number: int = self.meta.get("last_word_postings", 0) + 1
        file = f"{ANN_FOLDER}/{WORD_POSTINGS_FOLDER}/{number:06d}.safetensors"
        written = postings.write(self._new_path(file))
        row = {"id": number, "n_documents": len(postings.ids), "file": file, **asdict(written)}
        self._replace(["word_postings"], {"word_postings": row}, {"last_word_postings": number})


def _refuse_read_only(path: Path) -> None:
    there = path.resolve()
    while not there.exists():
        there = there.parent
    if os.name == "posix" and os.statvfs(there).f_flag & os.ST_RDONLY:
        raise StorageError(
            f"{path} lies on a file system which is mounted read-only; name a folder elsewhere, or restore a backup "
            "there: longmatch upkeep restore FILE FOLDER"
        )


def newest_shard(folder: Path) -> int:
    """The highest number of a shard in an index folder, named or not; 0 without shards."""
    names = [path.stem for path in (folder / SHARD_FOLDER).glob("*.safetensors")]
    return max((int(name) for name in names if name.isdecimal()), default=0)


def next_shard(meta: Mapping[str, Any]) -> int:
    """The number of the next shard. A killed writer can leave a file of that number, and none above."""
    return int(meta.get("counters", FIRST_IDS)["shard"])


def named_files(connection: sqlite3.Connection) -> set[str]:
    """The files that the catalog names, relative to the index folder.

    Raises:
        IndexDamaged: a name leads out of the folder.
    """
    tables = [table for table in FILE_TABLES if has_table(connection, table)]
    named = {file for table in tables for (file,) in connection.execute(f"SELECT file FROM {table}")}
    check_file_names(named, CATALOG_FILE)
    return named


def index_files(folder: Path) -> list[Path]:
    """The files of an index besides its catalog, named or not."""
    of_shards, of_reference = (folder / SHARD_FOLDER).glob("*"), (folder / REFERENCE_FOLDER).glob("*")
    return sorted([*of_shards, *of_reference, *(folder / ANN_FOLDER).glob("*/*")])


def _file_id(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file, whatever its name; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
