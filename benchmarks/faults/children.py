"""Runs a function in a forked child, which can die or hang; it inherits everything that was imported and created."""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
from collections.abc import Callable
from typing import TypeVar

from engine.errors import EngineError

SECONDS = 60.0

Value = TypeVar("Value")


class ChildDied(EngineError):
    """Raised when a child ended with a signal or an exception, or did not end in time."""


def in_child(function: Callable[[], Value], seconds: float = SECONDS) -> Value:
    """Call a function in a forked child.

    Args:
        function: its return value must pickle.
        seconds: after which the child is killed.

    Raises:
        ChildDied: there is no value; the message gives the reason.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(function, writer)
    os.close(writer)
    received, is_late = _receive(reader, time.monotonic() + seconds)
    os.close(reader)
    if is_late:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if is_late or not received:
        ended = os.waitstatus_to_exitcode(status)
        raise ChildDied(f"no end after {seconds:.0f} s" if is_late else f"the process ended with {ended}")
    value: Value | str
    is_well, value = pickle.loads(received)
    if not is_well:
        raise ChildDied(str(value))
    return value  # type: ignore[return-value]


def _answer(function: Callable[[], object], writer: int) -> None:
    try:
        answer = pickle.dumps((True, function()))
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent reports it
        answer = pickle.dumps((False, f"{type(error).__module__}.{type(error).__name__}: {error}"))
    with os.fdopen(writer, "wb") as stream:
        stream.write(answer)
    os._exit(0)  # without flushing the buffers or running the exit handlers of the parent


def _receive(reader: int, deadline: float) -> tuple[bytes, bool]:
    blocks: list[bytes] = []
    while (left := deadline - time.monotonic()) > 0:
        if select.select([reader], [], [], left)[0]:
            block = os.read(reader, 1 << 20)
            if not block:
                return b"".join(blocks), False
            blocks.append(block)
    return b"", True
