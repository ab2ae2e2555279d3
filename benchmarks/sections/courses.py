"""How score and rank go as parts are removed or put in: curves over the share of tokens, and what sums them up.

Deletion and insertion are those of RISE (Petsiuk et al. 2018, arXiv:1806.07421), over the tokens of a document instead
of the pixels of an image; comprehensiveness and sufficiency are ERASER's (DeYoung et al. 2020, arXiv:1911.03429).

Letters in shapes: U parts, G shares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from benchmarks.sections.matches import Placed
from benchmarks.sections.parts import Order, Parts

# Score and rank of a hit whose one document has only the chunks that are True.
Rescore = Callable[[NDArray[np.bool_]], Placed]
Values = NDArray[np.float64]

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
COARSE_SHARES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)  # where each of them costs an encoding
RATIONALE_SHARES = (0.05, 0.1, 0.2, 0.5)  # ERASER's, but for its 1 %, which is less than a chunk


@dataclass(frozen=True, slots=True)
class Course:
    """The course of one hit, or a mean of many; all arrays are (G,), over rising shares of tokens.

    Scores are relative to that of the whole document, and may be above 1: without
    what does not match, a query matches better.
    """

    deletion: Values  # score when that share is removed
    insertion: Values  # score when only that share is there
    deletion_rank: Values  # reciprocal ranks, in (0, 1]
    insertion_rank: Values


def follow(parts: Parts, order: Order, rescore: Rescore, shares: Sequence[float]) -> Course:
    """Remove parts one after another, and put them in, in one order.

    Between two parts the curve is a straight line, so that orders that begin with
    long and with short parts are compared at the same number of tokens.

    Args:
        parts: U of them, with a token at least.
        order: (U,) first removed, or put in, first.
        rescore: called near each share; the score of the whole document must be above 0.
        shares: G of them, rising from 0 to 1.
    """
    removed = np.concatenate([[0], np.cumsum(parts.n_tokens[order])]) / parts.n_tokens.sum()  # (U + 1,)
    stops = np.unique([near for share in shares for near in _around(removed, share)])
    first = [parts.chunks_of(order[:stop]) for stop in stops]
    deleted, inserted = [rescore(~chunks) for chunks in first], [rescore(chunks) for chunks in first]
    whole = deleted[0].score

    def at_shares(values: list[float]) -> Values:
        return np.interp(shares, removed[stops], values)

    return Course(
        deletion=at_shares([placed.score / whole for placed in deleted]),
        insertion=at_shares([placed.score / whole for placed in inserted]),
        deletion_rank=at_shares([1 / placed.rank for placed in deleted]),
        insertion_rank=at_shares([1 / placed.rank for placed in inserted]),
    )


def _around(removed: Values, share: float) -> tuple[int, int]:
    """The last number of parts with at most that share of tokens, and the first with at least it."""
    at_least = min(int(np.searchsorted(removed, share - 1e-12)), len(removed) - 1)
    return (at_least if removed[at_least] <= share + 1e-12 else at_least - 1), at_least


def mean_course(courses: Sequence[Course]) -> Course:
    """The mean of courses over the same shares; there must be one."""
    return Course(*(np.mean([getattr(course, f.name) for course in courses], axis=0) for f in fields(Course)))


def summaries(course: Course, shares: Sequence[float]) -> dict[str, float]:
    """What sums up a course.

    Returns:
        Area under each curve, over shares from 0 to 1: low for a good deletion, high for a good insertion.
        `comprehensiveness`, the mean loss when 5, 10, 20 and 50 % are removed: high is good. `sufficiency`, the
        mean loss when only so much is there: low is good. Both are relative to the whole score.
    """
    areas = {f"{f.name}_area": float(np.trapezoid(getattr(course, f.name), shares)) for f in fields(Course)}
    at = [list(shares).index(share) for share in RATIONALE_SHARES]
    return {
        **areas,
        "comprehensiveness": float(np.mean(1 - course.deletion[at])),
        "sufficiency": float(np.mean(1 - course.insertion[at])),
    }
