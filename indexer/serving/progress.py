"""How far one search has come: written by the thread that searches and by the encoder, read by whoever shows it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum

from indexer.serving.failures import Refusal


class Stage(StrEnum):
    """The current stage of a search."""

    WAITING = "waiting"  # for a thread
    READING = "reading"  # the file or text
    ENCODING = "encoding"
    SEARCHING = "searching"
    ARRANGING = "arranging"  # texts, marks and maps of the hits


class Subject(StrEnum):
    """The documents that are encoded."""

    QUERY = "query"
    CANDIDATES = "candidates"  # documents of the index that have no vectors yet


@dataclass(frozen=True, slots=True)
class State:
    """How far a search has come at one moment."""

    stage: Stage
    subject: Subject | None = None  # of the encoding
    tokens_done: int = 0
    tokens_total: int = 0  # approximate where documents of the index are encoded


class Progress:
    """The progress of one search, and the pieces of its result that are ready to be shown."""

    def __init__(self) -> None:
        self.pieces: deque[bytes] = deque()  # of the result, for the client
        self._stage = Stage.WAITING
        self._subject: Subject | None = None
        self._n_before = self._n_total = self._n_running = 0  # tokens: encoded, expected, being encoded
        self._share: Callable[[], float] = lambda: 0.0
        self._is_abandoned = False

    @property
    def state(self) -> State:
        """The current state."""
        if self._stage is not Stage.ENCODING:
            return State(self._stage)
        done = self._n_before + int(self._n_running * self._share())
        return State(self._stage, self._subject, min(done, self._n_total), self._n_total)

    def enter(self, stage: Stage) -> None:
        """Begin another stage.

        Raises:
            Refusal: the client has gone.
        """
        self._check()
        self._stage = stage

    def expect(self, subject: Subject, n_tokens: int) -> None:
        """Begin to encode `n_tokens` tokens, in any number of steps.

        Raises:
            Refusal: the client has gone.
        """
        self._check()
        self._subject, self._n_before, self._n_total = subject, 0, n_tokens
        self._stage = Stage.ENCODING

    @contextmanager
    def encoding(self, n_tokens: int, share: Callable[[], float]) -> Iterator[None]:
        """Follow one step of encoding; the search begins when all expected tokens are encoded.

        Args:
            n_tokens: tokens of the step.
            share: returns the encoded share of the step, in [0, 1].

        Raises:
            Refusal: the client has gone.
        """
        self._check()
        self._share, self._n_running = share, n_tokens
        try:
            yield
        finally:
            self._n_running = 0
            self._n_before += n_tokens
        if self._n_before >= self._n_total:
            self._stage = Stage.SEARCHING

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Follow the work of this thread; encoders report to the progress that their thread follows."""
        token = _FOLLOWED.set(self)
        try:
            yield
        finally:
            _FOLLOWED.reset(token)

    def abandon(self) -> None:
        """End the search at its next step: nobody waits for it."""
        self._is_abandoned = True

    def _check(self) -> None:
        if self._is_abandoned:
            raise Refusal(499, "disconnected", "the client closed the connection", "send the request again")


_FOLLOWED: ContextVar[Progress | None] = ContextVar("progress", default=None)


def followed_progress() -> Progress | None:
    """The progress that this thread follows; None where nobody waits for one."""
    return _FOLLOWED.get()
