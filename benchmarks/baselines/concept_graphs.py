"""Two documents as one graph: concepts, the sentences of both documents at each, and how alike the sentences are.

The keywords of a text, by TextRank, and the similarities of two texts by their terms alone are below the graph.
Letters in shapes: N texts, S sentences, T terms (content words), K keywords, V vertices."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.concepts import Concept, Grouping, group
from benchmarks.baselines.text_inputs import DocumentWords, Vocabulary, read_words, words_by_sentence
from benchmarks.baselines.word_vectors import are_content, words_of
from benchmarks.packages import optional
from engine.document import Document

Places = NDArray[np.int64]
Rows = NDArray[np.float64]


@dataclass(frozen=True)
class TermWeights:
    """How rare the terms of a corpus are."""

    n_documents: int
    holding: Counter[str]  # documents that hold a word

    def idf(self, term: str) -> float:
        """ln((1 + N) / (1 + df)) + 1, above 0 also for a term that no document holds."""
        return math.log((1 + self.n_documents) / (1 + self.holding[term])) + 1


def weigh_terms(documents: Iterable[Document]) -> TermWeights:
    """Count the documents that hold each word."""
    n_documents = 0
    holding: Counter[str] = Counter()
    for document in documents:
        n_documents += 1
        holding.update(set(words_of(document.text)))
    return TermWeights(n_documents, holding)


@dataclass(frozen=True, slots=True, eq=False)
class ConceptText:
    """A document as the graph needs it."""

    words: DocumentWords  # what the encoder reads
    terms: tuple[str, ...]  # T distinct content words, in rising order
    idf: Rows  # (T,)
    sentences: Places  # of each occurrence of a term: its sentence
    columns: Places  # of each occurrence: its term
    keywords: tuple[str, ...]  # of the terms, in rising order

    def __len__(self) -> int:
        """Words that are read."""
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
        document: one without content words has no term, and one without words is a single unknown word.
        vocabulary: the words that the encoder knows.
        weights: of terms.
        max_words: that are read.
        max_keywords: of the document.

    Raises:
        MissingExtra: gensim or networkx is not installed.
    """
    content = content_words([words for _, words in words_by_sentence(document, max_words)])
    terms = sorted({sys.intern(term) for sentence in content for term in sentence})  # documents share most of them
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
    """The graph of a pair. A last vertex without keywords is there where a sentence is near no concept."""

    concepts: tuple[tuple[str, ...], ...]  # V, the keywords of each vertex
    first: Places  # (S,) vertex of each sentence of the first document
    second: Places  # (S,) the same of the second
    edges: NDArray[np.float32]  # (V, V) in [0, 1], symmetric, 0 on the diagonal
    similarities: NDArray[np.float32]  # (V, 5) of the two sets of sentences; see `term_similarities`
    of_documents: NDArray[np.float32]  # (5,) of the two documents

    @property
    def n_vertices(self) -> int:
        """V, at least 1."""
        return len(self.concepts)


def concept_graph(first: ConceptText, second: ConceptText, grouping: Grouping | None) -> ConceptGraph:
    """Make one graph of two documents.

    Liu et al. (2019, ACL, arXiv:1802.07459), section 3. The keywords of both are grouped to concepts by the sentences
    of both. A sentence belongs to the concept of the largest cosine of TF-IDF vectors, a concept being the text
    of its keywords; of equal ones to the first. Sentences without a keyword go to a vertex of their own. With
    D_i the sentences of both documents at vertex i,

        A_ij = cos(tfidf(D_i), tfidf(D_j)),  i != j

    Vertices without a sentence are left out. Departures: the paper also takes named entities as
    keywords, and merges words that mean the same by coreference and synonyms; here neither is known.

    Args:
        first: a document.
        second: the other; the graph is the same, sides exchanged, when they are.
        grouping: when keywords are one concept; None makes a concept of each keyword.

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
    """Where terms stand in the sentences of two documents; a table of all counts could be large."""

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


_WINDOW = 5  # words; the paper tries 2 to 10
_DAMPING = 0.85
_DIGITS = 12  # of a rank, beyond which two ranks are equal


def content_words(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    """The content words of each sentence; see `are_content`.

    Raises:
        MissingExtra: gensim is not installed.
    """
    words = sorted({word for sentence in sentences for word in sentence})
    content = {word for word, is_content in zip(words, are_content(words), strict=True) if is_content}
    return [[word for word in sentence if word in content] for sentence in sentences]


def keywords(sentences: Sequence[Sequence[str]], most: int) -> list[str]:
    """The content words of the highest rank, best first; equal ones by name.

    Mihalcea & Tarau (2004, EMNLP, W04-3252), section 3: words are joined that stand near each other,
    and the rank of a word is its PageRank in this graph without directions or weights,

        r(v) = (1 - d) / n + d sum_{u next to v} r(u) / degree(u),  d = 0.85

    over n words. (The paper leaves out the division by n, which scales all ranks alike.) The paper takes nouns
    and adjectives and joins neighbouring keywords to phrases. Here no part of speech is known: all content
    words are ranked, those of a window of five words of one sentence are joined, stop words left out, and
    a keyword is one word.

    Args:
        sentences: the content words of each, in reading order.
        most: keywords; a text of fewer words has all of them.

    Raises:
        MissingExtra: networkx is not installed.
    """
    networkx = optional("networkx", "TextRank", "networkx")
    graph = networkx.Graph()
    for sentence in sentences:
        graph.add_nodes_from(sentence)
        for at, word in enumerate(sentence):
            graph.add_edges_from((word, other) for other in sentence[at + 1 : at + _WINDOW] if other != word)
    if not graph:
        return []
    ranks = networkx.pagerank(graph, alpha=_DAMPING)
    return sorted(ranks, key=lambda word: (-round(ranks[word], _DIGITS), word))[:most]


N_SIMILARITIES = 5
K1, B = 1.5, 0.75  # those of the BM25 baseline


def term_similarities(first: Rows, second: Rows, idf: Rows) -> Rows:
    """Compare texts row by row in the five ways of Liu et al. (2019, ACL, arXiv:1802.07459), section 4.

    With tf the counts of a text, A and B the sets of terms of the two, and cos the cosine:

        cos(tf idf, tf idf'),  cos(tf, tf'),  cos(bm25, bm25'),  |A & B| / |A | B|,  |A & B| / sqrt(|A| |B|)
        bm25 = idf tf (K1 + 1) / (tf + K1 (1 - B + B |d| / mean |d|))

    The last two are Jaccard's and Ochiai's. The paper names the similarity by BM25 without a formula.
    Here the cosine makes BM25 symmetric, and the mean length is that of all texts given that are not empty.

    Args:
        first: (N, T) counts.
        second: (N, T) counts.
        idf: (T,) above 0.

    Returns:
        (N, 5) in [0, 1]; 0 where a text is empty. The same whichever side is the first.
    """
    frequencies = _bm25(first, second)
    held = (first > 0).astype(np.float64), (second > 0).astype(np.float64)
    sizes = held[0].sum(1), held[1].sum(1)
    shared = (held[0] * held[1]).sum(1)
    columns = (
        _cosine(first * idf, second * idf),
        _cosine(first, second),
        _cosine(frequencies[0] * idf, frequencies[1] * idf),
        _ratio(shared, sizes[0] + sizes[1] - shared),
        _ratio(shared, np.sqrt(sizes[0] * sizes[1])),
    )
    return np.clip(np.stack(columns, 1), 0.0, 1.0)  # rounding may pass 1


def cosines(rows: Rows) -> Rows:
    """(N, N) cosines of all pairs of rows (N, T); 0 where a row is zero, also with itself."""
    lengths = np.linalg.norm(rows, axis=1)
    return _ratio(rows @ rows.T, lengths[:, None] * lengths)


def _bm25(first: Rows, second: Rows) -> tuple[Rows, Rows]:
    """Counts that saturate, before idf."""
    lengths = first.sum(1), second.sum(1)
    real = np.concatenate(lengths)
    mean = real[real > 0].mean() if (real > 0).any() else 1.0

    def saturated(counts: Rows, length: Rows) -> Rows:
        return counts * (K1 + 1) / (counts + K1 * (1 - B + B * length[:, None] / mean))

    return saturated(first, lengths[0]), saturated(second, lengths[1])


def _cosine(first: Rows, second: Rows) -> Rows:
    return _ratio((first * second).sum(1), np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1))


def _ratio(over: Rows, under: Rows) -> Rows:
    """Their quotient, and 0 where `under` is 0."""
    return np.divide(over, under, out=np.zeros_like(over), where=under > 0)
