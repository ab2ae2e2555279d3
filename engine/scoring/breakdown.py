"""The parts of a score: which section meets which, by which spans, for how much. Values and one pure function.

Letters in shapes: I query chunks, R targets, C chunks of one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.deferred import Deferred, deferred
from engine.document import Chunk, Span
from engine.encoders.encoder import Vectors
from engine.scoring.evidence import Scoring, Thresholds, rise
from engine.scoring.similarity import Matches


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
class Breakdown(Deferred):
    """All parts of one score; their contributions sum to it.

    A search leaves the pairs to be made when they are first read.
    """

    pairs: tuple[SectionPair, ...]  # strongest first
    document: DocumentPart

    @property
    def score(self) -> float:
        """The sum of the parts."""
        return sum(part.contribution for pair in self.pairs for part in pair.parts) + self.document.contribution


def break_down(
    query_chunks: Sequence[Chunk],
    target_spans: Sequence[NDArray[np.int32]],
    matches: Matches,
    document_similarities: Vectors,
    limits: Thresholds,
    scoring: Scoring,
) -> list[Breakdown]:
    """Take the scores of targets apart.

    Args:
        query_chunks: I chunks of the query.
        target_spans: for each target, (C, 4) section, start, stop, tokens of its chunks.
        matches: (I, R) best chunks and their cosines.
        document_similarities: (R,) cosines of the whole documents.
        limits: thresholds of this query.
        scoring: the constants of the score.

    Returns:
        R breakdowns, in the order of the targets.
    """
    contributions = limits.weights[:, None] * rise(matches.similarities, limits.chunks[:, None], scoring.power)
    of_whole = scoring.document_weight * rise(document_similarities, limits.document, scoring.power)
    breakdowns = []
    for number, spans in enumerate(target_spans):
        rows = np.flatnonzero(contributions[:, number] > 0)
        make = partial(
            _pairs,
            query_chunks,
            rows,
            spans[matches.chunks[rows, number]],
            matches.similarities[rows, number],
            contributions[rows, number],
            limits,
        )
        whole = DocumentPart(
            float(document_similarities[number]), limits.document, scoring.document_weight, float(of_whole[number])
        )
        breakdowns.append(deferred(Breakdown, make, document=whole))
    return breakdowns


def _pairs(
    query_chunks: Sequence[Chunk],
    rows: NDArray[np.int64],  # (n,) the query chunks that contribute
    spans: NDArray[np.int32],  # (n, 4) of their best matches
    similarities: Vectors,  # (n,)
    contributions: NDArray[np.float64],  # (n,)
    limits: Thresholds,
) -> Mapping[str, Any]:
    parts: dict[tuple[int, int], list[ChunkPart]] = defaultdict(list)
    for number, row in enumerate(rows.tolist()):
        section, start, stop, _ = spans[number].tolist()
        chunk = query_chunks[row]
        parts[chunk.section, section].append(
            ChunkPart(
                query=Span(chunk.start, chunk.stop),
                target=Span(start, stop),
                similarity=float(similarities[number]),
                theta=float(limits.chunks[row]),
                weight=float(limits.weights[row]),
                contribution=float(contributions[number]),
            )
        )
    return {"pairs": _by_strength(parts)}


def _by_strength(parts: dict[tuple[int, int], list[ChunkPart]]) -> tuple[SectionPair, ...]:
    summed = [
        SectionPair(
            query_section,
            target_section,
            sum(part.contribution for part in of_pair),
            tuple(sorted(of_pair, key=lambda part: -part.contribution)),
        )
        for (query_section, target_section), of_pair in parts.items()
    ]
    return tuple(sorted(summed, key=lambda pair: (-pair.contribution, pair.query_section, pair.target_section)))
