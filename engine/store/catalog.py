"""The tables of `catalog.sqlite`, the only source of truth of an index, and the manifest of a partitioned index.

Tables that do not grow with the documents are read whole by every reader on opening: once, compared with their
checksums (`engine.store.checks`), and then used. A partitioned index is several indexes under one manifest:

    papers.parts/
      partitions.json               this manifest, replaced by one rename
      reference/NNNNNN.safetensors  sample, word statistics and common sentences of all partitions
      0000.lm, 0001.lm, ...         ordinary indexes, each with the documents whose doc_id hashes to its number

A partition holds no reference of its own, and its catalog records that it is a partition. This module is light on
purpose: commands use it to check whether a folder is partitioned before anything else is loaded.
"""

import json
import os
import re
import sqlite3
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import quote

import xxhash

from engine.errors import IndexDamaged, IndexMismatch, StorageError, damaged_catalog, faults_named
from engine.store.durable import write_durably

FORMAT = 1  # of an index on disk, the rules of terms and of kinds of sections included; no other is read
CATALOG_FILE = "catalog.sqlite"
ANN_FOLDER = "ann"
BUSY_SECONDS = 30  # limit on the time that a statement waits for another process
_AT_ONCE = 500  # values in one statement; some builds of SQLite allow few
_FILE = "file size_bytes digest"  # a file relative to the index folder
_LENGTHS = "n_chunks n_sections tokens_read tokens_total"
# The columns of each table, in the order of its rows; the first is the key. `engine.store.writable` has their types.
COLUMNS = {
    # Named values: format, encoder, counters, ...
    "meta": "key value",
    # Immutable files of vectors. `part_digests`: by tensor, and that of the header; see `engine.store.shards`.
    "shards": f"id {_FILE} n_documents n_chunks part_digests",
    # Documents that can be found, the places of their vectors (the first rows in the arrays of the shard), and the
    # tokens that were read. The chunks have the ids `first_chunk` to `first_chunk + n_chunks - 1`, which are also the
    # ids of their vectors in FAISS.
    "documents": "id doc_id title source content_hash metadata pages pins "
    f"shard_id document_row section_row chunk_row first_chunk {_LENGTHS}",
    # Texts of documents, deflated; apart, so that scans of documents do not read them.
    "texts": "document_id deflated",
    # Sections of documents, whose key is both first columns; offsets count characters of the text.
    "sections": "document_id position heading path start stop n_merged part n_parts",
    # Published FAISS indexes over all chunks with ids up to `through_chunk`. `nprobe`: 0 where the index type has none.
    # `recall`: share of the exact top 10 documents that is found, in [0, 1].
    "generations": f"id factory nprobe through_chunk n_vectors is_exact recall recall_queries {_FILE}",
    # The postings of words of a generation: the files by which words choose candidates.
    "postings": f"generation_id {_FILE}",
    # Postings of words over documents without vectors that no generation covers.
    "word_postings": f"id n_documents {_FILE}",
    # The reference in force: the sample that thresholds are taken over, of `n_documents`, and the statistics of words;
    # with the number of documents of the index when it was drawn.
    "reference": f"version n_corpus n_documents {_FILE}",
    # Sources that the last run over them could not index, why, and the doc_id that the document would have, if known.
    "failures": "source reason doc_id",
    # The documents among the `engine.store.gathering.BLOCK_IDS` ids of a block: columns of 64 bits, least byte first,
    # one after another, with their checksum.
    "location_blocks": "block n_documents arrays checksum",
    # Checksums of the row of a document in `documents`, and of its content, see `engine.store.checks.content_check`.
    "document_checks": "document_id row_check content_check",
    # The checksums of tables, and of the row checksums of all documents.
    "table_checks": "name n_rows checksum",
}
# They grow only with the shards.
OPENED_TABLES = ("meta", "shards", "generations", "postings", "word_postings", "reference")
FILE_TABLES = OPENED_TABLES[1:]  # their rows name files
StoredRows: TypeAlias = Mapping[str, Sequence[Sequence[Any]]]  # by table, by rising key, values as SQLite holds them
NamedRow: TypeAlias = Any  # a tuple whose values have the names of their columns


@cache
def columns(table: str) -> tuple[str, ...]:
    """The names of the columns of a table, in the order of its rows."""
    return tuple(COLUMNS[table].split())


@contextmanager
def catalog_faults(path: Path) -> Iterator[None]:
    """Raise errors of SQLite as errors of this program.

    No checksum covers the catalog as a whole, so SQLite can find damage at any statement.
    """
    try:
        with faults_named(str(path)):
            yield
    except UnicodeDecodeError as error:  # names of tables and columns are text too
        raise damaged_catalog(f"{path} cannot be read ({error})") from error


def open_reader(path: Path) -> sqlite3.Connection:
    """Open the catalog read-only, in a transaction, so that it shows one state; several threads may use it.

    In a folder that cannot be written, the file is opened as immutable.
    """
    with catalog_faults(path):
        connection = open_catalog(path, read_only=True)
        connection.execute("BEGIN")
    return connection


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the catalog as `open_reader` does, and close it at the end; errors of SQLite meanwhile name it."""
    with catalog_faults(path), closing(open_reader(path)) as connection:
        yield connection


def open_catalog(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """SQLite's connection, in no transaction; a writer creates the file. Closing a reader never checkpoints."""
    query = "mode=ro" if read_only else "mode=rwc"
    if read_only and not os.access(path.parent, os.W_OK):
        if has_log(path.parent):  # SQLite would ignore the newest commits
            raise StorageError(
                f"{path.parent} cannot be written, and {path.name}-wal holds commits that are not in the catalog; "
                "open the index once where its folder can be written (longmatch show INDEX), or back it up there and "
                "restore the backup here: longmatch upkeep backup INDEX FILE"
            )
        query += "&immutable=1"
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path.resolve()))}?{query}",
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )
    try:
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA trusted_schema=OFF")  # a stranger's catalog may define views and triggers
        connection.execute("PRAGMA cell_size_check=ON")
        if not read_only:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def has_log(folder: Path) -> bool:
    """Whether a writer is at work in an index folder, or was killed there."""
    log = folder / f"{CATALOG_FILE}-wal"
    return log.exists() and log.stat().st_size > 0


def check_file_names(names: Iterable[str], place: str) -> None:
    """Refuse a file outside of the index folder; checksums do not help against a forged catalog."""
    for name in names:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or len(path.parts) < 2:
            raise IndexDamaged(
                f"{place} names the file {name!r}, which lies outside of the index; restore a backup, or index the "
                "corpus again"
            )


def as_json(value: object) -> str:
    """A value of a column of JSON."""
    return json.dumps(value, ensure_ascii=False)


def execute_in(connection: sqlite3.Connection, statement: str, values: Sequence[Any]) -> list[Any]:
    """Execute a statement over any number of values, and return all rows.

    Args:
        statement: with `{marks}` for the values, of which few are bound at a time.
    """
    rows = []
    for first in range(0, len(values), _AT_ONCE):
        block = values[first : first + _AT_ONCE]
        rows += connection.execute(statement.format(marks=", ".join("?" * len(block))), block).fetchall()
    return rows


def read_opened(connection: sqlite3.Connection) -> StoredRows:
    """All rows of `OPENED_TABLES`, as the open transaction sees them."""
    return {table: connection.execute(all_rows(table)).fetchall() for table in OPENED_TABLES}


def has_table(connection: sqlite3.Connection, table: str) -> bool:
    """Whether a table was made."""
    statement = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return connection.execute(statement, [table]).fetchone() is not None


def named_rows(stored: StoredRows, table: str) -> list[NamedRow]:
    """The rows of one table with names, JSON as text."""
    return [_named(table)(*row) for row in stored[table]]


def rows_of(connection: sqlite3.Connection, table: str) -> list[NamedRow]:
    """The rows of one table with names, by rising key."""
    return named_rows({table: connection.execute(all_rows(table)).fetchall()}, table)


def newest(stored: StoredRows, table: str) -> NamedRow | None:
    """The row of the highest key; None if the table is empty."""
    rows = named_rows(stored, table)
    return rows[-1] if rows else None


@cache
def _named(table: str) -> Any:  # noqa: ANN401
    return namedtuple(table, columns(table))


@cache
def all_rows(table: str) -> str:
    """The statement that reads all columns of a table, by rising key."""
    return f'SELECT {quoted_names(table)} FROM {table} ORDER BY "{columns(table)[0]}"'


def quoted_names(table: str) -> str:
    """All columns of a table, for a statement."""
    return ", ".join(f'"{name}"' for name in columns(table))


MANIFEST_FILE = "partitions.json"
MANIFEST_FORMAT = "longmatch-partitions/1"
HASH = "xxh3_64"  # of the doc_id in UTF-8, modulo the number of partitions
MOST_PARTITIONS = 4_096
_FOLDER = re.compile(r"\w[\w.-]*", re.ASCII)  # a name in the folder of the manifest, not a path
_REFERENCE = re.compile(r"reference/\d+\.safetensors", re.ASCII)


@dataclass(frozen=True, slots=True)
class ReferenceFile:
    """A pinned reference: the file, its checksum, and the documents that it was drawn from."""

    version: int
    n_corpus: int  # documents when it was drawn
    n_documents: int  # of the sample
    file: str  # relative to the folder of the index or manifest
    size_bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One partition."""

    folder: str  # relative to the manifest
    n_documents: int  # when the manifest was written
    n_chunks: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The values that all partitions share, and the place of each partition."""

    encoder: Mapping[str, Any] | None  # name, fingerprint and width; None for words alone
    language: str | None  # by which words are segmented
    reference: ReferenceFile | None
    partitions: tuple[Entry, ...]  # number p holds the documents whose hash is p modulo their number
    last_reference: int = 0  # versions only grow
    has_partial_reference: bool = False  # it was drawn while documents had no vectors


def partition_of(doc_id: str, n_partitions: int) -> int:
    """The number of the partition that a document belongs to."""
    return xxhash.xxh3_64_intdigest(doc_id.encode()) % n_partitions


def partition_folder(number: int) -> str:
    """Name of the folder of a partition, relative to the manifest."""
    return f"{number:04d}.lm"


def is_partitioned(folder: Path) -> bool:
    """Whether a folder holds a partitioned index."""
    return (folder / MANIFEST_FILE).is_file()


def is_manifest(file: Path) -> bool:
    """Whether a file is the manifest of a partitioned index, and not a document of the same name."""
    return file.name == MANIFEST_FILE and (file.parent / partition_folder(0) / CATALOG_FILE).exists()


def holds_index(folder: Path) -> bool:
    """Whether a folder holds an index, partitioned or not."""
    return (folder / CATALOG_FILE).exists() or is_partitioned(folder)


def index_folders(folder: Path) -> list[Path]:
    """The folders that have a catalog: all partitions, or the index itself."""
    return list(partition_folders(folder, read_manifest(folder))) if is_partitioned(folder) else [folder]


def partition_folders(folder: Path, manifest: Manifest) -> Iterator[Path]:
    """The folder of each partition, by number."""
    return (folder / entry.folder for entry in manifest.partitions)


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a partitioned index.

    Raises:
        IndexMismatch: there is no manifest, or one of another version.
        IndexDamaged: the manifest is not what was written.
    """
    path = folder / MANIFEST_FILE
    try:
        values = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise IndexMismatch(
            f"{folder} has no {MANIFEST_FILE}; name a partitioned index, or restore that file"
        ) from None
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    try:
        actual = values["format"], values["hash"]
        if actual != (MANIFEST_FORMAT, HASH):
            raise IndexMismatch(
                f"{path} has format {actual[0]!r} with hash {actual[1]!r}, this program reads {MANIFEST_FORMAT!r} with "
                f"{HASH!r}; use the version of longmatch that wrote it"
            )
        if values.pop("checksum") != manifest_checksum(values):
            raise _damaged(path, "its values are not those that its checksum is of")
        reference = values["reference"]
        manifest = Manifest(
            values["encoder"],
            values["language"],
            None if reference is None else ReferenceFile(**reference),
            tuple(Entry(**entry) for entry in values["partitions"]),
            values["last_reference"],
            values["has_partial_reference"],
        )
    except (KeyError, TypeError) as error:
        raise _damaged(path, f"{error} is missing or unknown") from error
    folders = [entry.folder for entry in manifest.partitions]
    files = [] if manifest.reference is None else [manifest.reference.file]
    outside = [name for name in folders if not _FOLDER.fullmatch(name)]
    outside += [name for name in files if not _REFERENCE.fullmatch(name)]
    if outside:
        raise _damaged(path, f"it names {outside[0]!r}, which is not a place of a partitioned index")
    if not folders or len(folders) != values["n_partitions"] or len(set(folders)) < len(folders):
        raise _damaged(path, f"it names {len(set(folders))} partitions, not {values['n_partitions']}")
    return manifest


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest of a partitioned index by one rename."""
    head = {"format": MANIFEST_FORMAT, "hash": HASH, "n_partitions": len(manifest.partitions)}
    values = head | asdict(manifest)
    content = json.dumps(values | {"checksum": manifest_checksum(values)}, indent=1, ensure_ascii=False) + "\n"
    write_durably(folder / MANIFEST_FILE, lambda unfinished: unfinished.write_text(content, encoding="utf-8"))


def manifest_checksum(values: Mapping[str, Any]) -> str:
    """xxh3_128 of the values of a manifest, as JSON with sorted keys and without blanks."""
    plain = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return xxhash.xxh3_128_hexdigest(plain.encode())


def _damaged(path: Path, reason: str) -> IndexDamaged:
    return IndexDamaged(f"{path} cannot be read ({reason}); restore a copy of it")
