"""Rows of PostgreSQL's binary COPY format match its manual, byte by byte."""

from __future__ import annotations

import struct

import numpy as np
import pytest

pytest.importorskip("psycopg")

from engine.store.postgres.binary import decode, encode

FIELDS = {"document_id": "int8", "position": "int4"}
IDS, POSITIONS = np.array([7, 2**40], np.int64), np.array([0, -1], np.int64)
VECTORS = np.array([[1.0, -0.5, 6e-8], [65504.0, 0.0, 3.0]], np.float16)
ROWS = {"document_id": IDS, "position": POSITIONS, "vector": VECTORS}


def rows_by_hand() -> bytes:
    """The format, one value at a time."""
    found = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
    for one, position, vector in zip(IDS.tolist(), POSITIONS.tolist(), VECTORS, strict=True):
        halves = b"".join(struct.pack(">e", value) for value in vector.tolist())
        found += struct.pack(">hiqii", 3, 8, one, 4, position)
        found += struct.pack(">ihh", 4 + len(halves), 3, 0) + halves
    return found + struct.pack(">h", -1)


def test_rows_equal_the_format() -> None:
    assert encode(ROWS, FIELDS, 3) == rows_by_hand()


def test_rows_come_back_bit_by_bit() -> None:
    table = decode(rows_by_hand(), FIELDS, 3)
    np.testing.assert_array_equal(table["document_id"], IDS)
    np.testing.assert_array_equal(table["position"], POSITIONS)
    np.testing.assert_array_equal(table["vector"].astype(np.float16).view(np.uint16), VECTORS.view(np.uint16))


def test_no_rows_are_no_rows() -> None:
    nothing = {name: values[:0] for name, values in ROWS.items()}
    assert len(decode(encode(nothing, FIELDS, 3), FIELDS, 3)) == 0


@pytest.mark.parametrize(
    "content",
    [
        rows_by_hand()[:-3],
        b"X" + rows_by_hand()[1:],
        encode({**ROWS, "vector": VECTORS[:, :2]}, FIELDS, 2),
        rows_by_hand().replace(struct.pack(">hi", 3, 8), struct.pack(">hi", 2, 8)),
    ],
    ids=["cut", "no header", "narrower", "fewer fields"],
)
def test_other_layouts_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="rows"):
        decode(content, FIELDS, 3)
