"""Pairs scored by an encoder as it is, not trained on them; its vectors are kept, and found again by the next run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.pairs.comparing import Comparer, Comparison, Side
from benchmarks.pairs.scorer import Fit, Pair
from benchmarks.prepare import prepared_documents
from benchmarks.systems import Settings


@dataclass(frozen=True)
class Shelf:
    """Where vectors are kept."""

    work: Path  # folder of indexes
    name: str  # of the documents, with a checksum that changes whenever they do


class GivenScorer:
    """A `PairScorer`: each document is read by itself and to its end, and two are compared by their vectors.

    Vectors are those of an index of the documents, in half precision: it is made by the first
    scorer of an encoder, and shared by all others, other seeds and protocols; what was
    interrupted goes on.
    """

    is_trained = False
    course = None

    def __init__(
        self,
        encoder: str,
        comparison: Comparison,
        shelf: Shelf,
        *,
        device: str | None = None,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Name an encoder.

        Args:
            encoder: as `load_given` takes it.
            comparison: by which the scorer is named.
            shelf: where vectors are kept.
            device: of the encoder; by default a GPU where torch sees one.
            log: gets a line after each commit of vectors.
        """
        self.name = comparison.value
        self.encoder = ""
        self.settings: Settings = {"comparison": comparison.value}
        self._encoder_name = encoder
        self._device = device
        self._comparison = comparison
        self._shelf = shelf
        self._log = log
        self._comparer: Comparer | None = None
        self._sides: dict[str, Side] = {}

    def fit(self, given: Fit) -> None:
        """As `PairScorer.fit`; nothing is learned, documents are encoded that have not been yet.

        Raises:
            EncoderError: the encoder cannot be loaded, or has no pair head and is to be compared by one.
            DatasetError: a document has no token.
        """
        name, work = self._shelf.name, self._shelf.work
        with prepared_documents(
            name, given.documents.values(), self._encoder_name, work, self._log, device=self._device
        ) as ready:
            self.encoder = ready.encoder
            self._comparer = Comparer(ready.index.encoder, self._comparison)
            stored = ready.index.stored_query
            self._sides = {doc_id: self._comparer.side(stored(doc_id).vectors) for doc_id in given.documents}

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """As `PairScorer.score`."""
        assert self._comparer is not None, "fit comes before score"
        score, sides = self._comparer.score, self._sides
        return np.array([score(sides[pair.first], sides[pair.second]) for pair in pairs])
