"""The partitions of an index as actors of Ray, behind the protocol `engine.search.partition.Partition`.

If the process of an actor or its machine dies, Ray restarts it; the machine must have the folder of the partition under
the same path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import ray
import xxhash
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from engine.errors import ClusterError, EngineError
from engine.scoring.evidence import Scoring
from engine.search.partition import LocalPartition, Partition, Ranked, Ranks, Selection, Shown, Survey
from engine.search.query import Prepared
from engine.search.scorer import Exact
from engine.store.snapshot import IndexSnapshot, Positions
from indexer.cluster.session import first_line

if TYPE_CHECKING:
    Actor: TypeAlias = Any  # Ray makes its class

_START_SECONDS = 300.0  # in which the processes of all partitions begin to answer
_ANSWER_SECONDS = 300.0  # in which an actor answers, a restart included


def part_state(snapshot: IndexSnapshot) -> str:
    """A digest that changes with the documents of a partition and with their vectors."""
    locations = snapshot.locations
    return xxhash.xxh3_128_hexdigest(np.concatenate([locations.ids, locations.shard, locations.n_chunks]).tobytes())


class PartitionActor:
    """Searches the partition in one folder."""

    def __init__(self, folder: Path) -> None:
        """Open nothing yet: an error here would be lost."""
        self._folder = folder
        self._snapshot: IndexSnapshot | None = None

    def ready(self) -> bool:
        """Whether the process runs."""
        return True

    def answer(self, state: str, scoring: Scoring, method: str, arguments: Sequence[Any]) -> Any:  # noqa: ANN401
        """Call a method of the partition.

        Raises:
            ClusterError: the folder holds other documents.
        """
        value = getattr(LocalPartition(self._opened(state), scoring), method)(*arguments)
        if method == "show":  # texts are unpacked here, not where they arrive
            return [replace(shown, document=replace(shown.document)) for shown in value]
        return value

    def _opened(self, state: str) -> IndexSnapshot:
        if self._snapshot is not None and part_state(self._snapshot) != state:
            self._snapshot.close()
            self._snapshot = None
        if self._snapshot is None:
            self._snapshot = IndexSnapshot(self._folder)
        if part_state(self._snapshot) != state:
            raise ClusterError(
                f"{self._folder} holds other documents on a machine of the cluster than where the query runs; copy the "
                "index to all machines, or open it again"
            )
        return self._snapshot


@dataclass
class ActorPartition:
    """A partition that an actor searches; see `Partition`."""

    n_documents: int
    _name: str
    _actor: Actor
    _state: str  # see `part_state`
    _scoring: Scoring

    def rank(self, prepared: Prepared, selection: Selection, n_most: int) -> Ranks:
        """See `Partition.rank`."""
        return cast(Ranks, self._answer("rank", prepared, selection, n_most))

    def survey(self, selection: Selection) -> Survey:
        """See `Partition.survey`."""
        return cast(Survey, self._answer("survey", selection))

    def tops(self, queries: Sequence[tuple[int, Prepared]], selection: Selection, n_most: int) -> list[Ranked]:
        """See `Partition.tops`."""
        return cast(list[Ranked], self._answer("tops", queries, selection, n_most))

    def exact(self, prepared: Prepared, positions: Positions) -> Exact:
        """See `Partition.exact`."""
        return cast(Exact, self._answer("exact", prepared, positions))

    def show(self, positions: Positions) -> Sequence[Shown]:
        """See `Partition.show`."""
        return cast(Sequence[Shown], self._answer("show", positions))

    def _answer(self, method: str, *arguments: object) -> object:
        """Call a method in the process of the actor."""
        request = self._actor.answer.remote(self._state, self._scoring, method, arguments)
        try:
            return ray.get(request, timeout=_ANSWER_SECONDS)
        except RayTaskError as error:
            if isinstance(error.cause, EngineError):
                raise error.cause from None
            reason = first_line(error)
        except GetTimeoutError:
            reason = f"no answer within {_ANSWER_SECONDS:.0f} s"
        except RayError as error:
            reason = first_line(error)
        raise ClusterError(
            f"{self._name} does not answer ({reason}); Ray starts it again on a machine that has its folder: run the "
            "search again, or look into the logs of Ray"
        )


class PartitionActors:
    """An actor for each partition of an index; a `engine.search.partition.Placement`."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Start the actors, spread over the machines of the cluster.

        Raises:
            ClusterError: the actors do not start.
        """
        folders = [folder.absolute() for folder in folders]
        remote = ray.remote(PartitionActor).options(
            num_cpus=0, max_restarts=-1, max_task_retries=1, scheduling_strategy="SPREAD"
        )
        self.actors: dict[str, Actor] = {f"actor {folder.name}": remote.remote(folder) for folder in folders}
        try:
            ray.get([actor.ready.remote() for actor in self.actors.values()], timeout=_START_SECONDS)
        except RayError as error:
            self.close()
            raise ClusterError(
                f"the partitions of {folders[0].parent} do not start on the Ray cluster ({first_line(error)}); look "
                "into the logs of Ray, and install longmatch on all of its machines"
            ) from error

    def partitions(self, snapshots: Sequence[IndexSnapshot], scoring: Scoring) -> list[Partition]:
        """The partitions of an index; see `Placement.partitions`."""
        return [
            ActorPartition(snapshot.n_documents, name, actor, part_state(snapshot), scoring)
            for (name, actor), snapshot in zip(self.actors.items(), snapshots, strict=True)
        ]

    def close(self) -> None:
        """End the actors; `contextlib.closing` calls it."""
        for actor in self.actors.values():
            ray.kill(actor)
