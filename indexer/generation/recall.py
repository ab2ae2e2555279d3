"""Measures the recall of a FAISS index against exact search, and finds the least sufficient nprobe. Builds nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.errors import RecallTooLow
from engine.index import Index
from engine.search.request import Request
from engine.search.searcher import Searcher
from engine.store.snapshot import IndexSnapshot, OpenGeneration

RECALL_FLOOR = 0.95  # of the exact top 10 documents; below it nothing is published
RECALL_TARGET = 0.985  # nprobe is raised up to this recall; long queries, and other samples, find up to 0.005 less
RECALL_K = 10
RECALL_QUERIES = 128  # the recall of fewer queries does not generalize to others
_FIRST_NPROBE = 8
_STEP = 8  # nprobe is found to one part in 8
_NO_GAIN = 0.001  # of recall; the search ends after two doublings that gain less, once the floor is reached


class RecallSample:
    """Documents of an index as queries, with the results of an exact search, which is one pass for all of them."""

    def __init__(
        self, snapshot: IndexSnapshot, rng: np.random.Generator, *, n_queries: int = RECALL_QUERIES, scan_chunks: int
    ) -> None:
        """Draw documents, and search exactly with each, leaving out the document itself.

        Args:
            scan_chunks: target chunks in memory at one time.
        """
        index, names = Index(snapshot), snapshot.doc_ids()
        encoded = np.flatnonzero(snapshot.has_vectors)
        chosen = np.sort(rng.choice(encoded, min(n_queries, len(encoded)), replace=False))
        self._queries = [(names[position], index.stored_query(names[position])) for position in chosen]
        self._snapshot = snapshot
        self._scan_chunks = scan_chunks
        found = Searcher(snapshot, scan_chunks=scan_chunks).exact_top_positions(self._queries, k=RECALL_K)
        self._truth = [set(positions.tolist()) for positions in found]

    def __len__(self) -> int:
        return len(self._queries)

    def recall(self, candidate: OpenGeneration) -> float:
        """Share of the exact top documents that a generation finds, in [0, 1], the mean over the queries."""
        searcher = Searcher(self._snapshot, generation=candidate, scan_chunks=self._scan_chunks)
        shares = [
            len(truth.intersection(searcher.rank(query, request)[0].tolist())) / len(truth)
            for (doc_id, query), truth in zip(self._queries, self._truth, strict=True)
            for request in [Request(k=RECALL_K, without=(doc_id,))]
            if truth
        ]
        return float(np.mean(shares)) if shares else 1.0


def tune(
    sample: RecallSample,
    candidate: OpenGeneration,
    floor: float,
    log: Callable[[str], None],
    first_nprobe: int | None = None,
    slack: float = 0.0,
) -> float:
    """Set the least nprobe that reaches the target, found by doubling and then by halving the last step.

    If no nprobe reaches the target, the least nprobe with about the best recall is set, if that recall reaches the
    floor. Returns the recall measured with that nprobe.

    Args:
        first_nprobe: first and least nprobe that is tried; 8 by default.
        slack: subtracted from the target where it was reached before, since a sample can underestimate recall.

    Raises:
        RecallTooLow: no nprobe reaches the floor.
    """
    ann, wanted = candidate.ann, max(floor, RECALL_TARGET - slack)
    measured: dict[int, float] = {}

    def reaches(nprobe: int) -> bool:
        ann.nprobe = nprobe
        measured[nprobe] = sample.recall(candidate)
        log(f"nprobe {nprobe}: document recall@{RECALL_K} {measured[nprobe]:.3f} over {len(sample)} queries")
        return measured[nprobe] >= wanted

    too_few, nprobe = 0, min(first_nprobe or _FIRST_NPROBE, ann.n_lists)
    while not (is_enough := reaches(nprobe)) and nprobe < ann.n_lists and not _is_flat(measured, floor):
        too_few, nprobe = nprobe, min(2 * nprobe, ann.n_lists)
    while is_enough and too_few and nprobe - too_few > max(1, nprobe // _STEP):
        middle = (too_few + nprobe) // 2
        too_few, nprobe = (too_few, middle) if reaches(middle) else (middle, nprobe)
    if not is_enough:
        nprobe = min(one for one, recall in measured.items() if recall >= max(measured.values()) - _NO_GAIN)
    if measured[nprobe] < floor:
        raise RecallTooLow(
            f"document recall@{RECALL_K} is {measured[nprobe]:.3f} at best, under the floor of {floor}; nothing was "
            "published: use --factory auto, or codes with more bits"
        )
    ann.nprobe = nprobe
    return measured[nprobe]


def _is_flat(measured: dict[int, float], floor: float) -> bool:
    """Whether the last two doublings gained no recall, and the floor was reached before them."""
    recalls = list(measured.values())
    return len(recalls) > 2 and recalls[-3] >= floor and max(recalls[-2:]) < recalls[-3] + _NO_GAIN
