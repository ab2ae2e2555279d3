"""GPUs as FAISS uses them: their free memory, and copies of FAISS indexes on them. Knows nothing of our indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from engine.environment import installed_faiss, require_one_faiss
from engine.errors import install_command

require_one_faiss()
import faiss  # noqa: E402

TEMPORARY_BYTES = 1 << 30  # allocated once on each GPU; a search that needs more requests it from the driver
# For torch, an encoder and its batches, and the memory of a search beyond its temporary memory.
RESERVED_BYTES = TEMPORARY_BYTES + (2 << 30)


class Gpus(Protocol):
    """GPUs that can hold FAISS indexes.

    An index on a GPU supports no filter and no removal, and returns at most `MOST` (`engine.store.replica`) vectors
    per query.
    """

    @property
    def numbers(self) -> Sequence[int]:
        """Numbers of the GPUs, at least one."""

    def name(self, number: int) -> str:
        """Name of a GPU for messages."""

    def free_bytes(self, number: int) -> int:
        """Free memory of a GPU."""

    def place(self, index: Any, number: int) -> Any:  # noqa: ANN401
        """Copy a FAISS index onto a GPU.

        Raises:
            RuntimeError: GPU FAISS has no such type, or the memory is too small.
        """


class FaissGpus:
    """NVIDIA GPUs, used by a FAISS that was built for them."""

    def __init__(self, numbers: Sequence[int]) -> None:
        """Allocate temporary memory on each GPU; call `why_none` first to check that this is possible."""
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
        options.useFloat16 = True  # for the tables of product codes
        return faiss.index_cpu_to_gpu(self._resources[number], number, index, options)


def why_none(numbers: Sequence[int]) -> str | None:
    """The reason why the installed FAISS cannot use these GPUs; None if it can."""
    installed = " and ".join(f"{name} {version}" for name, version in installed_faiss().items())
    if not hasattr(faiss, "StandardGpuResources"):
        return (
            f"{installed} was built without GPU (pip uninstall -y faiss-cpu && {install_command('gpu', 'faiss-gpu')})"
        )
    n_seen = faiss.get_num_gpus()
    if not numbers or max(numbers) >= n_seen:
        return f"{installed} sees {n_seen} GPUs, and number {max(numbers, default=0)} was requested"
    return None
