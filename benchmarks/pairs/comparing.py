"""A score of two encoded documents: the cosine of their vectors, their best chunks, or a TDE's head. No encoding here.

Letters in shapes: I chunks of the first document, J of the second, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument, Encoder, Vectors
from engine.encoders.tde.encoder import TdeEncoder
from engine.errors import EncoderError
from engine.scoring.evidence import chunk_weights


class Comparison(StrEnum):
    """How the vectors of two documents become a score."""

    COSINE = "cosine"  # of the document vectors
    MAXSIM = "maxsim"  # mean best match of the first document's chunks
    HEAD = "head"  # the probability of a TDE's pair head


def mean_best_match(first: Vectors, weights: NDArray[np.float64], second: Vectors) -> float:
    """How well the chunks of one document are met by those of another, without the thresholds of a search.

        s(a, b) = sum_i w_i max_j <a_i, b_j> / sum_i w_i

    Args:
        first: (I, D) unit rows.
        weights: (I,) w_i, above 0; `engine.scoring.evidence.chunk_weights`.
        second: (J, D) unit rows.

    Returns:
        In [-1, 1]; the documents do not swap.
    """
    best = (first @ second.T).max(axis=1).astype(np.float64)
    return float(weights @ best / weights.sum())


@dataclass(frozen=True)
class Side:
    """What is kept of a document to compare it; chunks in half precision, as in an index."""

    document: Vectors  # (D,)
    chunks: NDArray[np.float16]  # (I, D); no row where they are not compared
    weights: NDArray[np.float64]  # (I,)


class Comparer:
    """Makes a score of two encoded documents."""

    def __init__(self, encoder: Encoder, comparison: Comparison) -> None:
        """Compare what `encoder` encodes.

        Raises:
            EncoderError: the encoder has no pair head, and is to be compared by one.
        """
        if comparison is Comparison.HEAD and not isinstance(encoder, TdeEncoder):
            raise EncoderError(f"{encoder.name} has no pair head, a TDE has; compare by cosine or by maxsim")
        self._encoder = encoder
        self._comparison = comparison

    def side(self, encoded: EncodedDocument) -> Side:
        """What is needed of a document."""
        chunks = encoded.chunks if self._comparison is Comparison.MAXSIM else encoded.chunks[:0]
        n_tokens = np.array([chunk.n_tokens for chunk in encoded.chunk_spans])
        return Side(encoded.document, chunks.astype(np.float16), chunk_weights(n_tokens))

    def score(self, first: Side, second: Side) -> float:
        """Higher where the documents match."""
        match self._comparison:
            case Comparison.COSINE:
                return float(first.document @ second.document)
            case Comparison.MAXSIM:
                return mean_best_match(first.chunks.astype(np.float32), first.weights, second.chunks.astype(np.float32))
            case Comparison.HEAD:
                assert isinstance(self._encoder, TdeEncoder)
                return float(self._encoder.match_probability(first.document, second.document))
