"""Indexes behind servers on the loopback interface, in threads of this process."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from engine.encoders.encoder import Encoder
from engine.store.manifest import read_manifest, write_manifest
from indexer.serving.server import Server, configuration
from indexer.serving.service import Service
from indexer.serving.settings import Settings
from tests.fakes import FakeEncoder
from tests.indexer.serving.clients import until


class _ServerInThread(Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def serving(folder: Path, settings: Settings | None = None, encoder: Encoder | None = None) -> Iterator[str]:
    """The address of a server of an index that is ready."""
    service = Service(folder, settings or Settings(threads=2, reload=0.02), encoder or FakeEncoder())
    server = _ServerInThread(configuration(service, lambda: None))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    try:
        until(lambda: service.live.is_ready or service.failure is not None)
        assert service.failure is None, service.failure
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.stop()
        thread.join()
        service.close()
        listener.close()


def point_to(folder: Path, addresses: dict[int, tuple[str, ...]]) -> None:
    """Name servers in a manifest: for a partition its address and those of its replicas."""
    manifest = read_manifest(folder)
    entries = [
        replace(entry, address=addresses[number][0], replicas=addresses[number][1:]) if number in addresses else entry
        for number, entry in enumerate(manifest.partitions)
    ]
    write_manifest(folder, replace(manifest, partitions=tuple(entries)))
