"""The one writer of an index, or of all its partitions: commits, removals, generations, failures. Encodes nothing.

Order of every commit: file, fsync, rename, fsync of the folder, then one transaction that names the file.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexMismatch, command_line, named_faults
from engine.store import catalog, checks
from engine.store.gathering import Locations
from engine.store.reference import REFERENCE_FOLDER, Reference, write_reference
from engine.store.shards import Shard, part_digests, shard_arrays, shard_file, write_shard
from engine.store.writable import FIRST_IDS, FORGET, WritableIndex
from engine.text.document import Document, MetadataValue
from engine.words.counts import WordTables, count_documents
from engine.words.languages import check_language, detect_language
from engine.words.segmenter import WordSegmenter


@dataclass(frozen=True, slots=True)
class Indexed:
    """Catalog values of a document that is already indexed."""

    id: int
    content_hash: str
    metadata: Mapping[str, MetadataValue]
    source: str


_DROP = "DELETE FROM shards WHERE id IN ({marks})"


class Writer(WritableIndex):
    """Commits to an index folder, which it holds from opening to closing; see `WritableIndex`."""

    _segmenter: WordSegmenter | None = None

    def claim(self, encoder: Mapping[str, Any]) -> None:
        """Bind the index to an encoder, the first time.

        Args:
            encoder: its `name`, `fingerprint` and `width`.

        Raises:
            IndexMismatch: the index is bound to another one.
        """
        bound = self.meta.get("encoder")
        if bound is None:
            self.set_values({"encoder": dict(encoder)})
        elif bound["fingerprint"] != encoder["fingerprint"]:
            raise IndexMismatch(
                f"{self.folder} was built with encoder {bound['name']!r} ({bound['width']} wide, fingerprint "
                f"{bound['fingerprint'][:12]}), not {encoder['name']!r} ({encoder['width']} wide, "
                f"{encoder['fingerprint'][:12]}); pass --encoder {bound['name']}, index into a new folder, or encode a "
                f"copy without vectors: {command_line('upkeep', 'partition', self.folder, 'NEW', '-p', 1, '--words')}"
            )

    @property
    def parts(self) -> Sequence[Writer]:
        """The writers of all partitions; here only this writer."""
        return (self,)

    @property
    def is_partition(self) -> bool:
        """Whether the index is a partition, whose reference is in the manifest; see `engine.store.catalog`."""
        return "partition" in self.meta

    def bind_partition(self, number: int, n_partitions: int, language: str) -> None:
        """Make a new index a partition, so that it can be opened without documents."""
        partition = {"number": number, "of": n_partitions}
        self.set_values({"partition": partition, "language": language, "counters": self._counters()})

    @property
    def has_committed(self) -> bool:
        """Whether a document was ever committed; the counter starts at 1, also in empty partitions."""
        return self._counters()["document"] > 1

    def set_values(self, values: Mapping[str, Any]) -> None:
        """Set named values, leaving the others, in a transaction of their own."""
        with self._transaction(values):
            pass

    def documents(self, document_ids: Sequence[int]) -> list[Document]:
        """Documents by catalog id, in that order; removed documents are left out."""
        with self.read() as connection:
            return [document for document, _ in checks.stored_documents(connection, document_ids)]

    def indexed(self, doc_ids: Sequence[str]) -> dict[str, Indexed]:
        """Catalog values of the given names, without those that are not indexed."""
        statement = "SELECT doc_id, id, content_hash, metadata, source FROM documents WHERE doc_id IN ({marks})"
        with self.read() as connection:
            self._check_names(connection)
            rows = catalog.execute_in(connection, statement, doc_ids)
            self._check_rows(connection, [row[1] for row in rows])
        return {name: Indexed(number, digest, json.loads(meta), source) for name, number, digest, meta, source in rows}

    @property
    def width(self) -> int:
        """D of the encoder; 0 if the index is not bound to an encoder."""
        return int(self.meta.get("encoder", {}).get("width", 0))

    @property
    def holds_anything(self) -> bool:
        """Whether an encoder was bound or a document committed, so that the index can be opened."""
        return bool(self.meta.keys() & {"encoder", "counters"})

    @property
    def language(self) -> str | None:
        """The language by which words are segmented; None until it is set."""
        language: str | None = self.meta.get("language")
        return language

    def set_language(self, language: str) -> None:
        """Bind the index to a language, the first time.

        Raises:
            QueryError: there is no such language.
            IndexMismatch: the index is bound to another one.
        """
        check_language(language)
        bound = self.language
        if bound not in (None, language):
            raise IndexMismatch(
                f"{self.folder} segments words by language {bound!r}, not {language!r}; leave --language out, or index "
                "into a new folder"
            )
        if bound is None:
            self.set_values({"language": language})

    def count_words(self, documents: Sequence[Document]) -> WordTables:
        """Count the terms of documents; the first documents of an index set its language if it has none."""
        if self.language is None:
            self.set_language(detect_language(document.text for document in documents))
        if self._segmenter is None or self._segmenter.language != self.language:
            self._segmenter = WordSegmenter(self.language or "none")
        return count_documents(self._segmenter, documents)

    def commit(self, encoded: Sequence[tuple[Document, EncodedDocument]], words: WordTables | None = None) -> list[int]:
        """Write a batch of documents, replacing those of the same names, all in one transaction.

        Args:
            words: their term counts, if `count_words` already counted them.

        Raises:
            IndexMismatch: the folder was moved, removed, or replaced by another index.
        """
        documents = [document for document, _ in encoded]
        vectors = [of_document for _, of_document in encoded]
        counters = self._counters()
        ids = list(range(counters["document"], counters["document"] + len(encoded)))
        shard = shard_arrays(vectors, words or self.count_words(documents))
        n_chunks = sum(map(checks.chunk_ids, vectors))
        with self._new_shard(shard, documents=len(ids), chunks=n_chunks) as (connection, number):
            self._check_names(connection)
            self._check_rows(connection, ids)
            named = "SELECT id FROM documents WHERE doc_id IN ({marks})"
            replaced = catalog.execute_in(connection, named, [document.doc_id for document in documents])
            self._delete(connection, [document_id for (document_id,) in replaced])
            self._insert("documents", checks.document_rows(encoded, ids, number, counters["chunk"]))
            self._insert("texts", checks.text_rows(zip(ids, documents, strict=True)))
            self._insert("sections", checks.section_rows(zip(ids, documents, strict=True)))
            checks.record_documents(connection, ids)
            catalog.execute_in(connection, FORGET, [document.source for document in documents])
        return ids

    @contextmanager
    def _new_shard(
        self, shard: Shard, *, documents: int = 0, chunks: int = 0
    ) -> Iterator[tuple[sqlite3.Connection, int]]:
        """Write a shard, then name it in a transaction; returns that and the number of the shard.

        Args:
            documents: numbers of documents that the transaction uses.
            chunks: numbers of chunks that it uses.
        """
        counters = self._counters()
        number = counters["shard"]
        self._check_place()
        file = shard_file(number)
        written = write_shard(self.folder / file, shard)
        row = {
            "id": number,
            "file": file,
            **asdict(written),
            "n_documents": len(shard.documents),
            "n_chunks": len(shard.chunks),
            "part_digests": part_digests(self.folder / file),
        }
        following = {
            "shard": number + 1,
            "document": counters["document"] + documents,
            "chunk": counters["chunk"] + chunks,
        }
        with self._transaction({"counters": following}) as connection:
            self._insert("shards", [row])
            yield connection, number

    def add_vectors(self, document_ids: Sequence[int], encoded: Sequence[EncodedDocument], words: WordTables) -> int:
        """Give vectors to documents that have none, in one transaction; their ids, texts and metadata stay.

        Documents that were removed, or have vectors by now, are left out.

        Args:
            words: the term counts of each, as they were committed.

        Raises:
            IndexMismatch: the folder was moved, removed, or replaced by another index.
        """
        still = self.still_unencoded(document_ids)
        rows = [row for row, document_id in enumerate(document_ids) if document_id in still]
        if not rows:
            return 0
        chosen = [encoded[row] for row in rows]
        ids = [document_ids[row] for row in rows]
        shard = shard_arrays(chosen, words.of(np.array(rows)))
        first_chunk = self._counters()["chunk"]
        with self._new_shard(shard, chunks=sum(map(checks.chunk_ids, chosen))) as (connection, number):
            self._check_rows(connection, ids)
            placed = zip(ids, checks.places(chosen, number, first_chunk), strict=True)
            self._update_documents(({"id": document_id, **place} for document_id, place in placed))
            checks.record_documents(connection, ids)
        return len(ids)

    def _counters(self) -> dict[str, int]:
        """The next ids; they only grow, and no id is used twice."""
        counters: dict[str, int] = self.meta.get("counters", FIRST_IDS)
        return counters

    def replace_shards(self, numbers: Sequence[int], shard: Shard, documents: Locations) -> None:
        """Replace shards with one of all their documents, in this order; the ids of documents and chunks stay."""
        if not len(documents):
            self.drop_shards(numbers)
            return
        ids: list[int] = documents.ids.tolist()
        sections, chunks = (np.cumsum(counts) - counts for counts in (documents.n_sections, documents.n_chunks))
        with self._new_shard(shard) as (connection, number):
            self._check_rows(connection, ids)
            self._update_documents(
                {"id": key, "shard_id": number, "document_row": row, "section_row": section, "chunk_row": chunk}
                for row, (key, section, chunk) in enumerate(zip(ids, sections.tolist(), chunks.tolist(), strict=True))
            )
            checks.record_documents(connection, ids)
            catalog.execute_in(connection, _DROP, numbers)
        self._sweep()

    def drop_shards(self, numbers: Sequence[int]) -> None:
        """Remove shards that no document needs any more, and delete their files."""
        with self._transaction() as connection:
            catalog.execute_in(connection, _DROP, numbers)
        self._sweep()

    def still_unencoded(self, document_ids: Sequence[int]) -> set[int]:
        """The given catalog ids that exist and have no vectors."""
        statement = "SELECT id FROM documents WHERE n_chunks = 0 AND id IN ({marks})"
        with self.read() as connection:
            return {number for (number,) in catalog.execute_in(connection, statement, document_ids)}

    def unencoded(self) -> list[int]:
        """Catalog ids of all documents without vectors, rising."""
        with self.read() as connection:
            rows = connection.execute("SELECT id FROM documents WHERE n_chunks = 0 ORDER BY id")
            return [number for (number,) in rows]

    def update_metadata(self, documents: Sequence[tuple[int, Document]]) -> None:
        """Set metadata and source of documents whose content is unchanged; nothing is encoded."""
        with self._transaction() as connection:
            ids = [document_id for document_id, _ in documents]
            self._check_rows(connection, ids)
            changes = (
                {"id": number, "metadata": dict(document.metadata), "source": document.source}
                for number, document in documents
            )
            self._update_documents(changes)
            checks.record_documents(connection, ids)

    def remove(self, document_ids: Sequence[int]) -> None:
        """Remove documents; when this returns, they can no longer be found."""
        with self._transaction() as connection:
            self._delete(connection, document_ids)

    def _delete(self, connection: sqlite3.Connection, document_ids: Sequence[int]) -> None:
        self._check_rows(connection, document_ids)
        checks.delete_documents(connection, document_ids)

    def sources(self) -> list[tuple[int, str]]:
        """Catalog id and source of every document, by rising id."""
        with self.read() as connection:
            return connection.execute("SELECT id, source FROM documents ORDER BY id").fetchall()


@named_faults
class PartitionWriters:
    """Holds the writer lock of every partition from opening to closing, and writes the manifest."""

    def __init__(self, folder: Path) -> None:
        """Take all locks.

        Raises:
            IndexBusy: another process holds the lock of a partition.
            IndexDamaged: a catalog or the manifest is not what was written.
            IndexMismatch: there is no manifest, or a partition is missing.
        """
        self.folder = folder
        with ExitStack() as opening:
            self.parts: Sequence[Writer] = [opening.enter_context(Writer(path)) for path in _folders(folder)]
            self.manifest = catalog.read_manifest(folder)  # again, now that no other process can change it
            self._opened = opening.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                entries = zip(self.manifest.partitions, self.parts, strict=True)
                counted = replace(self.manifest, partitions=tuple(_counted(entry, writer) for entry, writer in entries))
                if counted != self.manifest:
                    self._write(counted)
        finally:
            self._opened.close()

    def claim(self, encoder: Mapping[str, Any]) -> None:
        """Bind all partitions to an encoder, the first time; errors as in `Writer.claim`."""
        for writer in self.parts:
            writer.claim(encoder)
        if self.manifest.encoder is None:
            self._write(replace(self.manifest, encoder=dict(encoder)))

    def set_language(self, language: str) -> None:
        """Bind all partitions to a language, the first time; errors as in `Writer.set_language`."""
        for writer in self.parts:
            writer.set_language(language)
        if self.manifest.language is None:
            self._write(replace(self.manifest, language=language))

    def next_reference(self) -> int:
        """The version that the next reference gets; versions only grow."""
        return self.manifest.last_reference + 1

    def publish_reference(self, reference: Reference, *, is_partial: bool = False) -> None:
        """Write a reference for all partitions and name it, in place of the previous one; see `Writer`."""
        (self.folder / REFERENCE_FOLDER).mkdir(exist_ok=True)
        pinned = write_reference(self.folder, reference)
        last = reference.version
        self._write(replace(self.manifest, reference=pinned, last_reference=last, has_partial_reference=is_partial))
        self._sweep()

    def _sweep(self) -> None:
        """Delete references that the manifest does not name."""
        named = self.manifest.reference
        for path in (self.folder / REFERENCE_FOLDER).glob("*"):
            if named is None or path != self.folder / named.file:
                path.unlink()

    def _write(self, manifest: catalog.Manifest) -> None:
        catalog.write_manifest(self.folder, manifest)
        self.manifest = manifest


def _folders(folder: Path) -> Iterator[Path]:
    for path in catalog.partition_folders(folder, catalog.read_manifest(folder)):
        if not (path / catalog.CATALOG_FILE).exists():
            raise IndexMismatch(f"partition {path} is missing; restore a copy of it, or of all of {folder}")
        yield path


def _counted(entry: catalog.Entry, writer: Writer) -> catalog.Entry:
    statement = "SELECT count(*), coalesce(sum(n_chunks), 0) FROM documents"
    with writer.read() as connection:
        n_documents, n_chunks = connection.execute(statement).fetchone()
    return catalog.Entry(entry.folder, n_documents, n_chunks)


def open_writers(folder: Path) -> PartitionWriters | Writer:
    """Open an index for writing, partitioned or not."""
    return PartitionWriters(folder) if catalog.is_partitioned(folder) else Writer(folder)
