"""Searches made of several queries: documents with signs as one query, and the sections of a document for novelty.

With n documents a to be like and m documents b to be unlike, the score of a target t is

    score(t) = sum_a score(a, t) / n  -  UNLIKE sum_b score(b, t) / m                  in [-UNLIKE, 1]

of the scores for each document alone; targets with a score above 0 are hits. `UNLIKE` is below 1, since the documents
near to a are near to b too, and would all be lost. One document gives its ordinary
score, a score depends on the documents, the target and the reference alone, and its parts are those of the ordinary
scores.

The floor is the mean of the floors of the documents to be like. A hit above it stands out for at least one of them,
since what is subtracted is never below 0; so fewer unrelated documents reach it than reach a single floor n times.

A target that no list of the best n_listed documents holds scores at most the mean of the last scores of the lists. The
lists grow until the hits score higher (the threshold algorithm of Fagin, Lotem and Naor, 2001), so no list of all
documents is needed.

The novelty of section i is the share of it that is missing in the document that contains most of it:

    novelty_i = 1 - max_t containment(section i, t)                                      in [0, 1]

with containment as defined in `engine.scoring.evidence`. Sentences that many documents have count here like all
others, since they are not new. All documents are scored for every section, so the best one is certified if all
documents have vectors, or if the index is one of words alone.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument
from engine.result import Hit, JointResult, Result, SectionNovelty, Status
from engine.scoring.breakdown import Prepared
from engine.scoring.evidence import Floor
from engine.search.partition import Ranks, Selection
from engine.search.query import Query
from engine.search.request import Request
from engine.search.searcher import Searcher, least_score
from engine.store.checks import content_hash
from engine.store.reference import content_key
from engine.store.snapshot import Positions
from engine.text.document import section_label
from engine.text.section_kinds import SectionKind, section_kinds
from engine.text.segmentation import Span

UNLIKE = 0.5  # weight of all documents to be unlike; chosen by hand, between 1 and Rocchio's usual 0.2
_N_LISTED = 200  # documents of the first lists
_MOST_ESTIMATED = 1_000  # documents of the last lists, where an approximate index makes them


def joint(searcher: Searcher, queries: Sequence[Query], n_like: int, request: Request) -> JointResult:
    """Rank the index against several documents.

    Args:
        queries: documents whose sections are skipped and weighted already; first those to be like.
        request: of which ranks, filters, `exact`, `least` and `min_pair` are used.
    """
    started = time.perf_counter()
    n_unlike = len(queries) - n_like
    weights = np.array([1 / n_like] * n_like + [-UNLIKE / max(1, n_unlike)] * n_unlike)
    prepared = [searcher.prepare(query) for query in queries]
    floor = _mean_floor([searcher.floor(query) for query in queries[:n_like]])
    positions, scores, ranks = _ranked(searcher, prepared, weights, request)
    page = np.flatnonzero(scores >= least_score(request, floor))[request.offset : request.offset + request.k]
    positions, scores = positions[page], scores[page]
    shown, results = searcher.show(positions), []
    for query, ready, of_query in zip(queries, prepared, ranks, strict=True):
        hits: tuple[Hit, ...] = ()
        if len(positions):
            exact = searcher.exact(ready, positions)
            hits = searcher.hits(ready, exact, shown, request.offset, request.min_pair)
        results.append(searcher.result(query, ready, of_query, hits, started))
    status = max((result.status for result in results), key=list(Status).index)
    seconds = results[-1].seconds
    results = [replace(result, status=status, seconds=seconds) for result in results]
    return JointResult(
        tuple(results), tuple(weights.tolist()), tuple(scores.tolist()), status, ranks[0].n_searched, seconds, floor
    )


def _ranked(
    searcher: Searcher, prepared: Sequence[Prepared], weights: NDArray[np.float64], request: Request
) -> tuple[Positions, NDArray[np.float64], list[Ranks]]:
    """The best documents with a score above 0: positions and scores of at least the page; and the lists."""
    selection, stop = Selection.of(request), request.offset + request.k
    n_listed = max(_N_LISTED, 2 * stop)
    ranks = [searcher.ranks(query, selection, n_listed) for query in prepared]
    while True:
        lists = [rank.best.exact for rank, weight in zip(ranks, weights, strict=True) if weight > 0]
        positions = reduce(np.union1d, [listed.positions for listed in lists])
        if not len(positions):
            return positions, np.zeros(0), ranks
        scores = np.tensordot(weights, [searcher.exact(query, positions).scores for query in prepared], 1)
        scores = scores.astype(np.float32).astype(np.float64)
        best = np.lexsort((np.array(searcher.snapshot.doc_ids_of(positions)), -scores))
        best = best[scores[best] > 0]
        unlisted = [listed.scores[-1] if len(listed.scores) >= n_listed else 0.0 for listed in lists]
        is_last = not all(rank.is_exact for rank in ranks) and n_listed >= _MOST_ESTIMATED
        if is_last or not any(unlisted) or (len(best) >= stop and scores[best[stop - 1]] > np.mean(unlisted)):
            return positions[best], scores[best], ranks
        n_listed *= 4
        ranks = [
            searcher.ranks(query, selection, n_listed) if weight > 0 else rank
            for query, rank, weight in zip(prepared, ranks, weights, strict=True)
        ]


def _mean_floor(floors: Sequence[Floor | None]) -> Floor | None:
    known = [[floor.p50, floor.p95, floor.p99] for floor in floors if floor is not None]
    return Floor(*np.mean(known, axis=0).tolist()) if len(known) == len(floors) else None


def novelty(searcher: Searcher, query: Query, request: Request) -> Result:
    """Rank the sections of a query from the most novel to the least; those with nothing to compare are last."""
    selection, skip = Selection.of(request), frozenset(map(SectionKind, request.skip))
    started = time.perf_counter()
    snapshot, document = searcher.snapshot, query.document
    if query.key is None:
        query = replace(query, key=content_key(content_hash(document)))
    kinds = section_kinds(document)
    numbers = [number for number, kind in enumerate(kinds) if kind not in skip]
    parts = [replace(section_query(query, number), skip_in_targets=skip) for number in numbers]
    prepared = [searcher.prepare(part) for part in parts]
    survey = searcher.survey(selection)
    hits = searcher.best_hits(prepared, selection, len(survey.positions))
    sections = [
        SectionNovelty(
            number,
            section_label(document, number),
            Span(document.sections[number].start, document.sections[number].stop),
            kinds[number],
            (1 - (0.0 if hit is None else hit.score)) if any(ready.weights.values()) else None,
            hit,
        )
        for number, ready, hit in zip(numbers, prepared, hits, strict=True)
    ]
    sections.sort(key=lambda section: (section.novelty is None, -(section.novelty or 0.0), section.section))
    chunks_pooled = max((ready.vectors.coverage.chunks_pooled for ready in prepared), default=1)
    return Result(
        query=document,
        query_coverage=replace(query.vectors.coverage, chunks_pooled=chunks_pooled),
        hits=tuple(section.hit for section in sections if section.hit is not None),
        status=Status.CERTIFIED if survey.is_complete else Status.ESTIMATED,
        n_found=0,
        n_evident=0,
        n_searched=len(survey.positions),
        seconds=time.perf_counter() - started,
        language=snapshot.language,
        reference=snapshot.reference.version,
        wording=snapshot.reference.stock,
        sections=tuple(sections),
    )


def section_query(query: Query, number: int) -> Query:
    """One section of a document as a query; its offsets are those of the document."""
    document, section = query.document, query.document.sections[number]
    before, after = " " * section.start, " " * (len(document.text) - section.stop)
    alone = replace(document, text=before + document.text[section.start : section.stop] + after)
    return Query(alone, _of_section(query.vectors, number), key=query.key, keeps_common=True)


def _of_section(vectors: EncodedDocument, number: int) -> EncodedDocument:
    places = [place for place, chunk in enumerate(vectors.chunk_spans) if chunk.section == number]
    spans = tuple(vectors.chunk_spans[place] for place in places)
    return replace(vectors, chunks=vectors.chunks[places], chunk_spans=spans)
