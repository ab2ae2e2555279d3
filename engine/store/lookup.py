"""Documents, metadata fields and named values of an index, read from its catalogs while another process may write.

A catalog is opened for each statement, so that no reader keeps a writer from closing it, and any thread
can call these functions. In a partitioned index, all partitions are looked up.
"""

from __future__ import annotations

import difflib
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import QueryError, named_faults
from engine.store.catalog import (
    CATALOG_FILE,
    execute_in,
    has_table,
    index_folders,
    is_partitioned,
    read_manifest,
    reading,
)
from engine.store.checks import read_meta
from engine.store.snapshot import Documents
from engine.store.where import compared_keys, json_path
from engine.text.document import Scalar


def catalogs(folder: Path) -> Iterator[sqlite3.Connection]:
    """The catalog of an index, or of each of its partitions; each is open until the next one is requested."""
    for part in index_folders(folder):
        with reading(part / CATALOG_FILE) as connection:
            yield connection


def stored_hashes(folder: Path, doc_ids: Sequence[str]) -> dict[str, str]:
    """The content hashes of the given documents, by name, without those that are not committed now."""
    statement = "SELECT doc_id, content_hash FROM documents WHERE doc_id IN ({marks})"
    return {name: digest for catalog in catalogs(folder) for name, digest in execute_in(catalog, statement, doc_ids)}


def stored_sources(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and source of all documents that are committed now."""
    for catalog in catalogs(folder):
        if has_table(catalog, "documents"):
            yield from catalog.execute("SELECT doc_id, source FROM documents")


def stored_failures(folder: Path) -> list[tuple[str, str]]:
    """Source and doc_id of the documents that could not be indexed, by source; doc_id "" if unknown."""
    failures: list[tuple[str, str]] = []
    for catalog in catalogs(folder):
        if has_table(catalog, "failures"):
            failures += catalog.execute("SELECT source, doc_id FROM failures")
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
    with reading(folder / CATALOG_FILE) as connection:
        return read_meta(connection, str(folder / CATALOG_FILE)) if has_table(connection, "meta") else {}


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
    return [_field(folder, name, kinds) for name, kinds in stored_types(folder).items()]


def stored_values(folder: Path, name: str, *, containing: str = "", limit: int = 20) -> list[tuple[Scalar, int]]:
    """The values of a metadata field with the number of documents of each, most common first."""
    statement = """
        SELECT value, type, count(DISTINCT documents.id) AS n_documents FROM documents, json_each(metadata, ?)
        WHERE type NOT IN ('null', 'object', 'array')
            AND instr(lower(iif(type IN ('true', 'false'), type, CAST(value AS TEXT))), ?) > 0
        GROUP BY value, type ORDER BY n_documents DESC, value LIMIT ?"""
    folders = index_folders(folder)
    # SQLite limits the list of a single catalog; partitions are added up first.
    added: Counter[tuple[Scalar, str]] = Counter()
    bound = [json_path(name), containing.lower(), limit if len(folders) == 1 else -1]
    for catalog in catalogs(folder):
        for value, kind, count in catalog.execute(statement, bound):
            added[value, kind] += count
    found = sorted(added.items(), key=lambda entry: (-entry[1], isinstance(entry[0][0], str), entry[0][0]))[:limit]
    return [(kind == "true" if kind in ("true", "false") else value, count) for (value, kind), count in found]


def check_fields(snapshot: Documents, where: str) -> None:
    """Check that each field that a filter compares with a value is in some document of an index.

    A field that is only tested with `exists` may be absent, and an index without documents has no fields.

    Raises:
        QueryError: no document has one of the fields, or the filter does not parse.
    """
    for key in compared_keys(where):
        if not snapshot.has_field(key):
            names = snapshot.field_names()
            if names or snapshot.n_documents:
                raise QueryError(f"filter {where!r}: no document has the field {key!r}; {_known(key, names)}")


def stored_types(folder: Path) -> dict[str, dict[str, int]]:
    """The fields of all documents, by name, with the number of documents of each JSON type, as SQLite names them."""
    statement = """
        SELECT key, type, count(*) FROM documents, json_each(metadata) WHERE type != 'null' GROUP BY key, type"""
    counts: dict[str, Counter[str]] = {}
    for catalog in catalogs(folder):
        for name, kind, n_documents in catalog.execute(statement):
            counts.setdefault(name, Counter())[kind] += n_documents
    return {name: dict(sorted(counts[name].items())) for name in sorted(counts)}


def _field(folder: Path, name: str, kinds: dict[str, int]) -> Field:
    types = tuple(dict.fromkeys(_TYPES[kind] for kind in kinds))
    # A list has one row for each element, any other value one row.
    values = "FROM documents, json_each(metadata, ?) WHERE type != 'null'"
    path = [json_path(name)]
    found: Iterable[Scalar]
    if types == ("number",):
        bounds = [
            catalog.execute(f"SELECT min(value), max(value) {values}", path).fetchone() for catalog in catalogs(folder)
        ]
        ends = [end for pair in bounds for end in pair if end is not None]
        found = dict.fromkeys((min(ends), max(ends)))
    elif types == ("true or false",):
        found = [kind == "true" for kind in kinds]
    else:
        commonest = f"SELECT value, count(*) AS n {values} GROUP BY value ORDER BY n DESC, value LIMIT {N_EXAMPLES}"
        counts: Counter[Scalar] = Counter()
        for catalog in catalogs(folder):  # only the most common values of each partition are added up
            counts.update(dict(catalog.execute(commonest, path)))
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
