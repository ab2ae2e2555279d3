"""What this environment has: optional packages, exactly one FAISS, GPUs that torch sees, a system that is not Windows.

Imports no library that has a thread pool: `wait_passively` must run before any of them is loaded, and torch is loaded
only where a GPU is named.
"""

import importlib.util
import os
import re
import sys

from engine.errors import EncoderError, EngineError, MissingExtra


def check_extra(module: str, feature: str, package: str, extra: str) -> None:
    """Refuse a feature whose package is not installed."""
    if importlib.util.find_spec(module) is None:
        raise MissingExtra(feature, package, extra)


DISTRIBUTIONS = ("faiss-cpu", "faiss-gpu", "faiss-gpu-cuvs")
_SLOW = "faiss-gpu-cu12"  # its CPU code was built without SIMD: up to 100 times slower


def installed_faiss() -> dict[str, str]:
    """Name and version of every FAISS distribution in this environment."""
    found = {name: installed_version(name) for name in (*DISTRIBUTIONS, _SLOW)}
    return {name: number for name, number in found.items() if number is not None}


def installed_version(package: str) -> str | None:
    """The version of an installed package, which is not imported; None where it is missing."""
    from importlib.metadata import PackageNotFoundError, version  # loads the parsers of mail

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def require_one_faiss() -> None:
    """Check that exactly one usable FAISS is installed.

    The distributions share one folder: installing a second one breaks both, and
    removing it deletes files of the first.
    """
    found = installed_faiss()
    if not found:
        raise MissingExtra("The index", "FAISS", "cpu")
    if len(found) > 1 or _SLOW in found:
        names = " and ".join(f"{name} {number}" for name, number in found.items())
        kept = "faiss-gpu" if "faiss-gpu" in found else "faiss-cpu"
        raise EngineError(
            f"{names} is installed, but exactly one of {', '.join(DISTRIBUTIONS)} must be; reinstall it: "
            f"pip uninstall -y {' '.join(found)} && pip install --force-reinstall --no-deps {kept}"
        )


def check_device(device: str | None) -> str | None:
    """Return a device name after checking that the device exists.

    Args:
        device: `cpu`, `cuda` or `cuda:N`; None leaves the choice to the code that uses it.
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
                "use --device cpu, or see longmatch doctor --deep"
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


def wait_passively() -> None:
    """Let idle threads of OpenMP and of numpy's OpenBLAS sleep instead of spinning, unless the user set another policy.

    torch, FAISS and numpy each have a thread pool. A pool that spins after its work is
    done takes the cores from the next pool: a query of 44 chunks on two cores takes
    33 to 36 ms with spinning threads and 22 ms with sleeping ones.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # logarithm of the cycles that a thread spins; 26 by default


def refuse_windows(system: str = sys.platform) -> None:
    """Refuse Windows, where the durability of an index was never tested, by an `EngineError`."""
    if system.startswith(("win32", "cygwin")):
        raise EngineError(
            "longmatch does not run on Windows: documents are read in a process with limits that Windows lacks, and "
            "folders cannot be synced there; use Linux, for example in WSL (wsl --install)"
        )
