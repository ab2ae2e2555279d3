"""Which tokens TDE reads as one sentence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.encoders.tde.encoder import sentence_windows


@pytest.mark.parametrize(
    ("ends", "capacity", "shortest", "expected"),
    [
        ([5, 9, 20], 12, 1, [(0, 5), (5, 9), (9, 20)]),
        ([5, 9, 20], 12, 5, [(0, 5), (5, 9), (9, 20)]),  # 4 and 11 do not fit together
        ([5, 9, 16], 12, 5, [(0, 5), (5, 16)]),
        ([2, 4, 6, 12], 8, 5, [(0, 6), (6, 12)]),
        ([6, 8], 8, 5, [(0, 8)]),  # the last sentence joins the one before it
        ([7, 9], 8, 5, [(0, 7), (7, 9)]),
        ([25], 12, 5, [(0, 8), (8, 16), (16, 25)]),
        ([13, 15], 12, 5, [(0, 6), (6, 13), (13, 15)]),
        ([], 12, 5, []),
    ],
)
def test_windows_are_sentences(ends: list[int], capacity: int, shortest: int, expected: list[tuple[int, int]]) -> None:
    windows = sentence_windows(ends, capacity, shortest=shortest)
    assert [(window.first, window.stop) for window in windows] == expected


@given(st.lists(st.integers(1, 40)), st.integers(1, 30), st.integers(1, 10))
def test_windows_hold_every_token_once_and_fit(lengths: list[int], capacity: int, shortest: int) -> None:
    ends = np.cumsum(lengths, dtype=int).tolist()
    windows = sentence_windows(ends, capacity, shortest=shortest)
    assert [at for window in windows for at in range(window.first, window.stop)] == list(range(sum(lengths)))
    assert all(0 < window.stop - window.first <= capacity for window in windows)
    if shortest == 1:
        cut = {end for end in ends} | {window.stop for window in windows}
        assert {window.stop for window in windows} == cut  # every sentence ends a window
