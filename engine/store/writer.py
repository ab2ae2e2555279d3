"""The one writer of an index: commits, removals, generations, failures. Encodes nothing.

Order of every commit: file, fsync, rename, fsync of the folder, then one transaction that names the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexMismatch
from engine.store.catalog import (
    DemandRow,
    DocumentRow,
    ShardRow,
    write_meta,
)
from engine.store.checks import record_documents
from engine.store.documents import (
    chunk_ids,
    delete_documents,
    document_rows,
    insert_texts,
    places,
    stored_documents,
)
from engine.store.publishing import Publisher
from engine.store.shards import Shard, part_digests, shard_arrays, shard_file, write_shard
from engine.store.writable import FIRST_IDS
from engine.text.document import Document, MetadataValue
from engine.words.counts import WordTables, count_documents
from engine.words.languages import check_language, detect_language
from engine.words.segmenter import WordSegmenter

Name = TypeVar("Name", str, int)


@dataclass(frozen=True, slots=True)
class Indexed:
    """Catalog values of a document that is already indexed."""

    id: int
    content_hash: str
    metadata: Mapping[str, MetadataValue]
    source: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """A shard that replaces others."""

    numbers: Sequence[int]  # of the replaced shards
    shard: Shard  # of their documents, one after another
    document_ids: Sequence[int]  # catalog ids, in that order; if empty, the shards are only removed
    n_sections: NDArray[np.int64]  # (N,) sections of each document
    n_chunks: NDArray[np.int64]  # (N,) chunks of each document

    def moves(self, number: int) -> list[dict[str, int]]:
        """Where each document is in the new shard, which gets this number."""
        sections = (np.cumsum(self.n_sections) - self.n_sections).tolist()
        chunks = (np.cumsum(self.n_chunks) - self.n_chunks).tolist()
        rows = enumerate(zip(self.document_ids, sections, chunks, strict=True))
        return [
            {"one": one, "shard": number, "row": row, "section": section, "chunk": chunk}
            for row, (one, section, chunk) in rows
        ]


_MOVE = (
    update(DocumentRow.__table__)  # type: ignore[arg-type]
    .where(DocumentRow.id == bindparam("one"))
    .values(
        shard_id=bindparam("shard"),
        document_row=bindparam("row"),
        section_row=bindparam("section"),
        chunk_row=bindparam("chunk"),
    )
)


class Writer(Publisher):
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
            self._set_meta({"encoder": dict(encoder)})
        elif bound["fingerprint"] != encoder["fingerprint"]:
            again = f"encode it again: longmatch index {self.folder} --reencode"
            raise IndexMismatch(
                f"{self.folder} was built with encoder {bound['name']!r} ({bound['width']} wide, fingerprint "
                f"{bound['fingerprint'][:12]}), not {encoder['name']!r} ({encoder['width']} wide, "
                f"{encoder['fingerprint'][:12]}); pass --encoder {bound['name']}, or "
                f"{'index into a new folder' if self.is_partition else again}"
            )

    @property
    def parts(self) -> Sequence[Writer]:
        """The writers of all partitions; here only this writer."""
        return (self,)

    @property
    def is_partition(self) -> bool:
        """Whether the index is a partition, whose reference is in the manifest; see `engine.store.manifest`."""
        return "partition" in self.meta

    def bind_partition(self, number: int, n_partitions: int, language: str) -> None:
        """Make a new index a partition, so that it can be opened without documents."""
        partition = {"number": number, "of": n_partitions}
        self._set_meta({"partition": partition, "language": language, "counters": self._counters()})

    @property
    def has_committed(self) -> bool:
        """Whether a document was ever committed; the counter starts at 1, also in empty partitions."""
        return self._counters()["document"] > 1

    def set_value(self, key: str, value: Any) -> None:  # noqa: ANN401
        """Set one named value."""
        self._set_meta({key: value})

    def _set_meta(self, values: dict[str, Any]) -> None:
        """Set named values, leaving the others, in a transaction of their own."""
        with self._transaction() as connection:
            write_meta(connection, values)
        self.meta |= values

    def documents(self, document_ids: Sequence[int]) -> list[Document]:
        """Documents by catalog id, in that order; removed documents are left out."""
        with self.read() as connection:
            return [document for document, _ in stored_documents(connection, document_ids)]

    def indexed(self, doc_ids: Sequence[str]) -> dict[str, Indexed]:
        """Catalog values of the given names, without those that are not indexed."""
        columns = (
            DocumentRow.doc_id,
            DocumentRow.id,
            DocumentRow.content_hash,
            DocumentRow.meta,
            DocumentRow.source,
        )
        with self.read() as connection:
            self._check_names(connection)
            rows = connection.execute(select(*columns).where(DocumentRow.doc_id.in_(doc_ids))).all()
            self._check_rows(connection, [row.id for row in rows])
            return {row[0]: Indexed(*row[1:]) for row in rows}

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
        found: str | None = self.meta.get("language")
        return found

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
            self._set_meta({"language": language})

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
        shard = shard_arrays([one for _, one in encoded], words or self.count_words([one for one, _ in encoded]))
        counters = self._counters()
        number = counters["shard"]
        self._check_place()
        written = self._write(number, shard)
        ids = list(range(counters["document"], counters["document"] + len(encoded)))
        with self._transaction() as connection:
            names = [document.doc_id for document, _ in encoded]
            self._check_names(connection)
            self._check_rows(connection, ids)
            for block in _blocks(names):
                replaced = connection.execute(select(DocumentRow.id).where(DocumentRow.doc_id.in_(block)))
                self._delete(connection, replaced.scalars().all())
            connection.execute(insert(ShardRow).values(written))
            connection.execute(insert(DocumentRow), document_rows(encoded, ids, number, counters["chunk"]))
            insert_texts(connection, zip(ids, (document for document, _ in encoded), strict=True))
            record_documents(connection, ids)
            self._forget_failures(connection, [document.source for document, _ in encoded])
            counters = {
                "shard": number + 1,
                "document": counters["document"] + len(encoded),
                "chunk": counters["chunk"] + sum(chunk_ids(one) for _, one in encoded),
            }
            write_meta(connection, {"counters": counters})
        self.meta["counters"] = counters
        return ids

    def add_vectors(self, document_ids: Sequence[int], encoded: Sequence[EncodedDocument], words: WordTables) -> int:
        """Give vectors to documents that have none, in one transaction; their ids, texts and metadata stay.

        Documents that were removed, or have vectors by now, are left out.

        Args:
            words: the term counts of each, as they were committed.

        Raises:
            IndexMismatch: the folder was moved, removed, or replaced by another index.
        """
        still = self.still_unencoded(document_ids)
        kept = [row for row, one in enumerate(document_ids) if one in still]
        if not kept:
            return 0
        chosen = [encoded[row] for row in kept]
        shard = shard_arrays(chosen, words.of(np.array(kept)))
        counters = self._counters()
        number = counters["shard"]
        self._check_place()
        written = self._write(number, shard)
        ids = [document_ids[row] for row in kept]
        moves = zip(ids, places(chosen, number, counters["chunk"]), strict=True)
        n_ids = sum(map(chunk_ids, chosen))
        counters = {**counters, "shard": number + 1, "chunk": counters["chunk"] + n_ids}
        with self._transaction() as connection:
            self._check_rows(connection, ids)
            connection.execute(insert(ShardRow).values(written))
            connection.execute(
                update(DocumentRow.__table__).where(DocumentRow.id == bindparam("one")),  # type: ignore[arg-type]
                [{"one": one, **place} for one, place in moves],
            )
            record_documents(connection, ids)
            for block in _blocks(ids):
                connection.execute(delete(DemandRow).where(DemandRow.document_id.in_(block)))
            write_meta(connection, {"counters": counters})
        self.meta["counters"] = counters
        return len(ids)

    def _counters(self) -> dict[str, int]:
        """The next ids; they only grow, and no id is used twice."""
        counters: dict[str, int] = self.meta.get("counters", FIRST_IDS)
        return counters

    def replace_shards(self, replacement: Replacement) -> None:
        """Replace several shards with one; the ids of documents and chunks stay."""
        counters = self._counters()
        number = counters["shard"]
        self._check_place()
        row = self._write(number, replacement.shard) if replacement.document_ids else None
        counters = {**counters, "shard": number + 1}
        with self._transaction() as connection:
            if row is not None:
                self._check_rows(connection, replacement.document_ids)
                connection.execute(insert(ShardRow).values(row))
                connection.execute(_MOVE, replacement.moves(number))
                record_documents(connection, replacement.document_ids)
            connection.execute(delete(ShardRow).where(ShardRow.id.in_(replacement.numbers)))
            write_meta(connection, {"counters": counters})
        self.meta["counters"] = counters
        self._sweep()

    def _write(self, number: int, shard: Shard) -> dict[str, Any]:
        """Write a shard, and return its row for the catalog, which names it afterwards."""
        file = shard_file(number)
        written = write_shard(self.folder / file, shard)
        return {
            "id": number,
            "file": file,
            "size_bytes": written.size_bytes,
            "digest": written.digest,
            "n_documents": len(shard.documents),
            "n_chunks": len(shard.chunks),
            "part_digests": part_digests(self.folder / file),
        }

    def drop_shards(self, numbers: Sequence[int]) -> None:
        """Remove shards that no document needs any more, and delete their files."""
        with self._transaction() as connection:
            connection.execute(delete(ShardRow).where(ShardRow.id.in_(numbers)))
        self._sweep()

    def still_unencoded(self, document_ids: Sequence[int]) -> set[int]:
        """The given catalog ids that exist and have no vectors."""
        found: set[int] = set()
        with self.read() as connection:
            for block in _blocks(document_ids):
                of_block = DocumentRow.id.in_(block), DocumentRow.n_chunks == 0
                found.update(connection.execute(select(DocumentRow.id).where(*of_block)).scalars())
        return found

    def unencoded(self) -> list[int]:
        """Catalog ids of all documents without vectors, by falling number of queries that needed them, then by id."""
        wanted = func.coalesce(DemandRow.n_queries, 0)
        statement = (
            select(DocumentRow.id)
            .join(DemandRow, DemandRow.document_id == DocumentRow.id, isouter=True)
            .where(DocumentRow.n_chunks == 0)
            .order_by(wanted.desc(), DocumentRow.id)
        )
        with self.read() as connection:
            return list(connection.execute(statement).scalars())

    def add_demand(self, document_ids: Sequence[int]) -> None:
        """Record that a query needed the vectors of documents that have none, and ran without them."""
        if not document_ids:
            return
        statement = upsert(DemandRow).values(
            [{"document_id": document_id, "n_queries": 1} for document_id in document_ids]
        )
        counted = statement.on_conflict_do_update(
            index_elements=["document_id"], set_={"n_queries": DemandRow.n_queries + 1}
        )
        with self._transaction(is_counted=False) as connection:
            connection.execute(counted)

    def update_metadata(self, documents: Sequence[tuple[int, Document]]) -> None:
        """Set metadata and source of documents whose content is unchanged; nothing is encoded."""
        with self._transaction() as connection:
            self._check_rows(connection, [document_id for document_id, _ in documents])
            for document_id, document in documents:
                values = {"metadata": dict(document.metadata), "source": document.source}
                connection.execute(update(DocumentRow).where(DocumentRow.id == document_id).values(values))
            record_documents(connection, [document_id for document_id, _ in documents])

    def remove(self, document_ids: Sequence[int]) -> None:
        """Remove documents; when this returns, they can no longer be found."""
        with self._transaction() as connection:
            self._delete(connection, document_ids)

    def _delete(self, connection: Connection, document_ids: Sequence[int]) -> None:
        self._check_rows(connection, document_ids)
        delete_documents(connection, document_ids)

    def sources(self) -> list[tuple[int, str]]:
        """Catalog id and source of every document, by rising id."""
        with self.read() as connection:
            rows = connection.execute(select(DocumentRow.id, DocumentRow.source).order_by(DocumentRow.id))
            return [(row.id, row.source) for row in rows]


def _blocks(names: Sequence[Name]) -> Iterator[Sequence[Name]]:
    """Runs short enough for one statement; SQLite binds 32,766 values in most builds."""
    for first in range(0, len(names), 1000):
        yield names[first : first + 1000]
