"""A partitioned index with a local manifest and reference, and with partitions that can be elsewhere.

Elsewhere is behind a server, in an actor of a cluster, in a database, or in a folder of another index.

A partition that does not answer ends a search, or is left out of the search where `is_partial` is set. A partition
that is left out is not queried again until the next search begins.

Letters in shapes: N documents of all partitions, R documents wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexMismatch, PartitionUnavailable
from engine.remote.database import DatabaseSnapshot
from engine.remote.exchange import Access, Exchange
from engine.remote.snapshot import ServedSnapshot, partition_name
from engine.store.address import Address, index_place
from engine.store.facts import index_facts, joined_facts
from engine.store.manifest import Entry, partition_of, read_manifest
from engine.store.partitioned import PartitionedSnapshot, check_partition
from engine.store.roster import Roster
from engine.store.snapshot import Positions, Snapshot
from engine.text.document import Document
from engine.text.spans import Coverage
from engine.words.counts import WordTables, join

MOST_THREADS = 128  # partitions that are queried at the same time

Value = TypeVar("Value")


class FederatedSnapshot(PartitionedSnapshot):
    """Partitions on several machines as one snapshot, with the methods that searches need."""

    def __init__(self, folder: Path, access: Access) -> None:
        """Open the local partitions; servers are contacted when a search begins.

        Args:
            folder: of the manifest.
            access: how servers are reached.

        Raises:
            IndexMismatch: a local partition is missing, or is of another version.
            IndexDamaged: the manifest or a catalog is not what was written.
        """
        self.folder = folder
        self.is_partial = access.is_partial
        self._access = access
        self._manifest = manifest = read_manifest(folder)
        self.missing: dict[int, PartitionUnavailable] = {}
        self._checked: set[int] = set()
        with ExitStack() as opening:
            self._places = [
                opening.enter_context(self._opened_part(number, entry))
                for number, entry in enumerate(manifest.partitions)
            ]
            self._opened = opening.pop_all()
        self._parts = self._present = [*self._places]  # a database is replaced by its snapshot once it is open
        self.width = int(manifest.encoder["width"]) if manifest.encoder is not None else 0
        self.reference_row = manifest.reference
        self._map_reference()

    def _opened_part(self, number: int, entry: Entry) -> Snapshot:
        name = self._name(number)
        if entry.is_served or self._access.channel is not None:
            exchange = Exchange(name, self._addresses(number), self._access)
            return ServedSnapshot(self.folder / f"{number:04d}", exchange, self._access)
        place = index_place(entry.address)
        if isinstance(place, Address):
            return DatabaseSnapshot(name, place, self._access.seconds)
        return Snapshot(self.folder / place)  # an absolute `place` replaces the folder

    def _addresses(self, number: int) -> tuple[str, ...]:
        """The addresses of a partition, the preferred one first."""
        if self._access.channel is not None:
            return (self._access.channel.address(number),)
        entry = self._manifest.partitions[number]
        return (entry.address, *entry.replicas)

    def _name(self, number: int) -> str:
        return partition_name(number, self._addresses(number))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name in ("_connection", "_shards"):
            raise self._needs_files()
        raise AttributeError(name)

    def _needs_files(self) -> IndexMismatch:
        return IndexMismatch(
            f"partitions of {self.folder} are elsewhere, and this needs their files; run the command where all "
            "folders are"
        )

    @property
    def roster(self) -> Roster:  # type: ignore[override]
        """Not available: the roster is in the files of the partitions.

        Raises:
            IndexMismatch: always.
        """
        raise self._needs_files()

    @property
    def meta(self) -> dict[str, Any]:  # type: ignore[override]
        """Named values that all partitions share."""
        manifest = self._manifest
        return {
            "encoder": manifest.encoder,
            "language": manifest.language,
            "partial_reference": manifest.has_partial_reference,
            "counts_titles": True,  # `longmatch partition` accepts only such indexes
        }

    def begin(self, *, is_partial: bool) -> None:
        """Begin a search. Partitions that an earlier search left out are queried again.

        Args:
            is_partial: whether partitions that do not answer are left out.
        """
        self.is_partial = is_partial
        self.missing.clear()

    def _check(self, number: int) -> None:
        """Check that a place holds its partition of this manifest, with the same reference.

        Raises:
            PartitionUnavailable: a server or database does not answer, or holds something else.
            IndexMismatch: a folder holds something else.
        """
        place, entry = self._places[number], self._manifest.partitions[number]
        if isinstance(place, DatabaseSnapshot):
            self._present[number] = place.opened()
        part, where = self._present[number], partition_name(number, (entry.address, *entry.replicas))
        try:
            check_partition(part.meta, where, number, self._manifest)
            pinned, expected = part.reference_row, self._manifest.reference
            if entry.is_elsewhere and (pinned is None or expected is None or pinned.digest != expected.digest):
                raise IndexMismatch(
                    f"{where} has another reference than {self.folder}; put a copy of the same index there, or connect "
                    "again: longmatch connect"
                )
        except IndexMismatch as error:
            self._forget(number)
            if isinstance(place, ServedSnapshot | DatabaseSnapshot):
                raise PartitionUnavailable(str(error)) from error
            raise
        self._checked.add(number)

    def _forget(self, number: int) -> None:
        """Drop the values that were read from another process; the next search reads them again."""
        self._checked.discard(number)
        place, part = self._places[number], self._present[number]
        if isinstance(place, ServedSnapshot):
            place.refresh()
        elif isinstance(place, DatabaseSnapshot) and part is not place:
            self._present[number] = place
            part.close()

    def refresh(self) -> None:
        """Drop all values that were read from other processes, because a partition was written."""
        for number in range(len(self._places)):
            self._forget(number)

    def close(self) -> None:
        """Close catalogs and connections."""
        for part in self._present:
            part.close()
        self._opened.close()

    def each(self, ask: Callable[[int], Value], numbers: Iterable[int] | None = None) -> dict[int, Value]:
        """Query partitions at the same time, without those that are left out.

        A partition is checked against the manifest before its first query. Where `is_partial` is set, partitions
        that fail are left out.

        Args:
            ask: queries a partition, given its number.
            numbers: of partitions; all by default.

        Returns:
            The results, by the number of the partition.

        Raises:
            PartitionUnavailable: a partition does not answer, and `is_partial` is not set.
            IndexMismatch: a partition is not the one that the manifest names.
        """
        present = [one for one in (range(len(self._parts)) if numbers is None else numbers) if one not in self.missing]
        failures: dict[int, PartitionUnavailable] = {}

        def answer(number: int) -> list[Value]:
            try:
                if number not in self._checked:
                    self._check(number)
                place = self._places[number]
                if not isinstance(place, DatabaseSnapshot):
                    return [ask(number)]
                try:
                    with place.round(self._present[number]):
                        return [ask(number)]
                except PartitionUnavailable:
                    self._forget(number)
                    raise
            except PartitionUnavailable as failure:
                failures[number] = failure
                return []

        if len(present) < 2:
            answers = [answer(number) for number in present]
        else:
            with ThreadPoolExecutor(min(len(present), MOST_THREADS)) as pool:
                answers = list(pool.map(answer, present))
        if failures and not self.is_partial:
            raise failures[min(failures)]
        self.missing |= dict(sorted(failures.items()))  # sorted: an error names the first partition where all fail
        return {number: found[0] for number, found in zip(present, answers, strict=True) if found}

    @property
    def sizes(self) -> list[int]:
        """The number of documents of each partition; the one in the manifest if the partition does not answer."""
        known = [number for number in range(len(self._parts)) if number not in self.missing]
        if self._checked.issuperset(known):  # all sizes were already read, so no threads are needed
            found = {number: self._parts[number].n_documents for number in known}
        else:
            found = self.each(lambda number: self._parts[number].n_documents)
        return [found.get(number, entry.n_documents) for number, entry in enumerate(self._manifest.partitions)]

    @property
    def n_missing(self) -> int:
        """The number of documents in the partitions that are left out, from the manifest."""
        return sum(self._manifest.partitions[number].n_documents for number in self.missing)

    @property
    def missing_partitions(self) -> tuple[str, ...]:
        """The partitions that are left out, with their addresses."""
        return tuple(self._name(number) for number in sorted(self.missing))

    @property
    def _bases(self) -> NDArray[np.int64]:
        return np.cumsum([0, *self.sizes], dtype=np.int64)[:-1]

    @property
    def n_documents(self) -> int:
        """N."""
        return sum(self.sizes)

    @property
    def n_chunks(self) -> int:
        """Chunks of all documents."""
        return sum(self.each(lambda number: self._parts[number].n_chunks).values())

    @property
    def is_complete(self) -> bool:
        """Whether all documents have vectors, or the index has none."""
        return all(self.each(lambda number: self._parts[number].is_complete).values())

    @property
    def state(self) -> str:
        """Changes with the documents of a partition."""
        states = self.each(lambda number: part_state(self._present[number]))
        return "\n".join(f"{number} {state}" for number, state in sorted(states.items()))

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that `longmatch info` prints."""

        def of_part(number: int) -> dict[str, Any]:
            part = self._parts[number]
            return part.facts if isinstance(part, ServedSnapshot) else index_facts(part)

        found = self.each(of_part)
        return joined_facts([(self._manifest.partitions[number].address, one) for number, one in found.items()])

    def position(self, doc_id: str) -> int | None:
        """Position of a document by its name; only the partition that owns the name is queried."""
        owner = partition_of(doc_id, len(self._parts))
        found = self.each(lambda number: self._parts[number].position(doc_id), [owner]).get(owner)
        return None if found is None else int(self._bases[owner]) + found

    def is_encoded(self, position: int) -> bool:
        """Whether a document has vectors."""
        part, own = self._owner(position)
        return part.is_encoded(own)

    def spans(self, position: int) -> NDArray[np.int32]:
        """(C, 4) see `Gathering.spans`."""
        part, own = self._owner(position)
        return part.spans(own)

    def encoded(self, position: int, coverage: Coverage) -> EncodedDocument:
        """See `Gathering.encoded`."""
        part, own = self._owner(position)
        return part.encoded(own, coverage)

    def words(self, positions: Positions, *, apart: bool = False) -> WordTables:
        """See `Gathering.words`; the tables of served partitions have no `apart`."""
        found = [(places, part.words(own, apart=apart)) for part, places, own in self.split(positions)]
        order = np.argsort(np.concatenate([np.empty(0, np.int64), *(places for places, _ in found)]))
        return join([tables for _, tables in found]).of(order)

    def _owner(self, position: int) -> tuple[Snapshot, int]:
        ((part, _, own),) = self.split(np.array([position]))
        return part, int(own[0])

    def documents(self, positions: Positions) -> list[tuple[Document, Coverage]]:
        """See `Listing.documents`."""
        return self._of(positions, lambda part, own: part.documents(own))

    def copies(self, content: str) -> list[str]:
        """See `Listing.copies`."""
        return sorted(self._all(lambda part: part.copies(content)))

    def has_field(self, key: str) -> bool:
        """See `Snapshot.has_field`."""
        return any(self.each(lambda number: self._parts[number].has_field(key)).values())

    def field_names(self) -> list[str]:
        """See `Snapshot.field_names`."""
        return sorted(set(self._all(lambda part: part.field_names())))

    def _all(self, ask: Callable[[Snapshot], Iterable[Value]]) -> list[Value]:
        found = self.each(lambda number: list(ask(self._parts[number])))
        return list(chain.from_iterable(found[number] for number in sorted(found)))


def part_state(part: Snapshot) -> str:
    """Changes with the documents of a partition, here or served."""
    return part.state if isinstance(part, ServedSnapshot) else xxhash.xxh3_128_hexdigest(part.roster.ids.tobytes())
