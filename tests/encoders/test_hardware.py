"""Batches under a budget of padded tokens, batches that do not fit on the GPU, and the precision of products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from engine.encoders import hardware
from engine.encoders.hardware import (
    BatchReader,
    cpu_prefers_int8,
    default_dtype,
    set_up_kernels,
    token_budget_batches,
    tokens_at_once,
)
from engine.errors import BudgetExceeded
from engine.text.document import Document
from tests.encoders.tiny import KINDS
from tests.fakes import make_document

LENGTHS = [3, 9, 4, 8, 1]


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 200))
def test_every_position_is_in_exactly_one_batch_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = list(token_budget_batches(lengths, budget))
    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[position] for position in batch) <= budget


def test_the_longest_come_first_with_like_lengths_and_rows_come_back_in_order() -> None:
    assert list(token_budget_batches(LENGTHS, 16)) == [[1], [3, 2], [0, 4]]
    assert list(token_budget_batches([], 10)) == []
    gpu = SmallGpu(room=100)
    assert read(gpu, BatchReader(), 16) == [[0, 1], [1, 1], [2, 1], [3, 1], [4, 1]]
    assert gpu.read_batches == [[1], [3, 2], [0, 4]]


@dataclass
class SmallGpu:
    """Raises as torch does above a number of padded tokens; rows are positions."""

    room: int
    read_batches: list[list[int]] = field(default_factory=list)
    n_refused: int = 0

    def read(self, batch: Sequence[int]) -> Tensor:
        if len(batch) * max(LENGTHS[position] for position in batch) > self.room:
            self.n_refused += 1
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nmore")
        self.read_batches.append(list(batch))
        return torch.tensor([[position, 1.0] for position in batch])


def by_length(positions: Sequence[int], budget: int) -> Iterator[list[int]]:
    return token_budget_batches([LENGTHS[position] for position in positions], budget)


def read(gpu: SmallGpu, reader: BatchReader, budget: int = 32) -> list[list[float]]:
    with torch.inference_mode():
        rows: list[list[float]] = reader.read(range(5), budget, by_length, gpu.read).tolist()
    return rows


def test_a_batch_that_does_not_fit_is_read_in_halves_and_so_are_all_later_ones() -> None:
    gpu, reader = SmallGpu(room=16), BatchReader()
    assert read(gpu, reader) == [[0, 1], [1, 1], [2, 1], [3, 1], [4, 1]]
    assert (reader.limit, gpu.n_refused) == (16, 1)
    assert gpu.read_batches == [[1], [3, 2], [0, 4]]
    read(gpu, reader)
    assert gpu.n_refused == 1


@pytest.mark.parametrize(("device", "batches"), [("cpu", [[1], [3, 2], [0, 4]]), ("cuda:0", [[1, 3, 2, 0, 4]])])
def test_a_gpu_reads_larger_batches_unless_gradients_hold_them(
    device: str, batches: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_gpu_of(8 << 30, monkeypatch)
    gpu, small = SmallGpu(room=1000), SmallGpu(room=1000)
    read(gpu, BatchReader(device), 16)
    assert gpu.read_batches == batches
    BatchReader(device).read(range(5), 16, by_length, small.read)
    assert small.read_batches == [[1], [3, 2], [0, 4]]


@pytest.mark.parametrize(("gib", "tokens"), [(1, 1 << 16), (4, 1 << 17), (80, 1 << 18)])
def test_tokens_of_a_batch_follow_the_memory_of_the_gpu(gib: int, tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    use_gpu_of(gib << 30, monkeypatch)
    assert (tokens_at_once("cuda", 4096), tokens_at_once("cpu", 4096)) == (tokens, 4096)


def use_gpu_of(n_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of its memory is held and unused."""
    for name, value in {
        "mem_get_info": (n_bytes // 2, 0),
        "memory_reserved": n_bytes,
        "memory_allocated": n_bytes // 2,
    }.items():
        monkeypatch.setattr(torch.cuda, name, lambda _, value=value: value)


def test_batches_read_before_one_that_does_not_fit_are_not_read_again() -> None:
    gpu = SmallGpu(room=9)
    first_short_ones = [[4, 0], [1, 2, 3]]

    def batches(positions: Sequence[int], budget: int) -> list[list[int]]:
        return first_short_ones if len(positions) == 5 else [[at] for at in range(len(positions))]

    with torch.inference_mode():
        rows = BatchReader().read(range(5), 32, batches, gpu.read)
    assert rows[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert gpu.read_batches == [[4, 0], [1], [2], [3]]


def test_one_sequence_that_does_not_fit_raises_an_error_with_the_next_step() -> None:
    with pytest.raises(BudgetExceeded) as raised:
        read(SmallGpu(room=8), BatchReader())
    assert str(raised.value) == (
        "the GPU has no room for one chunk beside the weights (CUDA out of memory. Tried to allocate 2.00 GiB.); "
        "free its memory, or use --device cpu"
    )


def test_with_gradients_nothing_is_read_again() -> None:
    reader = BatchReader()
    with pytest.raises(torch.cuda.OutOfMemoryError):
        reader.read(range(5), 32, by_length, SmallGpu(room=16).read)
    assert reader.limit is None


TEXT = "the quick brown fox jumps over the lazy dog. every score of a query and its target document. " * 4


def _document() -> Document:
    return make_document("a", [("one", TEXT), ("two", "a dark house by the river bank. " * 9)])


@pytest.mark.parametrize("kind", KINDS)
def test_encoders_of_every_kind_shrink_and_give_the_same_vectors(kind: str, bert_folder: Path) -> None:
    encoder = KINDS[kind](bert_folder)
    (before,) = encoder.encode([_document()])
    assert encoder.tokens_at_once is None
    for module in encoder.module.modules():
        if isinstance(module, torch.nn.Embedding):
            module.register_forward_pre_hook(_no_room_for_more_than_three)
    (after,) = encoder.encode([_document()])
    assert encoder.tokens_at_once is not None and encoder.tokens_at_once < 4096
    np.testing.assert_allclose(after.chunks, before.chunks, atol=1e-5)
    np.testing.assert_allclose(after.document, before.document, atol=1e-5)


def _no_room_for_more_than_three(_: torch.nn.Module, given: tuple[Tensor]) -> None:
    if given[0].dim() == 2 and len(given[0]) > 3:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory.")


@pytest.fixture(autouse=True)
def restore_precision() -> Iterator[None]:
    precision = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(precision)


@pytest.mark.parametrize(
    ("flags", "dtype", "prefers_int8"),
    [
        ("fpu avx2", torch.float32, False),
        ("fpu avx512_bf16 avx512_vnni", torch.bfloat16, False),
        ("amx_bf16 amx_tile", torch.bfloat16, False),
        ("avx2 avx_vnni", torch.float32, True),
        ("avx512f avx512_vnni", torch.float32, True),
    ],
)
def test_the_precision_on_a_cpu_is_the_fastest_that_it_multiplies_natively(
    flags: str, dtype: torch.dtype, prefers_int8: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(f"model name\t: Xeon\nflags\t\t: {flags}\nbugs\t\t: mmio_unknown\n")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(hardware, "Path", lambda _: tmp_path / "cpuinfo")
    assert (default_dtype("cpu"), cpu_prefers_int8()) == (dtype, prefers_int8)


def test_products_of_float32_are_as_exact_as_float32() -> None:
    set_up_kernels()
    one, other = torch.randn(300, 384), torch.randn(384, 512)
    want = one.double() @ other.double()
    assert ((one @ other) - want).abs().max() < 1e-4 * want.abs().mean()


@pytest.mark.parametrize(("error", "precision"), [(0.0, "medium"), (1e-2, "highest")])
def test_medium_precision_is_set_only_where_it_does_not_round_float32_products(
    error: float, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = torch.Tensor.__matmul__

    def multiply(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        is_rounded = one.dtype is torch.float32 and torch.get_float32_matmul_precision() == "medium"
        found = exact(one.double(), other.double()).to(one.dtype)
        return found * (1 + error) if is_rounded else found

    monkeypatch.setattr(torch.Tensor, "__matmul__", multiply)
    hardware._stays_float32.cache_clear()
    try:
        set_up_kernels()
    finally:
        hardware._stays_float32.cache_clear()
    assert torch.get_float32_matmul_precision() == precision
