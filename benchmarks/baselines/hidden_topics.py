"""HT (Gong et al. 2018): scores how well a short document fits the main word-vector directions of a long one.

Letters in shapes: N documents, n words of a document, K topics, D width of a word vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.lexical import ranking
from benchmarks.baselines.word_distances import WordBag, WordVectorBaseline
from benchmarks.baselines.word_vectors import VectorSource, Word2VecConfig, WordVectors
from benchmarks.systems import Ranking
from engine.text.document import Document


@dataclass(frozen=True)
class HiddenTopicsConfig:
    """The values of the released code."""

    n_topics: int = 10  # K
    n_known_words: int = 20_000  # the most frequent words that have vectors; others are left out


def hidden_topics(
    words: NDArray[np.float64], counts: NDArray[np.int64], n_topics: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The main directions of the word vectors of a document, and the weight of each.

    The directions are the first K right singular vectors v_k of the matrix with one row for each occurrence of a
    word, not centred; the weights are s_k^2 / (s_1^2 + ... + s_K^2). Both are computed from the eigenvectors of
    sum_w c_w w w^T, which are the same vectors; this matrix is D wide for a document of any length.

    Args:
        words: (n, D) vectors of the distinct words.
        counts: (n,) number of occurrences of each word.
        n_topics: K.

    Returns:
        (K, D) unit rows, the largest weight first, and (K,) weights of sum 1. With fewer words than K some weights
        are 0; without words all are.
    """
    values, directions = np.linalg.eigh((words * counts[:, None]).T @ words)  # rising
    squares = np.maximum(values[::-1][:n_topics], 0)
    total = squares.sum()
    return directions[:, ::-1][:, :n_topics].T, squares / total if total > 0 else squares


class HiddenTopics(WordVectorBaseline):
    """Scores how well the words of one document fit the topics of another:

        score(short, long) = sqrt( sum_k w_k mean_{x in short} cos^2(x, v_k) )

    with the topics v_k and weights w_k of the long document, as in the released code
    (HongyuGong/Document-Similarity-via-Hidden-Topics, commit e003e8e, `mapping`). With
    A = mean x x^T / |x|^2 of the short document, the score is sqrt(sum_k w_k v_k^T A v_k).

    In the paper, the data determine which document is the long one. Here it is the target in a search, where one
    measure must rank all targets, and the document with more words in a pair.
    """

    name = "hidden_topics"

    def __init__(
        self,
        source: VectorSource = Word2VecConfig(),  # noqa: B008
        config: HiddenTopicsConfig = HiddenTopicsConfig(),
    ) -> None:
        """Start without a corpus; `fit` reads one."""
        super().__init__(source, dict(asdict(config)), n_known=config.n_known_words)
        self._config = config
        self._bags: Sequence[WordBag] = ()
        self._words: NDArray[np.float32] = np.empty((0, 0), np.float32)
        self._topics: NDArray[np.float32] = np.empty((0, 0, 0), np.float32)  # (N, K, D)
        self._weights: NDArray[np.float64] = np.empty((0, 0))  # (N, K)

    def _prepare(self, bags: Sequence[WordBag], vectors: WordVectors) -> None:
        self._words = vectors.vectors
        self._bags = bags
        n_topics = min(self._config.n_topics, self._words.shape[1])
        self._topics = np.empty((len(self._bags), n_topics, self._words.shape[1]), np.float32)
        self._weights = np.empty((len(self._bags), n_topics))
        for row, bag in enumerate(self._bags):
            words = self._words[bag.rows].astype(np.float64)
            self._topics[row], self._weights[row] = hidden_topics(words, bag.counts, n_topics)

    def search(self, query: Document, k: int) -> Ranking:
        """As `System.search`; the query is the short document. A query without a known word has no hits."""
        scores = self._fit_of(self.bag_of(query), slice(None))
        return ranking(self._doc_ids, scores, k, own=self._row.get(query.doc_id), least=0.0)

    def score(self, first: str, second: str) -> float:
        """In [0, 1], the same for (second, first); 0 where a document has no known word."""
        # With equally many words the name decides, so that the score does not depend on the order of a pair.
        by_length = sorted((self._bags[self._row[one]].counts.sum(), one) for one in (first, second))
        (_, short), (_, long) = by_length
        row = self._row[long]
        return float(self._fit_of(self._bags[self._row[short]], slice(row, row + 1))[0])

    def _fit_of(self, short: WordBag, long: slice) -> NDArray[np.float64]:
        """(N,) scores in [0, 1] of one document with the topics of N others."""
        words = self._words[short.rows].astype(np.float64)
        words /= np.linalg.norm(words, axis=1, keepdims=True)
        spread = (words * short.counts[:, None]).T @ words / max(1, short.counts.sum())  # A, (D, D)
        topics = self._topics[long]
        along = np.einsum("tkd,tkd->tk", topics @ spread.astype(np.float32), topics)  # mean cos^2
        fit: NDArray[np.float64] = np.sqrt(np.clip((along * self._weights[long]).sum(axis=1), 0, 1))
        return fit
