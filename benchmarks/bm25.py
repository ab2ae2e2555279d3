"""The lexical baseline: BM25 by bm25s over texts, titles included, as Lucene scores it; with English stemming.

A word counts as often as it stands in the query document. Letters in shapes: N documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.extra_packages import BENCHMARKS, optional
from benchmarks.systems import Ranking, Settings
from engine.document import Document

K1 = 1.5
B = 0.75
_FEATURE = "the BM25 baseline"


class BM25:
    """Holds the postings of a corpus; nothing of its text."""

    name = "bm25"
    encoder = ""

    def __init__(self) -> None:
        """Start without a corpus; `fit` reads one.

        Raises:
            MissingExtra: bm25s or PyStemmer is not installed.
        """
        bm25s = optional("bm25s", _FEATURE, "bm25s", BENCHMARKS)
        tokenization = optional("bm25s.tokenization", _FEATURE, "bm25s", BENCHMARKS)
        stemmer = optional("Stemmer", _FEATURE, "PyStemmer", BENCHMARKS).Stemmer("english")
        self.settings: Settings = {"variant": "lucene", "k1": K1, "b": B, "stemmer": "english", "stop_words": "en"}
        self._tokenizer = tokenization.Tokenizer(stopwords="en", stemmer=stemmer)
        self._retriever = bm25s.BM25(method="lucene", k1=K1, b=B)
        self._doc_ids: list[str] = []

    @property
    def doc_ids(self) -> Sequence[str]:
        """Names of the N documents, in the order of the corpus."""
        return self._doc_ids

    def fit(self, documents: Iterable[Document]) -> BM25:
        """Read the corpus, which must hold a document, once; each call starts anew."""
        self._doc_ids = []
        self._tokenizer.reset_vocab()
        token_ids = list(self._tokenizer.streaming_tokenize(self._texts(documents), update_vocab=True))
        self._retriever.index(self._tokenizer.to_tokenized_tuple(token_ids), show_progress=False)
        return self

    def scores(self, query: Document) -> NDArray[np.float32]:
        """(N,) scores of all documents, at least 0; 0 where no word is shared."""
        tokens = next(self._tokenizer.streaming_tokenize([query.text], update_vocab=False, allow_empty=False))
        scores: NDArray[np.float32] = self._retriever.get_scores_from_ids(tokens)
        return scores

    def search(self, query: Document, k: int) -> Ranking:
        """The `k` best targets with their scores, best first, equals in the corpus's order.

        The query itself is left out, and so is a target that shares no word with it.
        """
        scores = self.scores(query)
        order = np.argsort(-scores, kind="stable")[: k + 1]
        ranked = [(self._doc_ids[i], float(scores[i])) for i in order if scores[i] > 0]
        return [(doc_id, score) for doc_id, score in ranked if doc_id != query.doc_id][:k]

    def _texts(self, documents: Iterable[Document]) -> Iterator[str]:
        for document in documents:
            self._doc_ids.append(document.doc_id)
            yield document.text
