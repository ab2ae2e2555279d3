"""The fastest precision of the machine, and the settings of torch for it: device, precision, compiled kernels."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_GPU_DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # torch is loaded to look for a GPU where one of them is
_MOST_ERROR = 1e-4  # of a float32 product, relative to its mean size; 1e-6 in float32, 1e-2 in bfloat16


def has_gpu_driver() -> bool:
    """Whether this can be a machine with a GPU."""
    return platform.system() != "Linux" or any(Path(driver).exists() for driver in _GPU_DRIVERS)


def default_device() -> str:
    """`cuda` where torch sees a GPU, else `cpu`."""
    if not has_gpu_driver():
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


_FEWEST_TOKENS, _MOST_TOKENS = 1 << 16, 1 << 18  # of a batch on a GPU
_BYTES_OF_A_TOKEN = 1 << 15  # more than the passes of a BERT-base hold at once for a token


def tokens_at_once(device: str, on_cpu: int) -> int:
    """Tokens of a batch without gradients: as many as are given, and on a GPU 64k to 256k, by its free memory."""
    if not device.startswith("cuda"):
        return on_cpu
    import torch

    free = torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return min(max(free // _BYTES_OF_A_TOKEN, _FEWEST_TOKENS), _MOST_TOKENS)


def copy_to(device: str | torch.device, values: torch.Tensor) -> torch.Tensor:
    """Values on a device; a GPU copies them from pinned memory while the processor goes on."""
    if str(device).startswith("cuda") and not values.is_cuda:
        return values.pin_memory().to(device, non_blocking=True)
    return values.to(device)


def default_dtype(device: str) -> torch.dtype:
    """bfloat16 where the hardware multiplies it natively, else float32."""
    import torch

    if device.startswith("cuda"):
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    return torch.bfloat16 if cpu_has_bf16() else torch.float32


def cpu_has_bf16() -> bool:
    """Whether the processor multiplies bfloat16; where it is emulated, on other x86, it is slower than float32."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return False
    return bool({"avx512_bf16", "amx_bf16"} & _cpu_flags())


def _cpu_flags() -> frozenset[str]:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return frozenset(next((line.split() for line in lines if line.startswith("flags")), ()))


def set_up_kernels() -> None:
    """Let torch multiply float32 with oneDNN where precision stays float32.

    Torch passes float32 products to oneDNN where oneDNN is allowed to round its inputs to
    bfloat16. Without AMX oneDNN does not round, and is faster than torch's own kernel.
    With AMX it rounds, so the precision would no longer be float32.
    """
    import torch

    torch.set_float32_matmul_precision("medium" if _stays_float32() else "highest")


@cache
def _stays_float32() -> bool:
    """Whether float32 products keep their precision where rounding to bfloat16 is allowed."""
    import torch

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
