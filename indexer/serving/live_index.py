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
from engine.search.request import Request
from engine.store.catalog import CATALOG_FILE, connect
from engine.store.manifest import MANIFEST_FILE, index_folders
from engine.text.document import Document
from indexer.search_log import SearchLog
from indexer.serving.encoding import SharedEncoder
from indexer.serving.failures import LOG, too_busy
from indexer.serving.settings import Settings

_WARM_UP = Document.from_text("Which documents match this one, and in which sections?")


class LiveIndex:
    """Opens an index, and opens it again when its catalog has changed."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        encoder: Encoder | None = None,
        on_batch: Callable[[int, int], None] = lambda _requests, _documents: None,
    ) -> None:
        """Check that there is an index; `load` opens it.

        Args:
            settings: device, and whether vectors are stored.
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
        self._opened: _Opened | None = None
        with Index.open(folder, placement=settings.placement):
            self._manifest = _manifest_state(folder)
            self._watches = [_CatalogWatch(part / CATALOG_FILE) for part in index_folders(folder)]

    @property
    def is_ready(self) -> bool:
        """Whether a query finds everything loaded."""
        return self._opened is not None

    def load(self) -> None:
        """Load the encoder and open the index.

        Raises:
            EngineError: the encoder or the index cannot be loaded.
        """
        self._has_changed()
        shared, settings = self._shared_encoder(), self._settings
        index = Index.open(
            self.folder, encoder=shared, store=settings.store, log=LOG.info, placement=settings.placement
        )
        try:
            index.search(_WARM_UP, Request(k=1, candidates=0)).to_dict()
        except EngineError:
            index.close()
            raise
        if settings.log_file is not None:
            index.record = SearchLog(settings.log_file).add
        before, self._opened = self._opened, _Opened(index)
        self._shared, self.n_documents = shared, index.n_documents
        self.n_loaded += 1
        if before is not None:
            before.retire()

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
        # An index without vectors needs no encoder.
        from engine.encoders.loading import load_encoder

        return load_encoder(name, device=self._settings.device)

    def reload(self) -> bool:
        """Open the index again if its catalog has changed; where that fails, the old snapshot stays."""
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
    def lease(self) -> Iterator[Index]:
        """The opened index, which stays open until the caller is done with it.

        Raises:
            Refusal: the index is not loaded yet.
        """
        while (opened := self._opened) is not None:
            if opened.enter():
                try:
                    yield opened.index
                finally:
                    opened.leave()
                return
        raise too_busy("the index is being loaded")

    def close(self) -> None:
        """Close the index, the encoder and the watches."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.retire()
        if self._shared is not None:
            self._shared.close()
        for watch in self._watches:
            watch.close()


class _Opened:
    """One opened index, which is closed when it is retired and its last request has finished."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._n_users = 0
        self._is_retired = False
        self._lock = threading.Lock()

    def enter(self) -> bool:
        """Begin a request, unless the index is retired."""
        with self._lock:
            self._n_users += not self._is_retired
            return not self._is_retired

    def leave(self) -> None:
        """End a request."""
        with self._lock:
            self._n_users -= 1
            is_last = self._is_retired and not self._n_users
        if is_last:
            self.index.close()

    def retire(self) -> None:
        """Take no further request."""
        with self._lock:
            self._is_retired = True
            is_unused = not self._n_users
        if is_unused:
            self.index.close()


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
