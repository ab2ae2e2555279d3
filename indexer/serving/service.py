"""What the routes share: the index, uploads, threads, and how their work becomes a response.

Uploads are read in processes of their own, each within limits. No path of a client is opened: a file
keeps its name for people, and its suffix for the format.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from queue import SimpleQueue
from typing import Any

from fastapi import Response

from engine.encoders.encoder import Encoder
from engine.errors import DocumentError
from engine.index import Index
from engine.readers import FORMATS, Unreadable
from engine.readers.reader import detected_suffix, text_suffix
from engine.text.cleaning import clean
from engine.text.document import Document, text_id, text_title, without_gz
from indexer.reading.reader import DocumentReader, ReadLimits, ReadRequest
from indexer.serving.answers import LOG, refusal_of, too_large
from indexer.serving.bodies import QueryBody
from indexer.serving.live_index import LiveIndex
from indexer.serving.settings import MOST_CHARS, MOST_SECTIONS, ServerSettings
from indexer.serving.work import Metrics, Workers

_FILE = "upload"
_NO_NAME = "\0"  # of a record without an id
_MOST_NAME = 200  # characters


class Uploads:
    """Reads documents for several threads."""

    def __init__(self, limits: ReadLimits, n_readers: int) -> None:
        """Start the processes.

        Args:
            n_readers: documents that are read at the same time.
        """
        self._idle: SimpleQueue[DocumentReader] = SimpleQueue()
        self._readers = [DocumentReader(limits).__enter__() for _ in range(n_readers)]
        for reader in self._readers:
            self._idle.put(reader)

    def file(self, name: str, data: bytes) -> Document:
        """The one document of a file.

        Raises:
            DocumentError: the file cannot be read, or holds no document or several.
            Refusal: the document is over a limit.
        """
        shown = _shown(name)
        read = self._read(data, _suffix(shown), without_gz(shown), shown)
        return replace(read, title=PurePath(without_gz(shown)).stem) if read.title == _FILE else read

    def text(self, text: str) -> Document:
        """A text, as `Document.from_text` makes it.

        Raises:
            DocumentError: there is no text, or too much.
        """
        text = clean(text)
        read = self._read(text.encode(), text_suffix(text), "", "text")
        title = text_title(read.text) if read.title == _FILE else read.title
        return replace(read, doc_id=text_id("", text), title=title, source="")

    def record(self, record: Mapping[str, Any]) -> Document:
        """An object with text or sections, as `longmatch.Index.search` reads a dict.

        Raises:
            DocumentError: there is no text, or too much.
        """
        doc_id = record.get("id")
        line = json.dumps({key: value for key, value in record.items() if key != "id" and value is not None})
        read = self._read(line.encode(), ".json", _NO_NAME if doc_id is None else doc_id, "document")
        title = record.get("title") or ""
        return replace(
            read,
            doc_id=text_id(title, read.text) if doc_id is None else doc_id,
            title=title or text_title(read.text),
            source="",
        )

    def _read(self, data: bytes, suffix: str | None, doc_id: str, name: str) -> Document:
        with tempfile.TemporaryDirectory(prefix="longmatch-") as folder:
            # In a folder of its own, so that a LaTeX file includes no other.
            path = Path(folder) / _FILE
            path.write_bytes(data)
            path = path.rename(path.with_name(_FILE + (suffix or detected_suffix(path))))
            reader = self._idle.get()
            try:
                documents = list(reader.read([ReadRequest(str(path), doc_id=doc_id)]))
            finally:
                self._idle.put(reader)
        if len(documents) != 1:
            count = f"{len(documents):,} documents" if documents else "no document"
            raise DocumentError(f"{name} holds {count}, not one; send a file of one document")
        (document,) = documents
        if isinstance(document, Unreadable):
            raise DocumentError(f"{name}: {document.reason}".replace(str(path), name))
        if (n := len(document.sections)) > MOST_SECTIONS:
            raise too_large("too_many_sections", f"sections of {name}", n, MOST_SECTIONS, "join its sections")
        if (n := len(document.text)) > MOST_CHARS:
            raise too_large("too_much_text", f"characters of {name}", n, MOST_CHARS, "send a part of it")
        return replace(document, source=document.source.replace(str(path), name, 1))

    def close(self) -> None:
        """End the processes."""
        for reader in self._readers:
            reader.close()


def _shown(name: str) -> str:
    """The last part of a name, without characters that cannot be printed."""
    last = PurePath(name.replace("\\", "/")).name
    return "".join(character for character in last if character.isprintable())[-_MOST_NAME:] or _FILE


def _suffix(name: str) -> str | None:
    """The suffix of a supported format; None if the format must be detected from the content."""
    inner = without_gz(name)
    suffix = PurePath(inner).suffix.lower()
    return suffix + (".gz" if inner != name else "") if suffix in FORMATS else None


_RELOAD_SHARE = 10  # least pause between two checks of the catalog, as a multiple of the last reload time


class Service:
    """What the routes share."""

    def __init__(
        self,
        folder: Path,
        settings: ServerSettings,
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

    def query(self, query: QueryBody) -> Document | str:
        """What a client searches with: a document that is read now, or a doc_id."""
        if query.doc_id is not None:
            return query.doc_id
        if query.text is not None:
            return self.uploads.text(query.text)
        assert query.document is not None
        return self.uploads.record(query.document.model_dump())

    def queries(self, queries: Sequence[QueryBody]) -> list[Document | str]:
        """Several of what `query` returns."""
        return [self.query(query) for query in queries]

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
