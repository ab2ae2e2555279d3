"""What the hardware decides: device, precision, the settings of torch, and batches that fit into memory."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from engine.errors import BudgetExceeded, step

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_GPU_DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # torch is loaded to look for a GPU where one of them is
_MOST_ERROR = 1e-4  # of a float32 product, relative to its mean size; 1e-6 in float32, 1e-2 in bfloat16
_FEWEST_TOKENS, _MOST_TOKENS = 1 << 16, 1 << 18  # of a batch on a GPU
_BYTES_OF_A_TOKEN = 1 << 15  # more than the passes of a BERT-base hold at once for a token
T = TypeVar("T")
Read = Callable[[Sequence[T]], "Tensor"]
Batches = Callable[[Sequence[T], int], Iterable[Sequence[int]]]


def has_gpu_driver() -> bool:
    """Whether this can be a machine with a GPU."""
    return platform.system() != "Linux" or any(Path(driver).exists() for driver in _GPU_DRIVERS)


def default_device() -> str:
    """`cuda` where torch sees a GPU, else `cpu`."""
    if not has_gpu_driver():
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


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


def cpu_prefers_int8() -> bool:
    """Whether the processor encodes at least a third faster in int8 than otherwise: with VNNI, without AMX."""
    flags = _cpu_flags()
    return bool({"avx512_vnni", "avx_vnni"} & flags) and "amx_tile" not in flags


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
    left, right = (torch.randn(256, 256, generator=generator) for _ in range(2))
    torch.set_float32_matmul_precision("medium")
    try:
        product = left @ right
    finally:
        torch.set_float32_matmul_precision(usual)
    want = left.double() @ right.double()
    return bool((product - want).abs().max() < _MOST_ERROR * want.abs().mean())


def next_multiple(length: int, size: int) -> int:
    """Round a length up to the next multiple of a size."""
    return -(-length // size) * size


def token_budget_batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Group positions so that a padded batch holds at most `budget` tokens, or one longer sequence.

    The longest are first, so that a batch that does not fit in memory fails at once.
    Neighbours in a batch differ little in length, so little is padding.
    """
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    first = 0
    while first < len(order):
        size = max(1, budget // max(1, lengths[order[first]]))
        yield order[first : first + size]
        first += size


class BatchReader:
    """Reads sequences batch by batch; where a GPU has no room for a batch, this one and all later ones are smaller.

    This works only without gradients: they hold the memory of all batches of a step, so smaller batches do not help.
    """

    def __init__(self, device: str = "cpu") -> None:
        """Begin without a limit."""
        self._device = device
        self.limit: int | None = None  # most tokens of a batch, once one did not fit
        self.n_read = 0  # sequences read so far; counted while `read` runs

    def read(self, sequences: Sequence[T], token_budget: int, batches: Batches[T], read: Read[T]) -> Tensor:
        """Read sequences, at least one, in batches, and return their rows in the order given.

        Args:
            token_budget: most tokens of a batch, padding counted, on a CPU or with gradients; for a GPU see
                `tokens_at_once`. Halved, and remembered, each time that a batch does not fit.
            batches: from sequences and a token budget to batches of their positions, each position in one.
            read: from the sequences of a batch to their rows (B, H).

        Returns:
            (N, H).
        """
        import torch

        order: list[int] = []
        parts: list[Tensor] = []
        budget = token_budget if torch.is_grad_enabled() else tokens_at_once(self._device, token_budget)
        budget = min(budget, self.limit or budget)
        while len(order) < len(sequences):
            done = set(order)
            left = [position for position in range(len(sequences)) if position not in done]
            for batch in batches([sequences[position] for position in left], budget):
                positions = [left[at] for at in batch]
                rows = self._try([sequences[position] for position in positions], read)
                if rows is None:
                    budget = self.limit = max(1, budget // 2)
                    break
                parts.append(rows)
                self.n_read += len(batch)
                order.extend(positions)
                step()
        return torch.cat(parts)[torch.tensor(order).argsort().to(parts[0].device)]

    def _try(self, batch: Sequence[T], read: Read[T]) -> Tensor | None:
        """The rows of a batch, or None where it must be smaller."""
        import torch

        try:
            return read(batch)
        except torch.OutOfMemoryError as error:
            if torch.is_grad_enabled():
                raise
            if len(batch) == 1:
                reason = str(error).splitlines()[0]
                raise BudgetExceeded(
                    f"the GPU has no room for one chunk beside the weights ({reason}); free its memory, or use "
                    "--device cpu"
                ) from error
        # Outside of the handler: the error holds the tensors of the pass that failed.
        torch.cuda.empty_cache()
        return None
