"""From vectors to similarities, thresholds, evidence and scores, and the scores that unrelated documents reach.

Chunks. For chunk i of a query, c_i(t) is its best match inside target t, and s_i(t) joins that with the opening of t,
which is its first chunk. theta_i and phi_i are the c_i and the s_i of the (m+1)-th best document of the reference
sample, w_i is a weight:

    c_i(t) = max_j <q_i, t_j>,  s_i(t) = (1 - a_i) c_i(t) + a_i <q_i, t_0>
    a_i    = 0.4 (r_i - 0.2) / 0.2, cut to [0, 0.4];  r_i = correlation of c_i and <q_i, t_0> over the sample
    m_i(t) = (c_i(t) - theta_i) / (1 - theta_i),  cut to [0, 1]
    f_i(t) = max(min((s_i(t) - phi_i) / (s_i(q) - phi_i),  3 m_i(t)),  m_i(t) e_i(t)),  cut to [0, 1]
    e_i(t) = (m_i(t) - 0.4) / 0.4,  cut to [0, 1]
    chunks(q, t) = sum_i w_i (1 - theta_i) ^ p f_i(t) ^ p / sum_i w_i (1 - theta_i) ^ p  in [0, 1]

The imputation is that of XTR (Lee et al. 2023, arXiv:2304.01982), applied to chunks instead of tokens, with a power.
Where XTR uses theta in place of a similarity that it did not retrieve, we subtract theta, so a match that most
documents have is worth nothing. The opening says what a document is about, which a chunk from its middle does not: it
makes a match stronger or weaker, but there is none without a passage above theta. s_i(q) is that of a copy of the
query, which scores 1; where it is not above phi_i by 0.01, openings cannot tell documents apart, and f_i(t) is the
margin of the passage, (c_i(t) - theta_i) / (1 - theta_i). Openings that say what documents are about agree with the
matches inside of them, so a_i is small where they are captions or names. words(q, t) and pairs(q, t) are those of
`engine.words.likelihood`.

    score(q, t) = sum_c v_c component_c(q, t) ^ r,   sum_c v_c = 1                       in [0, 1]

The root r brings components of different size to one scale. A part with a share of a component has
the same share of the contribution of the component, so all parts sum to the score.

Containment measures how much of the query a document contains. The equation is the same with p = 1 and
r = 1, with a_i = 0, and with words and pairs weighted by their share of the query, see
`engine.words.likelihood`. If the query has no chunk, word or pair, the weight of that component goes to the
others, so that a copy of the query in a longer document scores 1, except for effects of how chunks are cut.

Letters in shapes: L lengths of queries, I query chunks, J target chunks, N documents, R documents of the reference or
of a list, D width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.errors import QueryError
from engine.words.apart import ranges

QUERY_BLOCK = 256  # query chunks multiplied at once
NEAR = 1e-5  # more than float32 products of the same rows ever differ by the shapes of the matrices
_PRODUCTS_AT_ONCE = 8_192  # products that are recomputed in float64 at once
ROUNDING = 1e-6  # a margin below it is rounding, not evidence
_LEAST = 1e-9  # so that nothing is divided by 0
_AGREEMENT = (0.2, 0.4)  # r_i up to which openings do not count, and from which on they count in full
_FEWEST_AGREEING = 20  # documents of a sample that shows an agreement; with fewer, openings count in full
LEAST_ROOM = 0.01  # between phi and the s_i of a copy; where there is less, openings do not count
MOST_STRENGTHENED = 3  # times that an opening makes the margin of a passage larger, at most
ALONE = 0.4  # margin above which a passage begins to count without the opening; in full from twice that on
COMPONENTS = ("chunks", "words", "pairs")
LEVELS = (50, 95, 99)  # percentiles of the scores of unrelated pairs
_FEWEST_PER_EXCEEDING = 5  # documents of the reference for each that may be above a threshold


@dataclass(frozen=True, slots=True)
class Matches:
    """For each query chunk its best match inside each target; of equal ones the first in reading order."""

    similarities: Vectors  # (I, R) c_i(t)
    openings: Vectors  # (I, R) <q_i, t_0>
    chunks: NDArray[np.int64]  # (I, R) number of the matching chunk in its document, from 0; -1 below the floor

    def of(self, targets: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Matches:
        """The matches in some of the targets, in the order of the given columns."""
        return Matches(self.similarities[:, targets], self.openings[:, targets], self.chunks[:, targets])

    def put(self, targets: NDArray[np.int64], matches: Matches) -> None:
        """Set the matches in some of the targets."""
        for mine, given in zip(self._arrays, matches._arrays, strict=True):
            mine[:, targets] = given

    def beside(self, other: Matches) -> Matches:
        """These matches and those in other targets."""
        return Matches(*(np.concatenate(both, axis=1) for both in zip(self._arrays, other._arrays, strict=True)))

    @property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self.similarities, self.openings, self.chunks


def no_matches(n_queries: int, n_targets: int) -> Matches:
    """Matches of query chunks in targets without vectors: similarity 0, no place."""
    nothing = np.zeros((n_queries, n_targets), np.float32)
    return Matches(nothing, nothing.copy(), np.full((n_queries, n_targets), -1, np.int64))


def best_chunks(queries: Vectors, vectors: Vectors, starts: NDArray[np.int64]) -> tuple[Vectors, Vectors]:
    """c_i(t) and <q_i, t_0> of every document, (I, R) float32 both; their last digits depend on the shapes.

    Memory is that of `QUERY_BLOCK` query chunks, whatever their number.

    Args:
        queries: (I, D).
        vectors: (J, D) chunks of the documents, one document after another.
        starts: (R,) first row of each document, rising; no document is empty.
    """
    best, openings = zip(*(_best(_table(queries[block], vectors), starts) for block in _blocks(queries)), strict=True)
    return np.concatenate(best), np.concatenate(openings)


def _table(queries: Vectors, vectors: Vectors) -> Vectors:
    """<q_i, t_j> (J, I): with the few queries as columns, BLAS is up to twice as fast."""
    products: Vectors = vectors @ queries.T
    return products


def _best(products: Vectors, starts: NDArray[np.int64]) -> tuple[Vectors, Vectors]:
    """c_i(t) and <q_i, t_0> (I, R) from the products (J, I)."""
    return np.maximum.reduceat(products, starts, axis=0).T, products[starts].T


def best_matches(
    queries: Vectors,
    vectors: Vectors,
    starts: NDArray[np.int64],
    floor: NDArray[np.floating] | Callable[[Vectors, Vectors], NDArray[np.bool_]],
) -> Matches:
    """The best chunk of every document, with its place, to float32 precision whatever the shapes.

    float32 products differ in the last digits by the shapes of the matrices. So products within
    `NEAR` of the best one are recomputed in float64 and rounded to float32. Below the floor a
    similarity has no effect, so the best product is kept as it is, and its place is -1.

    Args:
        floor: (I,) similarity from which on exact similarities are computed; or a function that says where they are,
            (., R), given c_i(t) and <q_i, t_0> of some of the query chunks.
    """
    blocks = []
    for block in _blocks(queries):
        products = _table(queries[block], vectors)
        best, openings = _best(products, starts)
        chunks = np.full(best.shape, -1, np.int64)
        is_above = floor(best, openings) if callable(floor) else best >= floor[block][:, None] - NEAR
        rows, targets = np.nonzero(is_above)
        if len(rows):
            near = _near(products, best, rows, targets, starts)
            best[rows, targets], chunks[rows, targets] = _refined(queries[block], vectors, near, starts[targets])
            openings[rows, targets] = _products(queries[block], vectors, rows, starts[targets])
        blocks.append(Matches(best, openings, chunks))
    return Matches(*(np.concatenate([getattr(one, name) for one in blocks]) for name in Matches.__slots__))


@dataclass(frozen=True, slots=True)
class _Near:
    """The chunks that can be the best match in n pairs of a query chunk and a document."""

    pair: NDArray[np.int64]  # (m,) number of the pair, rising
    query: NDArray[np.int64]  # (m,) row of the query chunk
    row: NDArray[np.int64]  # (m,) row of the chunk, rising within a pair


def _near(
    products: Vectors,  # (J, I)
    best: Vectors,
    rows: NDArray[np.int64],  # (n,) query chunks
    targets: NDArray[np.int64],  # (n,) documents
    starts: NDArray[np.int64],
) -> _Near:
    lengths = np.diff(starts, append=len(products))[targets]
    pair, row = np.repeat(np.arange(len(rows)), lengths), ranges(starts[targets], lengths)
    is_near = products[row, rows[pair]] >= best[rows, targets][pair] - NEAR
    return _Near(pair[is_near], rows[pair[is_near]], row[is_near])


def _refined(
    queries: Vectors, vectors: Vectors, near: _Near, starts: NDArray[np.int64]
) -> tuple[Vectors, NDArray[np.int64]]:
    """The best similarity (n,) of each pair, and the number (n,) of its chunk in the document; `starts` is (n,)."""
    exact = _products(queries, vectors, near.query, near.row)
    # By pair, then falling similarity, then reading order: the first of each pair is its best.
    order = np.lexsort((near.row, -exact, near.pair))
    pair = near.pair[order]
    best = order[np.concatenate([[True], pair[1:] != pair[:-1]])]
    return exact[best], near.row[best] - starts


def _products(queries: Vectors, vectors: Vectors, mine: NDArray[np.int64], theirs: NDArray[np.int64]) -> Vectors:
    """The products (n,) of some rows of queries with some rows of vectors, summed in float64."""
    products = np.empty(len(mine), np.float32)
    # A few at a time: if all documents are copies, all products are near the best.
    for first in range(0, len(products), _PRODUCTS_AT_ONCE):
        some = slice(first, first + _PRODUCTS_AT_ONCE)
        one, other = queries[mine[some]].astype(np.float64), vectors[theirs[some]].astype(np.float64)
        products[some] = np.einsum("nd,nd->n", one, other)
    return products


def _blocks(queries: Vectors) -> list[slice]:
    return [slice(first, first + QUERY_BLOCK) for first in range(0, len(queries), QUERY_BLOCK)]


@dataclass(frozen=True, slots=True)
class Scoring:
    """The constants of the score, chosen on the split `valid`, see `benchmarks/RESULTS.md`; weights are relative."""

    chunk_weight: float = 0.27
    word_weight: float = 0.40
    pair_weight: float = 0.33
    opening: float = 0.4  # the most that a_i is, the share of the opening of a target in the similarity of chunk i
    exceeding: int = 8  # m, documents of the reference above a threshold
    power: float = 2.0  # p
    root: float = 0.5  # r
    cover: bool = False  # whether a term counts by the share of its occurrences in the query that a document has

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            QueryError: a constant is out of its range.
        """
        weights = (self.chunk_weight, self.word_weight, self.pair_weight)
        if min(weights) < 0 or not sum(weights) > 0:
            raise QueryError(f"weights {', '.join(map(str, weights))} must be at least 0, and one above 0")
        if not 0 <= self.opening < 1:
            raise QueryError(f"opening is {self.opening}; it must be at least 0 and below 1")
        if self.exceeding < 1:
            raise QueryError(f"exceeding is {self.exceeding}; it must be at least 1")
        if not (self.power > 0 and self.root > 0):
            raise QueryError(f"power {self.power} and root {self.root} must be above 0")

    @property
    def uses_vectors(self) -> bool:
        """Whether vectors have a weight."""
        return self.chunk_weight > 0

    def weights(self, *, vectors: bool = True, words: bool = True) -> dict[str, float]:
        """The weight v_c of each component; the weights of the available components sum to 1."""
        available = {
            "chunks": self.chunk_weight * vectors,
            "words": self.word_weight * words,
            "pairs": self.pair_weight * words,
        }
        total = sum(available.values())
        return {name: weight / total if total else 0.0 for name, weight in available.items()}


# Unrelated texts share many words and few pairs. In a test with sections planted in other documents, up to 30 % of
# their words replaced, pairs with a tenth of words found the most sections at a score of 0.5, and the fewest false
# ones.
CONTAINMENT = Scoring(0.4, word_weight=0.06, pair_weight=0.54, opening=0, power=1, root=1, cover=True)

PASSAGES_ALONE = Scoring(1, word_weight=0, pair_weight=0, opening=0, power=1, root=1)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds above which similarities count, and the most that each chunk can contribute."""

    chunks: Vectors  # (I,) theta_i
    joined: Vectors  # (I,) phi_i
    own: Vectors  # (I,) s_i(q)
    opening: Vectors  # (I,) a_i
    weights: NDArray[np.float64]  # (I,) share of the chunk component of chunk i in a copy of the query; they sum to 1

    @classmethod
    def none(cls) -> Self:
        """Those of a single chunk whose component is its similarity, with `PASSAGES_ALONE`."""
        zero, one = np.zeros(1, np.float32), np.ones(1, np.float32)
        return cls(zero, zero, one, zero, np.ones(1))


def chunk_weights(n_tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """w_i, the square root of the chunk's tokens: a short tail of a section is weaker evidence than a full window."""
    weights: NDArray[np.float64] = np.sqrt(np.maximum(n_tokens, 1).astype(np.float64))
    return weights


def reference_threshold(similarities: NDArray[np.floating], exceeding: int) -> Vectors:
    """theta: similarity of the (m+1)-th best document of the reference.

    In a small reference, at most a fifth of the documents are above theta. In a reference of fewer than
    five documents theta is 0, so that plain similarities count.

    Args:
        similarities: (I, R) best match of each query chunk inside each document of the reference.
        exceeding: m.

    Returns:
        (I,) float32 in [0, 1].
    """
    m = min(exceeding, similarities.shape[1] // _FEWEST_PER_EXCEEDING)
    if not m:
        return np.zeros(len(similarities), np.float32)
    theta = -np.partition(-similarities, m, axis=1)[:, m]
    return np.clip(theta, 0, 1).astype(np.float32)


def opening_shares(best: Vectors, openings: Vectors, most: float) -> Vectors:
    """a_i (I,) in [0, most], from c_i(t) and <q_i, t_0> of the documents of the reference, (I, R) both."""
    if not most or best.shape[1] < _FEWEST_AGREEING:
        return np.full(len(best), most, np.float32)
    matches, heads = (each - each.mean(axis=1, keepdims=True) for each in (best.astype(np.float64), openings))
    spread = np.sqrt(np.einsum("ir,ir->i", matches, matches) * np.einsum("ir,ir->i", heads, heads))
    agreement = np.einsum("ir,ir->i", matches, heads) / np.maximum(spread, _LEAST)
    lowest, highest = _AGREEMENT
    return np.asarray(most * np.clip((agreement - lowest) / (highest - lowest), 0, 1), np.float32)


def own_similarities(chunks: Vectors, first: Vectors, opening: Vectors) -> Vectors:
    """s_i(q) (I,) of the chunks (I, D) of a query, given its first chunk (D,) that takes part in the score, and a_i."""
    openings = np.minimum(chunks.astype(np.float64) @ first.astype(np.float64), 1)
    return np.asarray(1 - opening + opening * openings, np.float32)


def join(best: Vectors, openings: Vectors, opening: Vectors) -> NDArray[np.float64]:
    """s_i(t), of the shape of c_i(t) and <q_i, t_0>, (I, R); opening: a_i (I,)."""
    a = opening[:, None].astype(np.float64)
    return np.asarray((1 - a) * np.minimum(best, 1) + a * openings)


def thresholds(
    theta: Vectors, phi: Vectors, own: Vectors, opening: Vectors, weights: NDArray[np.float64], scoring: Scoring
) -> Thresholds:
    """Scale weights so that the most that each chunk contributes to the component is its weight."""
    room = weights * (1 - theta.astype(np.float64)) ** scoring.power
    total = room.sum()
    return Thresholds(theta, phi, own, opening, room / total if total > 0 else np.zeros_like(room))


def margins(
    best: NDArray[np.floating], openings: NDArray[np.floating], limits: Thresholds, scoring: Scoring
) -> NDArray[np.float64]:
    """f_i(t) ^ p, (I, N) as c_i(t) and <q_i, t_0>, in [0, 1]; exactly 0 where the match is not above theta."""
    theta, phi, own = (limit[:, None].astype(np.float64) for limit in (limits.chunks, limits.joined, limits.own))
    above = np.minimum(best, 1).astype(np.float64) - theta
    # float32 products differ in the last digit by the order of their sums; that is not evidence.
    above = np.where(above > ROUNDING, above, 0.0) / np.maximum(1 - theta, _LEAST)
    if limits.opening.any():
        joined = (join(best, openings, limits.opening) - phi) / np.maximum(own - phi, LEAST_ROOM)
        strengthened = np.clip(joined, 0, np.minimum(MOST_STRENGTHENED * above, 1))
        alone = above * np.clip(above / ALONE - 1, 0, 1)
        counts = (limits.opening[:, None] > 0) & (own - phi > LEAST_ROOM)
        above = np.where(counts, np.maximum(strengthened, alone), above)
    return np.asarray(above**scoring.power)


@dataclass(frozen=True, slots=True)
class Components:
    """The components of the scores of documents, each (N,) in [0, 1]; 0 where there is none."""

    chunks: NDArray[np.float64]
    words: NDArray[np.float64]
    pairs: NDArray[np.float64]

    def of(self, documents: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Components:
        """The components of some documents."""
        return Components(*(getattr(self, name)[documents] for name in COMPONENTS))


def chunk_component(best: Vectors, openings: Vectors, limits: Thresholds, scoring: Scoring) -> NDArray[np.float64]:
    """chunks(q, t) (N,) from c_i(t) and <q_i, t_0>, (I, N) both."""
    return np.asarray(limits.weights @ margins(best, openings, limits, scoring))


def most_difference(error: float, limits: Thresholds, scoring: Scoring) -> float:
    """The most by which chunks^r changes where each similarity changes by at most `error`.

    Each margin changes by at most `shift`, the jump to 0 at `ROUNDING` included; that of a passage alone rises at most
    threefold. For p r = 1 and p >= 1, chunks^r is a norm of the margins, and a norm changes by at most the norm of the
    changes. Other powers are bounded one by one.
    """
    steepness = 1 / np.maximum(1 - limits.chunks.astype(np.float64), _LEAST)
    joined = np.maximum(MOST_STRENGTHENED * steepness, 1 / np.maximum(limits.own - limits.joined, LEAST_ROOM))
    steepness = np.where(limits.opening > 0, joined, steepness)
    shift = np.minimum((error + ROUNDING) * steepness, 1)
    p, r = scoring.power, scoring.root
    if p * r == 1 and p >= 1:
        return float((limits.weights @ shift**p) ** r)
    change = float(limits.weights @ np.minimum(max(p, 1.0) * shift ** min(p, 1.0), 1.0))
    return float(max(r, 1.0) * change ** min(r, 1.0))


def combine(components: Components, weights: dict[str, float], root: float) -> NDArray[np.float64]:
    """The scores (N,) in [0, 1]."""
    added = [weights[name] * getattr(components, name) ** root for name in COMPONENTS]
    return np.asarray(sum(added), np.float64)


@dataclass(frozen=True, slots=True)
class Floor:
    """Percentiles of the scores of unrelated documents for a query of one length."""

    p50: float
    p95: float
    p99: float

    def level(self, score: float) -> int:
        """The highest of `LEVELS` that a score is above; 0 for a score above none."""
        return max((level for level in LEVELS if score > getattr(self, f"p{level}")), default=0)


@dataclass(frozen=True, slots=True)
class FloorTable:
    """The floor for queries of several lengths."""

    lengths: NDArray[np.int64]  # (L,) characters, rising
    scores: NDArray[np.float32]  # (L, 3) the percentiles `LEVELS`

    def at(self, n_characters: int) -> Floor:
        """The floor of a query, between the two nearest lengths on a logarithmic scale."""
        length = math.log(max(1, n_characters))
        known = np.log(self.lengths)
        return Floor(*(round(float(np.interp(length, known, column)), 6) for column in self.scores.T))
