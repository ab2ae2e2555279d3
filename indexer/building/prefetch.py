"""Draws from an iterator in a separate thread, so that reading continues during encoding."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from typing import NoReturn, TypeVar

Item = TypeVar("Item")


def ahead(items: Iterator[Item]) -> Generator[Item, None, None]:
    """Draw from an iterator in a thread, one item ahead of the consumer; its errors are raised here."""
    waiting: queue.Queue[Callable[[], Item] | None] = queue.Queue(maxsize=1)
    stopped = threading.Event()

    def offer(result: Callable[[], Item] | None) -> None:
        while not stopped.is_set():
            try:
                waiting.put(result, timeout=0.1)
                return
            except queue.Full:
                continue

    def draw() -> None:
        try:
            for item in items:
                offer(lambda item=item: item)  # type: ignore[misc]
                if stopped.is_set():
                    return
        except BaseException as error:  # noqa: BLE001 - raised again in the consumer's thread
            offer(lambda error=error: _raise(error))  # type: ignore[misc]
        else:
            offer(None)

    thread = threading.Thread(target=draw, name="longmatch-read", daemon=True)
    thread.start()
    try:
        while (result := waiting.get()) is not None:
            yield result()
    finally:
        stopped.set()
        thread.join()


def _raise(error: BaseException) -> NoReturn:
    raise error
