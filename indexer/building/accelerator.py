"""GPU memory that an encoder needs, and the limit on it. Does nothing on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from engine.encoders.encoder import Encoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import BudgetExceeded


def is_on_gpu(encoder: Encoder) -> bool:
    """Whether an encoder works on a GPU."""
    return encoder.device.startswith("cuda")


def weights_bytes(encoder: Encoder) -> int:
    """Memory of the parameters, on the CPU or a GPU; 0 for an encoder without parameters."""
    return encoder.weights_bytes if isinstance(encoder, TrainableEncoder) else 0


def peak_vram(encoder: Encoder) -> int:
    """The most bytes that torch held on the encoder's GPU since `forget_peak`, parameters included."""
    return int(torch.cuda.max_memory_reserved(encoder.device))


def forget_peak(encoder: Encoder) -> None:
    """Reset the peak to the memory that is held now."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(encoder.device)


@contextmanager
def limited_vram(encoder: Encoder, vram_bytes: int | None) -> Iterator[None]:
    """Limit the memory of torch on the encoder's GPU inside the context.

    A batch beyond the limit fails with an out-of-memory error and is made smaller; see
    `engine.encoders.backbone.batching.BatchReader`. Memory of the driver itself is not counted.

    Raises:
        BudgetExceeded: not even the parameters fit.
    """
    if vram_bytes is None or not is_on_gpu(encoder):
        yield
        return
    weights = weights_bytes(encoder)
    if weights >= vram_bytes:
        raise BudgetExceeded(
            f"the parameters of {encoder.name} take {weights / 1e6:,.0f} MB, --vram allows {vram_bytes / 1e6:,.0f} MB; "
            f"allow more than {-(-weights // 1_000_000):,}M, take a smaller --encoder, or use --device cpu"
        )
    total = torch.cuda.get_device_properties(encoder.device).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, vram_bytes / total), encoder.device)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, encoder.device)
