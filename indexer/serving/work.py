"""Runs the work of requests in threads; limits running and waiting work, and refuses the rest at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from indexer.serving.failures import Refusal, too_busy

AnswerT = TypeVar("AnswerT")


class Workers:
    """A pool of threads with a limit of admitted work. A thread cannot be stopped, so its place stays taken."""

    def __init__(self, n_threads: int, n_admitted: int, timeout: float) -> None:
        """Start no thread yet.

        Args:
            n_threads: that work at the same time.
            n_admitted: pieces of work that run or wait for a thread.
            timeout: seconds until a client gets an error instead.
        """
        self._threads = ThreadPoolExecutor(n_threads, thread_name_prefix="request")
        self._n_most = n_admitted
        self._timeout = timeout
        self.n_admitted = 0

    async def run(self, work: Callable[[], AnswerT]) -> AnswerT:
        """Do work in a thread; work that has not begun at the end of the time is dropped.

        Raises:
            Refusal: too much is running, or it takes too long.
        """
        if self.n_admitted >= self._n_most:
            raise too_busy(f"{self.n_admitted} requests are running or waiting, the limit is {self._n_most}")
        self.n_admitted += 1
        loop = asyncio.get_running_loop()
        running = self._threads.submit(work)
        running.add_done_callback(lambda _: _in_loop(loop, self._release))
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.wrap_future(running)
        except TimeoutError:
            running.cancel()
            raise _too_slow(self._timeout) from None

    def _release(self) -> None:
        self.n_admitted -= 1

    def close(self) -> None:
        """Start no further work."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _in_loop(loop: asyncio.AbstractEventLoop, action: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop has ended, and with it the count
        loop.call_soon_threadsafe(action)


def _too_slow(seconds: float) -> Refusal:
    return Refusal(
        504,
        "timeout",
        f"the request took longer than {seconds:g} s",
        "send a shorter document or fewer candidates, or start the server with a larger --timeout",
    )
