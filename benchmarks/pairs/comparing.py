"""Scores of two encoded documents: the cosine of their vectors, their best chunks, or the head of a TDE.

Letters in shapes: I chunks of the first document, J chunks of the second, D width."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.pair_scorer import Fit, Pair
from benchmarks.prepare import prepared_documents
from benchmarks.systems import Settings
from engine.encoders.encoder import EncodedDocument, Encoder, Vectors
from engine.encoders.tde.encoder import TdeEncoder
from engine.errors import EncoderError
from engine.scoring.evidence import chunk_weights
from engine.text.document import Document

_DOCUMENTS_AT_A_TIME = 32


class Comparison(StrEnum):
    """The score of two documents from their vectors."""

    COSINE = "cosine"  # cosine of the document vectors
    MAXSIM = "maxsim"  # mean best match of the first document's chunks
    HEAD = "head"  # the probability of a TDE's pair head


def mean_best_match(first: Vectors, weights: NDArray[np.float64], second: Vectors) -> float:
    """The mean similarity of the chunks of one document to their best chunks in another, without search thresholds.

        s(a, b) = sum_i w_i max_j <a_i, b_j> / sum_i w_i

    Args:
        first: (I, D) unit rows.
        weights: (I,) w_i, above 0; `engine.scoring.evidence.chunk_weights`.
        second: (J, D) unit rows.

    Returns:
        In [-1, 1]; not symmetric.
    """
    best = (first @ second.T).max(axis=1).astype(np.float64)
    return float(weights @ best / weights.sum())


@dataclass(frozen=True)
class Side:
    """The stored vectors of a document for comparisons; chunks in half precision, as in an index."""

    document: Vectors  # (D,)
    chunks: NDArray[np.float16]  # (I, D); no rows if chunks are not compared
    weights: NDArray[np.float64]  # (I,)


class Comparer:
    """Scores two encoded documents."""

    def __init__(self, encoder: Encoder, comparison: Comparison) -> None:
        """Compare documents that `encoder` encoded."""
        if comparison is Comparison.HEAD and not isinstance(encoder, TdeEncoder):
            raise EncoderError(f"{encoder.name} has no pair head, a TDE has; compare by cosine or by maxsim")
        self._encoder = encoder
        self.comparison = comparison

    def side(self, encoded: EncodedDocument) -> Side:
        """The vectors of a document that the comparison needs."""
        chunks = encoded.chunks if self.comparison is Comparison.MAXSIM else encoded.chunks[:0]
        n_tokens = np.array([chunk.n_tokens for chunk in encoded.chunk_spans])
        return Side(encoded.document, chunks.astype(np.float16), chunk_weights(n_tokens))

    def score(self, first: Side, second: Side) -> float:
        """The score of two documents; higher for a match."""
        match self.comparison:
            case Comparison.COSINE:
                return float(first.document @ second.document)
            case Comparison.MAXSIM:
                return mean_best_match(first.chunks.astype(np.float32), first.weights, second.chunks.astype(np.float32))
            case Comparison.HEAD:
                assert isinstance(self._encoder, TdeEncoder)
                return float(self._encoder.match_probability(first.document, second.document))


def encoded_sides(encoder: Encoder, comparer: Comparer, documents: Mapping[str, Document]) -> dict[str, Side]:
    """Encode whole documents in blocks, and return their sides by doc_id."""
    doc_ids, sides = list(documents), dict[str, Side]()
    for start in range(0, len(doc_ids), _DOCUMENTS_AT_A_TIME):
        block = doc_ids[start : start + _DOCUMENTS_AT_A_TIME]
        encoded = encoder.encode([documents[doc_id] for doc_id in block])
        sides |= {doc_id: comparer.side(one) for doc_id, one in zip(block, encoded, strict=True)}
    return sides


@dataclass(frozen=True)
class Shelf:
    """The place where vectors are stored."""

    work: Path  # folder of indexes
    name: str  # of the set of documents, with a checksum of them


class GivenScorer:
    """A `PairScorer` of a given encoder: encodes each whole document by itself, and compares documents by vectors.

    The vectors are from an index of the documents, in half precision. The first scorer of an encoder builds the index,
    and later scorers, seeds and protocols share it; an interrupted build is resumed.
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
            device: of the encoder; by default a GPU if torch finds one.
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
        """As `PairScorer.fit`; trains nothing, and encodes the documents that are not stored yet."""
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
