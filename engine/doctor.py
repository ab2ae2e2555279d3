"""Checks of this machine: what is installed and, with `deep`, whether it works. Never raises.

A check of what is installed imports no library: torch takes longer to load than a search.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.environment import installed_faiss, installed_version, require_one_faiss
from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.gpu.gpus import Gpus


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check."""

    name: str
    is_well: bool
    detail: str


_SENTENCES = (
    "The claims describe a rotor whose blades are held by a single bolt.",
    "Each proposal must state its motivation, and what it would break.",
    "Attention over all pairs of tokens costs the square of their number.",
    "The court finds that notice was given within the time the statute allows.",
)


def examine(*, deep: bool = False) -> Iterator[Check]:
    """Check everything that a query or a build needs, one item at a time.

    Args:
        deep: also load and try FAISS, torch, GPUs and the bundled encoder.
    """
    yield Check("longmatch", True, installed_version("longmatch") or "not installed as a package")
    yield Check("python", True, f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield Check("processor", True, f"{os.cpu_count()} cores")
    yield Check("sqlite", sqlite3.sqlite_version_info >= (3, 38), sqlite3.sqlite_version)
    checks = _DEEP if deep else {"faiss": _installed_faiss, "encoder": _installed_encoder, "gpu": _gpu_drivers}
    for name, check in checks.items():
        yield _guarded(name, check)


def _guarded(name: str, check: Callable[[], str]) -> Check:
    try:
        return Check(name, True, check())
    except (EngineError, ImportError, OSError, RuntimeError) as error:
        return Check(name, False, f"{type(error).__name__}: {error}")


def _installed_faiss() -> str:
    require_one_faiss()
    name, number = next(iter(installed_faiss().items()))
    return f"{name} {number}"


def _installed_encoder() -> str:
    """The packages that encode, and whether the bundled parameters are those that were published."""
    from engine.encoders.files import BUNDLED_NAME, resolve_backbone

    resolve_backbone(BUNDLED_NAME)
    numbers = {name: installed_version(name) for name in ("openvino", "torch")}
    packages = " and ".join(f"{name} {number}" for name, number in numbers.items() if number is not None)
    if not packages:
        raise EngineError(f"{BUNDLED_NAME} needs OpenVINO or torch; install one: pip install openvino")
    return f"{BUNDLED_NAME}, checksum as published, with {packages}"


def _gpu_drivers() -> str:
    from engine.encoders.backbone.hardware import has_gpu_driver

    return "a driver is there, see what works with it: longmatch doctor --deep" if has_gpu_driver() else "no driver"


def _faiss() -> str:
    require_one_faiss()
    import faiss

    name, number = next(iter(installed_faiss().items()))
    simd = faiss.SIMDConfig.get_level_name() if hasattr(faiss, "SIMDConfig") else faiss.get_compile_options().strip()
    n_gpus = faiss.get_num_gpus() if hasattr(faiss, "StandardGpuResources") else 0
    gpus = f"{n_gpus} GPUs" if hasattr(faiss, "StandardGpuResources") else "built without GPU"
    return f"{name} {number}, {simd}, {faiss.omp_get_max_threads()} threads, {gpus}"


def _torch() -> str:
    import torch

    from engine.encoders.backbone.hardware import default_device, default_dtype

    device = default_device()
    name = torch.cuda.get_device_name(0) if device == "cuda" else "cpu"
    dtype = str(default_dtype(device)).removeprefix("torch.")
    return f"{torch.__version__}, encodes on {name} in {dtype}, {torch.get_num_threads()} threads"


def _gpu_search() -> str:
    """Search a few vectors on each GPU, as `--device cuda` would, and compare the results with those of the CPU."""
    from engine.environment import gpu_numbers
    from engine.gpu.gpus import FaissGpus, why_none

    numbers = gpu_numbers("cuda")
    reason = why_none(numbers) if numbers else "torch sees no GPU"
    return f"none, {reason}; indexes are searched on the CPU" if reason else try_search(FaissGpus(numbers))


def try_search(gpus: Gpus) -> str:
    """Search a few vectors on GPUs, and report the difference from the CPU.

    Raises:
        EngineError: the GPUs found other vectors or similarities than the CPU.
    """
    import numpy as np

    from engine.gpu.index_types import flat_parts
    from engine.store.replica import Replica

    rows = np.random.default_rng(0).standard_normal((4096, 64)).astype(np.float16).astype(np.float32)
    ids = np.arange(len(rows))
    blocks = [(ids[first : first + 512], rows[first : first + 512]) for first in range(0, len(rows), 512)]
    found, similarities = Replica(flat_parts(gpus, blocks, len(rows), 64)).search(rows[:16], 1)
    exact = (rows[:16] @ rows.T).max(axis=1)
    error = float(np.abs(similarities[:, 0] / exact - 1).max())
    if not np.array_equal(found[:, 0], ids[:16]) or error > 1e-3:
        raise EngineError(f"GPUs found other vectors than the CPU, {error:.0e} apart; search there: --device cpu")
    where = ", ".join(
        f"{gpus.name(number)}, {gpus.free_bytes(number) / 2**30:,.1f} GiB free" for number in gpus.numbers
    )
    return f"as on the CPU within {error:.0e} of a similarity; {where}"


def _weights() -> str:
    """Load the bundled encoder, and compare its usual precision with float32."""
    from engine.encoders.loading import load_encoder
    from engine.text.document import Document

    usual = load_encoder()
    segmented = usual.segment(Document.from_text("\n\n".join(_SENTENCES * 64)))
    usual.encode_segmented([segmented])
    started = time.perf_counter()
    (encoded,) = usual.encode_segmented([segmented])
    speed = segmented.coverage.tokens_read / (time.perf_counter() - started)
    (precise,) = load_encoder(device="cpu", dtype="float32").encode_segmented([segmented])
    fidelity = float((encoded.chunks * precise.chunks).sum(axis=1).min())
    return f"{usual.name}, checksum as published, cosine to float32 at least {fidelity:.5f}, {speed:,.0f} tokens/s"


_DEEP = {"faiss": _faiss, "torch": _torch, "gpu search": _gpu_search, "weights": _weights}
