"""Servers of partitions as processes of their own, which can be stopped and killed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets import DatasetError

_ADDRESS = re.compile(r"(http://[\d.]+:(\d+))")


@dataclass(frozen=True)
class Served:
    """A running server."""

    process: subprocess.Popen[str]
    address: str
    port: int


@contextmanager
def served(folders: Sequence[Path], environment: dict[str, str] | None = None) -> Iterator[list[Served]]:
    """A ready server for each index, on the loopback interface; killed afterwards.

    Raises:
        DatasetError: a server ended before it was ready.
    """
    command = [sys.executable, "-m", "longmatch", "serve", "--port", "0", "--threads", "1"]
    started = [
        subprocess.Popen([*command, str(folder)], stderr=subprocess.PIPE, text=True, env=environment)
        for folder in folders
    ]
    try:
        yield [_ready(process) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
            if process.stderr is not None:
                process.stderr.close()


def _ready(process: subprocess.Popen[str]) -> Served:
    assert process.stderr is not None
    first = process.stderr.readline()
    found = _ADDRESS.search(first)
    if found is None or not process.stderr.readline().startswith("ready"):
        raise DatasetError(f"a server ended before it was ready: {first}{process.stderr.read()}")
    return Served(process, found[1], int(found[2]))
