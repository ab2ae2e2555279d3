"""The partitions of an index as actors of Ray, which answer the rounds of searches frame by frame.

An actor responds like a server of its partition, see `indexer.serving.rounds`. If its process or its machine dies, Ray
restarts it; the machine must have the folder of the partition under the same path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import ray
from ray.exceptions import GetTimeoutError, RayError

from engine.errors import ClusterError, EngineError, IndexChanged, QueryError
from engine.index import Index
from engine.remote.exchange import NoAnswer
from indexer.cluster.failures import first_line
from indexer.serving.rounds import answer

if TYPE_CHECKING:
    Actor: TypeAlias = Any  # Ray makes its class

_FIRST_ROUNDS = ("describe", "rank", "survey")
_START_SECONDS = 300.0  # in which the processes of all partitions begin to answer


class Outcome(StrEnum):
    """The outcome of a round."""

    ANSWERED = "answered"
    CHANGED = "changed"  # the documents are no longer those that the search began with
    REFUSED = "refused"  # the query cannot be answered
    FAILED = "failed"


class PartitionActor:
    """Answers for the partition in one folder."""

    def __init__(self, folder: Path) -> None:
        """Open nothing yet: an error here would be lost."""
        self._folder = folder
        self._index: Index | None = None

    def ready(self) -> bool:
        """Whether the process runs."""
        return True

    def answer(self, subject: str, body: bytes) -> tuple[Outcome, bytes | str]:
        """Answer one round with a frame, or with the reason why there is none."""
        try:
            return Outcome.ANSWERED, answer(self._opened(subject), subject, body)
        except IndexChanged as error:
            return Outcome.CHANGED, str(error)
        except QueryError as error:
            return Outcome.REFUSED, str(error)
        except EngineError as error:
            return Outcome.FAILED, str(error)

    def _opened(self, subject: str) -> Index:
        """The opened index, reopened if it has changed and the round is one that a search begins with."""
        if self._index is not None and subject in _FIRST_ROUNDS and not self._index.snapshot.is_newest():
            self._index.close()
            self._index = None
        if self._index is None:
            self._index = Index.open(self._folder, store=False)
        return self._index


class PartitionActors:
    """Carries frames to the actors of all partitions; see `engine.remote.exchange.Channel`."""

    next_step = "Ray starts it again, on a machine that has its folder"

    def __init__(self, parts: Sequence[Path]) -> None:
        """Start an actor for each partition, spread over the machines of the cluster.

        Args:
            parts: the folder of each, by number.

        Raises:
            ClusterError: the actors do not start.
        """
        parts = [part.absolute() for part in parts]
        made = ray.remote(PartitionActor).options(
            num_cpus=0, max_restarts=-1, max_task_retries=1, scheduling_strategy="SPREAD"
        )
        self._names = [f"actor {part.name}" for part in parts]
        self.actors: dict[str, Actor] = {name: made.remote(part) for name, part in zip(self._names, parts, strict=True)}
        try:
            ray.get([actor.ready.remote() for actor in self.actors.values()], timeout=_START_SECONDS)
        except RayError as error:
            self.close()
            raise ClusterError(
                f"the partitions of {parts[0].parent} do not start on the Ray cluster ({first_line(error)}); look into "
                "the logs of Ray, and install longmatch on all of its machines"
            ) from error

    def address(self, number: int) -> str:
        """The name of an actor."""
        return self._names[number]

    def send(self, address: str, subject: str, body: bytes, seconds: float) -> bytes:
        """Send a frame to an actor; see `Channel.send`."""
        try:
            outcome, value = ray.get(self.actors[address].answer.remote(subject, body), timeout=seconds)
        except GetTimeoutError:
            raise NoAnswer(f"no answer within {seconds:.3g} s") from None
        except RayError as error:
            raise NoAnswer(first_line(error)) from error
        if outcome is Outcome.CHANGED:
            raise IndexChanged(value)
        if outcome is Outcome.REFUSED:
            raise QueryError(value)
        if outcome is Outcome.FAILED:
            raise NoAnswer(value)
        return bytes(value)

    def close(self) -> None:
        """End the actors."""
        for actor in self.actors.values():
            ray.kill(actor)


@contextmanager
def placed(parts: Sequence[Path]) -> Iterator[PartitionActors]:
    """Run partitions as actors on the cluster inside the context; arguments and errors as in `PartitionActors`."""
    actors = PartitionActors(parts)
    try:
        yield actors
    finally:
        actors.close()
