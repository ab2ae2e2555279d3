"""Work in processes of its own, which may be killed, crash or hang; forked from one that has imported everything."""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

_PRELOADED = ["engine.encoders.loading", "engine.index", "indexer.cli", "indexer.restoration"]
_PRELOADED += ["transformers.models.bert.modeling_bert", "benchmarks.durability.examination"]
_SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "OPENBLAS_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
_ROOM_BYTES = 4 << 30  # address space a limited process may take beyond what its imports took


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    exit_code: int  # below 0 a signal's number
    is_late: bool  # it did not end in time and was killed

    @property
    def is_well(self) -> bool:
        """True if it ran to its end."""
        return self.exit_code == 0 and not self.is_late


def start(target: Callable[..., None], *arguments: Any, output: Path | None = None) -> ForkServerProcess:  # noqa: ANN401
    """Run a function of a module in a process of its own.

    Args:
        target: the function.
        arguments: its arguments, which must pickle.
        output: a file that takes what it prints on both channels.
    """
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    process = context.Process(target=_run, args=(target, arguments, output))
    process.start()
    return process


def warm_up() -> None:
    """Import everything now, so that processes started later cost and take nothing for it."""
    finish(start(_nothing), 600.0)


def finish(process: ForkServerProcess, timeout_seconds: float) -> Ended:
    """Wait for the end of a process; past its time it is killed."""
    process.join(timeout_seconds)
    is_late = process.is_alive()
    if is_late:
        process.kill()
        process.join()
    assert process.exitcode is not None
    return Ended(process.exitcode, is_late)


def kill_after(process: ForkServerProcess, seconds: float, meanwhile: Callable[[], None]) -> bool:
    """Kill a process after a time, doing something over and over until then.

    Returns:
        False if it had ended by itself.
    """
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0 and process.is_alive():
        meanwhile()
        process.join(min(left, 0.02))
    is_killed = process.is_alive()
    process.kill()
    process.join()
    return is_killed


def limit_memory() -> None:
    """Let this process take some memory more than it has now, and then no more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + _ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _nothing() -> None:
    return


def _run(target: Callable[..., None], arguments: tuple[Any, ...], output: Path | None) -> None:
    if output is not None:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for channel in (1, 2):
            os.dup2(descriptor, channel)
    target(*arguments)
