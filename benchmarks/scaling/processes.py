"""Work in a fresh process, under a cap of memory where one is given; says what memory it took.

What an unprivileged process on Linux can be held to is RLIMIT_DATA: its private
writable memory, which is heap, arrays, stacks, and the data of libraries. Pages of
mapped files are not in it, and need not be: they are dropped when memory is short.
They are counted apart (RssFile), and with them the whole (VmHWM).
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import resource
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from engine.errors import EngineError

CAP_KIND = "RLIMIT_DATA"
_SAMPLE_SECONDS = 0.01
_STATUS = Path("/proc/self/status")


class ProcessFailed(EngineError):
    """Raised when a process did not come to its end."""


@dataclass(frozen=True)
class Memory:
    """MiB of a process; the parts were sampled every 10 ms, the whole is the kernel's own peak."""

    start: float  # resident before the work: interpreter and libraries
    peak: float  # resident, pages of mapped files among it
    peak_anonymous: float  # resident, without pages of files: what a budget must hold
    peak_file: float  # resident pages of files, libraries among them


class _Sampler:
    """Notes the parts of this process's memory from a thread, until it is left."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)
        self._anonymous = self._file = 0.0
        self._start = _status_mib()["VmRSS"]

    def __enter__(self) -> _Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    @property
    def memory(self) -> Memory:
        """The most there was."""
        self._look()
        return Memory(self._start, _status_mib()["VmHWM"], self._anonymous, self._file)

    def _watch(self) -> None:
        while not self._stopped.wait(_SAMPLE_SECONDS):
            self._look()

    def _look(self) -> None:
        now = _status_mib()
        self._anonymous, self._file = max(self._anonymous, now["RssAnon"]), max(self._file, now["RssFile"])


def _status_mib() -> dict[str, float]:
    lines = (line.split() for line in _STATUS.read_text().splitlines() if line.endswith(" kB"))
    return {name.rstrip(":"): round(int(size) / 1024, 1) for name, size, _ in lines}


def ask(
    target: Callable[..., dict[str, Any]],
    *arguments: Any,  # noqa: ANN401
    cap_bytes: int | None = None,
    threads: int | None = None,
) -> tuple[dict[str, Any], Memory]:
    """Call a function of a module in a process that begins with nothing but it.

    Args:
        target: its answer must go through JSON.
        arguments: they must pickle.
        cap_bytes: of private writable memory, the libraries' among it.
        threads: of matrix products and FAISS; as many as there are cores by default.

    Raises:
        EngineError: the function raised one; it is told by its message.
        ProcessFailed: the process took more than the cap, crashed, or raised something else.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, target, arguments, cap_bytes, threads), daemon=True)
    process.start()
    sender.close()
    try:
        told = json.loads(receiver.recv_bytes())
    except EOFError:
        told = {}
    process.join()
    if "refused" in told:
        raise EngineError(told["refused"])
    if "answer" not in told:
        capped = f" under a cap of {cap_bytes / 2**20:,.0f} MiB; allow more" if cap_bytes else ""
        reason = told.get("reason", f"exit code {process.exitcode}")
        raise ProcessFailed(f"{target.__name__} ended with {reason}{capped}")
    return told["answer"], Memory(**told["memory"])


def _answer(
    sender: Connection,
    target: Callable[..., dict[str, Any]],
    arguments: tuple[Any, ...],
    cap_bytes: int | None,
    threads: int | None,
) -> None:
    if cap_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (cap_bytes, cap_bytes))
    told: dict[str, Any]
    try:
        with _Sampler() as sampler:
            answer = _limited(target, arguments, threads)
            told = {"answer": answer, "memory": sampler.memory.__dict__}
    except EngineError as error:
        told = {"refused": str(error)}
    except MemoryError:
        told = {"reason": "not enough memory"}
    sender.send_bytes(json.dumps(told).encode())


def _limited(target: Callable[..., dict[str, Any]], arguments: tuple[Any, ...], threads: int | None) -> dict[str, Any]:
    if threads is None:
        return target(*arguments)
    from threadpoolctl import threadpool_limits

    importlib.import_module("engine.store.ann")  # the limit reaches only libraries that are loaded
    with threadpool_limits(threads):
        return target(*arguments)
