"""Lexical baselines: BM25 by bm25s in Lucene's variant, and the cosine of TF-IDF vectors by scikit-learn.

A word counts as often as it occurs in the query document. Letters in shapes: N documents, V words."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.packages import optional
from benchmarks.systems import BuildCost, Ranking, Settings, System
from engine.text.document import Document


class LexicalSystem(ABC):
    """The documents of a corpus by row, and rankings by their scores."""

    encoder = ""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.doc_ids: list[str] = []  # of the N documents, in the order of the corpus
        self.row: dict[str, int] = {}

    def texts(self, documents: Iterable[Document]) -> Iterator[str]:
        """Stream the texts of a new corpus."""
        self.doc_ids, self.row = [], {}
        for document in documents:
            self.row[document.doc_id] = len(self.doc_ids)
            self.doc_ids.append(document.doc_id)
            yield document.text

    @abstractmethod
    def scores(self, query: Document) -> NDArray[np.floating]:
        """(N,) scores of all documents, at least 0; 0 where no word is shared."""

    def search(self, query: Document, k: int) -> Ranking:
        """As `System.search`; a target that shares no word with the query is left out."""
        own, scores = self.row.get(query.doc_id), self.scores(query)
        order = np.argsort(-scores, kind="stable")[: k + 1].tolist()
        found = [(self.doc_ids[row], float(scores[row])) for row in order if row != own and scores[row] > 0]
        return found[:k]


K1 = 1.5
B = 0.75
_FEATURE = "the BM25 baseline"


class BM25(LexicalSystem):
    """The BM25 system; stores the postings of a corpus, not its text."""

    name = "bm25"

    def __init__(self) -> None:
        """Start without a corpus; `fit` reads one."""
        bm25s = optional("bm25s", _FEATURE, "bm25s")
        tokenization = optional("bm25s.tokenization", _FEATURE, "bm25s")
        stemmer = optional("Stemmer", _FEATURE, "PyStemmer").Stemmer("english")
        super().__init__({"variant": "lucene", "k1": K1, "b": B, "stemmer": "english", "stop_words": "en"})
        self._tokenizer = tokenization.Tokenizer(stopwords="en", stemmer=stemmer)
        self._retriever = bm25s.BM25(method="lucene", k1=K1, b=B)

    def fit(self, documents: Iterable[Document]) -> BM25:
        """As `Lexical.fit`."""
        self._tokenizer.reset_vocab()
        token_ids = list(self._tokenizer.streaming_tokenize(self.texts(documents), update_vocab=True))
        self._retriever.index(self._tokenizer.to_tokenized_tuple(token_ids), show_progress=False)
        return self

    def scores(self, query: Document) -> NDArray[np.float32]:
        """As `LexicalSystem.scores`."""
        tokens = next(self._tokenizer.streaming_tokenize([query.text], update_vocab=False, allow_empty=False))
        scores: NDArray[np.float32] = self._retriever.get_scores_from_ids(tokens)
        return scores


class TfIdf(LexicalSystem):
    """The TF-IDF system; stores the TF-IDF vectors of a corpus.

    With tf the number of occurrences of a word in a document, df the number of documents with the word, and N the
    number of documents (scikit-learn's smoothed idf), a vector has the values

        (1 + ln tf) (1 + ln (1 + N) / (1 + df))

    scaled to unit length. Words are scikit-learn's: two or more word characters, lower-cased, stop words included.
    """

    name = "tfidf"

    def __init__(self) -> None:
        """Start without a corpus; `fit` reads one."""
        super().__init__({"sublinear_tf": True, "min_df": 1, "stop_words": False})
        self._vectorizer: Any = None
        self._vectors: Any = None  # (N, V) sparse, unit rows

    def fit(self, documents: Iterable[Document]) -> TfIdf:
        """As `Lexical.fit`."""
        text = optional("sklearn.feature_extraction.text", "the TF-IDF baseline", "scikit-learn")
        self._vectorizer = text.TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
        self._vectors = self._vectorizer.fit_transform(self.texts(documents))
        return self

    def scores(self, query: Document) -> NDArray[np.float32]:
        """The cosines, (N,) in [0, 1]."""
        cosines: NDArray[np.float32] = (self._vectors @ self._vectorizer.transform([query.text]).T).toarray().ravel()
        return cosines

    def score(self, first: str, second: str) -> float:
        """The cosine, in [0, 1]."""
        one, other = self._vectors[self.row[first]], self._vectors[self.row[second]]
        return float((one @ other.T).toarray()[0, 0])


class Lexical(System, Protocol):
    """A `System` that is fitted on a corpus."""

    def fit(self, documents: Iterable[Document]) -> Self:
        """Read a corpus, of at least one document, once; each call replaces the previous corpus."""


LEXICAL: Mapping[str, Callable[[], Lexical]] = {"bm25": BM25, "tfidf": TfIdf}


def fitted(name: str, documents: Iterable[Document]) -> tuple[Lexical, BuildCost]:
    """A system of `LEXICAL`, ready to search a corpus."""
    started = time.perf_counter()
    system = LEXICAL[name]().fit(documents)
    return system, BuildCost(round(time.perf_counter() - started, 1))
