"""A query with everything that scoring needs: vectors, thresholds and term weights. Searches nothing.

Letters in shapes: I query chunks, R documents of the reference, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument, Vectors
from engine.scoring.evidence import Scoring, Thresholds, chunk_weights, reference_threshold, thresholds
from engine.scoring.similarity import Multiply, best_matches
from engine.search.long_query import pool_long
from engine.search.skipping import left_out_sections, query_stretches
from engine.store.documents import content_hash
from engine.store.reference import SAMPLE_DOCUMENTS, Reference, content_key
from engine.text.document import Document
from engine.text.section_kinds import SectionKind, kind_bits, section_kinds
from engine.text.spans import Span
from engine.words.common_sentences import blanked, common_stretches, kept_shares
from engine.words.counts import TermTable, WordTables, counted
from engine.words.likelihood import QueryTerms, cover_terms, query_terms
from engine.words.places import PAIR, QueryText
from engine.words.titles import title_span


@dataclass(frozen=True, slots=True)
class Query:
    """A document to search with, and its vectors: float32 rounded to half precision, like those of targets."""

    document: Document
    vectors: EncodedDocument
    words: WordTables | None = None  # its term counts; counted from its text by default
    key: int | None = None  # of its content, see `engine.store.reference`; computed by default
    skip: frozenset[SectionKind] = frozenset()  # kinds of its sections that take no part in the score
    skip_in_targets: frozenset[SectionKind] = frozenset()  # kinds of sections of targets that take no part
    section_weights: tuple[float, ...] = ()  # of its sections; () where all are 1
    kinds: tuple[SectionKind, ...] | None = None  # of its sections; computed by default
    keeps_common: bool = False  # whether sentences that many documents have count as any other


def as_stored(encoded: EncodedDocument) -> EncodedDocument:
    """Round vectors as a shard would, so that a file and its indexed copy are the same query."""

    def rounded(rows: Vectors) -> Vectors:
        return rows.astype(np.float16).astype(np.float32)

    return EncodedDocument(
        rounded(encoded.document),
        rounded(encoded.sections),
        rounded(encoded.chunks),
        encoded.chunk_spans,
        encoded.coverage,
    )


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query with all values from the reference that scoring a document needs."""

    vectors: EncodedDocument  # with pooled chunks if the query has very many
    chunk_weights: NDArray[np.float64]  # (I,) w_i
    limits: Thresholds
    words: QueryTerms | None
    pairs: QueryTerms | None
    weights: dict[str, float]  # of the components
    text: QueryText  # without common sentences
    section_weights: NDArray[np.float64] | None = None  # (A,) of the sections of the query; None where all are 1
    skip: int = 0  # bits of the kinds of sections of targets that take no part, see `engine.text.section_kinds`


class Background(Protocol):
    """The context that the score of two documents depends on besides the documents; a `Snapshot` is one."""

    @property
    def reference(self) -> Reference:
        """The reference, for thresholds and word statistics."""

    @property
    def language(self) -> str | None:
        """The language by which words are segmented; None without words."""


def prepare(query: Query, background: Background, scoring: Scoring, multiply: Multiply) -> Prepared:
    """Compute thresholds and weights of a query from a reference; for thresholds, copies of the query are left out.

    Sentences that many documents have and sections that the query skips are left out of its evidence; the sentences
    only if the query does not keep them.

    Args:
        query: the document to search with.
        background: the snapshot of an index, or a substitute for one.
        scoring: the constants.
        multiply: computes inner products.

    Raises:
        QueryError: nothing of the query would be left.
    """
    reference, vectors = background.reference, pool_long(query.vectors)
    if reference.width != len(vectors.document):  # drawn before the index had vectors: words alone, without thresholds
        vectors = EncodedDocument.unencoded(0)
    skip = kind_bits(query.skip_in_targets)
    has_vectors, has_words = len(vectors.chunks) > 0, background.language is not None
    weights = scoring.weights(vectors=has_vectors, words=has_words)
    key = content_key(content_hash(query.document)) if query.key is None else query.key
    common = [] if query.keeps_common else common_stretches(query.document.text, reference.common)
    kinds = section_kinds(query.document) if query.skip and query.kinds is None else query.kinds
    left_out = left_out_sections(kinds or (), query.skip, query.section_weights)
    names = [*sorted(query.skip), *(["those of weight 0"] if 0 in query.section_weights else [])]
    stretches = query_stretches(query.document, left_out, common, names)
    text = QueryText(query.document, background.language, blanked(query.document.text, common), left_out, kinds)
    kept = kept_shares(stretches, [Span(chunk.start, chunk.stop) for chunk in vectors.chunk_spans])
    given = kept * chunk_weights(np.array([chunk.n_tokens for chunk in vectors.chunk_spans], np.int64))
    of_sections = np.array(query.section_weights) if query.section_weights else None
    if of_sections is not None:
        given = given * of_sections[[chunk.section for chunk in vectors.chunk_spans]]
    limits = thresholds(
        _chunk_thresholds(vectors.chunks, reference, key, scoring, multiply),
        given,
        scoring,
    )
    words = pairs = None
    if background.language is not None and weights["words"] + weights["pairs"] > 0:
        words, pairs = _terms(query, text, None if stretches else query.words, background, scoring)
    if scoring.cover:
        weights = _attainable(weights, limits, words, pairs)
    return Prepared(vectors, given, limits, words, pairs, weights, text, of_sections, skip)


def _terms(
    query: Query, text: QueryText, known: WordTables | None, background: Background, scoring: Scoring
) -> tuple[QueryTerms, QueryTerms]:
    """The weighted words and pairs of a query, whose `text` is without common sentences."""
    is_weighted = bool(query.section_weights)
    # A document that contains the query has the title of the query among other text.
    title = None if scoring.cover else title_span(query.document)
    if known is not None and not is_weighted and not scoring.cover:
        found, tables = None, known
    else:
        found = text.terms
        tables = counted([found], [title])
    of_sections = np.array(query.section_weights)

    def weighted(kind: str) -> QueryTerms:
        table: TermTable = getattr(tables, kind)
        means = None
        if found is not None and is_weighted:
            keys = table.terms.astype(np.int64) + (PAIR if kind == "pairs" else 0)
            means = text.places.mean_weights(keys, title, of_sections)
        weigh = cover_terms if scoring.cover else query_terms
        return weigh(table, getattr(background.reference.statistics, kind), means)

    return weighted("words"), weighted("pairs")


def _attainable(
    weights: dict[str, float], limits: Thresholds, words: QueryTerms | None, pairs: QueryTerms | None
) -> dict[str, float]:
    """The weights of the components that the query has chunks or terms for, scaled to sum to 1 again."""
    terms = {"words": words, "pairs": pairs}
    is_there = {name: one is not None and len(one.terms) > 0 for name, one in terms.items()}
    is_there |= {"chunks": bool(limits.weights.any())}
    total = sum(weight for name, weight in weights.items() if is_there[name])
    return {name: weight / total if total and is_there[name] else 0.0 for name, weight in weights.items()}


def _chunk_thresholds(chunks: Vectors, reference: Reference, key: int, scoring: Scoring, multiply: Multiply) -> Vectors:
    is_other = reference.hashes != key
    if not is_other.any() or not len(chunks):
        return np.zeros(len(chunks), np.float32)

    def theta(best: Vectors) -> Vectors:
        return reference_threshold(best[:, is_other], _exceeding(reference, scoring))

    return theta(best_matches(chunks, reference.vectors, reference.starts, theta, multiply).similarities)


def _exceeding(reference: Reference, scoring: Scoring) -> int:
    """m for this sample: the same share of it as m is of a full sample, at least 1."""
    full = max(1, min(reference.n_corpus, SAMPLE_DOCUMENTS))
    return max(1, round(scoring.exceeding * reference.n_documents / full))
