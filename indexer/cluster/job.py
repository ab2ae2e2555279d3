"""What runs on a Ray cluster: an indexing run, and the partitions of an index as actors for queries.

Words are indexed here, vectors by encoders anywhere and one writer for each partition.

    1. This process reads the documents and commits their words, as `longmatch index --encode none` does.
    2. A writer for each partition, an actor on the machine of its folder, sends documents without vectors to encoders
       and commits the vectors. Batches of a partition are cut and committed in a fixed order, so vectors do not depend
       on kills. Encoders are tasks that keep only the model; the vectors of a batch depend on the batch alone.
    3. This process pins the reference; then the writers publish the FAISS indexes, several at the same time.

Committed documents survive every failure: a dead encoder's batch is encoded again elsewhere, a dead writer is started
again and finds in the catalog which documents still have no vectors, and a run whose own process died continues with
the same command.

For queries, partitions are actors behind the protocol `engine.search.partition.Partition`. If the process of an actor
or its machine dies, Ray restarts it; the machine must have the folder of the partition under the same path.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import ray
import xxhash
from ray.exceptions import GetTimeoutError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from engine.encoders.encoder import Encoder
from engine.errors import ClusterError, EngineError, IndexBusy, IndexMismatch, named_faults
from engine.readers import Unreadable
from engine.scoring.evidence import Scoring
from engine.search.partition import LocalPartition, Partition, Ranked, Ranks, Selection, Shown, Survey
from engine.search.query import Prepared
from engine.search.scorer import Exact
from engine.store.catalog import index_folders
from engine.store.partitioned import open_snapshot
from engine.store.snapshot import IndexSnapshot, Positions
from engine.store.writer import Writer, open_writers
from engine.text.document import Document
from indexer.building.builder import Settings, bind_encoder, build
from indexer.building.pipeline import BatchVectors, Pipeline, StoredBatch, encode_batch
from indexer.building.report import Activity, BuildReport, Progress
from indexer.cluster.session import RayCluster, fetched, first_line
from indexer.generation.generations import derive, join_small_shards
from indexer.generation.reference import refresh_reference
from indexer.generation.resources import DiskGuard

if TYPE_CHECKING:
    Pending: TypeAlias = ray.ObjectRef[Any]
    Actor: TypeAlias = Any  # Ray makes its class

_MOST_RETRIES = 5  # of a batch whose process died


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
    batches: Iterator[StoredBatch], submit: Callable[[StoredBatch], Pending], n_at_once: int
) -> Iterator[tuple[StoredBatch, BatchVectors, float]]:
    """Encode batches at the same time, and return them in their order, with vectors and seconds.

    Raises:
        ClusterError: the process of a batch died again in every retry.
        EngineError: raised by the encoder.
    """
    waiting: deque[tuple[StoredBatch, Pending]] = deque()
    is_over = False
    while True:
        unfinished = _unfinished(waiting)
        while not is_over and len(unfinished) < n_at_once and len(waiting) < 2 * n_at_once:
            batch = next(batches, None)
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


BATCH_CHARS = 1 << 17  # of a batch for one encoder; some 30,000 tokens
_LOCK_SECONDS = 20.0  # in which the process of a killed writer ends
_MOST_RESTARTS = 20  # of the writer of a partition


@dataclass(frozen=True, slots=True)
class Commit:
    """The work of the writer of a partition since its last call."""

    n_without: int  # documents of the partition that have no vectors now
    n_tokens: int = 0
    n_chunks: int = 0
    encode_seconds: float = 0.0
    failures: tuple[Unreadable, ...] = ()


class PartitionWriter:
    """Commits vectors to one partition, or to an index that is not partitioned."""

    def __init__(self, folder: Path, encoder: EncoderSettings, n_at_once: int, batch_chars: int) -> None:
        """Open nothing yet: an error here would be lost."""
        self._folder = folder
        self._encode = partial(spread, submit=partial(submitted, encoder), n_at_once=n_at_once)
        self._batch_chars = batch_chars
        self._writer: Writer | None = None
        self._steps: Iterator[BuildReport] = iter(())
        self._report = BuildReport()
        self._n_without = 0

    def commit_next(self) -> Commit | None:
        """Take the lock, or commit the vectors of the next batch; None, and the lock is free, where none is left.

        Raises:
            IndexBusy: another process writes the partition.
        """
        if self._writer is None:
            self._writer = _opened(self._folder)
            pipeline, missing = Pipeline(self._writer, None, batch_chars=self._batch_chars), self._writer.unencoded()
            self._report, self._n_without = pipeline.report, len(missing)
            self._steps = pipeline.each_encoded(missing, self._encode)
            return Commit(self._n_without)
        report = self._report
        before = report.n_tokens, report.n_chunks, report.encode_seconds, len(report.failures)
        if next(self._steps, None) is None:
            self._writer.close()
            return None
        return Commit(
            self._n_without - report.n_encoded,
            report.n_tokens - before[0],
            report.n_chunks - before[1],
            report.encode_seconds - before[2],
            tuple(report.failures[before[3] :]),
        )


def publish(folder: Path, factory: str, recall_floor: float) -> list[str]:
    """Join small shards, and bring the FAISS index and the postings of words up to date.

    Returns:
        Lines to log.

    Raises:
        RecallTooLow: no setting of the FAISS index reaches the floor.
    """
    lines: list[str] = []
    with _opened(folder) as writer:
        disk = DiskGuard(folder)
        join_small_shards(writer, disk, log=lines.append)
        derive(writer, factory, disk=disk, recall_floor=recall_floor, log=lines.append)
    return lines


def _opened(folder: Path) -> Writer:
    """Take the lock, which the process of a killed writer may hold for a moment."""
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return Writer(folder)
        except IndexBusy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@dataclass(frozen=True, slots=True)
class Home:
    """The node of the cluster that has the folders of an index."""

    node: str

    def encode(
        self,
        parts: Sequence[Path],
        encoder: EncoderSettings,
        n_encoders: int,
        batch_chars: int,
        take: Callable[[Path, Commit], None],
    ) -> None:
        """Encode all documents without vectors in some partitions, several partitions at the same time.

        Args:
            n_encoders: encoders that run at the same time, for all partitions together.

        Raises:
            ClusterError: a process died again and again.
            EngineError: raised by a writer or an encoder.
        """
        n_writers = max(1, min(len(parts), n_encoders))
        free = [n_encoders // n_writers + (place < n_encoders % n_writers) for place in range(n_writers)]
        waiting, running = deque(parts), dict[Any, tuple[Any, Path, int]]()
        try:
            while waiting or running:
                while waiting and free:
                    part, n_at_once = waiting.popleft(), free.pop()
                    # Processes of Ray have as many threads as they take cores; a writer has one, and mostly waits.
                    options = {"num_cpus": 0, "max_restarts": _MOST_RESTARTS, "max_task_retries": -1}
                    actor = self._remote(PartitionWriter, **options).remote(part, encoder, n_at_once, batch_chars)
                    running[actor.commit_next.remote()] = actor, part, n_at_once
                (ready, *_), _ = ray.wait(list(running), num_returns=1)
                actor, part, n_at_once = running[ready]
                commit = fetched(ready)
                del running[ready]
                if commit is None:
                    ray.kill(actor)
                    free.append(n_at_once)
                else:
                    take(part, commit)
                    running[actor.commit_next.remote()] = actor, part, n_at_once
        finally:
            for actor, _, _ in running.values():
                ray.kill(actor)

    def publish(self, parts: Sequence[Path], factory: str, recall_floor: float, log: Callable[[str], None]) -> None:
        """Publish what is derived from the documents of each partition, as many at once as this machine has cores."""
        remote = self._remote(publish, num_cpus=1, max_retries=_MOST_RESTARTS)
        published = [remote.remote(part, factory, recall_floor) for part in parts]
        for part, lines in zip(parts, published, strict=True):
            for line in fetched(lines):
                log(line if len(parts) == 1 else f"{part.name}: {line}")

    def _remote(self, work: Any, **options: Any) -> Any:  # noqa: ANN401 - Ray makes its class
        return ray.remote(work).options(scheduling_strategy=NodeAffinitySchedulingStrategy(self.node, False), **options)


@named_faults
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
    """Create or update an index with vectors of all documents, which are encoded on a cluster.

    A changed document is encoded whole, since its words are committed first and replace the stored version together
    with its vectors.

    Every partition is a folder of this machine, which belongs to the cluster.

    Raises:
        ClusterError: a process of the cluster died repeatedly.
        EngineError: as in `indexer.build`.
    """
    folder = Path(path)
    started = time.perf_counter()
    # With a reference, a run publishes only at its end, so that kills change nothing in the index.
    is_new = not folder.exists() or not _has_reference(folder)
    first = replace(settings, encode="elsewhere", publish=is_new)
    report = build(folder, documents, first, progress=progress, log=log)
    if not folder.exists():
        return report  # every document failed
    used = bind_encoder(folder, replace(settings, device="cpu"))  # the GPUs are those of the cluster
    on_gpu = cluster.n_gpus > 0 if settings.device is None else settings.device.startswith("cuda")
    encoding, n_encoders = EncoderSettings.of(used, on_gpu=on_gpu), cluster.n_workers(n_workers)
    parts = [part.absolute() for part in index_folders(folder)]
    counter = _Counter(report, progress, started)
    home = Home(cluster.home)
    n_missing = {part: _n_missing(part) for part in parts}
    counter.expect(sum(n_missing.values()))
    home.encode([part for part in parts if n_missing[part]], encoding, n_encoders, batch_chars, counter.add)
    with open_writers(folder) as target:
        refresh_reference(target, log)
    encoded_at = time.perf_counter()
    home.publish(parts, settings.factory, settings.recall_floor, log)
    report.seconds = encoded_at - started
    last = Settings(used, factory=settings.factory, recall_floor=settings.recall_floor)
    _add_last(report, build(folder, (), last, log=log))
    report.generation_seconds = time.perf_counter() - encoded_at
    return report


def _has_reference(folder: Path) -> bool:
    try:
        with open_snapshot(folder) as snapshot:
            return snapshot.reference_row is not None
    except IndexMismatch:  # nothing is committed yet; for a folder that is not an index, `build` raises the error
        return False


def _add_last(report: BuildReport, last: BuildReport) -> None:
    """Add the counts of a local run that ended the work: it encoded any documents that were left."""
    known = {failure.source for failure in report.failures}
    report.failures += [failure for failure in last.failures if failure.source not in known]
    for name in ("n_encoded", "n_tokens", "n_chunks", "encode_seconds"):
        setattr(report, name, getattr(report, name) + getattr(last, name))
    for name in ("disk_bytes", "n_missing", "tokens_missing"):
        setattr(report, name, getattr(last, name))


class _Counter:
    """Adds up what writers commit, and reports the progress."""

    def __init__(self, report: BuildReport, progress: Progress | None, started: float) -> None:
        self._report = report
        self._started = started
        self._activity = Activity(report, progress)
        self._n_without: dict[Path, int] = {}
        self._failed = {failure.source for failure in report.failures}

    def expect(self, n_documents: int) -> None:
        """Set the number of documents that will get vectors, and begin live progress."""
        self._activity.n_to_encode = self._report.n_encoded + n_documents
        if n_documents:
            self._activity.begin()

    def add(self, part: Path, commit: Commit) -> None:
        """Count a commit, and earlier commits whose writer died before it reported them."""
        report = self._report
        report.n_encoded += self._n_without.get(part, commit.n_without) - commit.n_without
        self._n_without[part] = commit.n_without
        report.n_tokens += commit.n_tokens
        report.n_chunks += commit.n_chunks
        report.encode_seconds += commit.encode_seconds
        report.failures += [failure for failure in commit.failures if failure.source not in self._failed]
        self._failed |= {failure.source for failure in commit.failures}
        report.seconds = time.perf_counter() - self._started
        self._activity.report_progress()


def _n_missing(part: Path) -> int:
    with open_snapshot(part) as snapshot:
        return int((~snapshot.has_vectors).sum())


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
