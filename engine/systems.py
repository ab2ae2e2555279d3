"""What the operating system must be and do: no Windows, and thread pools that sleep when idle.

Imports no library that has a thread pool, since `wait_passively` must run before any of them is loaded.
"""

from __future__ import annotations

import os
import sys

from engine.errors import EngineError


def wait_passively() -> None:
    """Let idle OpenMP threads sleep instead of spinning, unless the user set another policy.

    torch, FAISS and numpy each have a thread pool. A pool that spins after its work is
    done takes the cores from the next pool: a query of 44 chunks on two cores takes
    33 to 36 ms with spinning threads and 22 ms with sleeping ones.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def refuse_windows(system: str = sys.platform) -> None:
    """Refuse Windows, where the durability of an index was never tested.

    Args:
        system: as `sys.platform` names it.

    Raises:
        EngineError: it is Windows.
    """
    if system.startswith(("win32", "cygwin")):
        raise EngineError(
            "longmatch does not run on Windows: documents are read in a process with limits that Windows lacks, and "
            "folders cannot be synced there; use Linux, for example in WSL (wsl --install)"
        )
