"""Batches under a budget of padded tokens."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.encoders.batching import read_batches, token_budget_batches


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 200))
def test_every_position_is_in_exactly_one_batch_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = list(token_budget_batches(lengths, budget))
    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[position] for position in batch) <= budget


def test_the_longest_come_first_and_like_lengths_together() -> None:
    assert list(token_budget_batches([3, 9, 4, 8, 1], 16)) == [[1], [3, 2], [0, 4]]


def test_no_sequence_makes_no_batch() -> None:
    assert list(token_budget_batches([], 10)) == []


def test_rows_come_back_in_the_order_of_their_positions() -> None:
    batches = [[3, 0], [4], [2, 1]]
    rows = read_batches(batches, lambda batch: torch.tensor([[position, 1.0] for position in batch]))
    assert rows.tolist() == [[0, 1], [1, 1], [2, 1], [3, 1], [4, 1]]
