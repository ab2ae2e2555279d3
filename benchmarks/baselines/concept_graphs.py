"""The concept graph of two documents: concepts, their sentences in both documents, and sentence similarities.

Letters in shapes: S sentences, T terms (content words), K keywords, V vertices."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.concepts import Concept, Grouping, group
from benchmarks.baselines.keywords import content_words, keywords
from benchmarks.baselines.term_similarities import Rows, cosines, term_similarities
from benchmarks.baselines.text_inputs import DocumentWords, Vocabulary, read_words, words_by_sentence
from benchmarks.baselines.word_vectors import words_of
from engine.text.document import Document

Places = NDArray[np.int64]


@dataclass(frozen=True)
class TermWeights:
    """How rare the terms of a corpus are."""

    n_documents: int
    holding: Counter[str]  # number of documents that contain a word

    def idf(self, term: str) -> float:
        """ln((1 + N) / (1 + df)) + 1, above 0 also for a term that no document contains."""
        return math.log((1 + self.n_documents) / (1 + self.holding[term])) + 1


def weigh_terms(documents: Iterable[Document]) -> TermWeights:
    """Count the documents that contain each word."""
    n_documents = 0
    holding: Counter[str] = Counter()
    for document in documents:
        n_documents += 1
        holding.update(set(words_of(document.text)))
    return TermWeights(n_documents, holding)


@dataclass(frozen=True, slots=True, eq=False)
class ConceptText:
    """The input of the graph for one document."""

    words: DocumentWords  # input of the encoder
    terms: tuple[str, ...]  # T distinct content words, in rising order
    idf: Rows  # (T,)
    sentences: Places  # the sentence of each occurrence of a term
    columns: Places  # the term of each occurrence
    keywords: tuple[str, ...]  # some of the terms, in rising order

    def __len__(self) -> int:
        """The number of words read."""
        return len(self.words)

    @property
    def n_sentences(self) -> int:
        """S, at least 1."""
        return len(self.words.sentences)


def read_concept_text(
    document: Document, vocabulary: Vocabulary, weights: TermWeights, *, max_words: int, max_keywords: int
) -> ConceptText:
    """Read the first `max_words` words of a document.

    Args:
        document: has no term if it has no content words; is read as a single unknown word if it has no words.
        vocabulary: the words that the encoder knows.
        weights: the weights of terms.
        max_words: the number of words to read.
        max_keywords: the largest number of keywords.

    Raises:
        MissingExtra: gensim or networkx is not installed.
    """
    content = content_words([words for _, words in words_by_sentence(document, max_words)])
    terms = sorted({sys.intern(term) for sentence in content for term in sentence})  # documents share most terms
    place = {term: number for number, term in enumerate(terms)}
    return ConceptText(
        words=read_words(document, vocabulary, max_words),
        terms=tuple(terms),
        idf=np.array([weights.idf(term) for term in terms], np.float64),
        sentences=np.repeat(np.arange(len(content)), [len(sentence) for sentence in content]),
        columns=np.array([place[term] for sentence in content for term in sentence], np.int64),
        keywords=tuple(sorted(keywords(content, max_keywords))),
    )


@dataclass(frozen=True, slots=True, eq=False)
class ConceptGraph:
    """The graph of a pair. If a sentence is near no concept, the last vertex has no keywords."""

    concepts: tuple[tuple[str, ...], ...]  # V, the keywords of each vertex
    first: Places  # (S,) vertex of each sentence of the first document
    second: Places  # (S,) vertex of each sentence of the second document
    edges: NDArray[np.float32]  # (V, V) in [0, 1], symmetric, 0 on the diagonal
    similarities: NDArray[np.float32]  # (V, 5) of the two sets of sentences at each vertex; see `term_similarities`
    of_documents: NDArray[np.float32]  # (5,) of the two documents

    @property
    def n_vertices(self) -> int:
        """V, at least 1."""
        return len(self.concepts)


def concept_graph(first: ConceptText, second: ConceptText, grouping: Grouping | None) -> ConceptGraph:
    """Make the graph of two documents.

    Liu et al. (2019, ACL, arXiv:1802.07459), section 3. The keywords of both documents are grouped to concepts by
    the sentences of both. A sentence belongs to the concept with the largest cosine of TF-IDF vectors, where the text
    of a concept is its keywords; among equal concepts, to the first. Sentences without a keyword share one extra
    vertex. With D_i the sentences of both documents at vertex i,

        A_ij = cos(tfidf(D_i), tfidf(D_j)),  i != j

    Vertices without a sentence are left out. Departures: the paper also uses named entities as
    keywords, and merges words of one meaning by coreference and synonyms; here neither is available.

    Args:
        first: a document.
        second: the other document; exchanging the documents only exchanges the sides of the graph.
        grouping: the rule by which keywords form one concept; None makes a concept of each keyword.

    Raises:
        MissingExtra: networkx is not installed.
    """
    terms = sorted({*first.terms, *second.terms})
    place = {term: number for number, term in enumerate(terms)}
    idf = np.zeros(len(terms))
    columns = []
    for text in (first, second):
        own = np.array([place[term] for term in text.terms], np.int64)
        idf[own] = text.idf
        columns.append(own[text.columns])
    sentences = np.concatenate([first.sentences, first.n_sentences + second.sentences])
    counts = _Occurrences(sentences, np.concatenate(columns), first.n_sentences + second.n_sentences, len(terms))
    known = sorted({*first.keywords, *second.keywords})
    of_keywords = counts.dense(np.array([place[word] for word in known], np.int64))
    concepts = [(number,) for number in range(len(known))] if grouping is None else group(of_keywords > 0, grouping)
    nearest = _nearest(counts, of_keywords, idf, np.array([place[word] for word in known], np.int64), concepts)
    used, vertices = np.unique(nearest, return_inverse=True)
    sides = np.arange(counts.n_sentences) >= first.n_sentences
    sets = counts.summed(vertices + len(used) * sides, 2 * len(used))
    ours, theirs = sets[: len(used)], sets[len(used) :]
    edges = cosines((ours + theirs) * idf)
    np.fill_diagonal(edges, 0.0)
    names = [*([known[keyword] for keyword in concept] for concept in concepts), []]
    return ConceptGraph(
        concepts=tuple(tuple(names[at]) for at in used),
        first=vertices[: first.n_sentences],
        second=vertices[first.n_sentences :],
        edges=np.clip(edges, 0.0, 1.0).astype(np.float32),
        similarities=term_similarities(ours, theirs, idf).astype(np.float32),
        of_documents=term_similarities(ours.sum(0)[None], theirs.sum(0)[None], idf)[0].astype(np.float32),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Occurrences:
    """The occurrences of terms in the sentences of two documents; a dense table of counts could be large."""

    sentences: Places
    columns: Places
    n_sentences: int
    n_terms: int

    def dense(self, chosen: Places) -> Rows:
        """(S, K) counts of the chosen terms."""
        column = np.full(self.n_terms, -1)
        column[chosen] = np.arange(len(chosen))
        at = column[self.columns]
        cells = self.sentences[at >= 0] * len(chosen) + at[at >= 0]
        return _counted(cells, self.n_sentences, len(chosen))

    def summed(self, sets: Places, n_sets: int) -> Rows:
        """(n_sets, T) counts of the sentences of each set."""
        return _counted(sets[self.sentences] * self.n_terms + self.columns, n_sets, self.n_terms)

    def lengths(self, idf: Rows) -> Rows:
        """(S,) Euclidean lengths of the TF-IDF vectors of sentences."""
        cells, counts = np.unique(self.sentences * self.n_terms + self.columns, return_counts=True)
        values = counts * idf[cells % self.n_terms] if self.n_terms else np.zeros(0)
        of_sentences = cells // self.n_terms if self.n_terms else cells
        return np.sqrt(np.bincount(of_sentences, values**2, self.n_sentences))


def _counted(cells: Places, n_rows: int, n_columns: int) -> Rows:
    return np.bincount(cells, minlength=n_rows * n_columns).reshape(n_rows, n_columns).astype(np.float64)


def _nearest(
    counts: _Occurrences, of_keywords: Rows, idf: Rows, keyword_columns: Places, concepts: Sequence[Concept]
) -> Places:
    """(S,) the concept of each sentence; one past the last concept where none shares a keyword."""
    if not concepts:
        return np.zeros(counts.n_sentences, np.int64)
    rarity = idf[keyword_columns] ** 2
    belongs = np.zeros((len(rarity), len(concepts)))  # (K, concepts)
    for number, concept in enumerate(concepts):
        belongs[list(concept), number] = 1.0
    products = (of_keywords * rarity) @ belongs / np.sqrt(rarity @ belongs)
    lengths = counts.lengths(idf)[:, None]
    cosine = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return np.where(cosine.max(1) > 0, np.round(cosine, 12).argmax(1), len(concepts))
