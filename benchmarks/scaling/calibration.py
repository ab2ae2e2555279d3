"""How far copies must be turned so that a grown corpus is as crowded as a real one of its size.

A quarter of the real documents is grown fourfold, by turns of several sizes, and each
time held against all of them: the turn whose nearest neighbours are most like the
real ones is taken. Copies that hardly turn are too near each other, copies that turn
far are nobody's neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.scaling.growth import learn_growth
from benchmarks.scaling.neighbours import CandidateLists, distance, neighbours
from benchmarks.scaling.source import Source
from engine.errors import IndexMismatch

TURNS = (0.5, 0.8, 1.0, 1.15, 1.3, 1.4, 1.5, 1.7, 2.0)
MOST_DOCUMENTS = 800  # looked at
SAMPLED_DOCUMENTS = 256  # whose neighbours are looked for
_PART = 4  # as many times the part is grown
_LEAST_DOCUMENTS = 4 * _PART


@dataclass(frozen=True)
class Calibration:
    """The turn that was chosen, and how well it does."""

    turn: float
    error: float  # mean difference of the quantiles to nearest chunks and documents, in cosine
    errors: dict[str, float]  # the same for every turn that was tried
    real: CandidateLists  # of the documents that were looked at
    grown: CandidateLists  # of as many chunks, grown from a part of them by this turn


def calibrate(source: Source, seed: int) -> Calibration:
    """Choose the turn for a source.

    Raises:
        IndexMismatch: there are too few documents to grow a part of them.
    """
    if len(source) < _LEAST_DOCUMENTS:
        raise IndexMismatch(
            f"the index holds {len(source)} documents, at least {_LEAST_DOCUMENTS} are needed to grow a corpus from; "
            "name a larger one"
        )
    rng = np.random.default_rng(seed)
    whole = source.part(np.sort(rng.permutation(len(source))[:MOST_DOCUMENTS]))
    growth = learn_growth(whole.part(np.sort(rng.permutation(len(whole))[: len(whole) // _PART])), seed=seed)
    order = growth.order(int(whole.n_chunks.sum()))
    real = neighbours(whole.blocks, _sampled(len(whole), rng), seed)
    chosen = _sampled(len(order), rng)
    tried = {
        turn: neighbours(lambda turn=turn: replace(growth, turn=turn).blocks(order), chosen, seed)  # type: ignore[misc]
        for turn in TURNS
    }
    errors = {turn: round(distance(grown, real), 4) for turn, grown in tried.items()}
    best = min(errors, key=errors.__getitem__)
    return Calibration(best, errors[best], {str(turn): error for turn, error in errors.items()}, real, tried[best])


def _sampled(n_documents: int, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return rng.permutation(n_documents)[:SAMPLED_DOCUMENTS]
