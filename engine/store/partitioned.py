"""The snapshot of a partitioned index, and what is read from catalogs while another process may write.

Documents are addressed by position as in any snapshot, so code that reads documents works on both. Generations and
postings belong to one partition, and are reached through `parts`.

A look-up opens a catalog for each statement, so that no reader keeps a writer from closing it, and any thread can call
it. In a partitioned index, all partitions are looked up.

Letters in shapes: N documents of all partitions, P partitions, R requested documents.
"""

from __future__ import annotations

import difflib
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexMismatch, QueryError, named_faults
from engine.store.catalog import (
    CATALOG_FILE,
    Manifest,
    execute_in,
    has_table,
    index_folders,
    is_partitioned,
    partition_folders,
    read_manifest,
    reading,
)
from engine.store.checks import read_meta, stored_documents
from engine.store.gathering import LOCATION_COLUMNS, Locations
from engine.store.shards import Shard, ShardSet
from engine.store.snapshot import OPENINGS, Documents, IndexSnapshot, Positions
from engine.store.where import compared_values, json_path
from engine.text.document import Document, Scalar
from engine.words.counts import PackedWords


def open_snapshot(folder: Path) -> Snapshot:
    """Open and pin an index, partitioned or not; errors as in `IndexSnapshot`."""
    return PartitionedSnapshot(folder) if is_partitioned(folder) else IndexSnapshot(folder)


class PartitionedSnapshot(Documents):
    """All partitions of an index and its reference, as they were when opened."""

    _parts: Sequence[IndexSnapshot]

    def __init__(self, folder: Path) -> None:
        """Open and pin all partitions."""
        self.folder = folder
        self._open_parts(read_manifest(folder))
        for _ in range(OPENINGS - 1):
            if self.reference_row is None or self._reference_file is not None:
                break  # else a writer may have replaced the file after the manifest was read
            self.close()
            self._open_parts(read_manifest(folder))

    def _open_parts(self, manifest: Manifest) -> None:
        """Open the partitions and the reference that a manifest names."""
        self._manifest = manifest
        with ExitStack() as opening:
            paths = partition_folders(self.folder, manifest)
            self._parts = tuple(opening.enter_context(IndexSnapshot(path)) for path in paths)
            for number, part in enumerate(self._parts):
                check_partition(part.meta, part.folder, number, manifest)
            self._opened = opening.pop_all()
        self.meta: dict[str, Any] = {**self._parts[0].meta, "encoder": manifest.encoder, "language": manifest.language}
        self.meta["partial_reference"] = manifest.has_partial_reference
        del self.meta["partition"]
        self.width = int(manifest.encoder["width"]) if manifest.encoder is not None else 0
        self.reference_row = manifest.reference
        self._map_reference()
        self._shards = _JoinedShards([part._shards for part in self._parts])

    @cached_property
    def locations(self) -> Locations:
        """The parts of all partitions, one after another."""
        parts = [part.locations for part in self._parts]
        columns = {name: np.concatenate([getattr(locations, name) for locations in parts]) for name in LOCATION_COLUMNS}
        sizes = [len(locations) for locations in parts]
        columns["shard"] = columns["shard"] * len(parts) + np.repeat(np.arange(len(parts)), sizes)
        return Locations(**columns)

    def is_newest(self) -> bool:
        """See `IndexSnapshot.is_newest`; compares all partitions, and the manifest."""
        return read_manifest(self.folder) == self._manifest and all(part.is_newest() for part in self._parts)

    def close(self) -> None:
        """Close the catalogs."""
        self._opened.close()

    @property
    def parts(self) -> Sequence[IndexSnapshot]:
        """See `Documents.parts`."""
        return self._parts

    def with_vectors(self, positions: Positions, encoded: Sequence[EncodedDocument]) -> Self:
        """See `IndexSnapshot.with_vectors`."""
        other = copy(self)
        parts = list(self._parts)
        for number, places, positions_in_part in self.split(positions):
            of_part = [encoded[place] for place in places.tolist()]
            parts[number] = parts[number].with_vectors(positions_in_part, of_part)
        other._parts = tuple(parts)
        other._shards = _JoinedShards([part._shards for part in parts])
        for derived in ("locations", "document_vectors"):
            other.__dict__.pop(derived, None)
        return other


Snapshot: TypeAlias = IndexSnapshot | PartitionedSnapshot


class _JoinedShards(ShardSet):
    """The shards of P partitions; shard n of partition p has number n P + p."""

    def __init__(self, parts: Sequence[ShardSet]) -> None:
        self._sets = parts

    def _own(self, number: int) -> tuple[ShardSet, int]:
        return self._sets[number % len(self._sets)], number // len(self._sets)

    def __getitem__(self, number: int) -> Shard:
        shards, number_in_set = self._own(number)
        return shards[number_in_set]

    def words(self, number: int, *, apart: bool = False) -> PackedWords:
        shards, number_in_set = self._own(number)
        return shards.words(number_in_set, apart=apart)

    def part(self, number: int, name: str) -> NDArray[Any]:
        shards, number_in_set = self._own(number)
        return shards.part(number_in_set, name)


def check_partition(meta: Mapping[str, Any], where: object, number: int, manifest: Manifest) -> None:
    """Check that an index is the partition of a manifest with a given number."""
    n_partitions = len(manifest.partitions)
    recorded, expected = meta.get("partition"), {"number": number, "of": n_partitions}
    if recorded != expected:
        raise IndexMismatch(
            f"{where} is {_name(recorded)}, not {_name(expected)}; put the right folder there, or restore a copy"
        )
    fingerprint, of_manifest = _fingerprint(meta.get("encoder")), _fingerprint(manifest.encoder)
    language = meta.get("language")
    # A run binds the partitions before the manifest. If it was killed in between, only the partitions have an encoder.
    if (manifest.encoder is not None and fingerprint != of_manifest) or language != manifest.language:
        raise IndexMismatch(
            f"{where} has encoder {fingerprint[:12]} and language {language!r}, the manifest {of_manifest[:12]} and "
            f"{manifest.language!r}; put the right folder there, or restore a copy"
        )


def _name(partition: Any) -> str:  # noqa: ANN401
    return f"partition {partition['number']} of {partition['of']}" if partition else "no partition"


def _fingerprint(encoder: Mapping[str, Any] | None) -> str:
    return "none" if encoder is None else str(encoder["fingerprint"])


def index_facts(snapshot: Snapshot) -> dict[str, Any]:
    """The values that `longmatch show --json` prints."""
    rows = [(part, part.generation_row) for part in snapshot.parts]
    generations = [None if row is None else {**row._asdict(), "is_exact": bool(row.is_exact)} for _, row in rows]
    n_fresh = sum(int(part.is_fresh(row.through_chunk if row is not None else 0).sum()) for part, row in rows)
    return {
        **snapshot.totals(),
        "encoder": snapshot.meta.get("encoder"),
        "language": snapshot.language,
        "reference": None if snapshot.reference_row is None else asdict(snapshot.reference_row),
        "generation": generations[0] if len(rows) == 1 else None,
        "fresh_documents": n_fresh,
        **({} if len(rows) == 1 else {"partitions": _partitions(snapshot.parts, generations)}),
        "format": snapshot.meta["format"],
    }


def _partitions(parts: Sequence[IndexSnapshot], generations: Sequence[dict[str, Any] | None]) -> list[dict[str, Any]]:
    return [
        {"folder": part.folder.name, "documents": part.n_documents, "chunks": part.n_chunks, "generation": generation}
        for part, generation in zip(parts, generations, strict=True)
    ]


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


def stored_with_field(folder: Path, name: str) -> Iterator[Document]:
    """The documents that are committed now and have a metadata field, each loaded when it is requested."""
    for catalog in catalogs(folder):
        if has_table(catalog, "documents"):
            statement = "SELECT id FROM documents WHERE json_extract(metadata, ?) IS NOT NULL"
            for (number,) in catalog.execute(statement, [json_path(name)]).fetchall():
                yield from (document for document, _ in stored_documents(catalog, [number]))


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
_N_NAMED = 40  # fields that an error lists
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
    commonest = sorted(added.items(), key=lambda entry: (-entry[1], isinstance(entry[0][0], str), entry[0][0]))[:limit]
    return [(kind == "true" if kind in ("true", "false") else value, count) for (value, kind), count in commonest]


def check_fields(snapshot: Documents, where: str) -> None:
    """Check that each field that a filter compares is in some document, with a value that compares with its own.

    A field that is only tested with `exists` may be absent, and an index without documents has no fields.
    """
    for key, values in compared_values(where):
        if snapshot.has_field(key, values):
            continue
        if values and snapshot.has_field(key):
            kind = "text" if isinstance(values[0], str) else "number"
            example = snapshot.example(key)
            raise QueryError(
                f"filter {where!r}: no value of {key!r} is a {kind}, as {values[0]!r} is; take one such as {example}"
            )
        check_key(snapshot, key, f"filter {where!r}: ")


def check_key(snapshot: Documents, key: str, place: str = "") -> None:
    """Check that some document of an index has a metadata field; an index without documents has no fields."""
    if not snapshot.has_field(key) and (snapshot.n_documents or snapshot.field_names()):
        raise QueryError(f"{place}no document has the field {key!r}; {_known(key, snapshot.field_names())}")


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
    examples: Iterable[Scalar]
    if types == ("number",):
        bounds = [
            catalog.execute(f"SELECT min(value), max(value) {values}", path).fetchone() for catalog in catalogs(folder)
        ]
        ends = [end for pair in bounds for end in pair if end is not None]
        examples = dict.fromkeys((min(ends), max(ends)))
    elif types == ("true or false",):
        examples = [kind == "true" for kind in kinds]
    else:
        commonest = f"SELECT value, count(*) AS n {values} GROUP BY value ORDER BY n DESC, value LIMIT {N_EXAMPLES}"
        counts: Counter[Scalar] = Counter()
        for catalog in catalogs(folder):  # only the most common values of each partition are added up
            counts.update(dict(catalog.execute(commonest, path)))
        examples = sorted(counts, key=lambda value: (-counts[value], isinstance(value, str), value))[:N_EXAMPLES]
    return Field(name, types, sum(kinds.values()), tuple(examples))


def _known(key: str, names: list[str]) -> str:
    """A hint with similar names, and the existing names."""
    similar = difflib.get_close_matches(key, names, n=2) or [name for name in names if name.lower() == key.lower()]
    hint = f"did you mean {' or '.join(map(repr, similar))}? " if similar else ""
    if not names:
        known = "the documents have no metadata; filter by doc_id, title or source"
    else:
        more = f" and {len(names) - _N_NAMED} more" if len(names) > _N_NAMED else ""
        known = f"there are {', '.join(names[:_N_NAMED])}{more}"
    return hint + known
