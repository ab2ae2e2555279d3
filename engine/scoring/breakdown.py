"""The parts of a score: which section meets which, by which spans, for how much. Values and one pure function.

Letters in shapes: I query chunks, C chunks of the target.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.document import Chunk, Span
from engine.encoders.encoder import Vectors
from engine.scoring.evidence import Scoring, Thresholds, rise


@dataclass(frozen=True, slots=True)
class ChunkPart:
    """A chunk of the query and its best match in the target."""

    query: Span
    target: Span
    similarity: float
    theta: float  # similarity that the crowd has
    weight: float  # contribution at similarity 1
    contribution: float  # weight * ((similarity - theta) / (1 - theta)) ^ p


@dataclass(frozen=True, slots=True)
class SectionPair:
    """A section of the query and a section of the target, and all that passed between them."""

    query_section: int
    target_section: int
    contribution: float
    parts: tuple[ChunkPart, ...]  # strongest first


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """What the likeness of the whole documents adds."""

    similarity: float
    theta: float
    weight: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Breakdown:
    """All parts of one score; their contributions sum to it."""

    pairs: tuple[SectionPair, ...]  # strongest first
    document: DocumentPart

    @property
    def score(self) -> float:
        """The sum of the parts."""
        return sum(part.contribution for pair in self.pairs for part in pair.parts) + self.document.contribution


def break_down(
    query_chunks: Sequence[Chunk],
    target_spans: NDArray[np.int32],
    similarities: Vectors,
    document_similarity: float,
    limits: Thresholds,
    scoring: Scoring,
) -> Breakdown:
    """Take one target's score apart.

    Args:
        query_chunks: I chunks of the query.
        target_spans: (C, 4) section, start, stop, tokens of the target's chunks.
        similarities: (I, C) cosines.
        document_similarity: cosine of the whole documents.
        limits: thresholds of this query.
        scoring: the constants of the score.
    """
    best = similarities.argmax(axis=1)
    similarity = similarities[np.arange(len(best)), best]
    contribution = limits.weights * rise(similarity, limits.chunks, scoring.power)
    pairs: dict[tuple[int, int], list[ChunkPart]] = defaultdict(list)
    for i in np.flatnonzero(contribution > 0).tolist():
        section, start, stop, _ = target_spans[best[i]].tolist()
        pairs[query_chunks[i].section, section].append(
            ChunkPart(
                query=Span(query_chunks[i].start, query_chunks[i].stop),
                target=Span(start, stop),
                similarity=float(similarity[i]),
                theta=float(limits.chunks[i]),
                weight=float(limits.weights[i]),
                contribution=float(contribution[i]),
            )
        )
    whole = DocumentPart(
        similarity=document_similarity,
        theta=limits.document,
        weight=scoring.document_weight,
        contribution=float(
            scoring.document_weight * rise(np.array(document_similarity), limits.document, scoring.power)
        ),
    )
    return Breakdown(_by_strength(pairs), whole)


def _by_strength(pairs: dict[tuple[int, int], list[ChunkPart]]) -> tuple[SectionPair, ...]:
    summed = [
        SectionPair(
            query_section,
            target_section,
            sum(part.contribution for part in parts),
            tuple(sorted(parts, key=lambda part: -part.contribution)),
        )
        for (query_section, target_section), parts in pairs.items()
    ]
    return tuple(sorted(summed, key=lambda pair: (-pair.contribution, pair.query_section, pair.target_section)))
