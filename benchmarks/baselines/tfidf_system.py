"""The plainest lexical baseline: cosine of TF-IDF vectors by scikit-learn, with sublinear term frequency."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from benchmarks.baselines.extra_packages import optional
from benchmarks.baselines.rankings import ranking
from benchmarks.systems import Ranking, Settings
from engine.document import Document


class TfIdf:
    """Holds the TF-IDF vectors of a corpus.

    With tf the times a word stands in a document, df the documents that hold it, N
    documents (scikit-learn's smoothed idf), vectors of unit length have the values

        (1 + ln tf) (1 + ln (1 + N) / (1 + df))

    Words are scikit-learn's: two word characters and more, lower-cased, nothing left out.
    """

    name = "tfidf"
    encoder = ""

    def __init__(self) -> None:
        """Start without a corpus; `fit` reads one."""
        self.settings: Settings = {"sublinear_tf": True, "min_df": 1, "stop_words": False}
        self._doc_ids: list[str] = []
        self._row: dict[str, int] = {}
        self._vectorizer: Any = None
        self._vectors: Any = None  # (N, V) sparse, unit rows

    def fit(self, documents: Iterable[Document], *, seconds: float = math.inf) -> TfIdf:
        """As `TextBaseline.fit`; it takes seconds, and does not look at the clock.

        Raises:
            MissingExtra: scikit-learn is not installed.
        """
        text = optional("sklearn.feature_extraction.text", "the TF-IDF baseline", "scikit-learn")
        self._doc_ids = []
        self._vectorizer = text.TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
        self._vectors = self._vectorizer.fit_transform(self._texts(documents))
        self._row = {doc_id: row for row, doc_id in enumerate(self._doc_ids)}
        return self

    def search(self, query: Document, k: int) -> Ranking:
        """As `System.search`; a target that shares no word with the query is not found."""
        asked = self._vectorizer.transform([query.text])
        cosine = (self._vectors @ asked.T).toarray().ravel()
        return ranking(self._doc_ids, cosine, k, own=self._row.get(query.doc_id), least=0.0)

    def score(self, first: str, second: str) -> float:
        """The cosine, in [0, 1]."""
        one, other = self._vectors[self._row[first]], self._vectors[self._row[second]]
        return float((one @ other.T).toarray()[0, 0])

    def _texts(self, documents: Iterable[Document]) -> Iterator[str]:
        for document in documents:
            self._doc_ids.append(document.doc_id)
            yield document.text
