"""Documents, metadata fields and named values of an index, read from its catalogs while another process may write.

A catalog is opened for each statement, so that no reader keeps a writer from closing it, and any thread
can call these functions. In a partitioned index, all partitions are looked up.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Connection, String, case, cast, func, inspect, select

from engine.errors import QueryError, named_faults
from engine.store.catalog import CATALOG_FILE, DocumentRow, FailureRow, MetaRow, connect
from engine.store.checks import read_meta
from engine.store.manifest import index_folders, is_partitioned, read_manifest
from engine.store.where import compared_keys, has_key, json_path
from engine.text.document import Scalar


@contextmanager
def _catalog(folder: Path) -> Iterator[Connection]:
    engine = connect(folder / CATALOG_FILE, read_only=True)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def catalogs(folder: Path) -> Iterator[Connection]:
    """The catalog of an index, or of each of its partitions; each is open until the next one is requested."""
    for part in index_folders(folder):
        with _catalog(part) as connection:
            yield connection


def stored_hashes(folder: Path, doc_ids: Sequence[str]) -> dict[str, str]:
    """The content hashes of the given documents, by name, without those that are not committed now.

    Args:
        doc_ids: at most 30,000 names.
    """
    columns = select(DocumentRow.doc_id, DocumentRow.content_hash).where(DocumentRow.doc_id.in_(doc_ids))
    return {row.doc_id: row.content_hash for catalog in catalogs(folder) for row in catalog.execute(columns)}


def stored_sources(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and source of all documents that are committed now."""
    for connection in catalogs(folder):
        if inspect(connection).has_table(DocumentRow.__tablename__):
            for row in connection.execute(select(DocumentRow.doc_id, DocumentRow.source)):
                yield row.doc_id, row.source


def stored_failures(folder: Path) -> list[tuple[str, str]]:
    """Source and doc_id of the documents that could not be indexed, by source; doc_id "" if unknown."""
    failures: list[tuple[str, str]] = []
    for catalog in catalogs(folder):
        if inspect(catalog).has_table(FailureRow.__tablename__):
            failures.extend((row.source, row.doc_id) for row in catalog.execute(select(FailureRow.__table__)))
    return sorted(failures)


@named_faults
def stored_meta(folder: Path) -> dict[str, Any]:
    """The named values of an index; empty if there is none, or if it was begun and holds nothing.

    Raises:
        IndexMismatch: the index has a format that this program does not read.
        IndexDamaged: the values are not what was written.
    """
    if is_partitioned(folder):
        manifest = read_manifest(folder)
        first = stored_meta(index_folders(folder)[0])
        return first | {"language": manifest.language, **({"encoder": manifest.encoder} if manifest.encoder else {})}
    if not (folder / CATALOG_FILE).exists():
        return {}
    with _catalog(folder) as connection:
        has_values = inspect(connection).has_table(MetaRow.__tablename__)
        return read_meta(connection, str(folder / CATALOG_FILE)) if has_values else {}


N_EXAMPLES = 3
_N_NAMED = 8  # fields that an error lists
_TYPES = {
    "text": "text",
    "integer": "number",
    "real": "number",
    "true": "true or false",
    "false": "true or false",
    "array": "list",
    "object": "mapping",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A metadata field, as the documents of an index have it."""

    name: str
    types: tuple[str, ...]  # "text", "number", "true or false", "list", "mapping"; several where documents differ
    n_documents: int  # documents that have a value
    examples: tuple[Scalar, ...]  # the smallest and the largest number, or the most common values; at most 3


def stored_fields(folder: Path) -> list[Field]:
    """The metadata fields of an index by name; reads the metadata of all documents."""
    return [_field(folder, name, kinds) for name, kinds in _all_kinds(folder).items()]


def stored_types(folder: Path) -> dict[str, frozenset[str]]:
    """The metadata fields of an index by name, each with the JSON types of its values, as SQLite names them."""
    return {name: frozenset(kinds) for name, kinds in _all_kinds(folder).items()}


def stored_values(folder: Path, name: str, *, containing: str = "", limit: int = 20) -> list[tuple[Scalar, int]]:
    """The values of a metadata field with the number of documents of each, most common first."""
    element = func.json_each(DocumentRow.meta, json_path(name)).table_valued("value", "type", joins_implicitly=True)
    n_documents = func.count(DocumentRow.id.distinct())
    # SQLite returns true and false as 1 and 0.
    shown = case((element.c.type.in_(("true", "false")), element.c.type), else_=cast(element.c.value, String))
    counts = (
        select(element.c.value, element.c.type, n_documents)
        .select_from(DocumentRow, element)
        .where(element.c.type.not_in(("null", "object", "array")))
        .where(func.instr(func.lower(shown), containing.lower()) > 0)
        .group_by(element.c.value, element.c.type)
        .order_by(n_documents.desc(), element.c.value)
    )
    folders = index_folders(folder)
    # SQLite limits the list of a single catalog; partitions are added up first.
    added: Counter[tuple[Scalar, str]] = Counter()
    for catalog in catalogs(folder):
        for value, kind, count in catalog.execute(counts if len(folders) > 1 else counts.limit(limit)):
            added[value, kind] += count
    found = sorted(added.items(), key=lambda entry: (-entry[1], isinstance(entry[0][0], str), entry[0][0]))[:limit]
    return [(kind == "true" if kind in ("true", "false") else value, count) for (value, kind), count in found]


class Fields(Protocol):
    """Documents with metadata, for example a `Snapshot`."""

    @property
    def n_documents(self) -> int:
        """The number of documents."""

    def has_field(self, key: str) -> bool:
        """Whether a document has a value for a key."""

    def field_names(self) -> list[str]:
        """All fields, by name."""


def check_fields(index: Fields, where: str) -> None:
    """Check that each field that a filter compares with a value is in some document of the index.

    A field that is only tested with `exists` may be absent, and an index without documents has no fields.

    Raises:
        QueryError: no document has one of the fields, or the filter does not parse.
    """
    for key in compared_keys(where):
        if not index.has_field(key):
            names = index.field_names()
            if names or index.n_documents:
                raise QueryError(_unknown(where, key, names))


def has_field(folder: Path, key: str) -> bool:
    """Whether a document of an index that is committed now has a value for a key."""
    documents = select(DocumentRow.id).where(has_key(key)).limit(1)
    return any(catalog.execute(documents).first() is not None for catalog in catalogs(folder))


def field_names(folder: Path) -> list[str]:
    """The metadata fields of an index, by name; reads the metadata of all documents."""
    return list(_all_kinds(folder))


def _all_kinds(folder: Path) -> dict[str, dict[str, int]]:
    """For each field, by name, the documents that have a value of each JSON type, of all partitions."""
    counts: dict[str, Counter[str]] = {}
    for catalog in catalogs(folder):
        for name, kinds in _kinds(catalog).items():
            counts.setdefault(name, Counter()).update(kinds)
    return {name: dict(sorted(counts[name].items())) for name in sorted(counts)}


def _kinds(connection: Connection) -> dict[str, dict[str, int]]:
    """For each field, by name, the documents that have a value of each JSON type."""
    entry = func.json_each(DocumentRow.meta).table_valued("key", "type", joins_implicitly=True)
    counts = (
        select(entry.c.key, entry.c.type, func.count())
        .select_from(DocumentRow, entry)
        .where(entry.c.type != "null")
        .group_by(entry.c.key, entry.c.type)
        .order_by(entry.c.key, entry.c.type)
    )
    kinds: dict[str, dict[str, int]] = {}
    for name, kind, n_documents in connection.execute(counts):
        kinds.setdefault(name, {})[kind] = n_documents
    return kinds


def _field(folder: Path, name: str, kinds: dict[str, int]) -> Field:
    types = tuple(dict.fromkeys(_TYPES[kind] for kind in kinds))
    # A list has one row for each element, any other value one row.
    element = func.json_each(DocumentRow.meta, json_path(name)).table_valued("value", "type", joins_implicitly=True)
    values = select(element.c.value).select_from(DocumentRow, element).where(element.c.type != "null")
    found: Iterable[Scalar]
    if types == ("number",):
        bounds = values.with_only_columns(func.min(element.c.value), func.max(element.c.value))
        ends = [end for catalog in catalogs(folder) for end in catalog.execute(bounds).one() if end is not None]
        found = dict.fromkeys((min(ends), max(ends)))
    elif types == ("true or false",):
        found = [kind == "true" for kind in kinds]
    else:
        count = func.count()
        commonest = values.add_columns(count).group_by(element.c.value).order_by(count.desc(), element.c.value)
        counts: Counter[Scalar] = Counter()
        for catalog in catalogs(folder):  # only the most common values of each partition are added up
            counts.update({value: number for value, number in catalog.execute(commonest.limit(N_EXAMPLES))})
        found = sorted(counts, key=lambda value: (-counts[value], isinstance(value, str), value))[:N_EXAMPLES]
    return Field(name, types, sum(kinds.values()), tuple(found))


def check_field(folder: Path, name: str) -> None:
    """Check that some document of the index has a metadata field.

    Raises:
        QueryError: no document has the field.
    """
    names = list(stored_types(folder))
    if name not in names:
        raise QueryError(f"no document has the field {name!r}; {_known(name, names)}")


def _unknown(where: str, key: str, names: list[str]) -> str:
    return f"filter {where!r}: no document has the field {key!r}; {_known(key, names)}"


def _known(key: str, names: list[str]) -> str:
    """A hint with similar names, and the existing names."""
    similar = difflib.get_close_matches(key, names, n=2) or [name for name in names if name.lower() == key.lower()]
    hint = f"did you mean {' or '.join(map(repr, similar))}? " if similar else ""
    if not names:
        known = "the documents have no metadata; filter by doc_id, title or source"
    else:
        more = f" and {len(names) - _N_NAMED} more" if len(names) > _N_NAMED else ""
        known = f"there are {', '.join(names[:_N_NAMED])}{more}; list them: longmatch show INDEX --fields"
    return hint + known
