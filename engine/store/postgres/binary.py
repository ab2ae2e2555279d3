"""Rows of one length in PostgreSQL's binary COPY format, as arrays; no Python object per row. Opens no connection.

A row is its number of fields, then length and value of each field, big-endian. A field here is an integer or a
`halfvec` of pgvector: its width, a reserved number, and its float16 values.

Letters in shapes: R rows, D width.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TRAILER = b"\xff\xff"
VECTOR = "vector"  # name of the field that is a vector
_SIZES = {"int4": ">i4", "int8": ">i8"}


def row_type(fields: Mapping[str, str], width: int = 0) -> np.dtype[np.void]:
    """The layout of a row.

    Args:
        fields: names and types, `int4` or `int8`, in their order.
        width: D of a last field, a vector; 0 for none.
    """
    layout: list[Any] = [("n_fields", ">i2")]
    for name, kind in fields.items():
        layout += [(f"{name}_bytes", ">i4"), (name, _SIZES[kind])]
    if width:
        layout += [(f"{VECTOR}_bytes", ">i4"), ("width", ">i2"), ("reserved", ">i2"), (VECTOR, ">f2", (width,))]
    return np.dtype(layout)


def encode(rows: Mapping[str, NDArray[Any]], fields: Mapping[str, str], width: int = 0) -> bytes:
    """Rows as the server reads them.

    Args:
        rows: (R,) values of each field, and (R, D) vectors.
        fields: see `row_type`.
        width: see `row_type`.
    """
    layout = row_type(fields, width)
    table = np.zeros(len(next(iter(rows.values()))), layout)
    table["n_fields"] = len(fields) + bool(width)
    for name, kind in fields.items():
        table[f"{name}_bytes"], table[name] = np.dtype(_SIZES[kind]).itemsize, rows[name]
    if width:
        table[f"{VECTOR}_bytes"], table["width"], table[VECTOR] = 4 + 2 * width, width, rows[VECTOR]
    return HEADER + table.tobytes() + TRAILER


def decode(content: bytes | bytearray, fields: Mapping[str, str], width: int = 0) -> NDArray[np.void]:
    """Parse (R,) rows that the server wrote.

    Raises:
        ValueError: the rows have another layout.
    """
    layout, body = row_type(fields, width), memoryview(content)[len(HEADER) : len(content) - len(TRAILER)]
    if bytes(content[: len(HEADER)]) != HEADER or len(body) % layout.itemsize:
        raise ValueError(f"{len(body):,} bytes are no rows of {layout.itemsize} bytes")
    table = np.frombuffer(body, layout)
    if (table["n_fields"] != len(fields) + bool(width)).any() or (width and (table["width"] != width).any()):
        raise ValueError(f"rows have other fields, or vectors that are not {width} wide")
    return table
