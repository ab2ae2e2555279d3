"""What an index of another size would cost: each cost a sum of terms with a physical meaning, fitted on measured ones.

A cost y of an index is modelled as y = sum_t c_t f_t(size), all c_t >= 0, over the
terms f_t that it can depend on (`TERMS`): a constant, documents, chunks, inverted
lists, codes scanned, chunks times lists (adding). Relative errors are what is made
small, so that small sizes count as much as large ones. It is checked by what the
smaller sizes say about the largest one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.scaling.record import ScaleRecord
from benchmarks.scaling.stages import HITS, LISTS, OTHER, SCORES, THRESHOLDS, WORDS
from engine.store.ann import n_lists_for

SYNTHETIC = "synthetic"
ALIKE = 0.01  # relative error, by which one fit may be worse than another and be taken for its simpler terms
MIB = 2**20


@dataclass(frozen=True)
class Size:
    """What costs depend on."""

    n_documents: float
    n_chunks: float
    n_lists: float
    nprobe: float

    @property
    def codes(self) -> float:
        """Codes that one query chunk is held against; all chunks where there are no lists."""
        return self.n_chunks * self.nprobe / self.n_lists if self.n_lists else self.n_chunks


TERMS: Mapping[str, Callable[[Size], float]] = {
    "once": lambda size: 1.0,
    "document": lambda size: size.n_documents,
    "chunk": lambda size: size.n_chunks,
    "list": lambda size: size.n_lists,
    "code scanned": lambda size: size.codes,
    "chunk and list": lambda size: size.n_chunks * size.n_lists,
}


@dataclass(frozen=True)
class Cost:
    """One cost: how to read it off a record, and the terms that it can depend on."""

    name: str
    unit: str
    terms: tuple[str, ...]  # the likelier first
    measured: Callable[[ScaleRecord], float]


def _stage(name: str) -> Callable[[ScaleRecord], float]:
    return lambda record: record.asked[SYNTHETIC].stages_ms.get(name, 0.0)


def _private(process: str) -> Callable[[ScaleRecord], float]:
    return lambda record: record.memory[process].peak_anonymous


def _disk(part: str) -> Callable[[ScaleRecord], float]:
    return lambda record: record.disk.get(part, 0) / MIB


def _cold(record: ScaleRecord) -> float:
    return record.cold.open_seconds + record.cold.first_seconds


def _growing(record: ScaleRecord) -> float:
    return record.growth.generate_seconds + record.growth.commit_seconds


COSTS = (
    Cost("search: thresholds", "ms", ("once",), _stage(THRESHOLDS)),
    # Which documents may be found, and their estimates, are arrays over all of them.
    Cost("search: lists", "ms", ("once", "code scanned", "document", "list"), _stage(LISTS)),
    Cost("search: postings", "ms", ("once", "document"), _stage(WORDS)),
    Cost("search: scores", "ms", ("once", "document"), _stage(SCORES)),
    Cost("search: hits", "ms", ("once",), _stage(HITS)),
    Cost("search: other", "ms", ("once", "document"), _stage(OTHER)),
    Cost("first answer, cold", "s", ("once", "chunk"), _cold),
    Cost("memory of searching, without file pages", "MiB", ("once", "document", "list"), _private("search")),
    Cost("memory of publishing, without file pages", "MiB", ("once", "chunk", "list"), _private("publish")),
    Cost("disk: catalog", "MiB", ("once", "document"), _disk("catalog")),
    Cost("disk: shards", "MiB", ("chunk",), _disk("shards")),
    Cost("disk: ann", "MiB", ("chunk", "list"), _disk("ann")),
    Cost("disk: postings", "MiB", ("document",), _disk("postings")),
    Cost("disk: reference", "MiB", ("once",), _disk("reference")),
    Cost("generating and committing", "s", ("chunk",), _growing),
    Cost("publishing", "s", ("once", "chunk", "chunk and list"), lambda record: record.growth.publish_seconds),
)


@dataclass(frozen=True)
class Fitted:
    """A cost with its coefficients."""

    cost: Cost
    coefficients: dict[str, float]  # by term, at least 0

    def at(self, size: Size) -> float:
        """The cost of an index of a size."""
        return sum(coefficient * TERMS[term](size) for term, coefficient in self.coefficients.items())


def size_of(record: ScaleRecord) -> Size:
    """What the costs of a record depend on."""
    return Size(record.n_documents, record.n_chunks, record.n_lists, record.nprobe)


def fit(cost: Cost, records: Sequence[ScaleRecord]) -> Fitted:
    """Fit one cost to measured indexes; of terms that they cannot tell apart, the fewest and likeliest are kept.

    Args:
        cost: what is fitted.
        records: at least one; a measured 0 (a generation that was there already) says nothing and is left out.
    """
    points = [(size_of(record), cost.measured(record)) for record in records]
    points = [(size, value) for size, value in points if value > 0]
    if not points:
        return Fitted(cost, {})
    design = np.array([[TERMS[term](size) / value for term in cost.terms] for size, value in points])
    return Fitted(cost, dict(zip(cost.terms, nonnegative(design, ALIKE).tolist(), strict=True)))


def nonnegative(design: NDArray[np.float64], alike: float = 0.0) -> NDArray[np.float64]:
    """The c >= 0 that brings `design @ c` nearest to 1 everywhere, by least squares.

    Terms are few, so every subset of them is tried: the best one whose coefficients
    are all positive is the solution, or a smaller or earlier one that is as good but
    for `alike`: sizes whose lists grow as their chunks do cannot tell these two apart.

    Args:
        design: (points, terms).
        alike: root of the mean squared error that makes no difference.

    Returns:
        (terms,)
    """
    n_points, n_terms = design.shape
    tried = [(float(n_points), np.zeros(n_terms))]
    for size in range(1, min(n_terms, n_points) + 1):
        for chosen in combinations(range(n_terms), size):
            columns = design[:, chosen]
            scale = np.linalg.norm(columns, axis=0)
            if not scale.all():
                continue
            found, _, rank, _ = np.linalg.lstsq(columns / scale, np.ones(n_points), rcond=None)
            error = float(np.sum((columns / scale @ found - 1) ** 2))
            if rank == size and (found > 0).all():
                coefficients = np.zeros(n_terms)
                coefficients[list(chosen)] = found / scale
                tried.append((error, coefficients))
    enough = min(error for error, _ in tried) + max(n_points * alike**2, 1e-9)
    return next(coefficients for error, coefficients in tried if error <= enough)


@dataclass(frozen=True)
class Checked:
    """A cost of a measured index, and what the others say of it."""

    cost: Cost
    n_chunks: int
    measured: float
    predicted: float


def check(records: Sequence[ScaleRecord]) -> list[Checked]:
    """Leave the largest index out, and predict it from the smaller ones; empty with fewer than three sizes."""
    largest = max(records, key=lambda record: record.n_chunks)
    others = [record for record in records if record.n_chunks < largest.n_chunks]
    if len({record.n_chunks for record in others}) < 2:
        return []
    return [
        Checked(cost, largest.n_chunks, measured, fit(cost, others).at(size_of(largest)))
        for cost in COSTS
        if (measured := cost.measured(largest)) > 0
    ]


def larger(records: Sequence[ScaleRecord], n_chunks: int) -> Size:
    """The size of an index that was not measured: documents in proportion, lists as `auto` has, as many of them probed.

    nprobe is that of the largest measured index.
    """
    largest = max(records, key=lambda record: record.n_chunks)
    n_documents = n_chunks * largest.n_documents / largest.n_chunks
    return Size(n_documents, n_chunks, n_lists_for(n_chunks), largest.nprobe)
