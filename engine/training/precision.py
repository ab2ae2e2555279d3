"""Where mixed precision ends: encoders may multiply in bfloat16, losses may not. Nothing is trained here."""

from __future__ import annotations

import torch


def full_precision(device: torch.device) -> torch.autocast:
    """Leave autocast for what stands inside, products of a loss and the heads that only a loss reads.

    A loss divides differences of cosines by a temperature of 0.05 or so; of those the three
    digits of bfloat16 leave nothing. Vectors come out of an encoder in float32, but
    hidden states may have to be made so by the caller.

    Args:
        device: where the vectors lie.

    Returns:
        A context manager.
    """
    return torch.autocast(device.type, enabled=False)
