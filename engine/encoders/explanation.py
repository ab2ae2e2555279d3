"""The numbers that an encoder itself computes for the sections of two documents. Values; not part of a score.

Letters in shapes: S and T sections of the query and of the target, C and E their chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from engine.text.document import Document
from engine.text.spans import Chunk


@dataclass(frozen=True, slots=True, repr=False)
class ModelExplanation:
    """The numbers of an encoder for a query and a target, by chunk and by section; `note` explains them.

    They are not parts of the score of a hit, which `Hit.breakdown` has. Section pairs are sums of
    chunk pairs and sections are sums of chunks, so `pairs` and `chunk_pairs` both sum to `total`.
    A section without a token has zeros. All arrays are float32.
    """

    encoder: str  # its kind: colde, smith
    note: str  # meaning of the numbers, and what they sum to
    query_chunks: tuple[Chunk, ...]  # C, with section and span
    target_chunks: tuple[Chunk, ...]  # E
    query_weights: NDArray[np.float32]  # (C,) of the chunks of the query
    target_weights: NDArray[np.float32]  # (E,)
    chunk_pairs: NDArray[np.float32]  # (C, E)
    query_sections: NDArray[np.float32]  # (S,)
    target_sections: NDArray[np.float32]  # (T,)
    pairs: NDArray[np.float32]  # (S, T)

    @classmethod
    def of_chunks(
        cls,
        encoder: str,
        note: str,
        query: tuple[Document, Sequence[Chunk], NDArray[np.float32]],
        target: tuple[Document, Sequence[Chunk], NDArray[np.float32]],
        chunk_pairs: NDArray[np.float32],
    ) -> Self:
        """Sum chunk pairs (C, E) over sections; a side is a document, its chunks and their weights (C,) or (E,)."""
        (mine, my_chunks, my_weights), (theirs, their_chunks, their_weights) = query, target
        rows = _by_section(chunk_pairs, my_chunks, len(mine.sections))  # (S, E)
        return cls(
            encoder,
            note,
            tuple(my_chunks),
            tuple(their_chunks),
            my_weights,
            their_weights,
            chunk_pairs,
            _by_section(my_weights, my_chunks, len(mine.sections)),
            _by_section(their_weights, their_chunks, len(theirs.sections)),
            _by_section(rows.T, their_chunks, len(theirs.sections)).T,
        )

    @property
    def total(self) -> float:
        """The sum of all pairs."""
        return float(self.pairs.sum(dtype=np.float64))

    def __repr__(self) -> str:
        n_rows, n_columns = self.pairs.shape
        return f"ModelExplanation({self.encoder!r}, {n_rows} x {n_columns} sections, total {self.total:.4f})"


@dataclass(frozen=True, slots=True)
class ModelPair:
    """A section pair of an explanation."""

    query_section: int
    target_section: int
    value: float


def strongest_pairs(explanation: ModelExplanation, n: int | None = None) -> list[ModelPair]:
    """`strongest` of an explanation."""
    return strongest(explanation.pairs, n)


def strongest(values: NDArray[np.floating], n: int | None = None) -> list[ModelPair]:
    """The section pairs (S, T) above 0, strongest first; equal values in reading order, at most `n`."""
    order = np.argsort(-values, axis=None, kind="stable")[:n]
    places = zip(*np.unravel_index(order, values.shape), strict=True)
    found = [ModelPair(int(row), int(column), float(values[row, column])) for row, column in places]
    return [pair for pair in found if pair.value > 0]


def _by_section(values: NDArray[np.float32], chunks: Sequence[Chunk], n_sections: int) -> NDArray[np.float32]:
    """(C, ...) summed over the chunks of each section: (n_sections, ...)."""
    summed = np.zeros((n_sections, *values.shape[1:]), np.float64)
    np.add.at(summed, [chunk.section for chunk in chunks], values)
    return summed.astype(np.float32)
