"""Documents as rows of the catalog, and checksums of all rows, so that a reader can trust some without reading all.

A document has two checksums, one of its row and one of its text and sections; each is compared whenever the document
is read. The other tables have one checksum each. All are written in the transaction that changes the rows.

A reader compares the tables that it needs when it opens the catalog, and all rows before an operation that reads all
of them, such as a filter. A writer compares the tables when it opens, and the rows of a block before it changes one.

The number of commits is also in a file beside the catalog, since SQLite ignores what is damaged in its log, and an
older catalog is as valid as a newer one. A writer writes the number after each commit, before it reports the commit;
so the file can be one commit behind the catalog, but never ahead.
"""

import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import xxhash

from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexDamaged, IndexMismatch, damaged_catalog, faults_named
from engine.store import catalog
from engine.store.durable import fsync_folder
from engine.store.gathering import BLOCK_IDS, check_blocks, checksum_of, signed, write_blocks
from engine.text.document import Document, deferred
from engine.text.segmentation import Coverage, Section

_TABLES = (*catalog.OPENED_TABLES, "failures", "location_blocks")
_LOW = 0xFFFFFFFF
_BLOCK_CHECKS = "SELECT block, n_documents, checksum FROM location_blocks ORDER BY block"
_DAMAGED_TABLE = "table {name} of {place} is not what was written"


def read_meta(connection: sqlite3.Connection, place: str) -> dict[str, Any]:
    """All named values, compared with their checksum before they are decoded.

    Raises:
        IndexDamaged: the values are not what was written.
        IndexMismatch: the catalog has another format than this program reads, or no table yet.
    """
    if not catalog.has_table(connection, "meta"):
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if foreign := [name for name in names if name not in catalog.COLUMNS]:
            raise IndexMismatch(f"{place} is of another program: it has the table {foreign[0]!r}; name another folder")
        raise IndexMismatch("the index was begun but holds nothing yet; fill it: longmatch index INDEX PATH...")
    rows = connection.execute(catalog.all_rows("meta")).fetchall()
    stored = table_checks(connection) if catalog.has_table(connection, "table_checks") else {}
    if stored:
        _compare(stored, "meta", rows, place)
    # A column of JSON holds a number as a number.
    values = {key: json.loads(value) if isinstance(value, str) else value for key, value in rows}
    if values and values.get("format") != catalog.FORMAT:
        raise IndexMismatch(
            f"the index has format {values.get('format')}, this program reads format {catalog.FORMAT}; index the "
            "corpus again into a new folder: longmatch index NEW_FOLDER PATH..."
        )
    return values


def content_check(deflated: bytes, sections: Iterable[Sequence[Any]]) -> int:
    """The checksum of a document's text, as it is stored, and of its sections.

    Args:
        deflated: the stored text.
        sections: heading, path (JSON as stored), start, stop, n_merged, part and n_parts of each, in order.
    """
    digest = xxhash.xxh3_64(deflated)
    digest.update(_canonical(list(map(list, sections))))
    return signed(digest.intdigest())


def record_documents(connection: sqlite3.Connection, document_ids: Iterable[int] | None = None) -> None:
    """Write the checksums and blocks of documents whose rows were written in this transaction; of all by default."""
    chosen = None if document_ids is None else [int(document_id) for document_id in document_ids]
    write_blocks(connection, chosen)
    known: dict[int, int] = {}
    if chosen is None:
        chosen = [row[0] for row in connection.execute("SELECT id FROM documents")]
    else:  # texts never change, so damage of one must not get a new checksum
        stored = "SELECT document_id, content_check FROM document_checks WHERE document_id IN ({marks})"
        known = dict(catalog.execute_in(connection, stored, chosen))
    contents = known | _content_checks(connection, [document for document in chosen if document not in known])
    catalog.execute_in(connection, "DELETE FROM document_checks WHERE document_id IN ({marks})", chosen)
    rows = catalog.execute_in(
        connection, f"SELECT {catalog.quoted_names('documents')} FROM documents WHERE id IN ({{marks}})", chosen
    )
    checks = [(row[0], _row_check(row), contents.get(row[0], 0)) for row in rows]
    connection.executemany("INSERT INTO document_checks VALUES (?, ?, ?)", checks)


def record_tables(connection: sqlite3.Connection) -> None:
    """Write the checksums of the other tables; the last step of a transaction."""
    checks = list(_table_checks(connection))
    connection.execute("DELETE FROM table_checks")
    connection.executemany("INSERT INTO table_checks VALUES (?, ?, ?)", checks)


def check_opened(connection: sqlite3.Connection, rows: catalog.StoredRows, place: str) -> None:
    """Compare tables whose rows were read in the same transaction; errors as in `check_catalog`."""
    stored = table_checks(connection)
    for table, of_table in rows.items():
        _compare(stored, table, of_table, place)


def check_location_table(connection: sqlite3.Connection, place: str) -> None:
    """Compare the table of location blocks with its checksum; the arrays have checksums of their own."""
    _compare(table_checks(connection), "location_blocks", _checked_rows(connection, "location_blocks"), place)


def _compare(stored: Mapping[str, tuple[int, int]], table: str, rows: Iterable[Sequence[Any]], place: str) -> None:
    name, *now = _table_check(table, rows)
    if stored.get(name) != tuple(now):
        raise damaged_catalog(_DAMAGED_TABLE.format(name=name, place=place))


def check_catalog(connection: sqlite3.Connection, place: str) -> None:
    """Compare all rows of a catalog with their checksums; texts and sections are compared when read.

    Raises:
        IndexDamaged: a row is not what was written, is missing, or should not exist.
    """
    check_tables(connection, place)
    if damaged := damaged_documents(connection):
        raise damaged_catalog(
            f"{len(damaged)} documents of {place}, the first is {damaged[0]!r}, are not what was written"
        )
    check_blocks(connection, place)
    check_names(connection, place)


def check_tables(connection: sqlite3.Connection, place: str) -> None:
    """Compare the tables that do not grow with the documents with their checksums; errors as in `check_catalog`."""
    if (table := damaged_table(connection)) is not None:
        raise damaged_catalog(_DAMAGED_TABLE.format(name=table, place=place))


def check_block_rows(connection: sqlite3.Connection, block: int, place: str) -> None:
    """Compare the rows of one block of documents with their checksums; errors as in `check_catalog`."""
    between = f"BETWEEN {block * BLOCK_IDS} AND {(block + 1) * BLOCK_IDS - 1}"
    statement = f"SELECT document_id, row_check FROM document_checks WHERE document_id {between}"
    if dict(connection.execute(statement)) != dict(_row_checks(connection, f"WHERE id {between}")):
        raise damaged_catalog(
            f"documents {block * BLOCK_IDS} to {(block + 1) * BLOCK_IDS - 1} of {place} are not what was written"
        )


def check_names(connection: sqlite3.Connection, place: str) -> None:
    """Check that documents can be looked up by name; errors as in `check_catalog`."""
    for (line,) in connection.execute("PRAGMA integrity_check(documents)"):
        if line != "ok":  # its indexes, by which names are looked up
            raise damaged_catalog(f"{place} cannot be read ({line})")


def check_contents(connection: sqlite3.Connection, place: str) -> None:
    """Compare the texts and sections of all documents with their checksums; errors as in `check_catalog`."""
    stored = dict(connection.execute("SELECT document_id, content_check FROM document_checks"))
    if _content_checks(connection, list(stored)) != stored:
        raise damaged_catalog(f"texts of {place} are not what was indexed")


def damaged_table(connection: sqlite3.Connection) -> str | None:
    """The first table whose rows are not what was written; None if all are."""
    stored = table_checks(connection)
    return next((name for name, *now in _table_checks(connection) if stored.get(name) != tuple(now)), None)


def table_checks(connection: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    """The recorded number of rows and checksum of each table; they differ after every change."""
    rows = connection.execute("SELECT name, n_rows, checksum FROM table_checks")
    return {name: (n_rows, check) for name, n_rows, check in rows}


def damaged_documents(connection: sqlite3.Connection) -> list[str]:
    """The names of documents whose row is not what was written."""
    stored = dict(connection.execute("SELECT document_id, row_check FROM document_checks"))
    wrong = [number for number, check in _row_checks(connection) if stored.pop(number, None) != check]
    rows = [connection.execute("SELECT doc_id FROM documents WHERE id = ?", [number]).fetchone() for number in wrong]
    # A damaged page can hold a row that a search for its number does not reach.
    names = [f"number {number}" if row is None else str(row[0]) for number, row in zip(wrong, rows, strict=True)]
    return names + [f"number {number}" for number in stored]


def _table_checks(connection: sqlite3.Connection) -> Iterator[tuple[str, int, int]]:
    """Name, number of rows and checksum of each table, and of the checksums of documents."""
    for table in _TABLES:
        yield _table_check(table, _checked_rows(connection, table))
    sums = ", ".join(f"coalesce(sum({half} & {_LOW}), 0)" for half in ("row_check", "(row_check >> 32)"))
    n_rows, low, high = connection.execute(f"SELECT count(*), {sums} FROM document_checks").fetchone()
    yield "documents", n_rows, checksum_of(_canonical([n_rows, low, high]))


def _checked_rows(connection: sqlite3.Connection, table: str) -> Iterable[Sequence[Any]]:
    """The rows of one table as its checksum covers them; location blocks have checksums in place of arrays."""
    return connection.execute(_BLOCK_CHECKS if table == "location_blocks" else catalog.all_rows(table))


def _table_check(table: str, rows: Iterable[Sequence[Any]]) -> tuple[str, int, int]:
    """Name, number of rows and checksum of one table."""
    digest, n_rows = xxhash.xxh3_64(), 0
    for row in rows:
        digest.update(_canonical(row))
        n_rows += 1
    return table, n_rows, signed(digest.intdigest())


def _row_checks(connection: sqlite3.Connection, where: str = "") -> Iterator[tuple[int, int]]:
    for row in connection.execute(f"SELECT {catalog.quoted_names('documents')} FROM documents {where}"):
        yield row[0], _row_check(row)


def _row_check(row: Sequence[Any]) -> int:
    return checksum_of(_canonical(row))


def stored_rows(connection: sqlite3.Connection, document_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The rows of documents as SQLite holds them, by catalog id, each with its `content_check`.

    An id that does not exist is left out.
    """
    names = [*catalog.columns("documents"), "content_check"]
    statement = (
        f"SELECT {catalog.quoted_names('documents')}, content_check, row_check FROM documents "
        "LEFT JOIN document_checks ON document_id = id WHERE id IN ({marks})"
    )
    by_id = {}
    for *row, row_check in catalog.execute_in(connection, statement, document_ids):
        if row_check != _row_check(tuple(row[:-1])):
            raise damaged_catalog(f"the row of {row[1]!r} is not what was written")
        by_id[row[0]] = dict(zip(names, row, strict=True))
    return by_id


def stored_contents(
    connection: sqlite3.Connection, document_ids: Sequence[int]
) -> dict[int, tuple[bytes, list[Sequence[Any]]]]:
    """The deflated text and the sections of documents, as `content_check` takes them, by catalog id."""
    sections: dict[int, list[Sequence[Any]]] = {document_id: [] for document_id in document_ids}
    names = "document_id, heading, path, start, stop, n_merged, part, n_parts"
    of_sections = f"SELECT {names} FROM sections WHERE document_id IN ({{marks}}) ORDER BY document_id, position"
    for document_id, *section in catalog.execute_in(connection, of_sections, document_ids):
        sections.setdefault(document_id, []).append(section)
    texts = catalog.execute_in(
        connection, "SELECT document_id, deflated FROM texts WHERE document_id IN ({marks})", document_ids
    )
    return {document_id: (deflated, sections[document_id]) for document_id, deflated in texts}


def _content_checks(connection: sqlite3.Connection, document_ids: Sequence[int]) -> dict[int, int]:
    checks: dict[int, int] = {}
    for first in range(0, len(document_ids), _AT_ONCE):
        contents = stored_contents(connection, document_ids[first : first + _AT_ONCE])
        checks |= {document_id: content_check(*content) for document_id, content in contents.items()}
    return checks


def _canonical(row: Sequence[Any]) -> bytes:
    return ascii(row).encode()  # twice as fast as JSON


COMMITS_FILE = "commits"
COMMITS = "commits"  # the named value in the catalog
_SLOT_BYTES = 512  # written at once by a disk; each number is written over the one before the last
_REPAIR = "restore a copy of the whole folder, or go on without them: longmatch upkeep repair INDEX"


class CommitLog:
    """The file, held open by a writer."""

    def __init__(self, folder: Path) -> None:
        """Open the file; create it if it is missing."""
        path = folder / COMMITS_FILE
        is_new = not path.exists()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        if is_new:
            os.write(self._file, bytes(2 * _SLOT_BYTES))
            os.fsync(self._file)
            fsync_folder(folder)
        self._number = reported_commits(folder)

    def report(self, number: int) -> None:
        """Write the number of commits, unless it is written already."""
        if number != self._number:
            os.lseek(self._file, number % 2 * _SLOT_BYTES, os.SEEK_SET)
            os.write(self._file, _slot(number))
            os.fsync(self._file)
            self._number = number

    def reset(self, number: int) -> None:
        """Write a number that may be lower than the one before."""
        self.report(number - 1)  # into the other slot
        self.report(number)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def reported_commits(folder: Path) -> int:
    """The number of commits that were reported; 0 without a file, or where both numbers in it are damaged.

    A reader calls this before it reads the catalog, which may have got more commits in between.
    """
    try:
        content = (folder / COMMITS_FILE).read_bytes()
    except FileNotFoundError:
        return 0
    slots = [content[first : first + _SLOT_BYTES] for first in (0, _SLOT_BYTES)]
    numbers = [int(slot[:20]) for slot in slots if slot[:20].isdigit() and slot == _slot(int(slot[:20]))]
    return max(numbers, default=0)


def commits_of(meta: Mapping[str, Any]) -> int:
    """The number of commits that a catalog holds, by its named values."""
    return int(meta.get(COMMITS, 0))


def lost_commits(meta: Mapping[str, Any], reported: int) -> str | None:
    """What is wrong where a catalog lacks reported commits; None where it has all."""
    if commits_of(meta) >= reported:
        return None
    return (
        f"it holds {commits_of(meta):,} commits of {reported:,}: an older catalog was put back, or its log was damaged "
        "or lost"
    )


def check_commits(meta: Mapping[str, Any], reported: int, place: str) -> None:
    """Refuse a catalog that lacks reported commits."""
    if (lost := lost_commits(meta, reported)) is not None:
        raise IndexDamaged(f"{place} lost commits ({lost}); {_REPAIR}")


def _slot(number: int) -> bytes:
    digits = f"{number:020d}".encode()
    return f"{number:020d} {xxhash.xxh3_64_hexdigest(digits)}\n".encode().ljust(_SLOT_BYTES)


MAX_TEXT_BYTES = 1 << 30  # of one document; SQLite holds no larger value
_AT_ONCE = 500  # documents whose texts are read together


def content_hash(document: Document) -> str:
    """SHA-256 of the encoder's input: title, text and sections, without metadata and source."""
    digest = hashlib.sha256()
    sections = [[section.heading, section.path, section.start, section.stop] for section in document.sections]
    for part in (document.title, document.text, json.dumps(sections)):
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


def document_rows(
    encoded: Sequence[tuple[Document, EncodedDocument]], ids: Sequence[int], shard: int, first_chunk: int
) -> list[dict[str, Any]]:
    """Rows of the documents table for a batch whose vectors follow each other in one shard; see `places`."""
    where = places([vectors for _, vectors in encoded], shard, first_chunk)
    return [
        {
            "id": ids[position],
            "doc_id": document.doc_id,
            "title": document.title,
            "source": document.source,
            "content_hash": content_hash(document),
            "metadata": dict(document.metadata),
            "pages": list(document.pages),
            "pins": list(document.pins),
            **where[position],
        }
        for position, (document, _) in enumerate(encoded)
    ]


def places(encoded: Sequence[EncodedDocument], shard: int, first_chunk: int) -> list[dict[str, int]]:
    """Where the vectors of consecutive documents of one shard are, by column of the documents table.

    Args:
        first_chunk: id of the first chunk; the others follow, see `chunk_ids`.
    """
    rows = []
    section_row = chunk_row = 0
    for position, vectors in enumerate(encoded):
        rows.append(
            {
                "shard_id": shard,
                "document_row": position,
                "section_row": section_row,
                "chunk_row": chunk_row,
                "first_chunk": first_chunk,
                "n_chunks": len(vectors.chunks),
                "n_sections": len(vectors.sections),
                "tokens_read": vectors.coverage.tokens_read,
                "tokens_total": vectors.coverage.tokens_total,
            }
        )
        section_row += len(vectors.sections)
        chunk_row += len(vectors.chunks)
        first_chunk += chunk_ids(vectors)
    return rows


def chunk_ids(vectors: EncodedDocument) -> int:
    """The number of chunk ids that a document takes: one if it has no vectors yet, so that its first id is unique."""
    return max(1, len(vectors.chunks))


def text_rows(documents: Iterable[tuple[int, Document]]) -> Iterator[dict[str, Any]]:
    """Rows of the texts of documents with their catalog ids."""
    for document_id, document in documents:
        # Level 1: 50 MB/s and more, a third of the size; the encoder reads under 1 MB/s.
        yield {"document_id": document_id, "deflated": zlib.compress(document.text.encode(), 1)}


_SECTION = tuple(field.name for field in fields(Section))
_of_section = attrgetter(*_SECTION)


def section_rows(documents: Iterable[tuple[int, Document]]) -> Iterator[dict[str, Any]]:
    """Rows of the sections of documents with their catalog ids."""
    for document_id, document in documents:
        for position, section in enumerate(document.sections):
            values = zip(_SECTION, _of_section(section), strict=True)
            yield {"document_id": document_id, "position": position, **dict(values)}


def delete_documents(connection: sqlite3.Connection, document_ids: Sequence[int]) -> None:
    """Remove documents with their texts and sections; their vectors stay in the shards, unnamed."""
    catalog.execute_in(connection, "DELETE FROM documents WHERE id IN ({marks})", document_ids)
    write_blocks(connection, document_ids)


def stored_documents(connection: sqlite3.Connection, document_ids: Sequence[int]) -> list[tuple[Document, Coverage]]:
    """Read documents, in the order of the ids; an id that does not exist is left out.

    Text and sections stay packed in memory until one of them is first read. That read needs no connection,
    and can raise IndexDamaged.

    Raises:
        IndexDamaged: a value cannot be read, or text and sections are not what was written.
    """
    by_id: dict[int, tuple[Document, Coverage]] = {}
    ids = [int(document_id) for document_id in document_ids]
    for first in range(0, len(ids), _AT_ONCE):
        with _damage():
            by_id |= _load_block(connection, ids[first : first + _AT_ONCE])
    return [by_id[document_id] for document_id in ids if document_id in by_id]


@contextmanager
def _damage() -> Iterator[None]:
    try:
        with faults_named():
            yield
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise damaged_catalog(f"a document in the catalog cannot be read ({error})") from error


def _load_block(connection: sqlite3.Connection, ids: Sequence[int]) -> dict[int, tuple[Document, Coverage]]:
    by_id: dict[int, tuple[Document, Coverage]] = {}
    contents = stored_contents(connection, ids)
    for document_id, row in stored_rows(connection, ids).items():
        if document_id not in contents:
            continue
        if row["content_check"] != content_check(*contents[document_id]):
            raise damaged_catalog(f"text or sections of {row['doc_id']!r} are not what was indexed")
        document = deferred(
            Document,
            partial(_unpacked, *contents[document_id]),
            doc_id=row["doc_id"],
            title=row["title"],
            metadata=json.loads(row["metadata"]),
            source=row["source"],
            pages=tuple(json.loads(row["pages"])),
            pins=tuple((start, name) for start, name in json.loads(row["pins"])),
        )
        by_id[document_id] = document, Coverage(row["tokens_read"], row["tokens_total"])
    return by_id


def _unpacked(deflated: bytes, sections: Sequence[Sequence[Any]]) -> dict[str, Any]:
    with _damage():
        paths = json.loads(f"[{','.join(path for _, path, *_ in sections)}]")
        return {
            "text": _inflated(deflated).decode(),
            "sections": tuple(
                Section(heading, tuple(path), *numbers)
                for (heading, _, *numbers), path in zip(sections, paths, strict=True)
            ),
        }


def _inflated(deflated: bytes) -> bytes:
    """Unpack a text of at most `MAX_TEXT_BYTES`: a few damaged bytes could unpack to more than the memory."""
    stream = zlib.decompressobj()
    inflated = stream.decompress(deflated, MAX_TEXT_BYTES)
    if not stream.eof:
        raise ValueError(f"a text of more than {MAX_TEXT_BYTES:,} bytes, or one that is cut off")
    return inflated
