"""Scores of candidates by what a breakdown says of one facet, and by what ignores facets; nothing is judged here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

import numpy as np

from benchmarks.sections.faceted import facet_sections
from engine.encoders.encoder import Vectors
from engine.index import Index
from engine.result import Hit, Result
from engine.scoring.evidence import chunk_weights


class Ranking(StrEnum):
    """What the candidates of a faceted query are ordered by."""

    FACET_TO_FACET = "facet to facet"  # contributions of pairs from the facet's sections to such of the target
    FACET_TO_ANY = "facet to any"  # contributions of pairs that start in the facet's sections
    OTHERS = "other sections"  # contributions of the pairs that start elsewhere
    EVIDENCE = "evidence"  # the whole score
    FACET_COSINE = "facet cosine"  # largest cosine between sections of the facet
    DOCUMENT = "document"  # cosine of document vectors


def candidate_scores(
    index: Index, result: Result, facet: str, candidates: Collection[str]
) -> dict[Ranking, dict[str, float]]:
    """Score the candidates of a query in every way.

    Args:
        index: holds the query and the candidates.
        result: all hits of the query, which is a document of the index.
        facet: of `FACETS`.
        candidates: their doc_ids.

    Returns:
        For each ranking the score of every candidate; 0 where the score says nothing of it, and -1, the least
        cosine, for `FACET_COSINE` where query or candidate has no section of the facet.
    """
    scores = {ranking: dict.fromkeys(candidates, 0.0) for ranking in Ranking}
    own = facet_sections(result.query, facet)
    for hit in result.hits:
        if hit.doc_id in scores[Ranking.EVIDENCE]:
            for ranking, score in _of_breakdown(hit, own, facet_sections(hit.document, facet)).items():
                scores[ranking][hit.doc_id] = score
    scores[Ranking.DOCUMENT] = _document_cosines(index, result.query.doc_id, candidates)
    scores[Ranking.FACET_COSINE] = _facet_cosines(index, result.query.doc_id, candidates, facet)
    return scores


def _of_breakdown(hit: Hit, own: frozenset[int], theirs: frozenset[int]) -> dict[Ranking, float]:
    pairs = hit.breakdown.pairs
    starting = [pair for pair in pairs if pair.query_section in own]
    return {
        Ranking.FACET_TO_FACET: sum(pair.contribution for pair in starting if pair.target_section in theirs),
        Ranking.FACET_TO_ANY: sum(pair.contribution for pair in starting),
        Ranking.OTHERS: sum(pair.contribution for pair in pairs if pair.query_section not in own),
        Ranking.EVIDENCE: hit.score,
    }


def _document_cosines(index: Index, query: str, candidates: Collection[str]) -> dict[str, float]:
    names, vectors = index.document_vectors()
    row = {name: number for number, name in enumerate(names)}
    cosines = vectors @ vectors[row[query]]
    return {name: float(cosines[row[name]]) for name in candidates}


def _facet_cosines(index: Index, query: str, candidates: Collection[str], facet: str) -> dict[str, float]:
    own = _facet_vectors(index, query, facet)
    cosines = {}
    for name in candidates:
        theirs = _facet_vectors(index, name, facet)
        cosines[name] = float((own @ theirs.T).max()) if len(own) and len(theirs) else -1.0
    return cosines


def _facet_vectors(index: Index, doc_id: str, facet: str) -> Vectors:
    stored = index.stored_query(doc_id)
    return stored.vectors.sections[sorted(facet_sections(stored.document, facet))]


def largest_pair_shares(
    index: Index, result: Result, facet: str, relevance: Mapping[str, int]
) -> dict[str, float | None]:
    """How often the largest pair of a hit starts in the facet's section.

    Args:
        index: holds the query.
        result: all hits of the query.
        facet: of `FACETS`.
        relevance: of each candidate.

    Returns:
        In [0, 1], or None where there is no such hit with a pair: "relevant" for candidates of relevance 1 and
        above, "irrelevant" for those of 0, and "by chance" the share of the facet in the weights of the query's
        chunks: what it would be if the facet did not matter.
    """
    own = facet_sections(result.query, facet)
    starts: dict[bool, list[bool]] = {True: [], False: []}
    for hit in result.hits:
        if hit.doc_id in relevance and hit.breakdown.pairs:
            starts[relevance[hit.doc_id] > 0].append(hit.breakdown.pairs[0].query_section in own)
    chunks = index.stored_query(result.query.doc_id).vectors.chunk_spans
    weights = chunk_weights(np.array([chunk.n_tokens for chunk in chunks]))
    is_own = np.array([chunk.section in own for chunk in chunks])
    return {
        "relevant": _mean(starts[True]),
        "irrelevant": _mean(starts[False]),
        "by chance": float(weights[is_own].sum() / weights.sum()),
    }


def _mean(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None
