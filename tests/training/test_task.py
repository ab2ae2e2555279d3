"""Random draws of all tasks: a generator for each step, and each document at most once an epoch."""

from __future__ import annotations

import pytest

from engine.training.selection import keep_chunks
from engine.training.task import epoch_slice, step_generator, tokens_read
from tests.fakes import FakeEncoder, make_document


def test_a_step_has_the_same_numbers_whenever_it_is_run() -> None:
    assert step_generator(3, 5).random() == step_generator(3, 5).random()
    drawn = {step_generator(seed, step).random() for seed in range(4) for step in range(4)}
    assert len(drawn) == 16


@pytest.mark.parametrize(("n", "size"), [(10, 3), (10, 5), (7, 7), (1, 1)])
def test_an_epoch_reads_each_position_at_most_once_and_all_that_fill_a_batch(n: int, size: int) -> None:
    steps = n // size
    for epoch in range(3):
        batches = [epoch_slice(n, size, epoch * steps + step, seed=1) for step in range(steps)]
        read = [position for batch in batches for position in batch]
        assert [len(batch) for batch in batches] == [size] * steps
        assert len(set(read)) == steps * size and set(read) <= set(range(n))


def test_epochs_and_seeds_are_shuffled_differently() -> None:
    orders = [tuple(epoch_slice(20, 20, step, seed)) for step in range(2) for seed in range(2)]
    assert len(set(orders)) == 4


def test_a_batch_larger_than_the_corpus_holds_every_position() -> None:
    assert [sorted(epoch_slice(3, 8, step, seed=0)) for step in range(2)] == [[0, 1, 2]] * 2


def test_tokens_read_are_those_of_the_chunks_that_are_left() -> None:
    document = FakeEncoder().segment(make_document("a", "word " * 20))
    assert tokens_read([document, keep_chunks(document, [0, 2])]) == 20 + 8 + 4
