"""Inner products on a GPU, for arrays in the memory of this process. Loads torch."""

from __future__ import annotations

from threading import Lock

import torch

from engine.encoders.encoder import Vectors


class TorchProducts:
    """A `Multiply` by torch, in float32 so that hits are the same as on the CPU."""

    def __init__(self, device: str) -> None:
        """Multiply on a device, for example `cuda:0`."""
        self._device = device
        self._lock = Lock()

    def __call__(self, queries: Vectors, vectors: Vectors) -> Vectors:
        """See `engine.scoring.similarity.products`."""
        with self._lock:
            # Encoders let torch round the factors of products on a GPU to 10 bits; that changes similarities by 1e-3.
            usual = torch.get_float32_matmul_precision()
            torch.set_float32_matmul_precision("highest")
            try:
                one, other = (torch.tensor(rows, device=self._device) for rows in (queries, vectors))
                found: Vectors = (one @ other.T).cpu().numpy()
            finally:
                torch.set_float32_matmul_precision(usual)
        return found
