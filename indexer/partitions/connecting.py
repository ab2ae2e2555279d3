"""Makes an index of partitions that are elsewhere: a manifest with their addresses, and their reference.

A partition is behind a server, in PostgreSQL, or a folder of another index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from engine.errors import IndexMismatch
from engine.remote.address import ServerAddress
from engine.remote.exchange import Access
from engine.remote.snapshot import ServedSnapshot, served_index
from engine.store.address import Address, has_secrets, index_place
from engine.store.durable import write_durably
from engine.store.manifest import Entry, Manifest, has_partitions_elsewhere, write_manifest
from engine.store.partitioned import check_partition, open_snapshot
from engine.store.reference import REFERENCE_FOLDER
from engine.store.snapshot import Snapshot
from indexer.building.stub import is_free


def connect(out: str | Path, addresses: Sequence[str], access: Access | None = None) -> Manifest:
    """Write the manifest of an index whose partitions are in other places; replaces an earlier manifest.

    Each partition stores its number, so the order of addresses does not matter. Several servers of one partition are
    replicas, and the first one is preferred.

    Args:
        out: folder of the manifest.
        addresses: of servers or schemas, or folders, each of one partition.
        access: how servers are reached.

    Raises:
        IndexMismatch: `out` holds something else; the partitions do not make one index; or an address holds a password.
        PartitionUnavailable: a server does not answer.
        StorageError: a database does not answer.
    """
    out, access = Path(out), access or Access()
    if not is_free(out) and not has_partitions_elsewhere(out):
        raise IndexMismatch(f"{out} is there already; name a new folder, or one that `longmatch connect` made")
    with ExitStack() as opened:
        found: dict[int, list[_Place]] = {}
        n_partitions = 0
        for address in addresses:
            place = opened.enter_context(_place(address, access))
            number, of = place.partition
            found.setdefault(number, []).append(place)
            n_partitions = max(n_partitions, of)
        missing = [str(number) for number in range(n_partitions) if number not in found]
        if missing:
            raise IndexMismatch(
                f"no address holds partition {', '.join(missing)} of {n_partitions}; name it too, a server "
                "(longmatch serve papers.parts/NNNN.lm), a schema or a folder"
            )
        return _written(out, [found[number] for number in range(n_partitions)])


class _Place:
    """An address with the partition that is there."""

    def __init__(self, address: str, snapshot: Snapshot) -> None:
        self.address = address
        self.snapshot = snapshot

    @property
    def partition(self) -> tuple[int, int]:
        """Number of this partition, and number of all partitions."""
        partition = self.snapshot.meta.get("partition")
        if partition is None:
            raise IndexMismatch(
                f"{self.address} holds an index that is no partition; search it by that address, or split it: "
                "longmatch partition INDEX OUT -p N"
            )
        return int(partition["number"]), int(partition["of"])

    @property
    def is_served(self) -> bool:
        """Whether the partition is served over HTTP."""
        return isinstance(self.snapshot, ServedSnapshot)

    def reference_bytes(self) -> bytes:
        """The file of the reference of all partitions."""
        if isinstance(self.snapshot, ServedSnapshot):
            return self.snapshot.reference_bytes()
        if isinstance(self.snapshot.folder, Address):
            from engine.store.postgres.snapshot import PostgresSnapshot  # needs an optional package

            assert isinstance(self.snapshot, PostgresSnapshot)
            return self.snapshot.reference_bytes()
        assert self.snapshot.reference_row is not None
        return (self.snapshot.folder.parent / self.snapshot.reference_row.file).read_bytes()


@contextmanager
def _place(address: str, access: Access) -> Iterator[_Place]:
    place = index_place(address)
    if isinstance(place, ServerAddress):
        yield _Place(str(place), served_index(place, access))
        return
    if isinstance(place, Address) and has_secrets(address):
        raise IndexMismatch(
            f"{place} was given with a password, which a manifest does not keep; leave the password out, and put it "
            "into ~/.pgpass or PGPASSWORD"
        )
    with open_snapshot(place) as snapshot:
        yield _Place(str(place if isinstance(place, Address) else place.resolve()), snapshot)


def _written(out: Path, places: Sequence[Sequence[_Place]]) -> Manifest:
    first = places[0][0].snapshot
    manifest = Manifest(
        first.meta.get("encoder"),
        first.meta.get("language"),
        first.reference_row,
        tuple(_entry(number, of_partition) for number, of_partition in enumerate(places)),
        0 if first.reference_row is None else first.reference_row.version,
        bool(first.meta.get("partial_reference", False)),
    )
    _check(places, manifest)
    if first.reference_row is not None:
        content = places[0][0].reference_bytes()
        (out / REFERENCE_FOLDER).mkdir(parents=True, exist_ok=True)
        write_durably(out / first.reference_row.file, lambda unfinished: _write(unfinished, content))
    write_manifest(out, manifest)
    return manifest


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _entry(number: int, places: Sequence[_Place]) -> Entry:
    first, *others = places
    if others and not all(place.is_served for place in places):
        raise IndexMismatch(
            f"partition {number} is at {' and '.join(place.address for place in places)}; only servers can be replicas "
            "of each other: name one address"
        )
    replicas = tuple(place.address for place in others)
    return Entry(first.address, first.snapshot.n_documents, int(first.snapshot.n_chunks), replicas)


def _check(places: Sequence[Sequence[_Place]], manifest: Manifest) -> None:
    """Whether all places hold partitions of one index."""
    for number, of_partition in enumerate(places):
        for place in of_partition:
            check_partition(place.snapshot.meta, place.address, number, manifest)
            pinned, expected = place.snapshot.reference_row, manifest.reference
            if (pinned and pinned.digest) != (expected and expected.digest):
                raise IndexMismatch(
                    f"{place.address} has another reference than {manifest.partitions[0].address}; name partitions of "
                    "one index, all as they are after its last rebase"
                )
