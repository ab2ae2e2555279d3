"""The index that is served: follows its commits, so that new requests see them.

A request keeps the snapshot that it started with. The next snapshot is opened and warmed beside the old one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.encoders.encoder import Encoder
from engine.errors import EngineError
from engine.index import Index
from engine.search.request import Request
from engine.store.partitioned import Snapshot, open_snapshot
from engine.text.document import Document
from indexer.search_log import SearchLog
from indexer.serving.encoding import SharedEncoder
from indexer.serving.failures import LOG, too_busy
from indexer.serving.settings import Settings

_WARM_UP = Document.from_text("Which documents match this one, and in which sections?")


class LiveIndex:
    """Opens an index, and opens it again when something was committed."""

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
        open_snapshot(folder).close()

    @property
    def is_ready(self) -> bool:
        """Whether a query finds everything loaded."""
        return self._opened is not None

    def load(self) -> None:
        """Load the encoder and open the index.

        Raises:
            EngineError: the encoder or the index cannot be loaded.
        """
        settings, snapshot = self._settings, open_snapshot(self.folder)
        try:
            shared = self._shared_encoder(snapshot)
            index = Index(snapshot, shared, store=settings.store, log=LOG.info, placement=settings.placement)
            index.search(_WARM_UP, Request(k=1, candidates=0)).to_dict()
        except EngineError:
            snapshot.close()
            raise
        if settings.log_file is not None:
            index.record = SearchLog(settings.log_file).add
        before, self._opened = self._opened, _Opened(index)
        self._shared, self.n_documents = shared, index.n_documents
        self.n_loaded += 1
        if before is not None:
            before.leave()

    def _shared_encoder(self, snapshot: Snapshot) -> SharedEncoder | None:
        """The loaded encoder; a new one if the index was rebuilt with another encoder, None for words alone."""
        if not snapshot.width:
            return None
        built = snapshot.meta["encoder"]
        if self._shared is not None and self._shared.encoder.fingerprint == built["fingerprint"]:
            return self._shared
        return SharedEncoder(self._encoder or self._loaded(built["name"]), self._on_batch)

    def _loaded(self, name: str) -> Encoder:
        # An index without vectors needs no encoder.
        from engine.encoders.loading import load_encoder

        return load_encoder(name, device=self._settings.device)

    def reload(self) -> bool:
        """Open the index again if something was committed; where that fails, the old snapshot stays."""
        before = self._shared
        try:
            with self.lease() as index:
                if index.snapshot.is_newest():
                    return False
            self.load()
        except EngineError as error:
            LOG.warning("the index has changed and cannot be opened; the old snapshot stays: %s", error)
            return False
        if before is not None and before is not self._shared:
            before.close()
        LOG.info("the index has changed: %s documents", f"{self.n_documents:,}")
        return True

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
        """Close the index and the encoder."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.leave()
        if self._shared is not None:
            self._shared.close()


class _Opened:
    """One opened index, which is closed when its last user leaves; the first user is the server."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._n_users = 1
        self._lock = threading.Lock()

    def enter(self) -> bool:
        """Begin to use the index, unless it is closed."""
        with self._lock:
            self._n_users += self._n_users > 0
            return self._n_users > 0

    def leave(self) -> None:
        """End to use the index."""
        with self._lock:
            self._n_users -= 1
            is_last = not self._n_users
        if is_last:
            self.index.close()
