"""Converts what a user passes to documents: folders, files, texts, dicts, documents, rows of tables.

A dict has the form of a line of JSON lines, see `engine.readers.jsonl`: a text, or sections with heading and
text; optionally id, title and metadata. Other fields are metadata if they are a scalar or a list of strings.
A record without id gets one from its title and text, so that the same content has the same id in every run.

Documents are not collected in memory: a generator of a million dicts is read one by one. Libraries of tables are not
imported. Whether a string is a text or the name of a file:

- A string that names an existing file is that file, if it has a suffix or a slash: "draft.pdf", "docs/LICENSE".
  "LICENSE" alone is a text.
- A string without blanks that ends in the suffix of a known format, or starts with "/", "./", "../" or "~/", is
  the name of a file too. If there is no such file, that is an error, not a text.
- Any other string is a text.

A program that searches with the input of its users should not let them name files: `Document.from_text(text)` and
`{"text": text}` are always texts, `pathlib.Path` is always a file.
"""

import datetime
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import Any, TypeAlias

from engine.errors import DocumentError, IndexMismatch, QueryError
from engine.readers import Unreadable, is_readable, jsonl, read_file
from engine.readers.fields import Fields
from engine.text.document import Document, text_id, text_title
from engine.text.segmentation import divide
from indexer.building.corpus import FileIds, list_corpus, read_corpus, with_prefix

_IDS = ("_id", "id")
_METADATA = ("metadata", "meta")
_RESERVED = frozenset({"_id", "id", "title", "text", "sections", *_METADATA})


def check_fields(names: list[str], columns: Fields) -> None:
    """Refuse a record or a table that lacks a needed field.

    Raises:
        DocumentError: one is missing; the message has the argument that names it.
    """
    if columns.text is None and not {"text", "sections"} & set(names):
        raise DocumentError(f"no field 'text' among {names}; name the one that holds the text: text='{_guess(names)}'")
    for argument, name in (("text", columns.text), ("id", columns.id), ("title", columns.title)):
        if name is not None and name not in names:
            raise DocumentError(f"no field {name!r} among {names}; change {argument}={name!r}")


def whole_document(document: Document) -> Document:
    """A document with sections: unchanged if it has some, otherwise divided like a text without headings."""
    return document if document.sections else replace(document, sections=divide(document.text))


def record_document(record: Mapping[Any, Any], columns: Fields) -> Document:
    """A dict as a document.

    Raises:
        DocumentError: a field is missing or has another type, or there is no text.
    """
    fields = {str(key): value for key, value in record.items()}
    check_fields(list(fields), columns)
    doc_id = _id(fields, columns)
    try:
        # Through the JSON reader, so that a dict is read like a line of a file.
        line = json.dumps(_as_json(fields, columns)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise DocumentError(f"the record cannot be stored ({error}); give texts, numbers, True or False") from error
    document = jsonl.read_one(line, doc_id or "", "")
    has_title = document.title != (doc_id or "")
    return replace(
        document,
        doc_id=text_id(document.title, document.text) if doc_id is None else doc_id,
        title=document.title if has_title else text_title(document.text),
    )


def _as_json(fields: Mapping[str, Any], columns: Fields) -> dict[str, Any]:
    used = {columns.text, columns.id, columns.title}
    record = {key: _plain(value) for key, value in fields.items() if _is_metadata(key, value) and key not in used}
    record["title"] = _plain(fields.get(columns.title or "title"))
    record["metadata"] = _plain(next((fields[key] for key in _METADATA if key in fields), None))
    if columns.text is None and fields.get("sections"):
        return record | {"sections": _plain(fields["sections"])}
    name = columns.text or "text"
    text = _plain(fields.get(name))
    if text is None:
        raise DocumentError(f"the field {name!r} is empty; leave the record out")
    return record | {"text": text}


def record_id(record: Mapping[Any, Any], columns: Fields) -> str | None:
    """The id of a record as a text; None if the record has no usable id."""
    try:
        return _id(record, columns)
    except DocumentError:
        return None


def is_missing(value: object) -> bool:
    """Whether a value is None, or a missing value of a table: NaN, NA or NaT."""
    return _plain(value) is None


def _id(fields: Mapping[Any, Any], columns: Fields) -> str | None:
    name = columns.id or next((key for key in _IDS if not is_missing(fields.get(key))), None)
    if name is None:
        return None
    value = _plain(fields.get(name))
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
        raise DocumentError(f"the id in {name!r} is {value!r:.40}; give a text or a number")
    return str(value)


def _is_metadata(key: str, value: object) -> bool:
    """Whether a field without another role is metadata: a scalar or a list of strings, no vectors, no objects."""
    if key in _RESERVED:
        return False
    if isinstance(value, list | tuple):
        return all(isinstance(item, str) for item in value)
    if getattr(value, "ndim", 0):  # a numpy array; of objects if a table holds lists of strings
        dtype = getattr(value, "dtype", None)
        return getattr(dtype, "kind", "") in "OU" and all(isinstance(value, str) for value in _plain(value))
    return isinstance(_plain(value), str | int | float)


def _plain(value: object) -> Any:  # noqa: ANN401
    """A value that JSON can hold: numpy as plain Python, dates in ISO format, None for a missing value."""
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        return value if value == value else None
    if type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return None
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    to_python = getattr(value, "tolist", None)  # of numpy
    return _plain(to_python()) if to_python is not None else value


def _guess(names: list[str]) -> str:
    """The name that most likely holds the text."""
    usual = ("body", "content", "contents", "abstract", "document", "article", "passage", "txt")
    likely = [name for name in names if name.lower() in usual or "text" in name.lower()]
    return next(iter(likely or [name for name in names if name not in _RESERVED] or ["COLUMN"]))


_MOST_CHARS = 1_024  # longer strings are texts
_BEGINNINGS = ("/", "./", "../", "~/")


def named_path(string: str, *, is_folder_named: bool = False) -> Path | None:
    """The path that a string names, whether it exists or not; None for a text.

    The name of an existing folder is a path if it holds "/", or with `is_folder_named`.
    """
    if not string or len(string) > _MOST_CHARS or not string.isprintable():
        return None
    path = Path(string)
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except OSError:  # the system refuses the string: a line of 300 characters is too long for a name
        is_file = is_folder = False
    if is_file and (path.suffix or "/" in string):
        return path
    if is_folder and (is_folder_named or "/" in string):
        return path
    looks_like_name = is_readable(PurePath(string)) or string.startswith(_BEGINNINGS)
    return path if looks_like_name and not any(map(str.isspace, string)) else None


Item: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | Document
Source: TypeAlias = Item | Iterable[Any]  # a table of pandas, Polars, Arrow or datasets is an iterable too

Where: TypeAlias = str | Mapping[str, Any]

_ITEMS = "a text, a path, a dict or a Document"


@dataclass(slots=True)
class Stream:
    """Documents to index, read on demand."""

    documents: Iterator[Document | Unreadable]
    n_expected: int | None = None  # None if not known
    n_repeated: int = 0  # repeated texts and dicts without id, which are left out
    replace_files: bool = False  # whether a file replaces another existing file with the same doc_id


def read_source(source: object, columns: Fields, ids: FileIds | None = None) -> Stream:
    """Read the first document of a source, so that an unusable source is refused before anything is written.

    Args:
        ids: settings of the doc_ids of files; the prefix is put in front of the doc_ids of other documents too.

    Raises:
        DocumentError: the type of the source is not supported, a path does not exist, or a field is missing.
    """
    stream, ids = Stream(iter(())), ids or FileIds()
    if is_table(source):
        if (names := table_columns(source)) is not None:
            check_fields(names, columns)
        documents = with_prefix(ids.prefix, _items(table_rows(source), columns, stream))
    elif (paths := _paths(source)) is not None:
        files = list_corpus(paths, columns)
        stream.n_expected = files.n_documents
        documents = read_corpus(files, ids=ids)
    else:
        documents = with_prefix(ids.prefix, _items(_listed(source), columns, stream))
    if stream.n_expected is None and isinstance(source, Sized) and not isinstance(source, str | Mapping):
        stream.n_expected = len(source)
    first = next(documents, None)
    stream.documents = iter(()) if first is None else chain([first], documents)
    return stream


def _paths(source: object) -> list[str] | None:
    """The paths of a source that consists of paths alone; None for any other source."""
    if isinstance(source, os.PathLike):
        return [os.fspath(source)]
    if isinstance(source, str):
        if named_path(source, is_folder_named=True) is None and not any(sign in source for sign in "*?["):
            raise DocumentError(f"{source!r:.80} does not exist; to index texts, pass a list of them")
        return [source]
    if isinstance(source, list | tuple) and source:
        paths = [_path(item) for item in source]
        files = [path for path in paths if path is not None]
        return files if len(files) == len(paths) else None
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


def _items(items: Iterable[object], columns: Fields, stream: Stream) -> Iterator[Document | Unreadable]:
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


def _documents(item: object, number: int, columns: Fields) -> Iterator[Document | Unreadable]:
    if isinstance(item, Document):
        yield whole_document(item)
    elif isinstance(item, Mapping):
        if number == 0:
            check_fields([str(key) for key in item], columns)
        yield _readable(lambda: record_document(item, columns), number, record_id(item, columns))
    elif (path := _path(item)) is not None:
        yield from read_corpus(list_corpus([path], columns))
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


def _is_unnamed(item: object, columns: Fields) -> bool:
    return isinstance(item, str) or (isinstance(item, Mapping) and record_id(item, columns) is None)


_SPLITS = ("DatasetDict", "IterableDatasetDict")


def is_table(source: object) -> bool:
    """Whether a source has rows and columns: a `DataFrame`, an Arrow table or stream of batches, a `Dataset`."""
    library = _library(source)
    if library == "pandas":
        return hasattr(source, "itertuples")
    if library == "polars":
        return hasattr(source, "iter_rows") or hasattr(source, "collect")
    if library == "pyarrow":
        return hasattr(source, "schema")
    return library == "datasets"


def table_columns(table: Any) -> list[str] | None:  # noqa: ANN401
    """The names of the columns; None if the table does not know them before it is read.

    Raises:
        DocumentError: the source is several tables, or a lazy table.
    """
    if type(table).__name__ in _SPLITS:
        raise DocumentError(f"the dataset has splits {list(table)}; choose one: dataset[{next(iter(table), '')!r}]")
    if not hasattr(table, "iter_rows") and _library(table) == "polars":
        raise DocumentError("the table is not computed yet; pass table.collect()")
    match _library(table):
        case "pyarrow":
            return list(table.schema.names)
        case "datasets":
            return None if table.column_names is None else list(table.column_names)
        case _:
            return [str(name) for name in table.columns]


def table_rows(table: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401
    """The rows one after another, each a dict by column."""
    match _library(table):
        case "pandas":
            names = [str(name) for name in table.columns]
            for row in table.itertuples(index=False, name=None):
                yield dict(zip(names, row, strict=True))
        case "polars":
            yield from table.iter_rows(named=True)
        case "pyarrow":
            for batch in _batches(table):
                yield from batch.to_pylist()
        case _:
            yield from table


def _batches(table: Any) -> Iterable[Any]:  # noqa: ANN401
    """Batches of an Arrow table, dataset, batch or stream of batches."""
    if hasattr(table, "to_batches"):
        return table.to_batches()  # type: ignore[no-any-return]
    return [table] if hasattr(table, "to_pylist") else table


def _library(source: object) -> str | None:
    """The library that defines the class of a value or one of its base classes; None for other libraries."""
    for base in type(source).__mro__:
        library = base.__module__.partition(".")[0]
        if library in ("pandas", "polars", "pyarrow", "datasets"):
            return library
    return None


def index_path(path: object) -> Path:
    """The folder of an index as a `Path`.

    Raises:
        IndexMismatch: the value is not a path.
    """
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise IndexMismatch(f"{path!r:.60} is not a path of an index; pass the folder first, for example 'papers.lm'")
    return Path(path)


def query_document(query: object) -> Document:
    """Convert a query to a document; see `longmatch.sources` for strings.

    Raises:
        DocumentError: there is no text, or the file cannot be read or does not hold exactly one document.
        QueryError: the named file does not exist or is a folder, or the query has another type.
    """
    if isinstance(query, Document):
        return whole_document(query)
    if isinstance(query, Mapping):
        if not {"text", "sections"} & set(query):
            raise DocumentError(f"no field 'text' among {list(query)}; rename the one that holds the text of the query")
        return record_document(query, Fields())
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
            f"{path} names a file, and {path.absolute()} does not exist; correct the path, search with a document of "
            f"an index: search_id({str(path)!r}), or with the name as a text: Document.from_text({str(path)!r})"
        )
    records = list(islice(read_file(path), 2))
    if len(records) != 1:
        count = "no document" if not records else "several documents"
        raise DocumentError(f"{path} holds {count}, not one; pass one record of it as a dict, or a list of them")
    if isinstance(records[0], Unreadable):
        raise DocumentError(f"{path}: {records[0].reason}")
    return records[0]
