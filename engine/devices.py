"""Checks device names, and whether torch has the devices. Loads torch only where a GPU is named."""

from __future__ import annotations

import re

from engine.errors import EncoderError


def check_device(device: str | None) -> str | None:
    """Return a device name after checking that the device exists.

    Args:
        device: `cpu`, `cuda` or `cuda:N`; None leaves the choice to the code that uses it.

    Raises:
        EncoderError: the name is none of these, or torch does not see the device.
    """
    if device is not None and not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise EncoderError(f"device {device!r} is none of cpu, cuda, cuda:N; see what there is: longmatch doctor")
    if is_gpu(device):
        import torch

        assert device is not None
        number = int(device.partition(":")[2] or 0)
        if number >= torch.cuda.device_count():
            raise EncoderError(
                f"device {device!r} was requested, torch {torch.__version__} sees {torch.cuda.device_count()} GPUs; "
                "use --device cpu, or see longmatch doctor"
            )
    return device


def is_gpu(device: str | None) -> bool:
    """Whether a GPU is named."""
    return device is not None and device.startswith("cuda")


def gpu_numbers(device: str) -> list[int]:
    """The numbers of the GPUs that search an index under a device name; `cuda` means all GPUs."""
    import torch

    number = device.partition(":")[2]
    return [int(number)] if number else list(range(torch.cuda.device_count()))
