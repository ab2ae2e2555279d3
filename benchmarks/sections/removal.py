"""Hits with parts of one document left out, scored again: from stored vectors, or by encoding what is left.

From stored vectors chunks keep their vectors and terms, and the vector of the whole document stays as it was. What
the score makes of the rest is the engine's: thresholds and statistics are those of the reference of the index, and
the weights of a query's chunks that are left sum to 1 again. Encoding what is left cuts it into new chunks, with a
document vector of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.sections.courses import Rescore
from benchmarks.sections.matches import Corpus, Matches, Placed, place
from benchmarks.sections.parts import ChunkTerms, Side
from engine.document import Chunk, Document
from engine.encoders.encoder import EncodedDocument, Encoder
from engine.errors import DocumentError
from engine.search.query import Prepared, Query, as_stored
from engine.store.snapshot import Positions
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
    matches: Matches  # of the query with them
    column: int  # of the target in them

    def chunk_terms(self, side: Side) -> ChunkTerms:
        """The terms of one of the documents by chunk."""
        own = self.query if side is Side.QUERY else self.target
        return ChunkTerms(own.document, own.vectors.chunk_spans, segmenter_of(self.corpus.language))

    def of_target(self, score: float) -> Placed:
        """Where the target stands with another score, all other scores as they are."""
        scores = self.corpus.score_all(self.matches)
        scores[self.column] = score
        return place(scores, self.column)

    def of_query(self, matches: Matches | None) -> Placed:
        """Where the target stands for another query; None for one without text."""
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
        return pairing.of_target(corpus.score_target(pairing.prepared, vectors.chunks[kept], vectors.document, counts))

    return of_query if side is Side.QUERY else of_target


def encoded_rescore(pairing: Pairing, side: Side, encoder: Encoder) -> Rescore:
    """Score again after encoding the text of the chunks that are kept.

    Args:
        pairing: the hit.
        side: whose text is cut.
        encoder: of the index.
    """
    own, corpus = (pairing.query if side is Side.QUERY else pairing.target), pairing.corpus

    def rescore(kept: Kept) -> Placed:
        document = kept_document(own.document, own.vectors.chunk_spans, kept)
        left = _encoded(encoder, document)
        if side is Side.TARGET:
            if left is None:
                return pairing.of_target(0.0)
            words = count_documents(segmenter_of(corpus.language), [document])
            return pairing.of_target(corpus.score_target(pairing.prepared, left.chunks, left.document, words))
        if left is None:
            return pairing.of_query(None)
        # The key is that of the whole text: what is left of it is not compared with it in the reference.
        prepared = corpus.prepare(Query(document, left, key=own.key))
        return pairing.of_query(corpus.find_matches(prepared, pairing.targets))

    return rescore


def remembered(rescore: Rescore) -> Rescore:
    """The same, asked once for the same chunks: orders begin and end with the same document."""
    known: dict[bytes, Placed] = {}

    def ask(kept: Kept) -> Placed:
        key = kept.tobytes()
        if key not in known:
            known[key] = rescore(kept)
        return known[key]

    return ask


def _encoded(encoder: Encoder, document: Document) -> EncodedDocument | None:
    try:
        return as_stored(encoder.encode([document])[0])
    except DocumentError:
        return None  # nothing is left that the tokenizer can read


def kept_document(document: Document, chunks: Sequence[Chunk], kept: Kept) -> Document:
    """The document with the text of the kept chunks alone.

    CandidateLists keep the white space between them; where something is gone between
    them stands a blank line, so that no sentence runs across the gap. A section
    without a kept chunk is gone. Text that is in no chunk is not put back: what an
    encoder did not read cannot come into its view by removing what it did.
    """
    text, sections = "", []
    for number, section in enumerate(document.sections):
        own = [chunk for chunk, is_kept in zip(chunks, kept, strict=True) if is_kept and chunk.section == number]
        if own:
            start = len(text)
            text += _joined(document.text, own)
            sections.append(replace(section, start=start, stop=len(text)))
    return replace(document, text=text, sections=tuple(sections), pages=())


def _joined(text: str, chunks: Sequence[Chunk]) -> str:
    joined, done = text[chunks[0].start : chunks[0].stop], chunks[0].stop
    for chunk in chunks[1:]:
        start = max(chunk.start, done)  # windows of some encoders overlap
        between = text[done:start]
        joined += (between if not between.strip() else "\n\n") + text[start : chunk.stop]
        done = max(done, chunk.stop)
    return joined + "\n\n"
