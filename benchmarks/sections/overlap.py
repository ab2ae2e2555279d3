"""How far spans that were named agree with the span that is the truth. Pure functions of offsets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.document import Span


@dataclass(frozen=True, slots=True)
class Overlap:
    """In characters; each value in [0, 1]."""

    iou: float  # intersection over union
    precision: float  # of what was named, the share that is true; 0 where nothing was
    recall: float  # of the truth, the share that was named


def overlap(named: Iterable[Span], truth: Span) -> Overlap:
    """Compare a set of spans, which may overlap each other, with one span of at least a character."""
    merged = merge(named)
    n_named = sum(span.stop - span.start for span in merged)
    n_true = truth.stop - truth.start
    n_both = sum(max(0, min(span.stop, truth.stop) - max(span.start, truth.start)) for span in merged)
    return Overlap(n_both / (n_named + n_true - n_both), n_both / n_named if n_named else 0.0, n_both / n_true)


def merge(spans: Iterable[Span]) -> list[Span]:
    """The same characters as spans that do not touch, in order."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        if merged and span.start <= merged[-1].stop:
            merged[-1] = Span(merged[-1].start, max(merged[-1].stop, span.stop))
        else:
            merged.append(span)
    return merged
