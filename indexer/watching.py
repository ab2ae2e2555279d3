"""Standing questions: the hits of a query that were not reported before, with the reported ones in a file.

A score depends on query, document and reference alone, so it does not change when documents are added. A search leaves
out the documents that were reported and have the same content since.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from engine.errors import DocumentError
from engine.index import Index
from engine.search.request import Request
from engine.store.documents import content_hash
from engine.store.durable import fsync_folder
from engine.store.lookup import stored_hashes
from engine.text.document import Document
from engine.views import Result

VERSION = "longmatch-watch/1"
_LINE = re.compile(r":\d+$")  # line number of a document in a file of JSON lines
_AT_ONCE = 30_000  # names that `stored_hashes` takes


class Watch:
    """The reported hits of queries in one index; `saved` makes those of this run durable."""

    def __init__(self, path: Path, folder: Path) -> None:
        """Read the state; a file that does not exist is an empty state.

        Raises:
            DocumentError: the file holds something else, or belongs to another index.
        """
        self._path, self._folder = path, str(folder.resolve())
        self._reported: dict[str, dict[str, str]] = {}  # by query: doc_id -> content hash
        if not path.exists():
            return
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            version, of_index, self._reported = state["schema"], state["index"], state["queries"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DocumentError(f"{path} holds no state of longmatch watch; name another file") from error
        if version != VERSION or of_index != self._folder:
            raise DocumentError(f"{path} is the state of {of_index} ({version}); name another file for {self._folder}")

    def search(self, index: Index, query: Document | str, request: Request) -> tuple[Result, tuple[str, ...]]:
        """The hits that were not reported for this query, and those of them that were with other content."""
        reported = self._reported.setdefault(_key(query), {})
        names, current = list(reported), dict[str, str]()
        for first in range(0, len(names), _AT_ONCE):
            current |= stored_hashes(index.snapshot.folder, names[first : first + _AT_ONCE])
        same = [name for name in names if current.get(name) == reported[name]]
        there = [name for name in same if index.snapshot.position(name) is not None]
        result = index.search(query, request.leaving_out(*there))
        contents = {hit.doc_id: content_hash(hit.document) for hit in result.hits}
        hits = tuple(hit for hit in result.hits if reported.get(hit.doc_id) != contents[hit.doc_id])
        changed = tuple(hit.doc_id for hit in hits if hit.doc_id in reported)
        reported |= contents
        return replace(result, hits=hits), changed

    @contextmanager
    def saved(self) -> Iterator[None]:
        """Write the new state to disk, and put it in place of the old one after the block, in which hits are printed.

        A run that is killed before the end of the block changes nothing. One that is killed between the block and the
        rename right after it prints its hits again the next time.
        """
        unfinished = self._path.with_name(f"{self._path.name}.tmp")
        state = {"schema": VERSION, "index": self._folder, "queries": self._reported}
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump(state, file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        yield
        unfinished.replace(self._path)
        fsync_folder(self._path.resolve().parent)


def _key(query: Document | str) -> str:
    """The name of a query in a state: that of its file, which may change, or the hash of its text."""
    if isinstance(query, str):
        return f"id {query}"
    if query.source in ("", "stdin"):
        return f"text {content_hash(query)}"
    return f"file {Path(_LINE.sub('', query.source)).resolve()} {query.doc_id}"
