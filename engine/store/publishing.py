"""What an index holds besides documents: recorded failures, and files derived from the shards.

These files are generations, postings of words and the reference; the catalog names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.store.catalog import ANN_FOLDER, execute_in
from engine.store.durable import Checksum, fsync_folder
from engine.store.postings import WORD_POSTINGS_FOLDER, Postings
from engine.store.reference import Reference, write_reference
from engine.store.writable import WritableIndex

FORGET = "DELETE FROM failures WHERE source IN ({marks})"


class Publisher(WritableIndex):
    """Records failures; publishes and withdraws files that can be rebuilt without encoding."""

    def record_failure(self, source: str, reason: str, doc_id: str = "") -> None:
        """Record that a source could not be indexed, until it can be; `doc_id` is empty if unknown."""
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO failures VALUES (?, ?, ?)", [source, reason, doc_id])

    def failed_sources(self) -> set[str]:
        """Sources that could not be indexed when they were last read."""
        with self.read() as connection:
            return {source for (source,) in connection.execute("SELECT source FROM failures")}

    def forget_failures(self, sources: Sequence[str]) -> None:
        """Drop recorded failures of sources that can be indexed now."""
        with self._transaction() as connection:
            execute_in(connection, FORGET, sources)

    def keep_failures(self, sources: Sequence[str]) -> None:
        """Drop all recorded failures except those of the given sources."""
        self.forget_failures(sorted(self.failed_sources().difference(sources)))

    def next_generation_file(self) -> tuple[int, Path]:
        """Number and path of the next generation; creates its folder."""
        with self.read() as connection:
            (newest,) = connection.execute("SELECT coalesce(max(id), 0) FROM generations").fetchone()
        number = max(newest, self.meta.get("last_generation", 0)) + 1
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

    def withdraw_reference(self) -> None:
        """Delete the reference; one is drawn for each search until another is published."""
        self._replace(["reference"], {})

    def withdraw_generations(self) -> None:
        """Delete all generations and postings; queries are exact scans until a generation is published again."""
        self._replace(["generations", "word_postings"], {})

    def publish_word_postings(self, postings: Postings) -> None:
        """Write and record postings over documents that no generation covers, in place of earlier ones."""
        number: int = self.meta.get("last_word_postings", 0) + 1
        file = f"{ANN_FOLDER}/{WORD_POSTINGS_FOLDER}/{number:06d}.safetensors"
        written = postings.write(self._new_path(file))
        row = {"id": number, "n_documents": len(postings.ids), "file": file, **asdict(written)}
        self._replace(["word_postings"], {"word_postings": row}, {"last_word_postings": number})

    def withdraw_word_postings(self) -> None:
        """Delete the postings over documents that no generation covers; queries then read all their term counts."""
        self._replace(["word_postings"], {})
