"""Converts the source of a user to a stream of documents: folders, files, texts, dicts, documents, tables.

Documents are not collected in memory: a generator of a million dicts is read one by one.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from engine.errors import DocumentError
from engine.readers import Unreadable
from engine.text.document import Document
from indexer.building.corpus import list_corpus, read_corpus, with_prefix
from indexer.building.doc_ids import FileIds
from longmatch.naming import named_path
from longmatch.records import Columns, is_missing, record_document, record_id, whole_document
from longmatch.tables import is_table, table_columns, table_rows

Item: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | Document
Source: TypeAlias = Item | Iterable[Any]  # a table of pandas, Polars, Arrow or datasets is an iterable too

_ITEMS = "a text, a path, a dict or a Document"


@dataclass(slots=True)
class Stream:
    """Documents to index, read on demand."""

    documents: Iterator[Document | Unreadable]
    n_expected: int | None = None  # None if not known
    n_repeated: int = 0  # repeated texts and dicts without id, which are left out
    replace_files: bool = False  # whether a file replaces another existing file with the same doc_id


def read_source(source: object, columns: Columns, ids: FileIds | None = None) -> Stream:
    """Read the first document of a source, so that an unusable source is refused before anything is written.

    Args:
        source: see `longmatch.build`.
        columns: names of fields and columns.
        ids: settings of the doc_ids of files; the prefix is put in front of the doc_ids of other documents too.

    Raises:
        DocumentError: the type of the source is not supported, a path does not exist, or a field is missing.
    """
    stream, ids = Stream(iter(())), ids or FileIds()
    if is_table(source):
        names = table_columns(source)
        if names is not None and (problem := columns.missing(names)) is not None:
            raise DocumentError(problem)
        found = with_prefix(ids.prefix, _items(table_rows(source), columns, stream))
    elif (paths := _paths(source)) is not None:
        files = list_corpus(paths, columns.fields)
        stream.n_expected = files.n_documents
        found = read_corpus(files, ids=ids)
    else:
        found = with_prefix(ids.prefix, _items(_listed(source), columns, stream))
    if stream.n_expected is None and isinstance(source, Sized) and not isinstance(source, str | Mapping):
        stream.n_expected = len(source)
    first = next(found, None)
    stream.documents = iter(()) if first is None else chain([first], found)
    return stream


def _paths(source: object) -> list[str] | None:
    """The paths of a source that consists of paths alone; None for any other source.

    Raises:
        DocumentError: the source is one string that is not a path.
    """
    if isinstance(source, os.PathLike):
        return [os.fspath(source)]
    if isinstance(source, str):
        if named_path(source, is_folder_named=True) is None and not any(sign in source for sign in "*?["):
            raise DocumentError(f"{source!r:.80} does not exist; to index texts, pass a list of them")
        return [source]
    if isinstance(source, list | tuple) and source:
        paths = [_path(one) for one in source]
        found = [path for path in paths if path is not None]
        return found if len(found) == len(paths) else None
    return None


def _path(item: object) -> str | None:
    if isinstance(item, str):
        return None if named_path(item, is_folder_named=True) is None else item
    return os.fspath(item) if isinstance(item, os.PathLike) else None


def _listed(source: object) -> Iterable[object]:
    if isinstance(source, Mapping | Document):
        return [source]
    if isinstance(source, io.IOBase):
        raise DocumentError("the source is an open file; pass its path")
    if isinstance(source, Iterable) and not isinstance(source, bytes | bytearray | memoryview):
        return source
    raise DocumentError(f"the source is {type(source).__name__}; pass a folder, a table, or a list of {_ITEMS}")


def _items(items: Iterable[object], columns: Columns, stream: Stream) -> Iterator[Document | Unreadable]:
    """The documents of items of any kind; a repeated text or dict without id is left out."""
    seen: set[int] = set()
    for number, item in enumerate(items):
        for document in _documents(item, number, columns):
            if isinstance(document, Document) and not document.source and _is_unnamed(item, columns):
                key = hash(document.doc_id)
                if key in seen:
                    stream.n_repeated += 1
                    continue
                seen.add(key)
            yield document


def _documents(item: object, number: int, columns: Columns) -> Iterator[Document | Unreadable]:
    """The documents of one item.

    Raises:
        DocumentError: the type of the item is not supported; or the item is the first one and lacks a needed field.
    """
    if isinstance(item, Document):
        yield whole_document(item)
    elif isinstance(item, Mapping):
        if number == 0 and (problem := columns.missing([str(key) for key in item])) is not None:
            raise DocumentError(problem)
        yield _readable(lambda: record_document(item, columns), number, record_id(item, columns))
    elif (path := _path(item)) is not None:
        yield from read_corpus(list_corpus([path], columns.fields))
    elif isinstance(item, str):
        yield _readable(lambda: Document.from_text(item), number, None)
    elif isinstance(item, Unreadable):
        yield item
    elif is_missing(item):
        yield Unreadable(f"record {number}", "it is empty; leave it out")
    else:
        raise DocumentError(f"record {number} is {type(item).__name__}; pass {_ITEMS}")


def _readable(read: Callable[[], Document], number: int, doc_id: str | None) -> Document | Unreadable:
    try:
        return read()
    except DocumentError as error:
        return Unreadable(doc_id or f"record {number}", str(error), doc_id or "")


def _is_unnamed(item: object, columns: Columns) -> bool:
    return isinstance(item, str) or (isinstance(item, Mapping) and record_id(item, columns) is None)
