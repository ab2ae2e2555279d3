"""An index as tools for a language model, which searches, reads and lists, served by the Model Context Protocol (MCP).

It needs the package mcp, and is reached through `longmatch mcp`. The server talks to one client, over standard input
and output.
"""

import functools
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from engine import __version__
from engine.errors import EngineError, QueryError
from engine.index import Index
from engine.readers import Unreadable
from engine.search.request import Request
from engine.store.partitioned import stored_fields
from engine.text.document import Document, section_label
from engine.views import Hit, Result
from indexer.reading.reader import DocumentReader, ReadLimits, ReadRequest
from indexer.request_fields import request_fields

MOST_CHARACTERS = 20_000  # of one reading; a model's context is short, a document is not


class Tools:
    """The tools over one opened index, by their names. Several threads may call them; files are read one at a time."""

    def __init__(self, index: Index, reader: DocumentReader, files: Path | None = None) -> None:
        """Take an opened index that nothing else uses, and the folder of the files that may be searched with."""
        self.files = None if files is None else files.resolve()
        self._index = index
        self._reader = reader
        self._lock = Lock()

    def describe_index(self) -> dict[str, Any]:
        """Count the documents of the index, and list the metadata fields for filters."""
        snapshot = self._index.snapshot
        fields = [asdict(field) for field in stored_fields(snapshot.folder)]
        return {"name": snapshot.folder.name, "documents": snapshot.n_documents, "fields": fields}

    def search_text(self, text: str, section_pairs: int, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401
        """Rank the documents of the index against a whole text, and show the sections that match."""
        return self._search(Document.from_text(text), section_pairs, parameters)

    def search_similar(self, doc_id: str, section_pairs: int, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401
        """Rank the documents of the index against one of them, named by its doc_id."""
        return self._search(doc_id, section_pairs, parameters)

    def search_file(self, path: str, section_pairs: int, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401
        """Rank the documents of the index against a file, named relative to the folder of files."""
        with self._lock:
            document = self._document(path)
        return self._search(document, section_pairs, parameters)

    def read_document(self, doc_id: str, section: int | None = None, start: int = 0) -> dict[str, Any]:
        """List the sections of a document, or read one section by its number; go on at next_start."""
        document = self._index.document(doc_id)
        about = {"doc_id": doc_id, "title": document.title, "metadata": dict(document.metadata)}
        if section is None:
            return about | {"sections": [_described(document, at) for at in range(len(document.sections))]}
        if not 1 <= section <= len(document.sections):
            raise QueryError(f"{doc_id!r} has sections 1 to {len(document.sections)}, not {section}")
        if start < 0:
            raise QueryError(f"start is {start}; give 0, or the next_start of the reading before")
        whole = document.sections[section - 1]
        first = whole.start + start
        stop = min(whole.stop, first + MOST_CHARACTERS)
        next_start = stop - whole.start if stop < whole.stop else None
        return about | _described(document, section - 1) | {"text": document.text[first:stop], "next_start": next_start}

    def _search(self, query: Document | str, n_pairs: int, parameters: dict[str, Any]) -> dict[str, Any]:
        return _answer(self._index.search(query, Request.of(**parameters)), n_pairs)

    def _document(self, name: str) -> Document:
        """The one document of a file below the folder of files."""
        if self.files is None:
            raise QueryError("files cannot be searched with; start the server with --files FOLDER")
        path = _file_below(self.files, name)
        if path is None:
            raise QueryError(f"there is no file {name!r} below {self.files.name}; name one relative to that folder")
        documents = list(self._reader.read([ReadRequest(str(path), doc_id=path.name)]))
        if len(documents) != 1 or isinstance(documents[0], Unreadable):
            failures = [document.reason for document in documents if isinstance(document, Unreadable)]
            reason = failures[0] if failures else f"{len(documents):,} documents"
            raise QueryError(f"{name!r} cannot be searched with: {reason}; name a file of one document")
        return documents[0]


def _file_below(folder: Path, name: str) -> Path | None:
    """An existing file in a folder, links followed; None for any other name, whatever a model made up."""
    try:
        path = (folder / name).resolve()
        return path if path.is_relative_to(folder) and path.is_file() else None
    except (OSError, ValueError):  # a name that is too long, or holds a NUL
        return None


def _described(document: Document, at: int) -> dict[str, Any]:
    section = document.sections[at]
    return {
        "section": at + 1,
        "heading": section_label(document, at),
        "characters": section.stop - section.start,
        "pages": list(document.page_numbers(section.span)),
    }


def _answer(result: Result, n_pairs: int) -> dict[str, Any]:
    return {
        "query": result.query.title,
        "status": result.status.value,
        "documents_searched": result.n_searched,
        "query_in_another_language": result.query_language,  # than the words of the index; null if it is not
        "nothing_stands_out": result.nothing_stands_out,
        "scores_of_unrelated_documents": None if result.floor is None else asdict(result.floor),
        "hits": [_hit(hit, n_pairs) for hit in result],
    }


def _hit(hit: Hit, n_pairs: int) -> dict[str, Any]:
    """A hit whose contributions sum to its score."""
    shown = hit.pairs[:n_pairs]
    return {
        "rank": hit.rank,
        "score": hit.score,
        "doc_id": hit.doc_id,
        "title": hit.title,
        "metadata": dict(hit.metadata),
        "section_pairs": [
            {
                "contribution": pair.contribution,
                "query_section": snippet.query_section,
                "section": pair.target_section + 1,
                "heading": snippet.target_section,
                "pages": list(snippet.target_pages),
                "query_sentence": snippet.query.text,
                "sentence": snippet.target.text,
                "words": [term.term for term in pair.terms],
            }
            for pair, snippet in zip(shown, hit.snippets(n_pairs), strict=True)
        ],
        "other_contributions": hit.breakdown.score - sum(pair.contribution for pair in shown),
    }


_INSTRUCTIONS = """\
Finds long documents of an index with a long document, and shows which sections match. Give the whole text, not \
keywords. Scores are in [0, 1], and the contributions of section pairs are parts of the score. Cite doc_id, heading \
and pages. Read a section with read_document before quoting it."""
MOST_HITS = 50
_READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)

_FIELDS: dict[str, Any] = {
    name: kind
    for name, kind in request_fields(k={"default": 5, "most": MOST_HITS}).items()
    if name not in ("mode", "explain")  # an answer lists documents and sentences, not novelty or matrices
}
_PAIRS = Annotated[int, Field(ge=0, description="Section pairs of each hit, strongest first.")]


def mcp_server(
    index: Index | Path | str, *, files: Path | str | None = None, limits: ReadLimits | None = None
) -> MCPServer:
    """A server over an index; `.run()` serves standard input and output until the client disconnects.

    The server keeps the state of the index at opening; restart it after a change.

    Args:
        index: a folder, or an opened index that nothing else uses.
        files: folder whose files a model can search with; by default a model can search with texts and indexed
            documents only.
    """
    opened = index if isinstance(index, Index) else Index.open(index, store=False)
    reader = DocumentReader(limits)
    tools = Tools(opened, reader, None if files is None else Path(files))

    @asynccontextmanager
    async def closing(_server: MCPServer) -> AsyncIterator[None]:
        try:
            yield
        finally:
            reader.close()

    server = MCPServer(
        "longmatch",
        version=__version__,
        instructions=_INSTRUCTIONS,
        log_level="WARNING",
        lifespan=closing,
    )

    offered: list[Callable[..., dict[str, Any]]] = [tools.describe_index, tools.search_text, tools.search_similar]
    offered += [tools.read_document, *([] if files is None else [tools.search_file])]
    for function in offered:
        server.tool(annotations=_READ_ONLY)(_with_named_errors(function, opened.snapshot.folder))
    return server


def _with_named_errors(function: Callable[..., dict[str, Any]], index: Path) -> Callable[..., dict[str, Any]]:
    """Wrap a tool so that its `EngineError`s, which name the index without its folder, are sent to the model."""

    @functools.wraps(function)
    def named(*arguments: Any, **values: Any) -> dict[str, Any]:  # noqa: ANN401
        try:
            return function(*arguments, **values)
        except EngineError as error:
            raise ToolError(str(error).replace(str(index), index.name)) from error

    named.__signature__ = _signature(function)  # type: ignore[attr-defined]
    return named


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a tool; that of a search has the fields of `Request` in place of `parameters`."""
    signature = inspect.signature(function, eval_str=True)
    names = list(signature.parameters)
    if "parameters" not in names:
        return signature
    query = signature.parameters[names[0]]
    rest = [_parameter(name, kind, default) for name, (kind, default) in _FIELDS.items()]
    return signature.replace(parameters=[query, *rest, _parameter("section_pairs", _PAIRS, 3)])


def _parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:  # noqa: ANN401
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind, default=default)
