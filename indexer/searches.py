"""What is kept of searches: a log of them, and standing questions with the hits that were reported before.

Each line of the log has the digest of the line before it, so that a changed or removed line shows. Several processes
may append to one file.

A score depends on query, document and reference alone, so it does not change when documents are added. A standing
question leaves out the documents that were reported and have the same content since.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any, BinaryIO

from engine import views
from engine.errors import DocumentError, faults_named
from engine.index import Index
from engine.report.contract import head_dict, listed_hits
from engine.result import JointResult, Result
from engine.search.request import Request
from engine.store.checks import content_hash
from engine.store.durable import fsync_folder
from engine.store.partitioned import stored_hashes
from engine.text.cleaning import json_text
from engine.text.document import Document

_LOG_VERSION = "longmatch-log/1"
_TAIL_BYTES = 65_536


class SearchLog:
    """A file that searches are appended to; see the module."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def add(self, result: Result | JointResult) -> None:
        """Append a line for a result; it is on disk when this returns."""
        with faults_named(str(self._path)), self._path.open("ab+") as file:
            flock(file, LOCK_EX)  # until the file is closed
            entry = log_entry(_values(result)) | {"previous": _last_digest(file)}
            file.seek(0, os.SEEK_END)
            file.write((json_text(entry | {"digest": _digest(entry)}) + "\n").encode())
            file.flush()
            os.fsync(file.fileno())


def _values(result: Result | JointResult) -> dict[str, Any]:
    """The fields of `to_dict` that a line is made of."""
    hits = [{"id": hit.doc_id, "score": hit.score, "content": content_hash(hit.document)} for hit in result]
    if isinstance(result, Result):
        return head_dict(result) | {"hits": hits}
    queries = [
        {"weight": weight} | head_dict(part) for weight, part in zip(result.weights, result.results, strict=True)
    ]
    return queries[0] | {"queries": queries, "status": result.status.value, "hits": hits}


def log_entry(values: Mapping[str, Any]) -> dict[str, Any]:
    """The line of a search, without digests, from its result as `to_dict` returns it."""
    queries = values.get("queries") or [{"weight": 1.0, **values}]
    origin = queries[0]["provenance"]
    return {
        "schema": _LOG_VERSION,
        **{name: origin[name] for name in ("time", "version", "encoder", "index", "parameters")},
        "reference": values["reference"],
        "queries": [_query(query) for query in queries],
        "status": values["status"],
        "n_searched": values["n_searched"],
        "hits": [{name: hit[name] for name in ("id", "score", "content")} for hit in listed_hits(values)],
    }


def _query(part: Mapping[str, Any]) -> dict[str, Any]:
    query = part["query"]
    kept = query["document"]  # of a query that no file and no index holds
    names = {name: query[name] for name in ("id", "title", "source", "content")}
    return names | {"weight": part["weight"], "text": None if kept is None else kept["text"]}


def read_log(path: Path) -> dict[int, dict[str, Any]]:
    """The lines of a log by number, from 1; a line that a crash cut short is left out."""
    entries, previous = dict[int, dict[str, Any]](), ""
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if (entry := _parsed(line)) is None:
            continue
        found = entry.pop("digest")
        if found != _digest(entry) or entry["previous"] != previous:
            raise DocumentError(f"line {number} of {path} is not what was written, or lines before it are not")
        entries[number], previous = entry, found
    return entries


def line_of(entries: Mapping[int, Mapping[str, Any]], values: Mapping[str, Any]) -> int | None:
    """The number of the line of a result, as `to_dict` returns it; None where there is none."""
    wanted = _compared(log_entry(values))
    return next((number for number, entry in entries.items() if _compared(entry) == wanted), None)


def _compared(entry: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """A line without digests, and without paths, which a server leaves out of its replies."""
    index = {**(entry["index"] or {}), "path": ""}
    queries = [{**query, "source": "", "text": ""} for query in entry["queries"]]
    return json.loads(json.dumps({**entry, "index": index, "queries": queries, "previous": ""}))


def _digest(entry: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()


def _last_digest(file: BinaryIO) -> str:
    """The digest of the last complete line, "" without one; a line that a crash cut short is ended."""
    size = file.seek(0, os.SEEK_END)
    n_bytes = _TAIL_BYTES
    while size:
        file.seek(max(0, size - n_bytes))
        lines = file.read().split(b"\n")
        if n_bytes == _TAIL_BYTES and lines[-1]:
            file.write(b"\n")
        for line in reversed(lines if n_bytes >= size else lines[1:]):
            if (entry := _parsed(line)) is not None:
                return str(entry["digest"])
        if n_bytes >= size:
            break
        n_bytes *= 4
    return ""


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and {"digest", "previous"} <= entry.keys() else None


_STATE_VERSION = "longmatch-watch/1"
_LINE = re.compile(r":\d+$")  # line number of a document in a file of JSON lines
_AT_ONCE = 30_000  # names that `stored_hashes` takes


class Watch:
    """The reported hits of queries in one index; `saved` makes those of this run durable."""

    def __init__(self, path: Path, folder: Path) -> None:
        """Read the state; a file that does not exist is an empty state."""
        self._path, self._folder = path, str(folder.resolve())
        self._reported: dict[str, dict[str, str]] = {}  # by query: doc_id -> content hash
        if not path.exists():
            return
        try:
            if not path.is_file():
                raise ValueError("a device or a pipe may have no end, and would be replaced by a file")
            state = json.loads(path.read_text(encoding="utf-8"))
            version, of_index = state["schema"], state["index"]
            self._reported = {query: dict(hits) for query, hits in state["queries"].items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise DocumentError(f"{path} holds no state of longmatch watch; name another file") from error
        if version != _STATE_VERSION or of_index != self._folder:
            raise DocumentError(f"{path} is the state of {of_index} ({version}); name another file for {self._folder}")

    def search(self, index: Index, query: Document | str, request: Request) -> tuple[views.Result, tuple[str, ...]]:
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
        unfinished = self._path.with_name(f"{self._path.name}.{os.getpid()}.tmp")  # runs may overlap
        state = {"schema": _STATE_VERSION, "index": self._folder, "queries": self._reported}
        try:
            with faults_named(str(self._path)), unfinished.open("w", encoding="utf-8") as file:
                file.write(json_text(state, indent=1))
                file.flush()
                os.fsync(file.fileno())
            yield
            unfinished.replace(self._path)
        finally:
            unfinished.unlink(missing_ok=True)
        fsync_folder(self._path.resolve().parent)


def _key(query: Document | str) -> str:
    """The name of a query in a state: that of its file, which may change, or the hash of its text."""
    if isinstance(query, str):
        return f"id {query}"
    if query.source in ("", "stdin"):
        return f"text {content_hash(query)}"
    return f"file {Path(_LINE.sub('', query.source)).resolve()} {query.doc_id}"
