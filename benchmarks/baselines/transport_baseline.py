"""A baseline by optimal transport between words; which ground they lie on, the distance's own file says."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.baselines.transport import Ground, Lowest, Mass, costs, mass_of, relaxed, transport
from benchmarks.baselines.transport_search import Found, prefetch_and_prune
from benchmarks.baselines.vector_file import WordVectors
from benchmarks.baselines.word_bags import WordBag
from benchmarks.baselines.word_vector_baseline import WordVectorBaseline
from benchmarks.baselines.word_vectors import VectorSource, Word2VecConfig
from benchmarks.systems import Ranking
from engine.document import Document


@dataclass(frozen=True)
class TransportConfig:
    """How much of documents and corpus is looked at; None is all, as the distances are defined.

    Time grows between the square and the cube of `max_words`.
    """

    max_words: int | None = 300  # distinct words of a document, its heaviest
    max_targets: int | None = 200  # of a query that words are moved onto, those of the lowest bounds


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
        """Lay the words out."""

    def _prepare(self, bags: Sequence[WordBag], vectors: WordVectors) -> None:
        self._ground = ground = self._ground_of(vectors)
        self._masses = [mass_of(bag, ground, self._config.max_words) for bag in bags]
        self._lowest = Lowest(ground, self._masses)

    def search(self, query: Document, k: int) -> Ranking:
        """As `System.search`; a document without a known word finds nothing, and is not found."""
        found = self.nearest(query, k)
        return [(self._doc_ids[row], -cost) for row, cost in zip(found.rows, found.costs, strict=True)]

    def nearest(self, query: Document, k: int) -> Found:
        """The rows of at most k documents of other ids, nearest first, and how many were looked at."""
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
        """Minus the least cost; that of the farthest words where a document has no known word."""
        assert self._ground is not None
        one, other = self._masses[self._row[first]], self._masses[self._row[second]]
        if not len(one.rows) or not len(other.rows):
            return -self._ground.farthest
        return -transport(costs(self._ground, one, other), one, other)
