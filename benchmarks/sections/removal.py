"""Hits with parts of one document left out, scored again: from stored vectors, or by encoding what is left.

From stored vectors chunks keep their vectors, and the vector of the whole document stays as it was. What the score
makes of the rest is the engine's: the weights of a query's chunks that are left sum to 1 - b again, and thetas move
where the target was in the crowd. Encoding what is left cuts it into new chunks, with a document vector of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.sections.courses import Rescore
from benchmarks.sections.matches import Matches, Placed, find_matches, place, score_all
from benchmarks.sections.parts import Side
from engine.document import Chunk, Document
from engine.encoders.encoder import EncodedDocument, Encoder
from engine.errors import DocumentError
from engine.scoring.evidence import Scoring
from engine.search import Query, as_stored
from engine.store.snapshot import Positions, Snapshot

Kept = NDArray[np.bool_]  # (C,) chunks of the document of one side


@dataclass(frozen=True, slots=True)
class Pairing:
    """A hit: two documents with their vectors, and the corpus around them."""

    query: Query
    target: Query
    matches: Matches  # of the query
    column: int  # of the target in them
    scoring: Scoring


def stored_rescore(pairing: Pairing, side: Side) -> Rescore:
    """Score anew from the stored vectors of the chunks that are kept."""
    matches, column, scoring = pairing.matches, pairing.column, pairing.scoring
    if side is Side.QUERY:
        return lambda kept: place(score_all(matches.of_chunks(kept), scoring), column)
    cosines = pairing.query.vectors.chunks @ pairing.target.vectors.chunks.T  # (I, C)

    def rescore(kept: Kept) -> Placed:
        if not kept.any():
            return _without_target(pairing)
        changed = matches.with_target(column, cosines[:, kept].max(axis=1), float(matches.whole[column]))
        return place(score_all(changed, scoring), column)

    return rescore


def encoded_rescore(pairing: Pairing, side: Side, encoder: Encoder, snapshot: Snapshot, targets: Positions) -> Rescore:
    """Score anew after encoding the text of the chunks that are kept.

    Args:
        pairing: the hit.
        side: whose text is cut.
        encoder: of the index.
        snapshot: of the index.
        targets: the documents of `pairing.matches`.
    """
    own = pairing.query if side is Side.QUERY else pairing.target

    def rescore(kept: Kept) -> Placed:
        left = _encoded(encoder, kept_document(own.document, own.vectors.chunk_spans, kept))
        if side is Side.TARGET:
            return _without_target(pairing) if left is None else _with_target(pairing, left)
        if left is None:
            return place(np.zeros(len(targets)), pairing.column)
        return place(score_all(find_matches(snapshot, left, targets), pairing.scoring), pairing.column)

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


def _with_target(pairing: Pairing, target: EncodedDocument) -> Placed:
    query = pairing.query.vectors
    best = (query.chunks @ target.chunks.T).max(axis=1)
    changed = pairing.matches.with_target(pairing.column, best, float(query.document @ target.document))
    return place(score_all(changed, pairing.scoring), pairing.column)


def _without_target(pairing: Pairing) -> Placed:
    """A target without text has score 0."""
    nothing = np.full(len(pairing.matches.best), -1, np.float32)
    return place(score_all(pairing.matches.with_target(pairing.column, nothing, -1.0), pairing.scoring), pairing.column)


def _encoded(encoder: Encoder, document: Document) -> EncodedDocument | None:
    try:
        return as_stored(encoder.encode([document])[0])
    except DocumentError:
        return None  # nothing is left that the tokenizer can read


def kept_document(document: Document, chunks: Sequence[Chunk], kept: Kept) -> Document:
    """The document with the text of the kept chunks alone.

    Neighbours keep the white space between them; where something is gone between
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
