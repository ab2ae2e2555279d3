"""The novelty of the sections of a query in an index. Each section is a query of its own.

The novelty of section i is the share of it that is missing in the document that contains most of it:

    novelty_i = 1 - max_t containment(section i, t)                                      in [0, 1]

with containment as defined in `engine.scoring.evidence`. Sentences that many documents have count here like all
others, since they are not new. All documents are scored for every section, so the best one is certified if all
documents have vectors, or if the index is one of words alone.
"""

from __future__ import annotations

import time
from dataclasses import replace

from engine.encoders.encoder import EncodedDocument
from engine.result import Result, SectionNovelty, Status
from engine.search.partition import Selection
from engine.search.query import Query
from engine.search.request import Request
from engine.search.searcher import Searcher
from engine.store.documents import content_hash
from engine.store.reference import content_key
from engine.text.document import section_label
from engine.text.section_kinds import SectionKind, section_kinds
from engine.text.spans import Span


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
    hits = searcher.best_hits(list(zip(parts, prepared, strict=True)), selection, len(survey.positions))
    sections = [
        SectionNovelty(
            number,
            section_label(document, number),
            Span(document.sections[number].start, document.sections[number].stop),
            kinds[number],
            (1 - (0.0 if hit is None else hit.score)) if any(one.weights.values()) else None,
            hit,
        )
        for number, one, hit in zip(numbers, prepared, hits, strict=True)
    ]
    sections.sort(key=_place)
    chunks_pooled = max((one.vectors.coverage.chunks_pooled for one in prepared), default=1)
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


def _place(one: SectionNovelty) -> tuple[bool, float, int]:
    return one.novelty is None, -(one.novelty or 0.0), one.section


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
