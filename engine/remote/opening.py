"""Opens an index wherever it is: a folder, partitions on other machines, or a server."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from engine.remote.address import ServerAddress
from engine.remote.exchange import Access
from engine.remote.federation import FederatedSnapshot
from engine.remote.snapshot import ServedSnapshot, served_index
from engine.store.manifest import has_partitions_elsewhere
from engine.store.partitioned import open_snapshot
from engine.store.snapshot import Snapshot


def open_place(place: Path, access: Access) -> Snapshot:
    """Open and pin an index to search it.

    Args:
        place: its folder, or its address.
        access: how partitions in other processes are reached.

    Raises:
        PartitionUnavailable: the server at an address does not answer.
        IndexMismatch: there is no index, or one of another version.
        IndexDamaged: a catalog is not what was written.
    """
    if isinstance(place, ServerAddress):
        served = served_index(place, access)
        _ = served.description  # so that a wrong address is an error here
        return served
    is_elsewhere = access.channel is not None or has_partitions_elsewhere(place)
    return FederatedSnapshot(place, access) if is_elsewhere else open_snapshot(place)


ElsewhereSnapshot: TypeAlias = ServedSnapshot | FederatedSnapshot


def is_here(snapshot: Snapshot) -> bool:
    """Whether all files of an index are on this machine."""
    return not isinstance(snapshot, ElsewhereSnapshot)


def begin(snapshot: Snapshot, *, is_partial: bool) -> None:
    """Begin a search of several rounds.

    Args:
        snapshot: of the index; nothing is done unless it is a `FederatedSnapshot`.
        is_partial: whether partitions that do not answer are left out.
    """
    if isinstance(snapshot, FederatedSnapshot):
        snapshot.begin(is_partial=is_partial)


def renew(snapshot: Snapshot) -> None:
    """Drop cached values, so that the current documents of served partitions are read."""
    if isinstance(snapshot, ElsewhereSnapshot):
        snapshot.refresh()
