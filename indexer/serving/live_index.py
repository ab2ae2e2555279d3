"""The index that is served: follows its catalogs, so that new requests see what was committed.

A request keeps the snapshot that it started with. The next snapshot is opened and warmed beside the old one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from engine.encoders.encoder import Encoder
from engine.errors import EngineError
from engine.index import Index
from engine.store.catalog import CATALOG_FILE, connect
from engine.store.manifest import MANIFEST_FILE, index_folders
from indexer.serving.encoding import SharedEncoder
from indexer.serving.failures import LOG, too_busy
from indexer.serving.progress import Progress
from indexer.serving.replicas import Replica, ReplicaGroup
from indexer.serving.settings import Settings


class LiveIndex:
    """Opens an index for several threads, and opens it again when its catalog has changed."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        encoder: Encoder | None = None,
        on_batch: Callable[[int, int], None] = lambda _requests, _documents: None,
    ) -> None:
        """Check that there is an index; `load` opens it.

        Args:
            folder: of the index.
            settings: threads, device, and whether vectors are stored.
            encoder: of the index; by default loaded by its recorded name.
            on_batch: as in `SharedEncoder`.

        Raises:
            EngineError: the index cannot be opened.
        """
        self.folder = folder
        self.n_documents = 0
        self.n_loaded = 0  # how often the index was opened
        self._settings = settings
        self._encoder = encoder
        self._on_batch = on_batch
        self._shared: SharedEncoder | None = None
        self._group: ReplicaGroup | None = None
        self._swap = threading.Lock()
        with Index.open(folder, placement=settings.placement):
            self._manifest = _manifest_state(folder)
            self._watches = [_CatalogWatch(part / CATALOG_FILE) for part in index_folders(folder)]

    @property
    def is_ready(self) -> bool:
        """Whether a query finds everything loaded."""
        return self._group is not None

    def load(self) -> None:
        """Load the encoder and open the index.

        Raises:
            EngineError: the encoder or the index cannot be loaded.
        """
        self._has_changed()
        shared = self._shared_encoder()
        settings = self._settings
        group = ReplicaGroup(self.folder, shared, settings.threads, settings.placement, store=settings.store)
        with self._swap:
            old, self._group, self._shared = self._group, group, shared
            self.n_loaded += 1
            self.n_documents = group.n_documents
        if old is not None:
            old.retire()

    def _shared_encoder(self) -> SharedEncoder | None:
        """The loaded encoder; a new one if the index was rebuilt with another encoder."""
        with Index.open(self.folder, placement=self._settings.placement) as opened:
            built = opened.snapshot.meta.get("encoder") if opened.snapshot.width else None
        if built is None:
            return None
        if self._shared is not None and self._shared.encoder.fingerprint == built["fingerprint"]:
            return self._shared
        return SharedEncoder(self._encoder or self._loaded(built["name"]), self._on_batch)

    def _loaded(self, name: str) -> Encoder:
        # Loads torch, which an index without vectors does not need.
        from engine.encoders.loading import load_encoder

        return load_encoder(name, device=self._settings.device)

    def reload(self) -> bool:
        """Open the index again if its catalog has changed; where that fails, the old snapshot stays.

        Returns:
            Whether it was opened again.
        """
        if not self._has_changed():
            return False
        before = self._shared
        try:
            self.load()
        except EngineError as error:
            LOG.warning("the index has changed and cannot be opened; the old snapshot stays: %s", error)
            for watch in self._watches:
                watch.forget()
            return False
        if before is not None and before is not self._shared:
            before.close()
        LOG.info("the index has changed: %s documents", f"{self.n_documents:,}")
        return True

    def _has_changed(self) -> bool:
        """Whether something was committed since the last call, to any partition or to their manifest."""
        changes = [watch.has_changed() for watch in self._watches]  # a list, so that every watch is updated
        before, self._manifest = self._manifest, _manifest_state(self.folder)
        return any(changes) or self._manifest != before

    @contextmanager
    def lease(self, progress: Progress | None = None) -> Iterator[Index]:
        """An opened index for one thread.

        Args:
            progress: of the request, followed while its documents are encoded.

        Raises:
            Refusal: the index is not loaded yet.
        """
        group, replica = self._taken()
        try:
            replica.catch_up()
            replica.follow(progress)
            yield replica.index
        finally:
            replica.follow(None)
            group.give_back(replica)

    def _taken(self) -> tuple[ReplicaGroup, Replica]:
        while True:
            with self._swap:
                group = self._group
            if group is None:
                raise too_busy("the index is being loaded")
            if (replica := group.take()) is not None:
                return group, replica

    def close(self) -> None:
        """Close the opened copies, the encoder and the watches."""
        with self._swap:
            group, self._group = self._group, None
        if group is not None:
            group.retire()
        if self._shared is not None:
            self._shared.close()
        for watch in self._watches:
            watch.close()


def _manifest_state(folder: Path) -> tuple[int, int] | None:
    """Inode and modification time, which change when the manifest of partitions is replaced; None without one."""
    with suppress(OSError):
        found = (folder / MANIFEST_FILE).stat()
        return found.st_ino, found.st_mtime_ns
    return None


class _CatalogWatch:
    """Detects commits of other processes, and a replaced catalog file; reads no table."""

    def __init__(self, catalog: Path) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._seen = (0, 0)
        self._file = 0
        self._open()

    def _open(self) -> None:
        engine = connect(self._catalog, read_only=True)
        self._connection = engine.raw_connection()
        self._file = self._catalog.stat().st_ino

    def has_changed(self) -> bool:
        """Whether something was committed since the last call."""
        with self._lock, suppress(OSError, EngineError, SQLAlchemyError):
            if self._catalog.stat().st_ino != self._file:
                self._connection.close()
                self._open()
            seen = (self._file, self._version())
            is_other, self._seen = seen != self._seen, seen
            return is_other
        return False

    def forget(self) -> None:
        """Report a change at the next call."""
        with self._lock:
            self._seen = (0, 0)

    def _version(self) -> int:
        (version,) = self._connection.cursor().execute("PRAGMA data_version").fetchone()
        return int(version)

    def close(self) -> None:
        """Close the catalog."""
        self._connection.close()
