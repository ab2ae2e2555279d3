"""The fastest precision of the machine, and the settings of torch for it: device, precision, compiled kernels."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

import torch

_CACHED_KERNELS = "64"
_MOST_ERROR = 1e-4  # of a float32 product, relative to its mean size; 1e-6 in float32, 1e-2 in bfloat16


def default_device() -> str:
    """`cuda` where torch sees a GPU, else `cpu`."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def default_dtype(device: str) -> torch.dtype:
    """bfloat16 where the hardware multiplies it natively, else float32.

    Emulated bfloat16 is slower than float32, so on x86 the flags of the
    instructions are checked.
    """
    if device.startswith("cuda"):
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    if platform.machine() in ("x86_64", "AMD64"):
        flags = _cpu_flags()
        return torch.bfloat16 if {"avx512_bf16", "amx_bf16"} & flags else torch.float32
    return torch.float32


def _cpu_flags() -> frozenset[str]:
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        return frozenset()
    for line in cpuinfo.read_text().splitlines():
        if line.startswith("flags"):
            return frozenset(line.split())
    return frozenset()


def set_up_kernels() -> None:
    """Let torch multiply float32 with oneDNN where precision stays float32, and cache few compiled kernels.

    Torch passes float32 products to oneDNN where oneDNN is allowed to round its inputs to
    bfloat16. Without AMX oneDNN does not round, and is faster than torch's own kernel.
    With AMX it rounds, so the precision would no longer be float32.

    By default a thousand kernels are cached, one for each shape of a batch, of up to 2 MiB each.
    Both caches count entries, and read these variables at the first product. Fewer
    kernels are as fast over a corpus, whose batches have few shapes, see
    `engine.encoders.backbone.cpu_bert`, and memory stays flat. One of the caches is per thread.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, _CACHED_KERNELS)
    torch.set_float32_matmul_precision("medium" if _stays_float32() else "highest")


@cache
def _stays_float32() -> bool:
    """Whether float32 products keep their precision where rounding to bfloat16 is allowed."""
    usual = torch.get_float32_matmul_precision()
    generator = torch.Generator().manual_seed(0)
    one, other = (torch.randn(256, 256, generator=generator) for _ in range(2))
    torch.set_float32_matmul_precision("medium")
    try:
        found = one @ other
    finally:
        torch.set_float32_matmul_precision(usual)
    want = one.double() @ other.double()
    return bool((found - want).abs().max() < _MOST_ERROR * want.abs().mean())
