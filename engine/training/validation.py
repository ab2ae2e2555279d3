"""Quality of an encoder in training: nDCG@10 of valid queries by the chunk component alone. Trains nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument, Vectors
from engine.encoders.trainable import TrainableEncoder
from engine.errors import TrainingError
from engine.scoring.evidence import Scoring, chunk_component, chunk_weights, reference_threshold, thresholds
from engine.scoring.lists import segment_max
from engine.text.document import Document
from engine.training.corpus import Judgments, TrainingCorpus, readable
from engine.training.selection import spread_chunks

DEPTH = 10
_DOCUMENTS_AT_A_TIME = 64


class Validation:
    """Ranks a corpus for its valid queries: nDCG@10 of the chunk component of the score, over all documents.

    Encoding a whole corpus takes minutes on a CPU, so each document can be reduced
    to some chunks, evenly spread over it. The values are then lower than those of
    whole documents, and only fit to compare encoders with each other.
    """

    def __init__(
        self,
        corpus: TrainingCorpus,
        encoder: TrainableEncoder,
        *,
        chunks: int | None = None,
        queries: int | None = None,
        documents: int | None = None,
        scoring: Scoring | None = None,
    ) -> None:
        """Prepare the corpus.

        Args:
            chunks: maximum number of chunks of a document to encode.
            queries: maximum number of queries, the first ones.
            documents: number of documents to rank: the queries, their judged targets, and others drawn once.

        Raises:
            TrainingError: there are no valid judgments.
        """
        if not corpus.valid:
            raise TrainingError(
                f"corpus {corpus.name} has no valid queries; give it splits.json and qrels.tsv, or train without"
            )
        self.name = corpus.name
        self._encoder = encoder
        self._scoring = scoring or Scoring()
        self._qrels = dict(list(corpus.valid.items())[:queries])
        pool = _pool(corpus, self._qrels, documents)
        cut = readable(encoder, pool.values())
        self._documents = cut if chunks is None else [spread_chunks(document, chunks) for document in cut]
        self._row = {segmented.document.doc_id: row for row, segmented in enumerate(self._documents)}
        self.n_tokens = sum(chunk.n_tokens for document in self._documents for chunk in document.chunks)

    def ndcg(self) -> float:
        """Mean nDCG@10 over the valid queries, in [0, 1], with gain 2^relevance - 1."""
        values = self.by_query()
        return float(np.mean(list(values.values())))

    def by_query(self) -> Mapping[str, float]:
        """nDCG@10 of each query."""
        encoded = self._encode()
        chunks = np.concatenate([document.chunks for document in encoded])
        starts = np.cumsum([0, *(len(one.chunks) for one in encoded)])
        values = {}
        for query_id, judged in self._qrels.items():
            if query_id not in self._row:
                values[query_id] = 0.0
                continue
            scores = self._scores(self._row[query_id], encoded, chunks, starts)
            best = np.argsort(-scores, kind="stable")[:DEPTH]
            ranking = [self._documents[row].document.doc_id for row in best if scores[row] > 0]
            values[query_id] = ndcg(ranking, judged, DEPTH)
        return values

    def _encode(self) -> list[EncodedDocument]:
        encoded: list[EncodedDocument] = []
        for first in range(0, len(self._documents), _DOCUMENTS_AT_A_TIME):
            encoded.extend(self._encoder.encode_segmented(self._documents[first : first + _DOCUMENTS_AT_A_TIME]))
        return encoded

    def _scores(
        self, own: int, encoded: Sequence[EncodedDocument], chunks: Vectors, starts: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """(N,) the chunk component of all documents for query `own`, the others as the reference; its own is -1."""
        query = encoded[own]
        best = segment_max(query.chunks @ chunks.T, starts[:-1])
        theta = reference_threshold(np.delete(best, own, axis=1), self._scoring.exceeding)
        weights = chunk_weights(np.array([chunk.n_tokens for chunk in query.chunk_spans]))
        scores = chunk_component(best, thresholds(theta, weights, self._scoring), self._scoring)
        scores[own] = -1
        return scores


def _pool(corpus: TrainingCorpus, qrels: Judgments, most: int | None) -> Mapping[str, Document]:
    """All judged documents, and others up to `most`, in the order of the corpus."""
    if most is None or most >= len(corpus.documents):
        return corpus.documents
    judged = {*qrels, *(target for targets in qrels.values() for target in targets)}
    others = [doc_id for doc_id in corpus.documents if doc_id not in judged]
    drawn = np.random.default_rng(0).permutation(len(others))[: max(0, most - len(judged))]
    names = judged | {others[int(position)] for position in drawn}
    return {doc_id: document for doc_id, document in corpus.documents.items() if doc_id in names}


def ndcg(ranking: Sequence[str], judged: Mapping[str, int], depth: int) -> float:
    """nDCG@depth of one ranking, with the gain 2^relevance - 1 of Burges et al. (2005).

    Args:
        depth: at least 1.

    Returns:
        In [0, 1]; 0 where nothing is relevant.
    """
    discounts = 1 / np.log2(np.arange(2, depth + 2))
    gains = [2.0 ** max(judged.get(target, 0), 0) - 1 for target in ranking[:depth]]
    ideal = sorted((2.0 ** max(grade, 0) - 1 for grade in judged.values()), reverse=True)[:depth]
    best = float(np.dot(ideal, discounts[: len(ideal)]))
    return float(np.dot(gains, discounts[: len(gains)])) / best if best > 0 else 0.0
