"""Steps of the work for one request, so that a server can end it: at a deadline, or before it takes too much memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_STEP: ContextVar[Callable[[int], None] | None] = ContextVar("step", default=None)


def step(n_bytes: int = 0) -> None:
    """Begin the next step of a search, a breakdown or a report, which takes about so many bytes of memory.

    Raises:
        Exception: the work ends here; see `limited`.
    """
    if (called := _STEP.get()) is not None:
        called(n_bytes)


@contextmanager
def limited(called: Callable[[int], None]) -> Iterator[None]:
    """Call a function at each step of this thread; it raises where the work is to end."""
    token = _STEP.set(called)
    try:
        yield
    finally:
        _STEP.reset(token)
