"""Functions that a fresh process calls; the module imports little, as that process imports it."""

import os
from typing import Any

import numpy as np

from engine.errors import QueryError


def hold(n_mib: int) -> dict[str, Any]:
    """Fill some memory; return the process id too."""
    held = np.ones(n_mib * 2**20, np.uint8)
    return {"process": os.getpid(), "sum": int(held.sum())}


def refuse() -> dict[str, Any]:
    raise QueryError("k is 0; it must be at least 1")


def die() -> dict[str, Any]:
    os._exit(7)
