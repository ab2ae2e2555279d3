"""HT (Gong et al. 2018): a long document as a few directions in the space of words, a short one by how it fits them.

Letters in shapes: N documents, n words of one, K topics, D width of a word vector.
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
from engine.document import Document


@dataclass(frozen=True)
class HiddenTopicsConfig:
    """The values of the released code."""

    n_topics: int = 10  # K
    n_known_words: int = 20_000  # the most frequent words of the vectors; others are left out


def hidden_topics(
    words: NDArray[np.float64], counts: NDArray[np.int64], n_topics: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The directions that the word vectors of a document lie along, and the share of each.

    They are the first K right singular vectors v_k of the matrix with a row for each
    word as often as it stands there, not centred, and s_k^2 / (s_1^2 + ... + s_K^2);
    found as eigenvectors of sum_w c_w w w^T, which has the same and is D wide at any length.

    Args:
        words: (n, D) vectors of the distinct words.
        counts: (n,) how often each stands there.
        n_topics: K.

    Returns:
        (K, D) unit rows, the heaviest first, and (K,) weights of sum 1; fewer words
        than K leave weights of 0, and no word only those.
    """
    values, directions = np.linalg.eigh((words * counts[:, None]).T @ words)  # rising
    squares = np.maximum(values[::-1][:n_topics], 0)
    total = squares.sum()
    return directions[:, ::-1][:, :n_topics].T, squares / total if total > 0 else squares


class HiddenTopics(WordVectorBaseline):
    """How well the words of one document lie in the topics of another:

        score(short, long) = sqrt( sum_k w_k mean_{x in short} cos^2(x, v_k) )

    with the topics v_k and weights w_k of the long one, as the released code has it
    (HongyuGong/Document-Similarity-via-Hidden-Topics, commit e003e8e, `mapping`). With
    A = mean x x^T / |x|^2 of the short one it is sqrt(sum_k w_k v_k^T A v_k).

    Which document is the long one the paper knows from its data. Here it is the target in
    a search, where a ranking must be by one measure, and the one of more words in a pair.
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
        """As `System.search`; the query is the short document. No known word, nothing is found."""
        scores = self._fit_of(self.bag_of(query), slice(None))
        return ranking(self._doc_ids, scores, k, own=self._row.get(query.doc_id), least=0.0)

    def score(self, first: str, second: str) -> float:
        """In [0, 1], the same for (second, first); 0 where a document has no known word."""
        # Of two with as many words, the name decides, so that the order of a pair does not.
        by_length = sorted((self._bags[self._row[one]].counts.sum(), one) for one in (first, second))
        (_, short), (_, long) = by_length
        row = self._row[long]
        return float(self._fit_of(self._bags[self._row[short]], slice(row, row + 1))[0])

    def _fit_of(self, short: WordBag, long: slice) -> NDArray[np.float64]:
        """The score of one document against the topics of others, (N,) of them in [0, 1]."""
        words = self._words[short.rows].astype(np.float64)
        words /= np.linalg.norm(words, axis=1, keepdims=True)
        spread = (words * short.counts[:, None]).T @ words / max(1, short.counts.sum())  # A, (D, D)
        topics = self._topics[long]
        along = np.einsum("tkd,tkd->tk", topics @ spread.astype(np.float32), topics)  # mean cos^2
        fit: NDArray[np.float64] = np.sqrt(np.clip((along * self._weights[long]).sum(axis=1), 0, 1))
        return fit
