"""A partition in PostgreSQL, opened at its first use, so that a partition that does not answer can be left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socket import SHUT_RDWR, socket
from threading import Timer

from engine.errors import EngineError, PartitionUnavailable, StorageError
from engine.store.address import Address
from engine.store.snapshot import Snapshot


class DatabaseSnapshot(Snapshot):
    """The place of a partition in a database, until it is opened."""

    def __init__(self, name: str, address: Address, seconds: float) -> None:
        """Connect to nothing yet.

        Args:
            name: of the partition, for messages.
            address: of the schema.
            seconds: deadline of the server for each round.
        """
        self.name = name
        self.folder = address
        self._seconds = seconds

    def opened(self) -> Snapshot:
        """Open and pin the partition.

        Raises:
            PartitionUnavailable: the server does not answer, or holds no index there.
        """
        from engine.store.postgres.snapshot import PostgresSnapshot  # needs an optional package

        try:
            return PostgresSnapshot(Address.of(str(self.folder)).with_deadline(self._seconds))
        except EngineError as error:
            raise self.unavailable(error) from error

    @contextmanager
    def round(self, part: Snapshot) -> Iterator[None]:
        """Set a deadline for a round of an opened partition: a timer cuts the connection to a server that hangs.

        Raises:
            PartitionUnavailable: the server fails, or does not answer in time.
        """
        clock = Timer(self._seconds, _cut, [part])
        clock.daemon = True
        clock.start()
        try:
            yield
        except StorageError as error:
            raise self.unavailable(error) from error
        finally:
            clock.cancel()

    def unavailable(self, error: EngineError) -> PartitionUnavailable:
        """The error for a failure of this partition."""
        return PartitionUnavailable(
            f"{self.name} does not answer ({error}); start the server, or search the other partitions: --partial"
        )

    def is_newest(self) -> bool:
        """True: nothing was read yet."""
        return True

    def close(self) -> None:
        """Nothing is open."""


def _cut(part: Snapshot) -> None:
    from engine.store.postgres.snapshot import PostgresSnapshot

    assert isinstance(part, PostgresSnapshot)
    with suppress(OSError), socket(fileno=os.dup(part.file_descriptor)) as connection:
        connection.shutdown(SHUT_RDWR)
