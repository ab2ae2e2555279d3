"""Repeats a search from its recorded result (`engine.report.contract`). Reads no query files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.errors import DocumentError, QueryError
from engine.index import Index
from engine.report.contract import VERSION
from engine.report.differences import Differences, compare_results
from engine.search.request import Request
from engine.text.document import Document
from engine.text.segmentation import Section


def recorded_results(path: Path) -> list[dict[str, Any]]:
    """The results in a file: an envelope, one result, or one result per line.

    Raises:
        DocumentError: the file cannot be read, or holds something else.
    """
    try:
        found = _parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DocumentError(f"{path} cannot be read ({error.strerror}); name a file of results") from error
    except ValueError as error:
        raise DocumentError(f"{path} is not JSON ({error}); {_WRITE}") from error
    for result in found:
        version = result.get("schema") if isinstance(result, dict) else None
        if version != VERSION:
            raise DocumentError(f"{path} has the schema {version!r}, not {VERSION!r}; {_WRITE}")
    return found


_WRITE = "write results: longmatch query INDEX DOCUMENT --format json -o FILE"


def _parsed(text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) < 2:
            raise
        return [json.loads(line) for line in lines]
    return list(value["results"]) if isinstance(value, dict) and "results" in value else [value]


def check_replayable(recorded: Mapping[str, Any]) -> None:
    """Check that a result records the parameters of a search.

    Raises:
        QueryError: it records none, or those of a comparison.
    """
    title, origin = recorded["query"]["title"], recorded.get("provenance")
    if origin is None:
        raise QueryError(f"the result of {title!r} records no parameters; search again")
    if "k" not in origin["parameters"]:
        raise QueryError(f"the result of {title!r} comes from a comparison; replay accepts results of searches")


def kept_query(recorded: Mapping[str, Any]) -> Document | None:
    """The query of a result that keeps its text; None where a file or the index holds it."""
    query = recorded["query"]
    kept = query.get("document")
    if kept is None:
        return None
    sections = tuple(Section(**one | {"path": tuple(one["path"])}) for one in kept["sections"])
    return Document(query["id"], query["title"], kept["text"], sections, source=query["source"])


def replay(index: Index, recorded: Mapping[str, Any], query: Document | None) -> Differences:
    """Repeat a search, and compare its result with the recorded one.

    Raises:
        QueryError: the document, or the fields of the filter, are not in the index.
    """
    request = Request.of(**recorded["provenance"]["parameters"])
    left_out = tuple(name for name in request.without if index.snapshot.position(name) is not None)
    found = index.search(recorded["query"]["id"] if query is None else query, replace(request, without=left_out))
    return compare_results(
        recorded, found.to_dict(n_pairs=None), is_there=lambda doc_id: index.snapshot.position(doc_id) is not None
    )
