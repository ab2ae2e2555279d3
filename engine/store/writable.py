"""An index folder opened for writing: its lock, catalog and transactions, and the removal of unnamed files.

`engine.store.writer` decides what is written.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Self

from filelock import FileLock, Timeout

from engine.errors import IndexBusy, IndexDamaged, IndexMismatch, StorageError, named_faults
from engine.store.catalog import (
    ANN_FOLDER,
    CATALOG_FILE,
    FILE_TABLES,
    FORMAT,
    catalog_faults,
    check_file_names,
    has_table,
    open_catalog,
    reading,
)
from engine.store.checks import (
    COMMITS,
    CommitLog,
    check_block_rows,
    check_commits,
    check_names,
    check_tables,
    commits_of,
    committed_state,
    read_meta,
    record_documents,
    record_tables,
    reported_commits,
)
from engine.store.durable import fsync_folder
from engine.store.locations import BLOCK_IDS
from engine.store.reference import REFERENCE_FOLDER
from engine.store.shards import SHARD_FOLDER
from engine.store.tables import Row, create_tables, engine_of, insert_rows, update_documents, write_meta

LOCK_FILE = "writer.lock"
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
                with self.read() as reader:
                    if reader.execute("SELECT 1 FROM sqlite_master WHERE type = 'table'").fetchone():
                        read_meta(reader, str(self.catalog))  # refuses another format before anything is changed
            # Open until `close`: closing the last connection moves the log into the catalog.
            self._connection = open_catalog(self.catalog, read_only=False)
            self._engine = engine_of(self._connection)
            self._file = _file_id(self.catalog)
            with self._engine.begin() as writing:
                create_tables(writing)
            with self.read() as connection:
                self.meta = read_meta(connection, str(self.catalog))
                is_begun = bool(self.meta) or bool(committed_state(connection))
                if is_begun and not trust_catalog:
                    check_tables(connection, str(self.catalog))
                    check_commits(self.meta, reported_commits(self.folder), str(self.catalog))
                if newest > (next_shard(self.meta) if is_begun else 0):
                    raise IndexDamaged(_LOST.format(catalog=self.catalog, what="is older than the shards beside it"))
            self._commits = CommitLog(self.folder)
            if trust_catalog or not is_begun:
                self._commits.reset(commits_of(self.meta))
                with self._transaction({"format": FORMAT}) as connection:
                    if trust_catalog:
                        record_documents(connection)
        self._sweep()

    def _check_rows(self, connection: sqlite3.Connection, document_ids: Iterable[int]) -> None:
        """Compare the rows of documents, and of those whose places are stored with theirs, before they are changed."""
        for block in sorted({int(document_id) // BLOCK_IDS for document_id in document_ids} - self._sound_blocks):
            check_block_rows(connection, block, str(self.catalog))
            self._sound_blocks.add(block)

    def _check_names(self, connection: sqlite3.Connection) -> None:
        """Check once that documents can be looked up by name."""
        if not self._has_sound_names:
            check_names(connection, str(self.catalog))
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
    def _transaction(
        self, values: Mapping[str, Any] | None = None, *, is_counted: bool = True
    ) -> Iterator[sqlite3.Connection]:
        """One transaction, whose pages move from the log into the catalog at once.

        So a damaged log costs at most the last transaction. If a damaged log held several, some pages
        would come from the log and newer ones from the catalog, and nothing could be read.

        Args:
            values: named values that it sets, read at its end.
            is_counted: whether its loss must be noticed.
        """
        with self._one_at_a_time, catalog_faults(self.catalog):
            self._check_place()
            number = commits_of(self.meta)
            self._commits.report(number)  # which a writer may have been killed before
            with self._engine.begin() as self._writing:
                yield self._connection
                changed = {**(values or {}), **({COMMITS: number + 1} if is_counted else {})}
                write_meta(self._writing, changed)
                record_tables(self._connection)
            self.meta |= changed
            self._commits.report(commits_of(self.meta))
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _insert(self, table: str, rows: Iterable[Row]) -> None:
        """Insert rows in the open transaction."""
        insert_rows(self._writing, table, rows)

    def _update_documents(self, rows: Iterable[Row]) -> None:
        """Change columns of documents in the open transaction."""
        update_documents(self._writing, rows)

    def vacuum(self) -> None:
        """Return unused pages of the catalog to the system."""
        self._connection.execute("VACUUM")


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
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
