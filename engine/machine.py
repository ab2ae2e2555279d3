"""This machine: what is installed and whether it works (`longmatch doctor`), and the origin of a measurement.

A check never raises. A check of what is installed imports no library: torch takes longer to load than a search. An
origin is the commit, the machine and the versions on which a record depends.
"""

import os
import platform
import re
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.environment import gpu_numbers, installed_faiss, installed_version, require_one_faiss
from engine.errors import EngineError


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
        try:
            result = Check(name, True, check())
        except (EngineError, ImportError, OSError, RuntimeError) as error:
            result = Check(name, False, f"{type(error).__name__}: {error}")
        yield result


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
    from engine.encoders.hardware import has_gpu_driver

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

    from engine.encoders.hardware import default_device, default_dtype

    device = default_device()
    name = torch.cuda.get_device_name(0) if device == "cuda" else "cpu"
    dtype = str(default_dtype(device)).removeprefix("torch.")
    return f"{torch.__version__}, encodes on {name} in {dtype}, {torch.get_num_threads()} threads"


def _gpu_search() -> str:
    """Search a few vectors on each GPU, as `--device cuda` would, and compare the results with those of the CPU."""
    import torch

    numbers = gpu_numbers("cuda")
    if not numbers:
        return "none, torch sees no GPU; indexes are searched on the CPU"
    room = ", ".join(
        f"{torch.cuda.get_device_name(number)} {number}, {torch.cuda.mem_get_info(number)[0] / 2**30:,.1f} GiB free"
        for number in numbers
    )
    return f"{try_search([f'cuda:{number}' for number in numbers])}; {room}"


def try_search(devices: Sequence[str]) -> str:
    """Search a few vectors on devices, and report the difference from the CPU."""
    import numpy as np

    from engine.scan import DeviceScan
    from engine.scoring.evidence import PASSAGES_ALONE, Thresholds

    rows = np.random.default_rng(0).standard_normal((4096, 64)).astype(np.float32)
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    scan = DeviceScan(np.full(512, 8), lambda some: rows.reshape(512, 8, 64)[some].reshape(-1, 64), 64, devices)
    single = Thresholds.none()
    queries = rows[:16].astype(np.float32)
    similarities = scan.components([(query[None], single) for query in queries], PASSAGES_ALONE)
    exact = (queries @ rows.T.astype(np.float32)).reshape(16, 512, 8).max(axis=2).clip(0, 1)
    error = float(np.abs(similarities - exact).max())
    if error > 1e-5:
        raise EngineError(f"GPUs are up to {error:.0e} of a similarity off the CPU; search there: --device cpu")
    return f"as on the CPU within {error:.0e} of a similarity"


def _weights() -> str:
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


_CHECKOUT = Path(__file__).resolve().parents[1]
_PACKAGES = (
    "torch faiss-cpu faiss-gpu faiss-gpu-cuvs transformers numpy bm25s ir-measures accelerate scikit-learn "
    "sentence-transformers txtai lancedb"
).split()


@dataclass(frozen=True)
class Machine:
    """The hardware that a measured time depends on."""

    cpu: str
    cores: int
    memory_gib: int
    gpu: str  # "" where there is none

    def __str__(self) -> str:
        gpu = f", {self.gpu}" if self.gpu else ""
        return f"{self.cpu}, {self.cores} cores, {self.memory_gib} GiB{gpu}"


@dataclass(frozen=True)
class Origin:
    """Where a record comes from."""

    command: str  # reproduces the record, except for the folders in it
    commit: str  # "" outside a git checkout
    is_dirty: bool  # files differed from the commit, results left aside
    seed: int
    machine: Machine
    versions: dict[str, str]


def describe_origin(command: str, seed: int) -> Origin:
    """Look at the checkout, the machine and the installed packages."""
    # Records that an earlier run wrote do not change the code.
    status = _git("status", "--porcelain", "--", ".", ":!benchmarks/results")
    return Origin(command, _git("rev-parse", "--verify", "-q", "HEAD"), bool(status), seed, _machine(), _versions())


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=_CHECKOUT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def _machine() -> Machine:
    cpu = re.search(r"^model name\s*: (.+)$", _text_of(Path("/proc/cpuinfo")), re.MULTILINE)
    drivers = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    models = [match.group(1).strip() for path in drivers if (match := re.search(r"Model:(.+)", _text_of(path)))]
    return Machine(
        cpu=cpu.group(1) if cpu else platform.processor() or platform.machine(),
        cores=os.cpu_count() or 0,
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        gpu=", ".join(models),
    )


def _text_of(path: Path) -> str:
    return path.read_text("utf-8", errors="replace") if path.is_file() else ""


def _versions() -> dict[str, str]:
    numbers = {"python": platform.python_version(), **{name: installed_version(name) for name in _PACKAGES}}
    return {name: number for name, number in numbers.items() if number is not None}
