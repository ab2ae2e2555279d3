"""Packs several queries or rankings, or the documents that a search can find, into one frame. Sends nothing.

Each query or ranking is a frame of its own inside the frame: its header is an item of a list, and the names of its
arrays start with its number in that list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.remote.frames import Frame, FrameError
from engine.remote.values import Packed, pack_ranked, unpack_ranked
from engine.search.partition import Ranked, Survey

MOST_QUERIES = 256  # in a frame; the same limit holds for rankings


def packed_bytes(packed: Packed) -> int:
    """Bytes of the arrays of a value, which are nearly all of its frame."""
    return sum(one.nbytes for one in packed[1].values())


def pack_several(name: str, values: Sequence[Packed]) -> Packed:
    """Pack values of one kind into one value."""
    arrays = {f"{row}/{key}": array for row, (_, of_value) in enumerate(values) for key, array in of_value.items()}
    return {name: [head for head, _ in values]}, arrays


def several(frame: Frame, name: str) -> list[Frame]:
    """The values that were packed, each as a frame.

    Raises:
        FrameError: there is no list of at most `MOST_QUERIES` headers, or an array belongs to none.
    """
    heads = frame.value(name, list)
    if len(heads) > MOST_QUERIES or not all(isinstance(head, dict) for head in heads):
        raise FrameError(f"there is no list of at most {MOST_QUERIES} {name}")
    arrays: list[dict[str, NDArray[Any]]] = [{} for _ in heads]
    for key, array in frame.arrays.items():
        row, slash, rest = key.partition("/")
        if not slash:
            continue  # an array of the frame itself
        if not row.isdecimal() or int(row) >= len(heads):
            raise FrameError(f"array {key!r} belongs to none of {len(heads)} {name}")
        arrays[int(row)][rest] = array
    return [Frame(head, of_value) for head, of_value in zip(heads, arrays, strict=True)]


def pack_tops(tops: Sequence[Ranked]) -> Packed:
    """The rankings of several queries."""
    return pack_several("tops", [pack_ranked(one) for one in tops])


def unpack_tops(frame: Frame, n_chunks: Sequence[int], n_most: int, n_documents: int) -> list[Ranked]:
    """The rankings that were packed.

    Args:
        frame: with `pack_tops`'s values.
        n_chunks: I of each query.
        n_most: documents requested for each query.
        n_documents: of the partition.

    Raises:
        FrameError: a value is missing, or does not fit.
    """
    found = several(frame, "tops")
    if len(found) != len(n_chunks):
        raise FrameError(f"{len(found)} rankings came for {len(n_chunks)} queries")
    return [unpack_ranked(one, n, n_most, n_documents) for one, n in zip(found, n_chunks, strict=True)]


def pack_survey(survey: Survey) -> Packed:
    """The documents that a search can find."""
    head = {"is_exhaustive": survey.is_exhaustive, "is_complete": survey.is_complete}
    return head, {"positions": survey.positions.astype(np.int64)}


def unpack_survey(frame: Frame, n_documents: int) -> Survey:
    """The survey that was packed.

    Args:
        frame: with `pack_survey`'s values.
        n_documents: of the partition.

    Raises:
        FrameError: a value is missing, or does not fit.
    """
    positions = frame.array("positions", np.int64, (None,))
    if (np.diff(positions) <= 0).any() or (len(positions) and not 0 <= positions[0] <= positions[-1] < n_documents):
        raise FrameError(f"the positions do not rise from 0 to {n_documents - 1:,} at most")
    return Survey(positions, frame.value("is_exhaustive", bool), frame.value("is_complete", bool))
