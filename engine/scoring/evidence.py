"""Evidence above the crowd: from similarities to thresholds, parts and scores. Pure array functions.

It is the imputation of XTR (Lee et al. 2023, arXiv:2304.01982) taken from tokens
to chunks, with a power. For chunk i of a query, s_i(t) is its best match inside
target t, theta_i the s_i of the (M+1)-th best document of the corpus, w_i a weight:

    e_i(t) = max(0, s_i(t) - theta_i) ^ p
    score(q, t) = (1 - b) sum_i w_i e_i(t) / sum_i w_i (1 - theta_i) ^ p
                  + b max(0, s_d(t) - theta_d) ^ p / (1 - theta_d) ^ p

in [0, 1]. The second term is the same for whole-document vectors, with a crowd of
its own. Where XTR puts theta in place of a similarity it did not retrieve, we
subtract it, so what everyone matches is worth nothing.

Letters in shapes: I query chunks, N documents, R length of a list.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.errors import QueryError
from engine.scoring.lists import RankedLists

ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Scoring:
    """The constants of the score; chosen on the valid splits of four corpora, see the README."""

    crowd: int = 20  # M
    power: float = 2.0  # p
    document_weight: float = 0.08  # b
    document_crowd: int = 30  # M of the document vectors

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            QueryError: a constant is out of its range.
        """
        if self.crowd < 1 or self.document_crowd < 1:
            raise QueryError(f"crowd {self.crowd} and document crowd {self.document_crowd} must be at least 1")
        if not self.power > 0:
            raise QueryError(f"power {self.power} must be above 0")
        if not 0 <= self.document_weight <= 1:
            raise QueryError(f"document weight {self.document_weight} must be in [0, 1]")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where the crowd ends, and what each chunk could contribute at most."""

    chunks: Vectors  # (I,) theta_i
    document: float  # theta_d
    weights: NDArray[np.float64]  # (I,) share of the score of chunk i at similarity 1; they sum to 1 - b


def chunk_weights(n_tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """w_i, the square root of the chunk's tokens: a short tail of a section says less than a full window."""
    weights: NDArray[np.float64] = np.sqrt(np.maximum(n_tokens, 1).astype(np.float64))
    return weights


def crowd_similarity(lists: RankedLists, crowd: int, n_documents: int) -> Vectors:
    """theta_i: similarity of the (M+1)-th best document.

    A corpus of M documents or fewer has no crowd; theta is 0 there, so that plain
    similarities count. Where an approximate list ends before M + 1 documents, its
    last one stands in: too high rather than too low.

    Args:
        lists: R at least M + 1, over all documents that may be found.
        crowd: M.
        n_documents: how many documents may be found.

    Returns:
        (I,) float32 in [0, 1].
    """
    if n_documents <= crowd or lists.similarities.shape[1] <= crowd:
        return np.zeros(len(lists.similarities), np.float32)
    n_found = np.isfinite(lists.similarities).sum(axis=1)
    last = np.minimum(n_found - 1, crowd)
    theta = np.where(n_found > 0, lists.similarities[np.arange(len(last)), last], 0)
    return np.clip(theta, 0, 1).astype(np.float32)


def document_crowd_similarity(similarities: Vectors, crowd: int) -> float:
    """theta_d: the same for the cosines (N,) of whole-document vectors; 0 where there is no crowd."""
    if len(similarities) <= crowd:
        return 0.0
    return float(np.clip(-np.partition(-similarities, crowd)[crowd], 0, 1))


def thresholds(theta: Vectors, theta_document: float, weights: NDArray[np.float64], scoring: Scoring) -> Thresholds:
    """Scale weights so that a chunk at similarity 1 contributes exactly its weight.

    With e~_i(t) = (max(0, s_i(t) - theta_i) / (1 - theta_i)) ^ p in [0, 1], the score is
    sum_i weight_i e~_i(t), where weight_i = (1 - b) w_i (1 - theta_i)^p / sum_i w_i (1 - theta_i)^p.
    """
    room = weights * (1 - theta.astype(np.float64)) ** scoring.power
    total = room.sum()
    shares = (1 - scoring.document_weight) * room / total if total > 0 else np.zeros_like(room)
    return Thresholds(theta, theta_document, shares)


def rise(similarity: NDArray[np.floating], theta: NDArray[np.floating] | float, power: float) -> NDArray[np.float64]:
    """e~, how far a similarity stands above its threshold, in [0, 1]; exactly 0 where it does not."""
    above = np.minimum(similarity, 1.0).astype(np.float64) - theta
    # float32 products differ in the last digit by the order of their sums; that is no evidence.
    above = np.where(above > ROUNDING, above, 0.0)
    room = np.maximum(1.0 - np.asarray(theta, np.float64), 1e-9)
    return np.asarray((above / room) ** power)


def list_scores(
    lists: RankedLists, whole: RankedLists, limits: Thresholds, scoring: Scoring
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Score all documents that rise above some threshold, from the lists alone.

    Args:
        lists: as for `crowd_similarity`.
        whole: one such list of the whole-document vectors, longer than their crowd where there is one.
        limits: from `thresholds`.
        scoring: the constants.

    Returns:
        Positions and scores, best first, equal scores by rising position.
    """
    chunks = limits.weights[:, None] * rise(lists.similarities, limits.chunks[:, None], scoring.power)
    of_whole = scoring.document_weight * rise(whole.similarities, limits.document, scoring.power)
    contributions = np.concatenate([chunks.ravel(), of_whole.ravel()])
    documents = np.concatenate([lists.documents.ravel(), whole.documents.ravel()])
    counts = (documents >= 0) & (contributions > 0)
    found, at = np.unique(documents[counts], return_inverse=True)
    scores = np.bincount(at, contributions[counts], minlength=len(found)).astype(np.float64)
    order = np.lexsort((found, -scores))
    return found[order], scores[order]


def exact_scores(
    similarities: Vectors, document_similarities: Vectors, limits: Thresholds, scoring: Scoring
) -> NDArray[np.float64]:
    """Score documents from exact similarities.

    Args:
        similarities: (I, N) s_i(t) of the documents in question.
        document_similarities: (N,) their whole-document cosines.
        limits: from `thresholds`.
        scoring: the constants.

    Returns:
        (N,) in [0, 1].
    """
    chunks = limits.weights @ rise(similarities, limits.chunks[:, None], scoring.power)
    whole = scoring.document_weight * rise(document_similarities, limits.document, scoring.power)
    return np.asarray(chunks + whole)
