from __future__ import annotations

import numpy as np
import pytest

from benchmarks.sections.overlap import Overlap, merge, overlap
from engine.document import Span


@pytest.mark.parametrize("seed", range(20))
def test_overlap_counts_characters(seed: int) -> None:
    ends = np.sort(np.random.default_rng(seed).integers(0, 60, (5, 2)), axis=1).tolist()
    *named, truth = [Span(start, stop + 1) for start, stop in ends]
    said = {at for span in named for at in range(span.start, span.stop)}
    true = set(range(truth.start, truth.stop))
    both = len(said & true)
    assert overlap(named, truth) == Overlap(both / len(said | true), both / len(said), both / len(true))


def test_nothing_named_is_no_overlap() -> None:
    assert overlap([], Span(2, 5)) == Overlap(0.0, 0.0, 0.0)


def test_spans_that_touch_are_one() -> None:
    assert merge([Span(5, 7), Span(0, 3), Span(3, 4), Span(1, 2)]) == [Span(0, 4), Span(5, 7)]
