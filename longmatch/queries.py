"""Converts the query of a user, a text, a file, a dict or a `Document`, to one document."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from engine.errors import DocumentError, QueryError
from engine.readers import Unreadable, read_file
from engine.text.document import Document
from longmatch.naming import named_path
from longmatch.records import Columns, record_document, whole_document

QueryItem: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | Document


def query_document(query: object) -> Document:
    """Convert a query to a document; see `longmatch.naming` for strings.

    Raises:
        DocumentError: there is no text, or the file cannot be read or does not hold exactly one document.
        QueryError: the named file does not exist or is a folder, or the query has another type.
    """
    if isinstance(query, Document):
        return whole_document(query)
    if isinstance(query, Mapping):
        return record_document(query, Columns())
    if isinstance(query, os.PathLike):
        return _file_document(Path(query))
    if isinstance(query, str):
        path = named_path(query)
        return Document.from_text(query) if path is None else _file_document(path)
    raise QueryError(
        f"the query is {type(query).__name__}; search with a text, a path, a dict with 'text', a Document, "
        "or a list of them"
    )


def _file_document(path: Path) -> Document:
    if path.is_dir():
        raise QueryError(f"{path} is a folder; search with one of its files, or with a list of them")
    if not path.is_file():
        raise QueryError(
            f"{path} names a file, and {path.absolute()} does not exist; correct the path, or search with the name "
            f"as a text: Document.from_text({str(path)!r})"
        )
    found = list(islice(read_file(path), 2))
    if len(found) != 1:
        count = "no document" if not found else "several documents"
        raise DocumentError(f"{path} holds {count}, not one; pass one record of it as a dict, or a list of them")
    if isinstance(found[0], Unreadable):
        raise DocumentError(f"{path}: {found[0].reason}")
    return found[0]
