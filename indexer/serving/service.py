"""What the routes share: the index, readers of uploads, threads, and how their work becomes a response."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fastapi import Response

from engine.encoders.encoder import Encoder
from engine.index import Index
from engine.text.document import Document
from indexer.serving.bodies import Query
from indexer.serving.failures import LOG, refusal_of
from indexer.serving.live_index import LiveIndex
from indexer.serving.metrics import Metrics
from indexer.serving.settings import Settings
from indexer.serving.uploads import Uploads
from indexer.serving.work import Workers

_RELOAD_SHARE = 10  # least pause between two checks of the catalog, as a multiple of the last reload time


class Service:
    """What the routes share."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        encoder: Encoder | None = None,
        on_load: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Check that there is an index.

        Args:
            on_load: called with one line when the index is loaded.

        Raises:
            EngineError: it cannot be opened.
        """
        self.folder = folder
        self.settings = settings
        self.metrics = Metrics()
        self.live = LiveIndex(folder, settings, encoder, self.metrics.batch)
        self.uploads = Uploads(settings.read, settings.threads)
        self.workers = Workers(settings.threads, settings.concurrency, settings.timeout)
        self._on_load = on_load
        self.failure: Exception | None = None  # why the index could not be loaded
        self.metrics.follow("documents", "Documents of the index.", lambda: self.live.n_documents)
        self.metrics.follow("index_loads", "How often the index was opened.", lambda: self.live.n_loaded)
        self.metrics.follow("requests_admitted", "Requests in threads, or waiting.", lambda: self.workers.n_admitted)

    def query(self, given: Query) -> Document | str:
        """What a client searches with: a document that is read now, or a doc_id."""
        if given.doc_id is not None:
            return given.doc_id
        if given.text is not None:
            return self.uploads.text(given.text)
        assert given.document is not None
        return self.uploads.record(given.document.model_dump())

    def queries(self, given: Sequence[Query]) -> list[Document | str]:
        """Several of what `query` returns."""
        return [self.query(query) for query in given]

    async def answer_with(self, work: Callable[[Index], bytes]) -> Response:
        """Work with the opened index in a thread, and send the JSON that it returns, or its error."""

        def leased() -> bytes:
            with self.live.lease() as index:
                return work(index)

        try:
            return Response(await self.workers.run(leased), media_type="application/json")
        except Exception as error:  # noqa: BLE001 - a client never sees a traceback
            return refusal_of(error, self.folder).response()

    async def follow(self, stop: Callable[[], None]) -> None:
        """Load the index, then open it again whenever its catalog has changed."""
        try:
            await asyncio.to_thread(self.live.load)
        except Exception as error:  # noqa: BLE001 - the command line shows it
            self.failure = error
            stop()
            return
        self._on_load(f"ready: {self.live.n_documents:,} documents")
        pause = self.settings.reload
        while True:
            await asyncio.sleep(pause)
            started = time.monotonic()
            try:
                await asyncio.to_thread(self.live.reload)
            except Exception as error:  # noqa: BLE001 - the old snapshot serves on
                LOG.error("the catalog cannot be followed", exc_info=error)
            pause = max(self.settings.reload, _RELOAD_SHARE * (time.monotonic() - started))

    def close(self) -> None:
        """End threads and processes."""
        self.workers.close()
        self.uploads.close()
        self.live.close()
