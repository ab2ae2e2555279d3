"""Selection by stored vectors or words: chunks of the documents of a batch, and hard negatives.

Letters in shapes: B queries, T targets, I chunks of a query, J of a target.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import SegmentedDocument, Vectors
from engine.errors import MissingExtra, TrainingError
from engine.index import Index
from engine.text.segmentation import Coverage
from engine.training.corpus import TrainingCorpus

Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Queries and targets of one corpus, and how they are related."""

    queries: Sequence[SegmentedDocument]  # B
    targets: Sequence[SegmentedDocument]  # T
    positives: NDArray[np.bool_]  # (B, T) True where a target belongs to a query
    excluded: NDArray[np.bool_]  # (B, T) True where it is neither positive nor negative


# Cuts each document of a batch down to some of its chunks, at least one.
Selector: TypeAlias = Callable[[PairBatch, np.random.Generator], PairBatch]
# Negatives of a query, hardest first: without the query, targets related to it, and held-out documents.
Miner: TypeAlias = Callable[[str], Sequence[str]]


def keep_chunks(segmented: SegmentedDocument, positions: Sequence[int] | Positions) -> SegmentedDocument:
    """A document reduced to some of its chunks, in reading order; its coverage counts their tokens as read."""
    numbers = sorted({int(position) for position in positions})
    chunks = tuple(segmented.chunks[position] for position in numbers)
    read = sum(chunk.n_tokens for chunk in chunks)
    return replace(
        segmented,
        chunks=chunks,
        token_ids=tuple(segmented.token_ids[position] for position in numbers),
        title_ids=segmented.title_ids if numbers[:1] == [0] else (),
        coverage=Coverage(read, segmented.coverage.tokens_total),
    )


def spread_chunks(segmented: SegmentedDocument, most: int) -> SegmentedDocument:
    """At most `most` chunks, evenly spread from the first to the last."""
    n = len(segmented.chunks)
    if n <= most:
        return segmented
    return keep_chunks(segmented, np.linspace(0, n - 1, most).round().astype(np.int64))


@dataclass(frozen=True)
class RandomRuns:
    """A `Selector` of a run of neighbouring chunks with a random start."""

    query_chunks: int  # at most, at least 1
    target_chunks: int

    def __call__(self, batch: PairBatch, rng: np.random.Generator) -> PairBatch:
        """Select chunks."""
        return replace(
            batch,
            queries=[_run(document, self.query_chunks, rng) for document in batch.queries],
            targets=[_run(document, self.target_chunks, rng) for document in batch.targets],
        )


def _run(segmented: SegmentedDocument, most: int, rng: np.random.Generator) -> SegmentedDocument:
    n = len(segmented.chunks)
    first = int(rng.integers(0, max(n - most, 0) + 1))
    return keep_chunks(segmented, range(first, min(first + most, n)))


@dataclass(frozen=True)
class EvidenceChunks:
    """A `Selector` of the chunks that decide the ranking, by the stored vectors of an index of the corpus.

    A query chunk is likely to be drawn if its best match in the positive, or in a hard
    negative, is far above its threshold. Of a target, the best matches of the drawn query
    chunks are kept. With e_i(t) as in `engine.scoring.evidence`, and theta taken from the
    batch, query chunk i is drawn with weight

        e_i(t+) + max_t e_i(t) / 2 + floor

    without replacement (Gumbel top-k). The floor gives every chunk a chance. Stored
    vectors only choose the chunks; the loss uses newly computed vectors.
    """

    FLOOR: ClassVar[float] = 1e-4
    index: Index
    query_chunks: int  # at most, at least 1
    target_chunks: int
    threshold_rank: int  # M, at least 1; theta is the similarity of the (M+1)-th best target of the batch

    def __call__(self, batch: PairBatch, rng: np.random.Generator) -> PairBatch:
        """Select chunks."""
        targets = [self._vectors(document) for document in batch.targets]
        stacked = np.concatenate(targets)
        starts = np.cumsum([0, *map(len, targets)])
        wanted: list[set[int]] = [set() for _ in targets]
        queries = []
        for row, document in enumerate(batch.queries):
            products = self._vectors(document) @ stacked.T  # (I, all J)
            evidence = self._evidence(products, starts, batch.positives[row], batch.excluded[row])
            weight = evidence[:, batch.positives[row]].max(1, initial=0) + evidence.max(1) / 2 + self.FLOOR
            keys = np.log(weight) + rng.gumbel(size=len(weight))
            chosen = np.sort(np.argsort(-keys)[: self.query_chunks])
            queries.append(keep_chunks(document, chosen))
            self._want(wanted, products[chosen], evidence[chosen], starts, batch.positives[row])
        shortened = [
            keep_chunks(document, _filled(wanted[column], len(document.chunks), self.target_chunks, rng))
            for column, document in enumerate(batch.targets)
        ]
        return replace(batch, queries=queries, targets=shortened)

    def _vectors(self, segmented: SegmentedDocument) -> Vectors:
        doc_id = segmented.document.doc_id
        vectors = self.index.chunk_vectors(doc_id)
        if len(vectors) != len(segmented.chunks):
            raise TrainingError(
                f"{self.index.snapshot.folder} holds {len(vectors)} chunks of {doc_id}, the encoder in training cuts "
                f"{len(segmented.chunks)}; index the corpus with the encoder that training starts from"
            )
        return vectors

    def _evidence(
        self, products: Vectors, starts: NDArray[np.int64], positives: NDArray[np.bool_], excluded: NDArray[np.bool_]
    ) -> Vectors:
        """(I, T) squared margin of the best match in each target above theta; 0 where excluded."""
        best = np.maximum.reduceat(products, starts[:-1], axis=1)
        others = np.where(positives | excluded, -1.0, best)
        place = min(self.threshold_rank, others.shape[1] - 1)
        theta = -np.partition(-others, place, axis=1)[:, place]
        above = np.clip(best - np.clip(theta, 0, 1)[:, None], 0, None) ** 2
        return np.asarray(np.where(excluded, 0, above), np.float32)

    def _want(
        self,
        wanted: list[set[int]],
        products: Vectors,
        evidence: Vectors,
        starts: NDArray[np.int64],
        positives: NDArray[np.bool_],
    ) -> None:
        """Add the best matches to `wanted`: of every target that has evidence, and of the positives in any case."""
        for column, positions in enumerate(wanted):
            rows = np.arange(len(products)) if positives[column] else np.flatnonzero(evidence[:, column] > 0)
            if len(rows) and (positives[column] or len(positions) < self.target_chunks):
                positions.update(products[rows, starts[column] : starts[column + 1]].argmax(1).tolist())


def _filled(wanted: set[int], n: int, most: int, rng: np.random.Generator) -> list[int]:
    """At most `most` of the wanted chunks; if fewer than half of `most`, random chunks are added up to half."""
    chosen = [int(position) for position in rng.permutation(sorted(wanted))[:most]]
    fewest = min(n, max(1, most // 2))
    others = (int(position) for position in rng.permutation(n) if position not in wanted)
    while len(chosen) < fewest:
        chosen.append(next(others))
    return chosen


DEPTH = 60  # targets of a ranking that are considered
MARGIN = 0.95


def hard_negatives(
    ranking: Iterable[tuple[str, float]], related: Mapping[str, int], held_out: frozenset[str], margin: float
) -> list[str]:
    """Targets of a ranking, in its order, that are safe to use as negatives.

    Judgments have gaps: a target that ranks above a known positive is often a positive
    without a judgment. So a target counts as negative only if its score is at most
    `margin` times that of the best related one in the ranking (the positive-aware
    mining of NV-Retriever, Moreira et al. 2024, arXiv:2407.15831, its "TopK-PercPos",
    with the best in place of the one positive). If no related target is in the
    ranking, all its targets count.

    Args:
        ranking: targets and scores, best first, without the query itself; scores at least 0.
        margin: above 0; 1 keeps all that rank below the best related one.
    """
    scored = list(ranking)
    best = max((score for target, score in scored if target in related), default=float("inf"))
    return [
        target
        for target, score in scored
        if target not in related and target not in held_out and score <= margin * best
    ]


def index_miner(index: Index, corpus: TrainingCorpus, *, depth: int = DEPTH, margin: float = MARGIN) -> Miner:
    """Negatives by the model itself: the hits of a search in an index of the corpus, once for each query.

    The miner raises QueryError for a query that the index does not hold.
    """

    @cache
    def negatives(query_id: str) -> list[str]:
        hits = index.rank_id(query_id, k=depth)
        ranking = [(doc_id, score) for doc_id, score in hits if doc_id in corpus.documents]
        return hard_negatives(ranking, corpus.related.get(query_id, {}), corpus.held_out, margin)

    return negatives


def lexical_miner(corpus: TrainingCorpus, *, depth: int = DEPTH, margin: float = MARGIN) -> Miner:
    """Negatives by BM25 over whole texts: they share words with the query, whatever their score by the model."""
    try:
        import bm25s
    except ModuleNotFoundError as error:
        raise MissingExtra("mining with BM25", "bm25s", "training") from error
    doc_ids = list(corpus.documents)
    tokenize: Any = partial(bm25s.tokenize, stopwords="en", show_progress=False, return_ids=False)
    retriever = bm25s.BM25(method="lucene")
    words = dict(zip(doc_ids, tokenize([document.text for document in corpus.documents.values()]), strict=True))
    if any(words.values()):  # bm25s divides by the mean length
        retriever.index(list(words.values()), show_progress=False)

    @cache
    def negatives(query_id: str) -> list[str]:
        if not words[query_id]:
            return []
        scores = retriever.get_scores(words[query_id])
        order = np.argsort(-scores, kind="stable")[: depth + 1]
        ranking = [(doc_ids[row], float(scores[row])) for row in order if scores[row] > 0 and doc_ids[row] != query_id]
        return hard_negatives(ranking, corpus.related.get(query_id, {}), corpus.held_out, margin)

    return negatives
