"""The tools of an index as an MCP server. It needs the package mcp, and is reached through `longmatch mcp`.

The server talks to one client, over standard input and output.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from engine.errors import EngineError
from engine.index import Index
from engine.search.request import Request
from engine.text.document import Document
from indexer.mcp.tools import Tools
from indexer.reading.reader import DocumentReader, ReadLimits
from indexer.request_fields import request_fields

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
        limits: of reading one file.

    Raises:
        IndexMismatch: there is no index in the folder.
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
        version=metadata.version("longmatch"),
        instructions=_INSTRUCTIONS,
        log_level="WARNING",
        lifespan=closing,
    )

    def describe_index() -> dict[str, Any]:
        """Count the documents of the index, and list the metadata fields for filters."""
        return tools.describe()

    def search_text(text: str, section_pairs: int, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401
        """Rank the documents of the index against a whole text, and show the sections that match."""
        return tools.search(Document.from_text(text), Request.of(**parameters), section_pairs)

    def search_similar(doc_id: str, section_pairs: int, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401
        """Rank the documents of the index against one of them, named by its doc_id."""
        return tools.search(doc_id, Request.of(**parameters), section_pairs)

    def search_file(path: str, section_pairs: int, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401
        """Rank the documents of the index against a file, named relative to the folder of files."""
        return tools.search(tools.file(path), Request.of(**parameters), section_pairs)

    def read_document(doc_id: str, section: int | None = None, start: int = 0) -> dict[str, Any]:
        """List the sections of a document, or read one section by its number; go on at next_start."""
        return tools.read(doc_id, section, start)

    offered: list[Callable[..., dict[str, Any]]] = [describe_index, search_text, search_similar, read_document]
    if files is not None:
        offered.append(search_file)
    for function in offered:
        server.tool(annotations=_READ_ONLY)(_with_named_errors(function))
    return server


def _with_named_errors(function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Wrap a tool so that its `EngineError`s are sent to the model, which can correct its call."""

    @functools.wraps(function)
    def named(*arguments: Any, **values: Any) -> dict[str, Any]:  # noqa: ANN401
        try:
            return function(*arguments, **values)
        except EngineError as error:
            raise ToolError(str(error)) from error

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
