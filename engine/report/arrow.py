"""Documents, sections and vectors as Arrow tables, and as Parquet files.

Needs pyarrow, an extra. It is imported by functions that first check that pyarrow is installed.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine.errors import IndexMismatch, QueryError, command_line
from engine.report.contract import place_of
from engine.report.lines import counted
from engine.store.checks import content_hash
from engine.store.partitioned import Snapshot, stored_types
from engine.store.snapshot import Positions
from engine.text.section_kinds import section_kinds

What: TypeAlias = Literal["documents", "sections", "vectors"]
_AT_ONCE = 200  # documents of one batch
_TYPES = (  # Arrow types of metadata columns, by the JSON types of their values as SQLite names them
    ({"text"}, pa.string()),
    ({"integer"}, pa.int64()),
    ({"integer", "real"}, pa.float64()),
    ({"true", "false"}, pa.bool_()),
)
_PLACE = [("start", pa.int64()), ("end", pa.int64()), ("page", pa.int64()), ("last_page", pa.int64())]
_DOCUMENTS = [
    ("doc_id", pa.string()),
    ("title", pa.string()),
    ("source", pa.string()),
    ("text", pa.large_string()),
    ("content", pa.string()),
    ("n_sections", pa.int64()),
    ("n_chunks", pa.int64()),
    ("tokens_read", pa.int64()),
    ("tokens_total", pa.int64()),
    ("pages", pa.list_(pa.int64())),
    ("metadata", pa.string()),
]
_SECTIONS = [
    ("doc_id", pa.string()),
    ("section", pa.int64()),
    ("heading", pa.string()),
    ("path", pa.list_(pa.string())),
    ("kind", pa.string()),
    *_PLACE,
    ("text", pa.large_string()),
]


@dataclass(frozen=True, slots=True)
class Export:
    """A table that is built batch by batch; only one batch is in memory."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def write(self, file: BinaryIO) -> int:
        """Write the table as Parquet; returns the number of rows."""
        n_rows = 0
        with pq.ParquetWriter(file, self.schema) as writer:
            for batch in self.batches:
                writer.write_batch(batch)
                n_rows += batch.num_rows
        return n_rows

    def table(self) -> pa.Table:
        """The whole table in memory."""
        return pa.Table.from_batches(self.batches, self.schema)


def index_export(snapshot: Snapshot, what: What, positions: Positions | None = None) -> Export:
    """A table of an index, in the order in which documents were indexed.

    - `documents`: a row for each document with its text. `metadata` is JSON, and a metadata field whose values are
      of one type is also a column, unless a column already has its name.
    - `sections`: a row for each section with its text, place and kind.
    - `vectors`: a row for each vector, float32: `level` is document, section or chunk. Documents without vectors have
      no rows.
    """
    chosen = np.arange(snapshot.n_documents) if positions is None else positions
    match what:
        case "documents":
            taken = {name for name, _ in _DOCUMENTS}
            columns = {
                name: next((column for kinds, column in _TYPES if counts.keys() <= kinds), None)
                for name, counts in stored_types(snapshot.folder).items()
                if name not in taken
            }
            fields = {name: column for name, column in columns.items() if column is not None}
            schema = pa.schema([*_DOCUMENTS, *fields.items()])
            rows: Callable[[Positions], list[dict[str, Any]]] = partial(_documents, snapshot, fields)
        case "sections":
            schema, rows = pa.schema(_SECTIONS), partial(_sections, snapshot)
        case "vectors":
            return _vectors(snapshot, chosen)
        case _:
            raise QueryError(f"there is no table {what!r}; export documents, sections or vectors")
    blocks = (rows(chosen[first : first + _AT_ONCE]) for first in range(0, len(chosen), _AT_ONCE))
    return Export(schema, (pa.RecordBatch.from_pylist(block, schema) for block in blocks))


def _documents(snapshot: Snapshot, fields: Mapping[str, pa.DataType], positions: Positions) -> list[dict[str, Any]]:
    n_chunks = snapshot.locations.n_chunks[positions].tolist()
    return [
        {
            "doc_id": document.doc_id,
            "title": document.title,
            "source": document.source,
            "text": document.text,
            "content": content_hash(document),
            "n_sections": len(document.sections),
            "n_chunks": n,
            "tokens_read": coverage.tokens_read,
            "tokens_total": coverage.tokens_total,
            "pages": list(document.pages),
            "metadata": json.dumps(dict(document.metadata), ensure_ascii=False),
            **{name: document.metadata.get(name) for name in fields},
        }
        for n, (document, coverage) in zip(n_chunks, snapshot.documents(positions), strict=True)
    ]


def _sections(snapshot: Snapshot, positions: Positions) -> list[dict[str, Any]]:
    return [
        {
            "doc_id": document.doc_id,
            "section": number,
            "heading": section.heading,
            "path": list(section.path),
            "kind": kind.value,
            **place_of(document, section.span),
            "text": document.text[section.start : section.stop],
        }
        for document, _ in snapshot.documents(positions)
        for number, (section, kind) in enumerate(zip(document.sections, section_kinds(document), strict=True))
    ]


def _vectors(snapshot: Snapshot, positions: Positions) -> Export:
    if not snapshot.width:
        raise IndexMismatch(
            f"{snapshot.folder} holds words alone and no vectors; add them: {command_line('index', snapshot.folder)}"
        )
    schema = pa.schema(
        [
            ("doc_id", pa.string()),
            ("level", pa.string()),
            ("section", pa.int64()),
            ("chunk", pa.int64()),
            ("start", pa.int64()),
            ("end", pa.int64()),
            ("n_tokens", pa.int64()),
            ("vector", pa.list_(pa.float32(), snapshot.width)),
        ]
    )
    encoded = positions[snapshot.has_vectors[positions]]
    if len(positions) and not len(encoded):
        what = f"{counted(len(positions), 'document')} of {snapshot.folder} without vectors"
        raise IndexMismatch(f"{what}; encode all: {command_line('index', snapshot.folder)}")
    return Export(schema, (_vectors_of(snapshot, position, schema) for position in encoded.tolist()))


def _vectors_of(snapshot: Snapshot, position: int, schema: pa.Schema) -> pa.RecordBatch:
    """The vectors of one document: its own, those of its sections, those of its chunks."""
    at = np.array([position])
    ((document, _),) = snapshot.documents(at)
    sections, spans = snapshot.section_vectors(position), snapshot.spans(position).tolist()
    levels = [snapshot.document_rows(at).astype(np.float32), sections, snapshot.chunk_vectors(at)[0]]
    places: list[tuple[int | None, ...]] = [(None, None, 0, len(document.text), None)]
    places += [(number, None, section.start, section.stop, None) for number, section in enumerate(document.sections)]
    places += [(section, chunk, start, stop, n) for chunk, (section, start, stop, n) in enumerate(spans)]
    vectors = np.concatenate(levels)
    columns = [
        [document.doc_id] * len(places),
        ["document", *["section"] * len(sections), *["chunk"] * len(spans)],
        *map(list, zip(*places, strict=True)),
    ]
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=False)]
    return pa.RecordBatch.from_arrays(
        [*arrays, pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])], schema=schema
    )
