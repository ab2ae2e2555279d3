"""GPUs as FAISS uses them: how much room they have, and moving an index there. Knows nothing of our indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from engine.store.faiss_distribution import installed_faiss, require_one_faiss

require_one_faiss()
import faiss  # noqa: E402

TEMPORARY_BYTES = 1 << 30  # taken once on each GPU; a search that wants more asks the driver for it
# For torch, an encoder and its batches, and what a search takes beyond its temporary memory.
RESERVED_BYTES = TEMPORARY_BYTES + (2 << 30)


class Gpus(Protocol):
    """Where FAISS indexes can be held, beside the memory of this process.

    What lies there takes no filter and no removal, and finds at most `MOST` vectors a query.
    """

    @property
    def numbers(self) -> Sequence[int]:
        """Which ones, at least one."""

    def name(self, number: int) -> str:
        """As people call it."""

    def free_bytes(self, number: int) -> int:
        """What nobody uses of its memory."""

    def place(self, index: Any, number: int) -> Any:  # noqa: ANN401
        """A copy of a FAISS index there, flat vectors in float16.

        Raises:
            RuntimeError: GPU FAISS has no such type, or there is no room.
        """


class FaissGpus:
    """NVIDIA GPUs, by a FAISS that was built for them."""

    def __init__(self, numbers: Sequence[int]) -> None:
        """Take temporary memory on each; see `why_none` for whether that can be.

        Args:
            numbers: of the GPUs, as CUDA counts them.
        """
        self.numbers = tuple(numbers)
        self._resources = {number: faiss.StandardGpuResources() for number in self.numbers}
        for resources in self._resources.values():
            resources.setTempMemory(TEMPORARY_BYTES)

    def name(self, number: int) -> str:
        """See `Gpus`."""
        import torch

        return f"{torch.cuda.get_device_name(number)} {number}"

    def free_bytes(self, number: int) -> int:
        """See `Gpus`."""
        import torch

        return int(torch.cuda.mem_get_info(number)[0])

    def place(self, index: Any, number: int) -> Any:  # noqa: ANN401
        """See `Gpus`."""
        options = faiss.GpuClonerOptions()
        options.useFloat16 = True  # of flat vectors, and of the tables of product codes
        return faiss.index_cpu_to_gpu(self._resources[number], number, index, options)


def why_none(numbers: Sequence[int]) -> str | None:
    """Why the FAISS that is installed cannot use these GPUs; None where it can."""
    installed = " and ".join(f"{name} {version}" for name, version in installed_faiss().items())
    if not hasattr(faiss, "StandardGpuResources"):
        return f"{installed} was built without GPU (pip uninstall -y faiss-cpu && pip install 'longmatch[gpu]')"
    n_seen = faiss.get_num_gpus()
    if not numbers or max(numbers) >= n_seen:
        return f"{installed} sees {n_seen} GPUs, and number {max(numbers, default=0)} was requested"
    return None
