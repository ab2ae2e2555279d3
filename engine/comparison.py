"""Two documents compared with each other: the score, the parts that sum to it.

The score needs thresholds and word statistics, which an index has in its reference. Two documents alone have no
reference: then every similarity counts from 0 on, and word frequencies are those in the two documents. Such a score
orders the parts of one comparison. It is higher than with an index, for any two documents, and must not be
compared with scores of searches.
"""

import time
from dataclasses import replace

import numpy as np

from engine.encoders.encoder import Encoder
from engine.result import Hit, Provenance, Result, Status, encoder_state, provenance
from engine.scoring.breakdown import Prepared, Scored, break_down
from engine.scoring.evidence import Components, Matches, Scoring, best_matches, chunk_component, combine, no_matches
from engine.search.query import Background, Query, Unpinned, as_stored, prepare, with_section_weights
from engine.search.request import Request
from engine.store.reference import Reference
from engine.store.shards import coarse
from engine.text.document import Document
from engine.text.section_kinds import section_bits
from engine.words.counts import KeptTable, TermCounts, count_documents, kept_table
from engine.words.languages import detect_language
from engine.words.likelihood import collect, scores
from engine.words.segmenter import segmenter_of


def alone(query: Document, target: Document, width: int) -> Unpinned:
    """The background of two documents: no thresholds, and the statistics of their own words and language."""
    texts = [query.text, target.text]
    language = detect_language(texts)
    statistics = collect([count_documents(segmenter_of(language), [query, target])])
    none, no_rows = np.empty(0, np.uint64), np.empty((0, width), np.float16)
    return Unpinned(Reference(0, 2, none, coarse(no_rows), np.empty(0, np.int64), statistics), language)


def compare_alone(
    query: Document,
    target: Document,
    encoder: Encoder | str | None = None,
    request: Request | None = None,
    *,
    device: str | None = None,
) -> Result:
    """Compare two documents without an index; see the module for the meaning of that score."""
    request = request or Request()
    if encoder is None or isinstance(encoder, str):
        # A comparison within an index of words alone needs no encoder.
        from engine.encoders.loading import load_encoder

        encoder = load_encoder(encoder, device=device)
    of_query, of_target = map(as_stored, encoder.encode([query, target]))
    origin = provenance(request.recorded_comparison(), encoder=encoder_state(encoder))
    weighted = with_section_weights(Query(query, of_query), request.skip, request.weights)
    background = alone(query, target, encoder.width)
    return compare(weighted, Query(target, of_target), background, scoring=request.scoring, origin=origin)


def compare(
    query: Query,
    target: Query,
    background: Background,
    *,
    folder: str = "",
    scoring: Scoring | None = None,
    origin: Provenance | None = None,
) -> Result:
    """Score a document as a search would, and break the score down.

    With an index as background and one of its documents as target, the score equals that of the hit.
    """
    started = time.perf_counter()
    scoring = scoring or Scoring()
    prepared = prepare(query, background, scoring)
    scored, score = _scored(prepared, target, background, scoring)
    spans = np.array(
        [[chunk.section, chunk.start, chunk.stop, chunk.n_tokens] for chunk in target.vectors.chunk_spans], np.int32
    )
    (breakdown,) = break_down([target.document], [spans.reshape(-1, 4)], [section_bits(target.document)], scored)
    has_vectors = len(target.vectors.chunks) > 0
    hit = Hit(1, score, target.document, breakdown, target.vectors.coverage, has_vectors)
    coverage = prepared.vectors.coverage
    is_cut = coverage.tokens_read < coverage.tokens_total or coverage.chunks_pooled > 1
    return Result(
        query=query.document,
        query_coverage=coverage,
        hits=(hit,),
        status=Status.PARTIAL if len(prepared.vectors.chunks) and is_cut else Status.CERTIFIED,
        n_found=int(score > 0),
        n_evident=int(scored.components.chunks[0] > 0),
        n_searched=1,
        seconds=time.perf_counter() - started,
        language=background.language,
        reference=background.reference.version,
        provenance=origin,
        floor=background.reference.floor_of(len(query.document.text), scoring),
        wording=background.reference.stock,
        background=folder,
    )


def _scored(prepared: Prepared, target: Query, background: Background, scoring: Scoring) -> tuple[Scored, float]:
    matches = _matches(prepared, target)
    words, pairs = np.zeros(1), np.zeros(1)
    if prepared.words is not None and prepared.pairs is not None:
        of_words, of_pairs = _counts(target, background, prepared.skip)
        words, pairs = scores(prepared.words, of_words), scores(prepared.pairs, of_pairs)
    chunks = chunk_component(matches.similarities, matches.openings, prepared.limits, scoring)
    components = Components(chunks, words, pairs)
    score = float(combine(components, prepared.weights, scoring.root).astype(np.float32)[0])
    return Scored(prepared, matches, components, scoring), score


def _matches(prepared: Prepared, target: Query) -> Matches:
    """The best chunks of the target outside of the sections that are skipped, numbered among all its chunks."""
    chunks, spans = prepared.vectors.chunks, target.vectors.chunk_spans
    bits = section_bits(target.document)[[span.section for span in spans]]
    left = np.flatnonzero((bits & prepared.skip) == 0)
    if not prepared.weights["chunks"] or not len(left):
        return no_matches(len(chunks), 1)
    targets = target.vectors.chunks[left]
    matches = best_matches(chunks, targets, np.zeros(1, np.int64), prepared.limits.chunks)
    return replace(matches, chunks=np.where(matches.chunks < 0, -1, left[matches.chunks]))


def _counts(target: Query, background: Background, skip: int) -> tuple[TermCounts | KeptTable, TermCounts | KeptTable]:
    """The counts of words and of pairs of the target outside of the sections that are skipped."""
    tables = target.words
    if tables is None or (skip and tables.apart is None):
        segmenter = segmenter_of(background.language or "none")
        tables = count_documents(segmenter, [target.document])
    apart = tables.apart
    if not skip or apart is None:
        return tables.words, tables.pairs
    words = kept_table(tables.words, apart.counts.words, apart, skip)
    return words, kept_table(tables.pairs, apart.counts.pairs, apart, skip)
