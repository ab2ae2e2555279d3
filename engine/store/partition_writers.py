"""All partitions of a partitioned index, held for writing, and the manifest that they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from engine.errors import IndexMismatch, named_faults
from engine.store.catalog import CATALOG_FILE
from engine.store.manifest import (
    Entry,
    Manifest,
    is_partitioned,
    partition_folders,
    read_manifest,
    write_manifest,
)
from engine.store.reference import REFERENCE_FOLDER, Reference, write_reference
from engine.store.writer import Writer


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
            self.manifest = read_manifest(folder)  # again, now that no other process can change it
            self._opened = opening.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._count()
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
        """Write a reference for all partitions and name it, in place of the previous one; see `Publisher`."""
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

    def _count(self) -> None:
        entries = zip(self.manifest.partitions, self.parts, strict=True)
        counted = replace(self.manifest, partitions=tuple(_counted(entry, writer) for entry, writer in entries))
        if counted != self.manifest:
            self._write(counted)

    def _write(self, manifest: Manifest) -> None:
        write_manifest(self.folder, manifest)
        self.manifest = manifest


def _folders(folder: Path) -> Iterator[Path]:
    for path in partition_folders(folder, read_manifest(folder)):
        if not (path / CATALOG_FILE).exists():
            raise IndexMismatch(f"partition {path} is missing; restore a copy of it, or of all of {folder}")
        yield path


def _counted(entry: Entry, writer: Writer) -> Entry:
    statement = "SELECT count(*), coalesce(sum(n_chunks), 0) FROM documents"
    with writer.read() as connection:
        n_documents, n_chunks = connection.execute(statement).fetchone()
    return Entry(entry.folder, n_documents, n_chunks)


def open_writers(folder: Path) -> PartitionWriters | Writer:
    """Open an index for writing, partitioned or not."""
    return PartitionWriters(folder) if is_partitioned(folder) else Writer(folder)
