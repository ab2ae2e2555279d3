"""One frozen vector a document, for probes: those of an encoder out of an index, or TF-IDF."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.probing.linear_probe import AnyVectors
from benchmarks.systems import BuildCost
from engine.errors import MissingExtra

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from benchmarks.prepare import Prepared


@dataclass(frozen=True)
class FrozenVectors:
    """One unit row a document, whoever made it."""

    system: str  # names the record
    encoder: str  # name@fingerprint; "" where there is none
    rows: Mapping[str, int]  # by doc_id
    vectors: AnyVectors  # (N, D)
    cost: BuildCost

    def of(self, doc_ids: Sequence[str]) -> AnyVectors:
        """Their rows, in this order; a document may come again."""
        return self.vectors[np.array([self.rows[doc_id] for doc_id in doc_ids], dtype=np.int64)]


def encoder_vectors(ready: Prepared) -> FrozenVectors:
    """The document vectors of an open index, copied, so that it may be closed."""
    doc_ids, vectors = ready.index.document_vectors()
    rows = {doc_id: row for row, doc_id in enumerate(doc_ids)}
    return FrozenVectors("document", ready.encoder, rows, np.array(vectors), ready.cost)


def tfidf_vectors(texts: Mapping[str, str], train: Iterable[str]) -> FrozenVectors:
    """TF-IDF of words, with 1 + log tf and without English stop words.

    Args:
        texts: by doc_id.
        train: doc_ids; words and idf are theirs, a word of one text alone left out.

    Raises:
        MissingExtra: scikit-learn is not installed.
    """
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ModuleNotFoundError as error:
        raise MissingExtra("TF-IDF", "scikit-learn", "benchmarks") from error
    started = time.perf_counter()
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=2, dtype=np.float32)
    vectorizer.fit(texts[doc_id] for doc_id in train)
    vectors: csr_matrix = vectorizer.transform(texts.values())
    rows = {doc_id: row for row, doc_id in enumerate(texts)}
    return FrozenVectors("tfidf", "", rows, vectors, BuildCost(round(time.perf_counter() - started, 1)))
