"""The origin of a measurement or a model: commit, machine, versions. Measures nothing."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

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
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions
