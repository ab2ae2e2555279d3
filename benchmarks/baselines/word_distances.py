"""Distances between documents as bags of words with vectors: word mover's and word rotator's, by optimal transport.

Letters in shapes: V words with a vector, n and m words of two documents, N documents, D width."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.word_vectors import (
    Texts,
    VectorSource,
    Word2VecConfig,
    WordVectors,
    are_content,
    read_texts,
    source_settings,
    word_vectors,
)
from benchmarks.packages import optional
from benchmarks.systems import Ranking, Settings
from engine.encoders.encoder import unit
from engine.errors import EngineError
from engine.text.document import Document


@dataclass(frozen=True)
class WordBag:
    """The distinct words of a document."""

    rows: NDArray[np.int64]  # (n,) of the word vectors, rising
    counts: NDArray[np.int64]  # (n,) occurrences of each word in the document


class WordCounter:
    """Counts the words of documents; stop words, digits and words without a vector are left out."""

    def __init__(self, vectors: WordVectors, *, n_known: int | None = None) -> None:
        """Select the content words that have a vector.

        Args:
            vectors: the vectors of words; words with a zero vector are left out too.
            n_known: only this number of the most frequent words has a vector; by default all words.

        Raises:
            MissingExtra: gensim is not installed.
        """
        words = list(vectors.row)
        rows = np.array([vectors.row[word] for word in words], np.int64)
        limit = np.inf if n_known is None else n_known
        has_length: NDArray[np.bool_] = np.any(vectors.vectors, axis=1)
        is_known = are_content(words) & (vectors.ranks[rows] < limit) & has_length[rows]
        self._row = {words[at]: int(rows[at]) for at in np.flatnonzero(is_known)}

    def bags(self, texts: Texts) -> list[WordBag]:
        """A bag for each document; it can be empty."""
        row_of = np.array([self._row.get(word, -1) for word in texts.vocabulary], np.int64)
        bags = []
        for numbers in texts.numbers:
            found = row_of[numbers]
            rows, counts = np.unique(found[found >= 0], return_counts=True)
            bags.append(WordBag(rows, counts.astype(np.int64)))
        return bags


class WordVectorBaseline(ABC):
    """A `TextBaseline` over word vectors.

    Any document can be a query; its words that are in no document of the corpus have no vector.
    """

    name: str
    encoder = ""

    def __init__(self, source: VectorSource, own: Settings, *, n_known: int | None = None) -> None:
        """Take the source of word vectors, the settings of the baseline itself, and `n_known` of a `WordCounter`.

        Raises:
            DatasetError: the file of vectors cannot be read.
        """
        self.settings: Settings = {**own, **source_settings(source)}
        self._source = source
        self._n_known = n_known
        self._counter: WordCounter | None = None
        self._doc_ids: tuple[str, ...] = ()
        self._row: dict[str, int] = {}

    def fit(self, documents: Iterable[Document]) -> Self:
        """As `TextBaseline.fit`.

        Raises:
            MissingExtra: gensim is not installed.
            TrainingError: no word is frequent enough.
            DatasetError: the file has no word vectors.
        """
        texts = read_texts(documents)
        return self.fit_words(texts, word_vectors(self._source, texts))

    def fit_words(self, texts: Texts, vectors: WordVectors) -> Self:
        """As `fit`, with existing vectors; they must be from the source in the settings."""
        self._doc_ids = texts.doc_ids
        self._row = {doc_id: row for row, doc_id in enumerate(texts.doc_ids)}
        self._counter = WordCounter(vectors, n_known=self._n_known)
        self._prepare(self._counter.bags(texts), vectors)
        return self

    def bag_of(self, query: Document) -> WordBag:
        """The known words of any document."""
        assert self._counter is not None, "fit comes before search"
        return self._counter.bags(read_texts([query]))[0]

    @abstractmethod
    def _prepare(self, bags: Sequence[WordBag], vectors: WordVectors) -> None:
        """Store the data for comparing documents; bag i is the bag of the i-th document."""

    @abstractmethod
    def search(self, query: Document, k: int) -> Ranking:
        """As `System.search`; a query without a known word has no hits, and a target without one is never a hit."""

    @abstractmethod
    def score(self, first: str, second: str) -> float:
        """As `TextBaseline.score`."""


Floats = NDArray[np.float64]
_PIVOTS = 10_000_000  # limit of the simplex; POT's default is too low for documents of some thousand words
_BLOCK = 4096  # words whose distances to a query are in memory at once


class TransportError(EngineError):
    """Raised when the transport problem is not solved within the limit of pivots."""


@dataclass(frozen=True)
class Ground:
    """The points of words, their weights, and the cost of moving mass between them.

    Moving over a distance d costs f(d); f is 0 at 0, increasing and convex.
    """

    points: NDArray[np.float32]  # (V, D)
    weights: Floats  # (V,) above 0; the mass of a word is this times its count
    cost: Callable[[Floats], Floats]  # f
    farthest: float  # the largest cost between two words


@dataclass(frozen=True)
class Mass:
    """The words of a document as mass on the ground."""

    rows: NDArray[np.int64]  # (n,) of the points
    shares: Floats  # (n,) of sum 1; empty if a document has no known word


def mass_of(bag: WordBag, ground: Ground, most: int | None) -> Mass:
    """The mass of a document: of more than `most` words the heaviest are kept, of equally heavy ones the first."""
    heavy = bag.counts * ground.weights[bag.rows]
    kept = np.sort(np.argsort(-heavy, kind="stable")[:most])
    return Mass(bag.rows[kept], heavy[kept] / heavy[kept].sum())


def costs(ground: Ground, one: Mass, other: Mass) -> Floats:
    """(n, m) costs of moving each word of one document onto each word of another."""
    return ground.cost(_distances(_at(ground, one.rows), _at(ground, other.rows)))


def transport(moves: Floats, one: Mass, other: Mass) -> float:
    """The least cost of moving one document onto another, by POT's network simplex.

        min_T sum_ij T_ij c_ij,  T >= 0,  sum_j T_ij = p_i,  sum_i T_ij = q_j

    Args:
        moves: (n, m) the costs c.
        one: the document with the shares p.
        other: the document with the shares q.

    Raises:
        MissingExtra: POT is not installed.
        TransportError: the simplex did not finish within its limit of pivots.
    """
    emd2 = optional("ot", "optimal transport", "POT").emd2
    cost, log = emd2(one.shares, other.shares, np.ascontiguousarray(moves), numItermax=_PIVOTS, log=True)
    if log["warning"] is not None:
        raise TransportError(
            f"moving {moves.shape[0]} words onto {moves.shape[1]} did not end in {_PIVOTS:,} pivots "
            f"({log['warning']}); lower max_words"
        )
    return float(cost)


def relaxed(moves: Floats, one: Mass, other: Mass) -> float:
    """A lower bound of `transport`: each word is moved to its nearest word, on either side.

    RWMD of Kusner et al. (2015), section 4: one of the two constraints is dropped, and the bound is the
    larger of the two minima. It holds for any costs.
    """
    return float(max(one.shares @ moves.min(axis=1), other.shares @ moves.min(axis=0)))


class Lowest:
    """Lower bounds of the costs of moving a document onto each document of a corpus, for all targets at once."""

    def __init__(self, ground: Ground, masses: Sequence[Mass]) -> None:
        """Take the documents of a corpus, including those without words."""
        self._ground = ground
        self._centroids = np.stack([mass.shares @ _at(ground, mass.rows) for mass in masses])  # (N, D)
        flat = np.concatenate([mass.rows for mass in masses])
        self._used, self._places = np.unique(flat, return_inverse=True)
        self._shares = np.concatenate([mass.shares for mass in masses])
        self._owners = np.repeat(np.arange(len(masses)), [len(mass.rows) for mass in masses])

    def __call__(self, query: Mass) -> Floats:
        """(N,) the larger of two bounds.

        The centroids (WCD of Kusner et al., where f(d) = d): by Jensen's inequality
        sum_ij T_ij f(|x_i - y_j|) >= f(|sum_i p_i x_i - sum_j q_j y_j|). And one side of
        `relaxed`: each word of a target is moved to its nearest word of the query.
        """
        points = _at(self._ground, query.rows)
        centroid = query.shares @ points
        apart = self._ground.cost(np.linalg.norm(self._centroids - centroid, axis=1))
        nearest = np.empty(len(self._used))
        for first in range(0, len(self._used), _BLOCK):
            block = slice(first, first + _BLOCK)
            nearest[block] = _distances(points, _at(self._ground, self._used[block])).min(axis=0)
        moved = self._shares * self._ground.cost(nearest)[self._places]
        return np.maximum(apart, np.bincount(self._owners, moved, minlength=len(self._centroids)))


def _at(ground: Ground, rows: NDArray[np.int64]) -> Floats:
    # In float32, small distances would be lost to cancellation.
    return ground.points[rows].astype(np.float64)


def _distances(one: Floats, other: Floats) -> Floats:
    squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T  # (n, m)
    distances: Floats = np.sqrt(np.maximum(squares, 0))
    return distances


_ROUNDING = 1e-6  # by which a bound can exceed an equal cost


@dataclass(frozen=True)
class Found:
    """The nearest targets, and the number of transport problems solved."""

    rows: list[int]  # nearest first, equally near ones by row
    costs: list[float]
    n_solved: int  # transport problems; at most one for each target


def prefetch_and_prune(
    bounds: NDArray[np.float64],
    k: int,
    cost: Callable[[int, float], float | None],
    *,
    most: int | None = None,
) -> Found:
    """Find the k targets of the least cost, computing as few costs as their bounds allow.

    Args:
        bounds: (N,) lower bounds of the costs; infinite where a target is left out.
        k: the number of targets.
        cost: maps a row and a limit to the cost of the row, or to None if a bound shows that it is above the limit.
        most: the largest number of targets to examine, those of the lowest bounds; by default every target that could
            be among the k is examined, and the result is exact.
    """
    order = np.argsort(bounds, kind="stable")[:most]
    best: list[tuple[float, int]] = []  # a heap of the k best, the worst on top, both values negated
    n_solved = 0
    for row in order.tolist() if k else []:
        limit = -best[0][0] + _ROUNDING if len(best) == k else np.inf
        if bounds[row] > limit or bounds[row] == np.inf:
            break
        found = cost(row, limit)
        if found is None:
            continue
        n_solved += 1
        place = (-found, -row)
        if len(best) < k:
            heapq.heappush(best, place)
        else:
            heapq.heappushpop(best, place)
    ranked = sorted((-negated, -row) for negated, row in best)
    return Found([row for _, row in ranked], [value for value, _ in ranked], n_solved)


@dataclass(frozen=True)
class TransportConfig:
    """Limits on the words and targets that are compared; None for all, as the distances are defined.

    Time grows between the square and the cube of `max_words`.
    """

    max_words: int | None = 300  # most distinct words of a document, the heaviest
    max_targets: int | None = 200  # most targets of a query whose cost is computed, those of the lowest bounds


class TransportBaseline(WordVectorBaseline):
    """Ranks by minus the least cost of moving the words of the query onto those of a target."""

    def __init__(
        self,
        source: VectorSource = Word2VecConfig(),  # noqa: B008
        config: TransportConfig = TransportConfig(),
    ) -> None:
        """Start without a corpus; `fit` reads one."""
        limits = {name: value or "all" for name, value in asdict(config).items()}
        super().__init__(source, limits)
        self._config = config
        self._ground: Ground | None = None
        self._masses: Sequence[Mass] = ()
        self._lowest: Lowest | None = None

    @abstractmethod
    def _ground_of(self, vectors: WordVectors) -> Ground:
        """The points, weights and costs of words."""

    def _prepare(self, bags: Sequence[WordBag], vectors: WordVectors) -> None:
        self._ground = ground = self._ground_of(vectors)
        self._masses = [mass_of(bag, ground, self._config.max_words) for bag in bags]
        self._lowest = Lowest(ground, self._masses)

    def search(self, query: Document, k: int) -> Ranking:
        """As `System.search`; a query without a known word has no hits, and a target without one is never a hit."""
        found = self.nearest(query, k)
        return [(self._doc_ids[row], -cost) for row, cost in zip(found.rows, found.costs, strict=True)]

    def nearest(self, query: Document, k: int) -> Found:
        """At most k documents with other ids than the query, nearest first, and the number of problems solved."""
        assert self._ground is not None and self._lowest is not None
        ground, asked = self._ground, mass_of(self.bag_of(query), self._ground, self._config.max_words)
        if not len(asked.rows):
            return Found([], [], 0)

        def cost(row: int, limit: float) -> float | None:
            moves = costs(ground, asked, self._masses[row])
            if relaxed(moves, asked, self._masses[row]) > limit:
                return None
            return transport(moves, asked, self._masses[row])

        is_left_out = np.array([not len(mass.rows) for mass in self._masses])
        if query.doc_id in self._row:
            is_left_out[self._row[query.doc_id]] = True
        bounds = np.where(is_left_out, np.inf, self._lowest(asked))
        return prefetch_and_prune(bounds, k, cost, most=self._config.max_targets)

    def score(self, first: str, second: str) -> float:
        """Minus the least cost; minus the largest cost of two words if a document has no known word."""
        assert self._ground is not None
        one, other = self._masses[self._row[first]], self._masses[self._row[second]]
        if not len(one.rows) or not len(other.rows):
            return -self._ground.farthest
        return -transport(costs(self._ground, one, other), one, other)


class WordMovers(TransportBaseline):
    """Optimal transport between normalised counts, with Euclidean distances between unit word vectors as costs.

        WMD = min_T sum_ij T_ij |x_i - y_j|,  sum_j T_ij = count_i / sum of counts

    The paper uses word vectors without normalisation; gensim's `wmdistance` uses unit vectors,
    as here. English stop words are dropped as in the paper, but by another list.
    """

    name = "wmd"

    def _ground_of(self, vectors: WordVectors) -> Ground:
        return Ground(unit(vectors.vectors), np.ones(len(vectors.vectors)), lambda distance: distance, 2.0)


class WordRotators(TransportBaseline):
    """Optimal transport between the lengths of word vectors, with one minus the cosine as cost.

        WRD = min_T sum_ij T_ij (1 - cos(x_i, y_j)),  sum_j T_ij = count_i |x_i| / sum of the same

    (arXiv:2004.15003), where 1 - cos = |u - v|^2 / 2 of unit vectors u, v. The words are the
    same as for `WordMovers`: the two differ only in mass and cost.
    """

    name = "wrd"

    def _ground_of(self, vectors: WordVectors) -> Ground:
        lengths = np.linalg.norm(vectors.vectors.astype(np.float64), axis=1)
        return Ground(unit(vectors.vectors), lengths, lambda distance: distance**2 / 2, 2.0)
