"""The best targets of a query by the joint score, the input of a second stage.

Letters in shapes: T targets of a query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.frozen.corpora import FrozenCorpus
from benchmarks.metrics import evaluate
from engine.index import Index
from engine.search.partition import Selection

COMPONENTS = ("chunks", "document", "words", "pairs")


@dataclass(frozen=True)
class Candidates:
    """The best targets of one query by the joint score, best first."""

    query: int  # position of the document in its corpus
    places: NDArray[np.int64]  # (T,)
    scores: NDArray[np.float32]  # (T,) joint
    components: NDArray[np.float32]  # (T, 4)
    gains: NDArray[np.float32]  # (T,) 2^relevance - 1

    @property
    def can_teach(self) -> bool:
        """Whether the candidates include a relevant target and another one."""
        return bool(0 < np.count_nonzero(self.gains) < len(self.gains))


@dataclass(frozen=True)
class RankedCorpus:
    """A corpus whose queries have candidates."""

    vectors: FrozenCorpus
    train: Sequence[Candidates]  # of training queries, only those with `can_teach`
    measured: Sequence[Candidates]  # of the measured queries, in their order

    def ndcg(self, scores: Sequence[NDArray[np.floating]]) -> list[float]:
        """nDCG@10 of each measured query, with its candidates ranked by these scores."""
        ids, runs = self.vectors.ids, {}
        for one, of_one in zip(self.measured, scores, strict=True):
            order = np.argsort(-of_one, kind="stable")
            runs[ids[one.query]] = [ids[place] for place in one.places[order].tolist()]
        return [round(value, 4) for value in evaluate(self.vectors.qrels, runs)["nDCG@10"].values()]


def ranked_corpus(corpus: FrozenCorpus, index: Index, *, n_train: int, depth: int, seed: int) -> RankedCorpus:
    """Find `depth` candidates for at most `n_train` training queries, chosen by `seed`, and for measured queries."""
    place_of = {doc_id: place for place, doc_id in enumerate(corpus.ids)}
    held_out = np.ones(len(corpus.ids), bool)
    held_out[corpus.trainable] = False
    chosen = np.random.default_rng(seed).permutation(list(corpus.pairs))[:n_train]
    train = [_candidates(corpus, index, query, corpus.related[query], depth) for query in chosen.tolist()]
    kept = [_without(one, held_out) for one in train]
    measured = [
        _candidates(corpus, index, place_of[query], {place_of[t]: r for t, r in judged.items() if t in place_of}, depth)
        for query, judged in corpus.qrels.items()
    ]
    return RankedCorpus(corpus, [one for one in kept if one.can_teach], measured)


def _candidates(corpus: FrozenCorpus, index: Index, query: int, relevance: Mapping[int, int], depth: int) -> Candidates:
    searcher, name = index.searcher(), corpus.ids[query]
    best = searcher.ranks(searcher.prepare(index.stored_query(name)), Selection(None, (name,)), depth).best.exact
    grades = np.array([max(0, relevance.get(place, 0)) for place in best.positions.tolist()])
    return Candidates(
        query,
        best.positions,
        best.scores.astype(np.float32),
        np.stack([getattr(best.components, name) for name in COMPONENTS], axis=1).astype(np.float32),
        (2.0**grades - 1).astype(np.float32),
    )


def _without(one: Candidates, left_out: NDArray[np.bool_]) -> Candidates:
    """The candidates without the documents in `left_out`."""
    kept = ~left_out[one.places]
    return Candidates(one.query, one.places[kept], one.scores[kept], one.components[kept], one.gains[kept])
