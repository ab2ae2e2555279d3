"""Where mixed precision ends: encoders may multiply in bfloat16, losses may not. Trains nothing."""

from __future__ import annotations

import torch


def full_precision(device: torch.device) -> torch.autocast:
    """Turn autocast off inside the context, for the products of a loss and for heads that only a loss uses.

    A loss divides differences of cosines by a temperature of about 0.05. The three digits of
    bfloat16 are too few for these differences. Encoders return vectors in float32, but the
    caller may have to convert hidden states.

    Args:
        device: of the vectors.

    Returns:
        A context manager.
    """
    return torch.autocast(device.type, enabled=False)
