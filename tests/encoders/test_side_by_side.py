"""Batches read by several threads at once: the same rows and errors as in turn, and the number of threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.encoders.backbone.batching import BatchReader, group_by_length
from engine.encoders.backbone.side_by_side import MOST_READERS, n_readers, read_side_by_side
from tests.encoders.tiny import tiny_mean
from tests.fakes import make_document

LENGTHS = [900, 700, 1000, 800, 600, 1000]


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def rows_of(batch: Sequence[int]) -> Tensor:
    return torch.tensor([[position, 1.0] for position in batch])


def read(thread_names: list[str], *, is_safe_in_threads: bool = True) -> list[float]:
    def noted(batch: Sequence[int]) -> Tensor:
        thread_names.append(threading.current_thread().name)
        return rows_of(batch)

    rows = BatchReader().read(
        len(LENGTHS), 4096, group_by_length(LENGTHS), noted, is_safe_in_threads=is_safe_in_threads
    )
    found: list[float] = rows[:, 0].tolist()
    return found


def test_as_many_batches_are_read_at_once_as_there_are_threads(two_threads: None) -> None:
    barrier = threading.Barrier(2)

    def waiting(batch: Sequence[int]) -> Tensor:
        barrier.wait(timeout=30)
        assert torch.is_inference_mode_enabled()
        return torch.tensor([[float(torch.get_num_threads())]])

    assert [rows.item() for rows in read_side_by_side([[0], [1]], waiting, 2)] == [1, 1]
    assert torch.get_num_threads() == 2


def test_threads_that_begin_later_have_all_of_torchs_threads(two_threads: None) -> None:
    read_side_by_side([[0], [1]], rows_of, 2)
    found: list[int] = []
    later = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert found == [2]


def test_rows_come_back_in_the_order_of_their_positions(two_threads: None) -> None:
    names: list[str] = []
    with torch.inference_mode():
        assert read(names) == [0, 1, 2, 3, 4, 5]
    assert all(name.startswith("longmatch-encode") for name in names)


def test_unsafe_readers_and_readers_that_record_gradients_read_in_turn(two_threads: None) -> None:
    own = threading.current_thread().name
    in_training: list[str] = []
    assert read(in_training) == [0, 1, 2, 3, 4, 5]
    unsafe: list[str] = []
    with torch.inference_mode():
        assert read(unsafe, is_safe_in_threads=False) == [0, 1, 2, 3, 4, 5]
    assert {*in_training, *unsafe} == {own}


def test_a_single_batch_is_read_by_the_calling_thread(two_threads: None) -> None:
    names: list[str] = []

    def noted(batch: Sequence[int]) -> Tensor:
        names.append(threading.current_thread().name)
        return rows_of(batch)

    with torch.inference_mode():
        BatchReader().read(2, 4096, group_by_length([10, 20]), noted, is_safe_in_threads=True)
    assert names == [threading.current_thread().name]


def test_an_error_of_one_batch_is_raised_and_the_next_reading_works(two_threads: None) -> None:
    def failing(batch: Sequence[int]) -> Tensor:
        if batch == [3]:
            raise MemoryError("no room for 3")
        return rows_of(batch)

    with pytest.raises(MemoryError, match="no room for 3"):
        read_side_by_side([[position] for position in range(9)], failing, 2)
    assert len(read_side_by_side([[0], [1]], rows_of, 2)) == 2


def test_more_threads_than_readers_are_divided_among_them() -> None:
    before = torch.get_num_threads()
    assert (n_readers(3), n_readers(64)) == (3, MOST_READERS)
    try:
        own = read_side_by_side([[0]] * 64, lambda _: torch.tensor([torch.get_num_threads()]), MOST_READERS + 4)
        assert {int(rows) for rows in own} <= {1, 2}
    finally:
        torch.set_num_threads(before)


def test_vectors_are_those_of_one_thread_and_the_same_each_time(bert_folder: Path) -> None:
    encoder = tiny_mean(bert_folder)
    texts = [
        f"the quick brown fox number {number} jumps over the lazy dog. " * (3 + number % 7) for number in range(90)
    ]
    document = make_document("a", [(f"part {number}", text) for number, text in enumerate(texts)])
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        (alone,) = encoder.encode([document])
        torch.set_num_threads(2)
        (first,), (again,) = encoder.encode([document]), encoder.encode([document])
    finally:
        torch.set_num_threads(before)
    assert first.coverage.tokens_read > 2048
    np.testing.assert_allclose(first.chunks, alone.chunks, atol=1e-5)
    np.testing.assert_array_equal(first.chunks, again.chunks)
