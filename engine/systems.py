"""The operating systems on which an index can be written and read."""

from __future__ import annotations

import sys

from engine.errors import EngineError


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
