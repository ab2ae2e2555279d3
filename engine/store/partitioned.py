"""The snapshot of a partitioned index: the documents of all partitions, one partition after another.

Documents are addressed by position as in any snapshot, so code that reads documents works on both. Generations and
postings belong to one partition, and are reached through `parts`.

Letters in shapes: N documents of all partitions, P partitions, R requested documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexMismatch
from engine.store.catalog import Manifest, is_partitioned, partition_folders, read_manifest
from engine.store.gathering import LOCATION_COLUMNS, Locations
from engine.store.shards import Shard, ShardSet
from engine.store.snapshot import OPENINGS, Documents, IndexSnapshot, Positions
from engine.words.counts import PackedWords


def open_snapshot(folder: Path) -> Snapshot:
    """Open and pin an index, partitioned or not; errors as in `IndexSnapshot`."""
    return PartitionedSnapshot(folder) if is_partitioned(folder) else IndexSnapshot(folder)


class PartitionedSnapshot(Documents):
    """All partitions of an index and its reference, as they were when opened."""

    _parts: Sequence[IndexSnapshot]

    def __init__(self, folder: Path) -> None:
        """Open and pin all partitions.

        Raises:
            IndexMismatch: a partition is missing, is of another version, or has another encoder or language.
            IndexDamaged: the manifest or a catalog is not what was written.
        """
        self.folder = folder
        self._open_parts(read_manifest(folder))
        for _ in range(OPENINGS - 1):
            if self.reference_row is None or self._reference_file is not None:
                break  # else a writer may have replaced the file after the manifest was read
            self.close()
            self._open_parts(read_manifest(folder))

    def _open_parts(self, manifest: Manifest) -> None:
        """Open the partitions and the reference that a manifest names."""
        self._manifest = manifest
        with ExitStack() as opening:
            paths = partition_folders(self.folder, manifest)
            self._parts = tuple(opening.enter_context(IndexSnapshot(path)) for path in paths)
            for number, part in enumerate(self._parts):
                check_partition(part.meta, part.folder, number, manifest)
            self._opened = opening.pop_all()
        self.meta: dict[str, Any] = {**self._parts[0].meta, "encoder": manifest.encoder, "language": manifest.language}
        self.meta["partial_reference"] = manifest.has_partial_reference
        del self.meta["partition"]
        self.width = int(manifest.encoder["width"]) if manifest.encoder is not None else 0
        self.reference_row = manifest.reference
        self._map_reference()
        self._shards = _JoinedShards([part._shards for part in self._parts])

    @cached_property
    def locations(self) -> Locations:
        """The parts of all partitions, one after another."""
        parts = [part.locations for part in self._parts]
        columns = {name: np.concatenate([getattr(one, name) for one in parts]) for name in LOCATION_COLUMNS}
        sizes = [len(locations) for locations in parts]
        columns["shard"] = columns["shard"] * len(parts) + np.repeat(np.arange(len(parts)), sizes)
        return Locations(**columns)

    @cached_property
    def _bases(self) -> NDArray[np.int64]:
        """(P,) position of the first document of each partition."""
        return np.cumsum([0, *(len(part.locations) for part in self._parts)], dtype=np.int64)[:-1]

    def is_newest(self) -> bool:
        """See `IndexSnapshot.is_newest`; compares all partitions, and the manifest."""
        return read_manifest(self.folder) == self._manifest and all(part.is_newest() for part in self._parts)

    def close(self) -> None:
        """Close the catalogs."""
        self._opened.close()

    @property
    def parts(self) -> Sequence[IndexSnapshot]:
        """See `Documents.parts`."""
        return self._parts

    def split(self, positions: Positions) -> Iterator[tuple[IndexSnapshot, Positions, Positions]]:
        """See `Documents.split`."""
        owners = np.searchsorted(self._bases, positions, side="right") - 1
        for owner in np.unique(owners).tolist():
            places = np.flatnonzero(owners == owner)
            yield self._parts[owner], places, positions[places] - self._bases[owner]

    def with_vectors(self, positions: Positions, encoded: Sequence[EncodedDocument]) -> Self:
        """See `IndexSnapshot.with_vectors`."""
        other = copy(self)
        parts = list(self._parts)
        for part, places, own in self.split(positions):
            parts[parts.index(part)] = part.with_vectors(own, [encoded[place] for place in places.tolist()])
        other._parts = tuple(parts)
        other._shards = _JoinedShards([part._shards for part in parts])
        other._forget()
        return other

    def attach(self, positions: Positions, encoded: Sequence[EncodedDocument]) -> None:
        """See `IndexSnapshot.attach`."""
        for part, places, own in self.split(positions):
            part.attach(own, [encoded[place] for place in places.tolist()])
        self._forget()

    def _forget(self) -> None:
        """Forget what is derived from the vectors of the partitions."""
        for derived in ("locations", "document_vectors"):
            self.__dict__.pop(derived, None)


Snapshot: TypeAlias = IndexSnapshot | PartitionedSnapshot


class _JoinedShards(ShardSet):
    """The shards of P partitions; shard n of partition p has number n P + p."""

    def __init__(self, parts: Sequence[ShardSet]) -> None:
        self._sets = parts

    def _own(self, number: int) -> tuple[ShardSet, int]:
        return self._sets[number % len(self._sets)], number // len(self._sets)

    def __getitem__(self, number: int) -> Shard:
        shards, own = self._own(number)
        return shards[own]

    def words(self, number: int, *, apart: bool = False) -> PackedWords:
        shards, own = self._own(number)
        return shards.words(own, apart=apart)

    def part(self, number: int, name: str) -> NDArray[Any]:
        shards, own = self._own(number)
        return shards.part(own, name)


def check_partition(meta: Mapping[str, Any], where: object, number: int, manifest: Manifest) -> None:
    """Check that an index is the partition of a manifest with a given number.

    Raises:
        IndexMismatch: the index is another partition or none, or has another encoder or language.
    """
    n_partitions = len(manifest.partitions)
    given, expected = meta.get("partition"), {"number": number, "of": n_partitions}
    if given != expected:
        raise IndexMismatch(
            f"{where} is {_name(given)}, not {_name(expected)}; put the right folder there, or restore a copy"
        )
    mine, theirs = _fingerprint(meta.get("encoder")), _fingerprint(manifest.encoder)
    language = meta.get("language")
    # A run binds the partitions before the manifest. If it was killed in between, only the partitions have an encoder.
    if (manifest.encoder is not None and mine != theirs) or language != manifest.language:
        raise IndexMismatch(
            f"{where} has encoder {mine[:12]} and language {language!r}, the manifest {theirs[:12]} and "
            f"{manifest.language!r}; put the right folder there, or restore a copy"
        )


def _name(partition: Any) -> str:  # noqa: ANN401
    return f"partition {partition['number']} of {partition['of']}" if partition else "no partition"


def _fingerprint(encoder: Mapping[str, Any] | None) -> str:
    return "none" if encoder is None else str(encoder["fingerprint"])


def index_facts(snapshot: Snapshot) -> dict[str, Any]:
    """The values that `longmatch show --json` prints."""
    rows = [(part, part.generation_row) for part in snapshot.parts]
    generations = [None if row is None else {**row._asdict(), "is_exact": bool(row.is_exact)} for _, row in rows]
    n_fresh = sum(int(part.is_fresh(row.through_chunk if row is not None else 0).sum()) for part, row in rows)
    return {
        **snapshot.totals(),
        "encoder": snapshot.meta.get("encoder"),
        "language": snapshot.language,
        "reference": None if snapshot.reference_row is None else asdict(snapshot.reference_row),
        "generation": generations[0] if len(rows) == 1 else None,
        "fresh_documents": n_fresh,
        **({} if len(rows) == 1 else {"partitions": _partitions(snapshot.parts, generations)}),
        "format": snapshot.meta["format"],
    }


def _partitions(parts: Sequence[IndexSnapshot], generations: Sequence[dict[str, Any] | None]) -> list[dict[str, Any]]:
    return [
        {
            "folder": part.folder.name,
            "documents": part.n_documents,
            "chunks": part.n_chunks,
            "generation": generation,
        }
        for part, generation in zip(parts, generations, strict=True)
    ]
