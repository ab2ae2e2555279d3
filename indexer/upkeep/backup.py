"""Backs up an index, as of one commit, into one file, also while a writer is running; and restores it.

The file is a tar archive of the catalog and the files that the catalog names, each with its checksum in its header.
Backups of the same commit are equal byte for byte.
"""

import shutil
import sqlite3
import tarfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import IO, Any

import xxhash

from engine.errors import (
    IndexBusy,
    IndexDamaged,
    IndexMismatch,
    QueryError,
    command_line,
    faults_named,
    named_faults,
)
from engine.store import checks
from engine.store.catalog import (
    CATALOG_FILE,
    FILE_TABLES,
    catalog_faults,
    check_file_names,
    has_table,
    is_partitioned,
    open_reader,
    reading,
)
from engine.store.durable import Checksum, appearing, checksum, fsync_folder, unfinished_folder, write_durably

_DIGEST = "LONGMATCH.xxh3_128"  # the entry of a member's header that holds its checksum
_ATTEMPTS = 5  # a writer that compacts or publishes deletes files while they are copied
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup holds."""

    n_documents: int
    n_files: int
    size_bytes: int  # of the files in it


class _Vanished(Exception):
    """A writer deleted a file that an older commit names."""


@named_faults
def backup(index: str | Path, file: str | Path) -> BackupReport:
    """Write an index, as its newest commit left it, into one file. A writer may be at work meanwhile.

    Every file is compared with its checksum as it is copied, so that no damage is kept.

    Raises:
        IndexMismatch: there is no index, or a partitioned one.
        IndexDamaged: a file of the index is not the one that was written.
        IndexBusy: a writer replaced files again and again while they were copied.
        QueryError: `file` exists already, or its folder does not exist.
    """
    folder, target = Path(index), Path(file)
    catalog = folder / CATALOG_FILE
    if is_partitioned(folder):
        raise IndexMismatch(
            f"{folder} is partitioned, and a backup holds one index; join it first, and back that up: "
            + command_line("upkeep", "partition", folder, "ONE.lm", "-p", 1)
        )
    if not catalog.exists():
        raise IndexMismatch(f"{folder} holds no index; make one: {command_line('index', folder, 'PATH...')}")
    if not target.parent.is_dir():
        make = f"mkdir -p {quote(str(target.parent))}"
        raise QueryError(f"there is no folder {target.parent} for the backup; make it first: {make}")
    for _ in range(_ATTEMPTS):
        try:
            return _backup_once(folder, target)
        except _Vanished:
            continue
    raise IndexBusy(
        f"a writer replaced files of {folder} {_ATTEMPTS} times while they were copied; "
        "wait for longmatch index or compact to end, then run the command again"
    )


def _backup_once(folder: Path, target: Path) -> BackupReport:
    # SQLite takes a relative path that begins with "file:" as a URI.
    with unfinished_folder(
        target.resolve()
    ) as work:  # removes what a killed run left, also where its backup is complete
        if target.exists():
            raise QueryError(f"{target} is there already; name another file, or delete it first")
        copy, reported = work / CATALOG_FILE, checks.reported_commits(folder)
        with reading(folder / CATALOG_FILE) as connection, closing(sqlite3.connect(copy)) as into:
            try:
                connection.backup(into)  # the pages of one commit, those in the write-ahead log included
            except sqlite3.OperationalError as error:
                is_full = error.sqlite_errorcode == sqlite3.SQLITE_FULL  # of the copy: the catalog is only read
                with faults_named(str(target if is_full else folder / CATALOG_FILE)):
                    raise
        named, n_documents, meta = _contents(copy, folder / CATALOG_FILE)
        checks.check_commits(meta, reported, str(folder / CATALOG_FILE))
        files = {CATALOG_FILE: checksum(copy)} | named
        whole = work / target.name
        write_durably(whole, lambda unfinished: _write_archive(unfinished, files, folder, copy))
        whole.replace(target)
        fsync_folder(target.parent)
    return BackupReport(n_documents, len(files), sum(file.size_bytes for file in files.values()))


def _contents(catalog: Path, place: Path) -> tuple[dict[str, Checksum], int, dict[str, Any]]:
    """The files that a catalog names, in the order of their names, its number of documents and its named values.

    The catalog is a copy, so errors name the place that it was copied from.
    """
    with catalog_faults(place), closing(open_reader(catalog)) as connection:
        meta = checks.read_meta(connection, str(place))
        checks.check_catalog(connection, str(place))
        checks.check_contents(connection, str(place))
        named = {
            file: Checksum(size_bytes, digest)
            for table in FILE_TABLES
            if has_table(connection, table)
            for file, size_bytes, digest in connection.execute(f"SELECT file, size_bytes, digest FROM {table}")
        }
        (n_documents,) = connection.execute("SELECT count(*) FROM documents").fetchone()
    return dict(sorted(named.items())), n_documents, meta


def _write_archive(path: Path, files: dict[str, Checksum], folder: Path, catalog: Path) -> None:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, expected in files.items():
            source = catalog if name == CATALOG_FILE else folder / name
            try:
                stream = source.open("rb")
            except FileNotFoundError:
                raise _Vanished from None
            with stream:
                if (size := source.stat().st_size) != expected.size_bytes:
                    raise IndexDamaged(f"{source} has {size} bytes, not {expected.size_bytes}; {_REPAIR}")
                summed = _Summed(stream)
                archive.addfile(_member(name, expected), summed)
                if summed.digest != expected.digest:
                    raise IndexDamaged(
                        f"{source} has checksum {summed.digest[:12]}, not {expected.digest[:12]}; {_REPAIR}"
                    )


_REPAIR = "repair the index first: longmatch upkeep repair INDEX"


def _member(name: str, written: Checksum) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)  # no owner, no time: the same index gives the same archive
    member.size, member.mode, member.pax_headers = written.size_bytes, 0o644, {_DIGEST: written.digest}
    return member


class _Summed:
    """A stream that computes a checksum of the bytes read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = xxhash.xxh3_128()

    def read(self, size: int = -1) -> bytes:
        block = self._stream.read(size)
        self._digest.update(block)
        return block

    @property
    def digest(self) -> str:
        """The checksum of all bytes read, 32 hexadecimal digits."""
        return self._digest.hexdigest()


@named_faults
def restore(file: str | Path, index: str | Path) -> BackupReport:
    """Unpack a backup into a new folder. The folder appears complete and on disk, or not at all.

    Raises:
        QueryError: there is no such file, or the folder is not empty.
        IndexMismatch: the file is not a backup, holds an index of another format, or a folder is in the way.
        IndexDamaged: the backup is not what was written.
        BudgetExceeded: the disk is full.
    """
    source, folder = Path(file), Path(index)
    if not source.is_file():
        raise QueryError(f"there is no file {source}; name a file that `longmatch upkeep backup` wrote")
    with appearing(folder) as unfinished:
        if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            raise QueryError(f"{folder} is there already; name a new folder, or move that one away first")
        files = _unpack(source, unfinished)
        named, n_documents, meta = _contents(unfinished / CATALOG_FILE, source)
        if {CATALOG_FILE: files[CATALOG_FILE]} | named != files:
            raise IndexDamaged(f"{source} does not hold the files that its catalog names; take another backup")
        commits = checks.CommitLog(unfinished)
        commits.reset(checks.commits_of(meta))
        commits.close()
    return BackupReport(n_documents, len(files), sum(file.size_bytes for file in files.values()))


def _unpack(source: Path, folder: Path) -> dict[str, Checksum]:
    """Write the members of an archive below a folder, each compared with its checksum."""
    files: dict[str, Checksum] = {}
    try:
        with tarfile.open(source, "r:") as archive:
            members = archive.getmembers()
            if not members or members[0].name != CATALOG_FILE or _DIGEST not in members[0].pax_headers:
                raise IndexMismatch(f"{source} is no backup of an index; make one: longmatch upkeep backup INDEX FILE")
            for member in members:
                if not member.isreg() or member.name in files:
                    raise IndexDamaged(f"{source} holds {member.name!r}, which is no file of an index; {_ANOTHER}")
                if member.name != CATALOG_FILE:
                    check_file_names([member.name], str(source))
                files[member.name] = _written_member(archive, member, folder / member.name, source)
    except (tarfile.TarError, ValueError) as error:
        raise IndexDamaged(f"{source} cannot be read ({error}); {_ANOTHER}") from error
    return files


_ANOTHER = "take another backup"


def _written_member(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path, source: Path) -> Checksum:
    stream = archive.extractfile(member)
    assert stream is not None  # a regular file has one
    path.parent.mkdir(parents=True, exist_ok=True)
    written = write_durably(path, lambda unfinished: _copy(stream, unfinished))
    if written != (expected := Checksum(member.size, member.pax_headers.get(_DIGEST, ""))):
        raise IndexDamaged(
            f"{member.name} in {source} has checksum {written.digest[:12]}, not {expected.digest[:12]}; {_ANOTHER}"
        )
    return written


def _copy(stream: IO[bytes], path: Path) -> None:
    with path.open("wb") as into:
        shutil.copyfileobj(stream, into, _BLOCK)
