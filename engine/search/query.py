"""A query with everything that scoring needs: vectors, thresholds and term weights. Searches nothing.

Sections can be skipped by kind or by a weight of 0: the query loses their terms, and their chunks have the weight 0.
If a kind is skipped, targets lose the terms and chunks of their sections of that kind too (`engine.store.gathering`).

A query of more than 512 chunks is searched with runs of r neighbouring chunks of one section, where r is the smallest
number that leaves at most 512 runs; if one run a section is still too many, with the 512 runs of most tokens. The
vector of a run is the sum of n_j c_j over its chunks j of n_j tokens, to unit length. So every run is one part of the
score, and the parts still sum to it. The coverage records how many chunks were pooled, and excludes the tokens of runs
that were not used. Targets are never pooled.

Letters in shapes: I query chunks, R documents of the reference, D width.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument, Vectors, unit
from engine.errors import QueryError
from engine.scoring.evidence import Scoring, Thresholds, chunk_weights, reference_threshold, thresholds
from engine.scoring.similarity import best_matches
from engine.store.documents import content_hash
from engine.store.reference import SAMPLE_DOCUMENTS, Reference, content_key
from engine.text.document import Document
from engine.text.section_kinds import SectionKind, kind_bits, section_kinds
from engine.text.spans import Chunk, Coverage, Span
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


def prepare(query: Query, background: Background, scoring: Scoring) -> Prepared:
    """Compute thresholds and weights of a query from a reference; for thresholds, copies of the query are left out.

    Sentences that many documents have and sections that the query skips are left out of its evidence; the sentences
    only if the query does not keep them.

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
        _chunk_thresholds(vectors.chunks, reference, key, scoring),
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


def _chunk_thresholds(chunks: Vectors, reference: Reference, key: int, scoring: Scoring) -> Vectors:
    is_other = reference.hashes != key
    if not is_other.any() or not len(chunks):
        return np.zeros(len(chunks), np.float32)

    def theta(best: Vectors) -> Vectors:
        return reference_threshold(best[:, is_other], _exceeding(reference, scoring))

    return theta(best_matches(chunks, reference.vectors, reference.starts, theta).similarities)


def _exceeding(reference: Reference, scoring: Scoring) -> int:
    """m for this sample: the same share of it as m is of a full sample, at least 1."""
    full = max(1, min(reference.n_corpus, SAMPLE_DOCUMENTS))
    return max(1, round(scoring.exceeding * reference.n_documents / full))


def left_out_sections(
    kinds: Sequence[SectionKind], skip: Collection[SectionKind], weights: Sequence[float] = ()
) -> NDArray[np.bool_]:
    """Which sections of a query are left out, (A,); [False] for a document without sections."""
    of_kind = np.array([kind in skip for kind in kinds] or [False])
    return of_kind | (np.array(weights) == 0) if len(weights) else of_kind


def query_stretches(
    query: Document, left_out: NDArray[np.bool_], common: Sequence[Span], names: Iterable[str]
) -> list[Span]:
    """The stretches of a query that are left out of its evidence: some of its sections, and common sentences.

    Returns:
        Stretches in reading order that do not overlap.

    Raises:
        QueryError: nothing of the query would be left.
    """
    skipped = [Span(query.sections[at].start, query.sections[at].stop) for at in np.flatnonzero(left_out).tolist()]
    if not skipped:
        return list(common)
    merged = _merged([*skipped, *common])
    left, at = "", 0
    for stretch in merged:
        left += query.text[at : stretch.start].strip()
        at = stretch.stop
    if not left and not query.text[at:].strip():
        named = ", ".join(names)
        raise QueryError(f"the query {query.title!r} has no section but those to be skipped ({named}); skip fewer")
    return merged


def _merged(stretches: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for one in sorted(stretches, key=lambda stretch: (stretch.start, stretch.stop)):
        if merged and one.start <= merged[-1].stop:
            merged[-1] = Span(merged[-1].start, max(merged[-1].stop, one.stop))
        else:
            merged.append(one)
    return merged


MOST_CHUNKS = 512  # of 126 tokens each: about 40,000 words


def pool_long(encoded: EncodedDocument, most: int | None = None) -> EncodedDocument:
    """The document in at most `most` chunks; unchanged if it has no more."""
    most = most or MOST_CHUNKS
    if len(encoded.chunks) <= most:
        return encoded
    sections = np.array([chunk.section for chunk in encoded.chunk_spans])
    n_tokens = np.array([chunk.n_tokens for chunk in encoded.chunk_spans])
    per_run = _run_length(sections, most)
    starts = _run_starts(sections, per_run)
    tokens = np.add.reduceat(n_tokens, starts)
    rows = np.add.reduceat(encoded.chunks * np.maximum(n_tokens, 1)[:, None].astype(np.float32), starts, axis=0)
    kept = np.sort(np.argsort(-tokens, kind="stable")[:most])
    stops = np.append(starts[1:], len(sections))
    first, last = starts[kept].tolist(), (stops[kept] - 1).tolist()
    spans = tuple(
        Chunk(encoded.chunk_spans[a].section, encoded.chunk_spans[a].start, encoded.chunk_spans[b].stop, n)
        for a, b, n in zip(first, last, tokens[kept].tolist(), strict=True)
    )
    return replace(
        encoded,
        chunks=unit(rows[kept]),
        chunk_spans=spans,
        coverage=_coverage(encoded.coverage, float(tokens[kept].sum() / max(1, tokens.sum())), per_run),
    )


def _run_length(sections: NDArray[np.int64], most: int) -> int:
    """The smallest r that leaves at most `most` runs, or one run per section."""
    _, lengths = np.unique(sections, return_counts=True)
    longest = int(lengths.max())
    per_run = min(-(-len(sections) // most), longest)
    while np.ceil(lengths / per_run).sum() > most and per_run < longest:
        per_run += 1
    return per_run


def _run_starts(sections: NDArray[np.int64], per_run: int) -> NDArray[np.int64]:
    begins = np.flatnonzero(np.diff(sections, prepend=sections[0] - 1))
    number = np.arange(len(sections)) - np.repeat(begins, np.diff(begins, append=len(sections)))
    return np.flatnonzero(number % per_run == 0)


def _coverage(coverage: Coverage, share: float, per_run: int) -> Coverage:
    return replace(coverage, tokens_read=round(coverage.tokens_read * share), chunks_pooled=per_run)
