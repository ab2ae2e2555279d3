"""An index folder opened for writing: its lock, its catalog, its transactions, and only files that the catalog names.

What is written there is the business of `engine.store.writer`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock, Timeout
from sqlalchemy import Connection, inspect, select
from sqlalchemy.exc import DatabaseError

from engine.errors import IndexBusy, IndexDamaged, IndexMismatch
from engine.faults import named_faults
from engine.store.ann import ANN_FOLDER
from engine.store.bounds import check_file_names
from engine.store.catalog import (
    CATALOG_FILE,
    SCHEMA_VERSION,
    GenerationRow,
    PostingsRow,
    ReferenceRow,
    ShardRow,
    WordPostingsRow,
    connect,
    read_meta,
    write_meta,
)
from engine.store.checks import check_catalog, record_documents, record_tables
from engine.store.durable import fsync_folder
from engine.store.mounts import refuse_read_only
from engine.store.reference import REFERENCE_FOLDER
from engine.store.roster_blocks import has_blocks
from engine.store.seal import break_seal, check_seal, is_sealed, is_unsealed, seal
from engine.store.shards import SHARD_FOLDER

LOCK_FILE = "writer.lock"
FILE_TABLES = (ShardRow, GenerationRow, PostingsRow, WordPostingsRow, ReferenceRow)  # whose rows name files


@named_faults
class WritableIndex:
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
            StorageError: the folder cannot be written.
        """
        self.folder = folder
        self.catalog = folder / CATALOG_FILE
        if folder.exists() and not folder.is_dir():
            raise IndexMismatch(f"{folder} is a file; an index is a folder: name another path")
        is_index = self.catalog.exists() or (folder / LOCK_FILE).exists()
        if folder.is_dir() and any(folder.iterdir()) and not is_index:
            raise IndexMismatch(f"{folder} is not empty and holds no index; name a new folder or an index")
        refuse_read_only(folder)
        folder.mkdir(parents=True, exist_ok=True)
        # The lock comes first: it is what tells a run killed right here from a folder of something else.
        self._lock = FileLock(folder / LOCK_FILE)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise IndexBusy(f"another process is writing {folder}; wait for it to end") from None
        try:
            if not self.catalog.exists():
                fsync_folder(folder)  # a loss of power must not leave the folders below it alone
            self._open(trust_catalog=trust_catalog)
        except BaseException:
            self._lock.release()
            raise

    def _open(self, *, trust_catalog: bool) -> None:
        for subfolder in (SHARD_FOLDER, ANN_FOLDER, REFERENCE_FOLDER):
            (self.folder / subfolder).mkdir(exist_ok=True)
        # A catalog that was sealed and is gone is damage; beginning anew would sweep away the shards it named.
        is_checked = trust_catalog
        if (self.catalog.exists() or is_sealed(self.catalog)) and not trust_catalog:
            is_checked = check_seal(self.catalog)
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
                if not is_checked:  # a killed writer left it, and this one will seal it
                    check_catalog(connection, self.meta, str(self.catalog))
                if not has_blocks(self.meta) or trust_catalog:
                    record_documents(connection)
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
            named = named_files(connection)
        for path in index_files(self.folder):
            if path.relative_to(self.folder).as_posix() not in named:
                path.unlink()
        for path in (self.folder / ANN_FOLDER).iterdir():
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()

    def __enter__(self) -> Self:
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

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """One transaction, whose pages move from the log into the catalog at once.

        So a damaged log costs the last transaction at most. With several in it, some
        pages would come from the log, others, newer, from the catalog: nothing could be read.
        """
        with self._engine.begin() as connection:
            yield connection
            record_tables(connection)
        driver = self._held.connection.driver_connection
        assert driver is not None
        driver.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def vacuum(self) -> None:
        """Give unused pages of the catalog back to the system."""
        driver = self._held.connection.driver_connection
        assert driver is not None
        driver.execute("VACUUM")


def named_files(connection: Connection) -> set[str]:
    """The files that the catalog names, relative to the index folder.

    Raises:
        IndexDamaged: a name leads out of the folder.
    """
    is_there = inspect(connection).has_table
    named = {
        file
        for table in FILE_TABLES
        if is_there(table.__tablename__)
        for file in connection.execute(select(table.file)).scalars()
    }
    check_file_names(named, CATALOG_FILE)
    return named


def index_files(folder: Path) -> list[Path]:
    """The files of an index beside its catalog, named or not."""
    of_shards, of_reference = (folder / SHARD_FOLDER).glob("*"), (folder / REFERENCE_FOLDER).glob("*")
    return sorted([*of_shards, *of_reference, *(folder / ANN_FOLDER).glob("*/*")])


def _file_id(path: Path) -> tuple[int, int] | None:
    """Device and number of a file, whatever its name; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
