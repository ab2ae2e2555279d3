"""Runs Python in a process of its own, as a user runs a command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.measuring.isolation import ProcessFailed

_LAST_CHARACTERS = 300  # of what a command printed, for the message of its failure


def run_python(
    arguments: Sequence[str],
    name: str,
    *,
    patience: float | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run Python with arguments, as `-m MODULE`, and return what it printed.

    Raises:
        ProcessFailed: it failed, or did not end in `patience` seconds; the message has the name.
    """
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=folder,
            env=os.environ | dict(environment or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=patience,
        )
    except subprocess.TimeoutExpired as error:
        raise ProcessFailed(f"{name} did not end in {patience:g} s; try it by itself first") from error
    if done.returncode:
        last = done.stderr.strip()[-_LAST_CHARACTERS:]
        raise ProcessFailed(f"{name} ended with {done.returncode} ({last}); mend that first")
    return done.stdout
