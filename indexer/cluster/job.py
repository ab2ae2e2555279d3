"""What runs on a Ray cluster: the encoders of an indexing run, and the partitions of an index as actors for queries.

This process reads the documents, commits their words, sends the texts to encoders, and commits the vectors. Encoders
are tasks that keep only the model; the vectors of a batch depend on the batch alone, and batches are cut and committed
in a fixed order, so vectors do not depend on kills. The batch of a dead encoder is encoded again elsewhere. A run whose
own process died continues with the same command.

For queries, partitions are actors behind the protocol `engine.search.partition.Partition`. If the process of an actor
or its machine dies, Ray restarts it; the machine must have the folder of the partition under the same path.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import ray
import xxhash
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from engine.encoders.encoder import Encoder
from engine.errors import ClusterError, EngineError, IndexMismatch
from engine.readers import Unreadable
from engine.scoring.breakdown import Prepared
from engine.scoring.evidence import Scoring
from engine.search.partition import LocalPartition, Partition, Ranked, Ranks, Selection, Shown, Survey
from engine.search.scorer import Exact
from engine.store.snapshot import IndexSnapshot, Positions
from engine.text.document import Document
from indexer.building.builder import Settings, build, encoder_for
from indexer.building.pipeline import BatchVectors, StoredBatch, encode_batch, groups
from indexer.building.report import BuildReport, Progress
from indexer.cluster.session import RayCluster, fetched, first_line

if TYPE_CHECKING:
    Pending: TypeAlias = ray.ObjectRef[Any]
    Actor: TypeAlias = Any  # Ray makes its class

_MOST_RETRIES = 5  # of a batch whose process died
BATCH_CHARS = 1 << 17  # of a batch for one encoder; some 30,000 tokens


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """The encoder that every process of a job loads."""

    name: str  # as `load_encoder` takes it, on every machine
    fingerprint: str
    device: str | None
    on_gpu: bool  # whether each one takes a GPU

    @classmethod
    def of(cls, encoder: Encoder, *, on_gpu: bool) -> EncoderSettings:
        """The settings of an encoder that is loaded in this process."""
        folder = Path(encoder.name)
        name = str(folder.absolute()) if folder.is_dir() else encoder.name
        return cls(name, encoder.fingerprint, "cuda" if on_gpu else "cpu", on_gpu)


def submitted(settings: EncoderSettings, batch: StoredBatch) -> Pending:
    """Send a batch to whichever process is free."""
    return _task(on_gpu=settings.on_gpu).remote(settings, batch)


@lru_cache(maxsize=2)
def _task(*, on_gpu: bool) -> Any:  # noqa: ANN401 - Ray makes its class
    # By default, a process with a GPU would end after one call.
    return ray.remote(num_cpus=1, num_gpus=int(on_gpu), max_retries=_MOST_RETRIES, max_calls=0)(encode_stored)


def encode_stored(settings: EncoderSettings, batch: StoredBatch) -> tuple[BatchVectors, float]:
    """Encode a batch in the process of a task; returns its vectors and the seconds."""
    encoder = _loaded(settings)
    started = time.perf_counter()
    return encode_batch(batch, encoder, encoder.encode_segmented), time.perf_counter() - started


@lru_cache(maxsize=1)
def _loaded(settings: EncoderSettings) -> Encoder:
    # The processes of writers need no encoder.
    from engine.encoders.loading import load_encoder

    encoder = load_encoder(settings.name, device=settings.device)
    if encoder.fingerprint != settings.fingerprint:
        raise IndexMismatch(
            f"machine {ray.util.get_node_ip_address()} has another encoder {settings.name!r} (fingerprint "
            f"{encoder.fingerprint[:12]}, the index {settings.fingerprint[:12]}); copy the encoder's files there"
        )
    return encoder


def spread(
    batches: Iterator[StoredBatch],
    submit: Callable[[StoredBatch], Pending],
    n_at_once: int,
    batch_chars: int = BATCH_CHARS,
) -> Iterator[tuple[StoredBatch, BatchVectors, float]]:
    """Encode documents in smaller batches at the same time, and return these in order, with vectors and seconds."""
    cut = groups(chain.from_iterable(batches), lambda row: len(row[1].text), batch_chars)
    waiting: deque[tuple[StoredBatch, Pending]] = deque()
    is_over = False
    while True:
        unfinished = _unfinished(waiting)
        while not is_over and len(unfinished) < n_at_once and len(waiting) < 2 * n_at_once:
            batch = next(cut, None)
            is_over = batch is None
            if batch is not None:
                waiting.append((batch, submit(batch)))
                unfinished.append(waiting[-1][1])
        if not waiting:
            return
        if is_over or len(waiting) >= 2 * n_at_once or waiting[0][1] not in unfinished:
            batch, first = waiting.popleft()
            vectors, seconds = fetched(first)
            yield batch, vectors, seconds
        else:
            ray.wait(unfinished, num_returns=1)


def _unfinished(waiting: deque[tuple[StoredBatch, Pending]]) -> list[Pending]:
    if not waiting:
        return []
    _, others = ray.wait([one for _, one in waiting], num_returns=len(waiting), timeout=0)
    return list(others)


def build_on_cluster(
    path: str | Path,
    documents: Iterable[Document | Unreadable],
    cluster: RayCluster,
    settings: Settings,
    *,
    n_workers: int | None = None,
    batch_chars: int = BATCH_CHARS,
    progress: Progress | None = None,
    log: Callable[[str], None] = lambda _: None,
) -> BuildReport:
    """Create or update an index with vectors of all documents, which are encoded on a cluster."""
    used = settings.encoder
    if used is None or isinstance(used, str):
        used = encoder_for(Path(path), used, "cpu")  # the GPUs are those of the cluster
    on_gpu = cluster.n_gpus > 0 if settings.device is None else settings.device.startswith("cuda")
    submit = partial(submitted, EncoderSettings.of(used, on_gpu=on_gpu))
    encode = partial(spread, submit=submit, n_at_once=cluster.n_workers(n_workers), batch_chars=batch_chars)
    settings = replace(settings, encoder=used, encode="all", elsewhere=encode)
    return build(path, documents, settings, progress=progress, log=log)


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
        """Call a method of the partition."""
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
        """Start the actors, spread over the machines of the cluster."""
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
            ActorPartition(name, actor, part_state(snapshot), scoring)
            for (name, actor), snapshot in zip(self.actors.items(), snapshots, strict=True)
        ]

    def close(self) -> None:
        """End the actors; `contextlib.closing` calls it."""
        for actor in self.actors.values():
            ray.kill(actor)
