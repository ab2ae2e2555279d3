"""Work in processes of its own, which may be killed, crash or hang; forked from one that has imported everything."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from engine.errors import EngineError

_PRELOADED = ["engine.encoders.loading", "engine.index", "indexer.cli", "indexer.restoration"]
_PRELOADED += ["transformers.models.bert.modeling_bert", "benchmarks.durability.examination"]
_SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "OPENBLAS_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
_LONGEST_SECONDS = 24 * 3600.0
_LAST_CHARACTERS = 300  # of what a process said, for the message of its failure
_ROOM_BYTES = 4 << 30  # address space a limited process may take beyond what its imports took


class ProcessFailed(EngineError):
    """Raised when a process did not come to its end."""


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


def ask_process(
    target: Callable[..., None],
    *arguments: Any,  # noqa: ANN401
    name: str,
    place: Path,
    advice: str,
) -> Any:  # noqa: ANN401 - what JSON holds
    """Run a function in a process of its own, and read what it wrote.

    Args:
        target: a function of a module; after its arguments it gets the path of a file, for its answer as JSON.
        arguments: they must pickle.
        name: of what runs, for the message of a failure.
        place: begins the names of two files, of the answer and of what was printed.
        advice: ends that message.

    Returns:
        What the JSON holds.

    Raises:
        ProcessFailed: the process was killed, crashed or raised; the message has its last words.
    """
    answer, said = (place.with_name(f"{place.name}.{target.__name__}{suffix}") for suffix in (".json", ".txt"))
    ended = finish(start(target, *arguments, answer, output=said), _LONGEST_SECONDS)
    if not ended.is_well:
        last = said.read_text("utf-8", errors="replace").strip()[-_LAST_CHARACTERS:]
        raise ProcessFailed(f"{name} ended with {ended.exit_code} ({last}); {advice}")
    return json.loads(answer.read_text("utf-8"))


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
