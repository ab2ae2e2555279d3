"""What an index holds besides documents: recorded failures, and files derived from the shards.

These files are generations, postings of words and the reference; the catalog names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select

from engine.store.catalog import (
    ANN_FOLDER,
    FailureRow,
    GenerationRow,
    PostingsRow,
    ReferenceRow,
    WordPostingsRow,
    write_meta,
)
from engine.store.durable import Checksum, fsync_folder
from engine.store.postings import WORD_POSTINGS_FOLDER, Postings
from engine.store.reference import Reference, reference_file, write_reference
from engine.store.writable import WritableIndex


class FailureLog(WritableIndex):
    """An index held for writing: records failures, and drops those of documents that can be indexed."""

    def record_failure(self, source: str, reason: str, doc_id: str = "") -> None:
        """Record that a source could not be indexed, until it can be.

        Args:
            doc_id: that the document would have; empty if unknown.
        """
        with self._transaction() as connection:
            self._forget_failures(connection, [source])
            connection.execute(insert(FailureRow).values(source=source, reason=reason, doc_id=doc_id))

    def failed_sources(self) -> set[str]:
        """Sources that could not be indexed when they were last read."""
        with self.read() as connection:
            return set(connection.execute(select(FailureRow.source)).scalars())

    def forget_failures(self, sources: Sequence[str]) -> None:
        """Drop recorded failures of sources that can be indexed now."""
        with self._transaction() as connection:
            self._forget_failures(connection, sources)

    def keep_failures(self, sources: Sequence[str]) -> None:
        """Drop all recorded failures except those of the given sources."""
        with self._transaction() as connection:
            recorded = set(connection.execute(select(FailureRow.source)).scalars())
            self._forget_failures(connection, sorted(recorded.difference(sources)))

    def _forget_failures(self, connection: Connection, sources: Iterable[str]) -> None:
        if rows := [{"one": source} for source in sources]:
            connection.execute(delete(FailureRow).where(FailureRow.source == bindparam("one")), rows)


class Publisher(FailureLog):
    """An index held for writing: publishes and withdraws files that can be rebuilt without encoding."""

    def next_generation_file(self) -> tuple[int, Path]:
        """Number and path of the next generation; creates its folder."""
        with self.read() as connection:
            newest = connection.execute(select(GenerationRow.id).order_by(GenerationRow.id.desc())).scalars().first()
        self._check_place()
        number = max(newest or 0, self.meta.get("last_generation", 0)) + 1
        path = self.folder / ANN_FOLDER / f"{number:06d}" / "chunks.faiss"
        path.parent.mkdir(exist_ok=True)
        fsync_folder(path.parent.parent)
        return number, path

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
        with self._transaction() as connection:
            connection.execute(delete(GenerationRow))
            connection.execute(delete(WordPostingsRow))
            connection.execute(insert(GenerationRow).values(**generation))
            if postings is not None:
                file, written = postings
                row = {"file": file, "size_bytes": written.size_bytes, "digest": written.digest}
                connection.execute(insert(PostingsRow).values(generation_id=generation["id"], **row))
            write_meta(connection, {"last_generation": generation["id"], "trained_vectors": trained})
        self.meta["last_generation"] = generation["id"]
        self._sweep()

    @property
    def has_partial_reference(self) -> bool:
        """Whether the reference was drawn while documents had no vectors."""
        return bool(self.meta.get("partial_reference", False))

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
        file = reference_file(reference.version)
        written = write_reference(self.folder / file, reference)
        with self._transaction() as connection:
            connection.execute(delete(ReferenceRow))
            connection.execute(
                insert(ReferenceRow).values(
                    version=reference.version,
                    n_corpus=reference.n_corpus,
                    n_documents=reference.n_documents,
                    file=file,
                    size_bytes=written.size_bytes,
                    digest=written.digest,
                )
            )
            values = {"last_reference": reference.version, "partial_reference": is_partial}
            write_meta(connection, values)
        self.meta |= values
        self._sweep()

    def withdraw_reference(self) -> None:
        """Delete the reference; one is drawn for each search until another is published."""
        with self._transaction() as connection:
            connection.execute(delete(ReferenceRow))
        self._sweep()

    def withdraw_generations(self) -> None:
        """Delete all generations and postings; queries are exact scans until a generation is published again."""
        with self._transaction() as connection:
            connection.execute(delete(GenerationRow))
            connection.execute(delete(WordPostingsRow))
        self._sweep()

    def publish_word_postings(self, postings: Postings) -> None:
        """Write and record postings over documents that no generation covers, in place of earlier ones."""
        self._check_place()
        number: int = self.meta.get("last_word_postings", 0) + 1
        path = self.folder / ANN_FOLDER / WORD_POSTINGS_FOLDER / f"{number:06d}.safetensors"
        path.parent.mkdir(exist_ok=True)
        fsync_folder(path.parent.parent)
        written = postings.write(path)
        row = {
            "id": number,
            "n_documents": len(postings.ids),
            "file": path.relative_to(self.folder).as_posix(),
            "size_bytes": written.size_bytes,
            "digest": written.digest,
        }
        with self._transaction() as connection:
            connection.execute(delete(WordPostingsRow))
            connection.execute(insert(WordPostingsRow).values(**row))
            write_meta(connection, {"last_word_postings": number})
        self.meta["last_word_postings"] = number
        self._sweep()

    def withdraw_word_postings(self) -> None:
        """Delete the postings over documents that no generation covers; queries then read all their term counts."""
        with self._transaction() as connection:
            connection.execute(delete(WordPostingsRow))
        self._sweep()
