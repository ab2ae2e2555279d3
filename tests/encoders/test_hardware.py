"""The precision that a processor multiplies in, and products of float32 that are not rounded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from engine.encoders.backbone import hardware
from engine.encoders.backbone.hardware import default_dtype, set_up_kernels


@pytest.fixture(autouse=True)
def restore_precision() -> Iterator[None]:
    precision = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(precision)


@pytest.mark.parametrize(
    ("flags", "dtype"),
    [("fpu avx2", torch.float32), ("fpu avx512_bf16", torch.bfloat16), ("amx_bf16 amx_tile", torch.bfloat16)],
)
def test_bfloat16_is_chosen_only_where_it_is_native(
    flags: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(hardware, "_cpu_flags", lambda: frozenset(flags.split()))
    assert default_dtype("cpu") is dtype


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
