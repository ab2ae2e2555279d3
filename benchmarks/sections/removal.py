"""Follows hits as parts of either document are removed: every side, order and method of rescoring, hit by hit.

Deletion and insertion are those of RISE (Petsiuk et al. 2018, arXiv:1806.07421), over the tokens of a document instead
of the pixels of an image; comprehensiveness and sufficiency are ERASER's (DeYoung et al. 2020, arXiv:1911.03429).

When rescored from stored vectors, chunks keep their vectors and terms, and the vector of the whole document stays; the
weights of the query chunks that are left sum to 1 again. When encoded again, the text that is left is cut into new
chunks, and gets a document vector of its own. Letters in shapes: C chunks of the document.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.sections.matches import Corpus, Matches, Placed, place
from benchmarks.sections.parts import ChunkTerms, Order, OrderKind, Parts, Side, parts_of, removal_orders
from engine.encoders.encoder import EncodedDocument, Encoder
from engine.errors import DocumentError
from engine.index import Index
from engine.scoring.breakdown import Prepared
from engine.scoring.evidence import Scoring
from engine.search.query import Query, as_stored, pool_long
from engine.search.request import Request
from engine.store.snapshot import Positions
from engine.text.document import Document
from engine.text.segmentation import Chunk
from engine.words.counts import count_documents
from engine.words.segmenter import segmenter_of

Kept = NDArray[np.bool_]  # (C,) chunks of the document of one side


@dataclass(frozen=True, slots=True)
class Pairing:
    """A hit: two documents with their vectors, and the corpus around them."""

    corpus: Corpus
    query: Query
    prepared: Prepared  # the query
    target: Query
    targets: Positions  # (N,) all documents but the query
    matches: Matches  # of the query with the targets
    column: int  # of the target in the matches

    def chunk_terms(self, side: Side) -> ChunkTerms:
        """The terms of one of the documents by chunk."""
        own = self.query if side is Side.QUERY else self.target
        return ChunkTerms(own.document, own.vectors.chunk_spans, segmenter_of(self.corpus.language))

    def of_target(self, score: float) -> Placed:
        """The place of the target with another score, all other scores unchanged."""
        scores = self.corpus.score_all(self.matches)
        scores[self.column] = score
        return place(scores, self.column)

    def of_query(self, matches: Matches | None) -> Placed:
        """The place of the target for the matches of another query; None for a query without text."""
        scores = np.zeros(len(self.targets)) if matches is None else self.corpus.score_all(matches)
        return place(scores, self.column)


def stored_rescore(pairing: Pairing, side: Side) -> Rescore:
    """Score again from the stored vectors and the terms of the chunks that are kept."""
    corpus, terms = pairing.corpus, pairing.chunk_terms(side)
    found = corpus.target_terms(pairing.prepared, pairing.targets)
    vectors = pairing.target.vectors

    def of_query(kept: Kept) -> Placed:
        if not kept.any():
            return pairing.of_query(None)
        words, pairs = pairing.matches.words, pairing.matches.pairs
        if found is not None:
            counts = terms.counts(kept)
            words, pairs = found[0].scores(counts.words), found[1].scores(counts.pairs)
        return pairing.of_query(pairing.matches.of_chunks(kept, words, pairs))

    def of_target(kept: Kept) -> Placed:
        if not kept.any():
            return pairing.of_target(0.0)
        counts = terms.counts(kept)
        return pairing.of_target(corpus.score_target(pairing.prepared, vectors.chunks[kept], counts))

    return of_query if side is Side.QUERY else of_target


def encoded_rescore(pairing: Pairing, side: Side, encoder: Encoder) -> Rescore:
    """Score again after encoding the text of the chunks that are kept."""
    own, corpus = (pairing.query if side is Side.QUERY else pairing.target), pairing.corpus

    def rescore(kept: Kept) -> Placed:
        document = kept_document(own.document, own.vectors.chunk_spans, kept)
        left = _encoded(encoder, document)
        if side is Side.TARGET:
            if left is None:
                return pairing.of_target(0.0)
            words = count_documents(segmenter_of(corpus.language), [document])
            return pairing.of_target(corpus.score_target(pairing.prepared, left.chunks, words))
        if left is None:
            return pairing.of_query(None)
        # The key is that of the whole text, so that the rest is not compared with the whole text in the reference.
        prepared = corpus.prepare(Query(document, left, key=own.key))
        return pairing.of_query(corpus.find_matches(prepared, pairing.targets))

    return rescore


def _encoded(encoder: Encoder, document: Document) -> EncodedDocument | None:
    try:
        return as_stored(encoder.encode([document])[0])
    except DocumentError:
        return None  # nothing is left that the tokenizer can read


def kept_document(document: Document, chunks: Sequence[Chunk], kept: Kept) -> Document:
    """The document with the text of the kept chunks alone, and of sections that have one.

    A blank line replaces removed text, so that no sentence runs across the gap. Text in no chunk is left out: an
    encoder must not read text that it did not read before.
    """
    text, sections = "", []
    for number, section in enumerate(document.sections):
        own = [chunk for chunk, is_kept in zip(chunks, kept, strict=True) if is_kept and chunk.section == number]
        if own:
            start = len(text)
            text += _joined(document.text, own)
            sections.append(replace(section, start=start, stop=len(text)))
    return replace(document, text=text, sections=tuple(sections), pages=(), pins=())


def _joined(text: str, chunks: Sequence[Chunk]) -> str:
    joined, done = text[chunks[0].start : chunks[0].stop], chunks[0].stop
    for chunk in chunks[1:]:
        start = max(chunk.start, done)  # windows of some encoders overlap
        between = text[done:start]
        joined += (between if not between.strip() else "\n\n") + text[start : chunk.stop]
        done = max(done, chunk.stop)
    return joined + "\n\n"


# Score and rank of a hit when one of its documents has only the chunks that are True.
Rescore = Callable[[NDArray[np.bool_]], Placed]
Values = NDArray[np.float64]
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
COARSE_SHARES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)  # for the method in which each share costs an encoding
RATIONALE_SHARES = (0.05, 0.1, 0.2, 0.5)  # ERASER's, except its 1 %, which is less than a chunk


@dataclass(frozen=True, slots=True)
class Course:
    """The course of one hit, or a mean of many; all arrays are (G,), over rising shares of tokens.

    Scores are relative to that of the whole document; above 1 where a query matches better without some parts.
    """

    deletion: Values  # score when that share is removed
    insertion: Values  # score when only that share is kept
    deletion_rank: Values  # reciprocal ranks, in (0, 1]
    insertion_rank: Values


def follow(parts: Parts, order: Order, rescore: Rescore, shares: Sequence[float]) -> Course:
    """Remove parts one after another, and insert them one after another, in one order.

    Between two parts the curve is a straight line, so that orders that begin with long and with short parts are
    compared at the same number of tokens. The score of the whole document must be above 0.
    """
    removed = np.concatenate([[0], np.cumsum(parts.n_tokens[order])]) / parts.n_tokens.sum()  # (C + 1,)
    stops = np.unique([near for share in shares for near in _around(removed, share)])
    first = [parts.chunks_of(order[:stop]) for stop in stops]
    deleted, inserted = [rescore(~chunks) for chunks in first], [rescore(chunks) for chunks in first]
    whole = deleted[0].score

    def at_shares(values: list[float]) -> Values:
        return np.interp(shares, removed[stops], values)

    return Course(
        deletion=at_shares([placed.score / whole for placed in deleted]),
        insertion=at_shares([placed.score / whole for placed in inserted]),
        deletion_rank=at_shares([1 / placed.rank for placed in deleted]),
        insertion_rank=at_shares([1 / placed.rank for placed in inserted]),
    )


def _around(removed: Values, share: float) -> tuple[int, int]:
    """The last number of parts with at most that share of tokens, and the first with at least it."""
    at_least = min(int(np.searchsorted(removed, share - 1e-12)), len(removed) - 1)
    return (at_least if removed[at_least] <= share + 1e-12 else at_least - 1), at_least


def mean_course(courses: Sequence[Course]) -> Course:
    """The mean of courses over the same shares; there must be one."""
    return Course(*(np.mean([getattr(course, f.name) for course in courses], axis=0) for f in fields(Course)))


def summaries(course: Course, shares: Sequence[float]) -> dict[str, float]:
    """The measures of a course, relative to the whole score.

    The area under each curve, over shares from 0 to 1, is low for a good deletion and high for a good insertion.
    `comprehensiveness` is the mean loss when 5, 10, 20 and 50 % are removed: high is good. `sufficiency` is that when
    only these shares are kept: low is good.
    """
    areas = {f"{f.name}_area": float(np.trapezoid(getattr(course, f.name), shares)) for f in fields(Course)}
    at = [list(shares).index(share) for share in RATIONALE_SHARES]
    return {
        **areas,
        "comprehensiveness": float(np.mean(1 - course.deletion[at])),
        "sufficiency": float(np.mean(1 - course.insertion[at])),
    }


STORED, ENCODED = "stored", "re-encoded"
METHODS: Mapping[str, Sequence[float]] = {STORED: SHARES, ENCODED: COARSE_SHARES}
_Key: TypeAlias = tuple[str, Side, OrderKind]


@dataclass(frozen=True)
class RemovalPlan:
    """Which queries and hits are followed, and how far."""

    queries: int = 100
    hits: int = 1  # of each query
    random: int = 5  # random orders of a hit; one of them where parts are encoded again
    encoded: int = 20  # queries whose documents are encoded again, besides rescoring from stored vectors


@dataclass(frozen=True)
class Arm:
    """One order of removal on one side of the hits, judged in one way."""

    method: str  # stored or re-encoded
    side: str  # query or target
    order: str  # breakdown, cosine, random or model
    query_ids: list[str]
    curves: dict[str, list[float]]  # means over queries, at the shares of the method in `METHODS`
    per_query: dict[str, list[float]]  # areas, comprehensiveness, sufficiency; in the order of `query_ids`


class Courses:
    """All courses that were followed, by method, side and order."""

    def __init__(self) -> None:
        self.n_hits = 0
        self._by_query: dict[_Key, dict[str, list[Course]]] = defaultdict(lambda: defaultdict(list))

    def add(self, method: str, side: Side, query: str, courses: Mapping[OrderKind, Course]) -> None:
        """Add the courses of one hit."""
        for kind, course in courses.items():
            self._by_query[method, side, kind][query].append(course)

    def arms(self) -> list[Arm]:
        """Means over the hits of each query, which are not independent cases, and over queries."""
        return [_arm(key, by_query) for key, by_query in self._by_query.items()]


def follow_hits(
    index: Index, queries: Sequence[str], plan: RemovalPlan, seed: int, log: Callable[[str], None] = lambda _: None
) -> Courses:
    """Follow the best hits of every query, by exact search; the first `plan.encoded` queries are encoded again too."""
    courses = Courses()
    corpus = Corpus(index, Scoring())
    row = {name: number for number, name in enumerate(index.snapshot.doc_ids())}
    explains = index.encoder.cannot_explain is None
    for number, doc_id in enumerate(queries):
        rng = np.random.default_rng([seed, number])
        stored = index.stored_query(doc_id)
        query = replace(stored, vectors=pool_long(stored.vectors))
        targets = np.delete(np.arange(index.n_documents), row[doc_id])
        prepared = corpus.prepare(query)
        matches = corpus.find_matches(prepared, targets)
        for hit in index.search(doc_id, Request(k=plan.hits, exact=True)).hits:
            column = int(np.searchsorted(targets, row[hit.doc_id]))
            target = index.stored_query(hit.doc_id)
            pairing = Pairing(corpus, query, prepared, target, targets, matches, column)
            courses.n_hits += 1
            model = index.encoder.explain(query.document, [target.document])[0] if explains else None
            for side in Side:
                parts = parts_of(hit.breakdown, side, query, target, corpus.language, model)
                orders = removal_orders(parts, plan.random, rng)
                for method, rescore in _rescores(pairing, side, index, is_encoded=number < plan.encoded):
                    courses.add(method, side, doc_id, _follow_orders(parts, orders, rescore, method))
        log(f"{number + 1} of {len(queries)} queries")
    return courses


def _rescores(pairing: Pairing, side: Side, index: Index, *, is_encoded: bool) -> Iterator[tuple[str, Rescore]]:
    yield STORED, stored_rescore(pairing, side)
    if is_encoded:
        yield ENCODED, encoded_rescore(pairing, side, index.encoder)


def _follow_orders(
    parts: Parts, orders: Mapping[OrderKind, Sequence[Order]], rescore: Rescore, method: str
) -> dict[OrderKind, Course]:
    """A course for each kind of order; {} with one part alone, no contribution or no score."""

    @cache  # all orders begin and end with the same document
    def known(kept: bytes) -> Placed:
        return rescore(np.frombuffer(kept, np.bool_))

    def ask(kept: Kept) -> Placed:
        return known(kept.tobytes())

    everything = np.ones(len(parts), bool)
    if len(parts) < 2 or not parts.contribution.any() or ask(everything).score <= 0:
        return {}
    n = 1 if method == ENCODED else None
    return {
        kind: mean_course([follow(parts, order, ask, METHODS[method]) for order in some[:n]])
        for kind, some in orders.items()
    }


def _arm(key: _Key, by_query: Mapping[str, Sequence[Course]]) -> Arm:
    method, side, kind = key
    means = [mean_course(courses) for courses in by_query.values()]
    values = [summaries(mean, METHODS[method]) for mean in means]
    over_queries = mean_course(means)
    return Arm(
        method=method,
        side=side.value,
        order=kind.value,
        query_ids=list(by_query),
        curves={f.name: np.round(getattr(over_queries, f.name), 4).tolist() for f in fields(Course)},
        per_query={name: [round(value[name], 4) for value in values] for name in values[0]},
    )
