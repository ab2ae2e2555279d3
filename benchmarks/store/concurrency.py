"""One writer and several readers of one index, in processes of their own, for a time: errors and times of queries."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import click
import numpy as np

import longmatch
from benchmarks.faults.encoder import WordEncoder
from benchmarks.measuring.isolation import described
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.program import program
from benchmarks.store.records import ConcurrencyRecord
from benchmarks.synthetic import SHORT, documents
from engine.store.presence import stored_sources
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.builder import build
from indexer.generation.compaction import compact
from indexer.generation.new_generation import publish_generation
from indexer.generation.reference import rebase
from indexer.upkeep.removal import remove
from indexer.upkeep.repair import repair
from indexer.upkeep.verify import verify

_FACTORIES = ("Flat", "IVF8,Flat")
_FLOOR = 0.3  # vectors of random words are separated badly
_MOST_ERRORS = 5  # that are kept of one process
_SUM_ERROR = 1e-5
_N_DOCUMENTS, _N_READERS = 200, 8
_PAUSE = 1.0  # mean seconds between two steps of each process
_LAST_STEP_SECONDS = 120.0  # that a step may take after the end of the run


@dataclass
class Tally:
    """The counts, times and errors of one process."""

    changes: Counter[str] = field(default_factory=Counter)  # by kind, of the writer
    query_ms: list[float] = field(default_factory=list)
    refresh_ms: list[float] = field(default_factory=list)  # of refreshes that opened the index again
    errors: list[str] = field(default_factory=list)
    n_errors: int = 0

    def guarded(self, step: str, act: Callable[[], None]) -> None:
        """Run a step, and count any error."""
        try:
            act()
        except Exception as error:  # noqa: BLE001 - each is a finding
            self.n_errors += 1
            if len(self.errors) < _MOST_ERRORS:
                self.errors.append(f"{step}: {described(error)}")


def read(path: Path, seed: int, pause_seconds: float, stop: Event) -> Tally:
    """Query an index again and again, moving to its newest state before each query."""
    tally, rng = Tally(), np.random.default_rng(seed)
    with longmatch.open(path, encoder=WordEncoder(), store=False, progress=False) as index:
        while not stop.wait(pause_seconds * float(rng.random() * 2)):
            tally.guarded("refresh", lambda: _refresh(index, tally))
            tally.guarded("query", lambda: _query(index, tally, rng))
    return tally


def _refresh(index: longmatch.Index, tally: Tally) -> None:
    started = time.perf_counter()
    if index.refresh():
        tally.refresh_ms.append((time.perf_counter() - started) * 1000)


def _query(index: longmatch.Index, tally: Tally, rng: np.random.Generator) -> None:
    names = list(index)
    name = names[int(rng.integers(len(names)))]
    started = time.perf_counter()
    result = index.search_id(name, k=10)
    tally.query_ms.append((time.perf_counter() - started) * 1000)
    for hit in result.hits:
        document = hit.breakdown.document
        parts = sum(pair.contribution for pair in hit.breakdown.pairs) + (document.contribution if document else 0.0)
        if abs(parts - hit.score) > _SUM_ERROR or hit.doc_id not in names or hit.doc_id == name:
            raise ValueError(f"{name}: the hit {hit.doc_id} has score {hit.score} and parts {parts}")


class Changes:
    """The changes that the writer makes to an index, in turns, with some of the documents each time."""

    def __init__(self, path: Path, texts: Sequence[Document], seed: int) -> None:
        self._path, self._texts = path, texts
        self._rng = np.random.default_rng(seed)
        self._n_changes = 0
        self.steps: dict[str, Callable[[], object]] = {
            "update": lambda: self._index(self._sample(8), is_changed=True),
            "metadata": lambda: self._index(self._sample(8), is_changed=False),
            "remove": self._remove,
            "add": lambda: self._index(self._sample(12), is_changed=False),
            "compact": lambda: compact(path),
            "publish": self._publish,
            "repair": lambda: repair(path, encoder=WordEncoder()),
            "rebase": lambda: rebase(path),
        }

    def _sample(self, n: int) -> list[Document]:
        return [self._texts[int(at)] for at in self._rng.choice(len(self._texts), n, replace=False)]

    def _index(self, which: Sequence[Document], *, is_changed: bool) -> None:
        self._n_changes += 1
        made = [replace(one, metadata={**one.metadata, "change": self._n_changes}) for one in which]
        if is_changed:
            made = [replace(one, text=one.text + "!" * (1 + self._n_changes % 50)) for one in made]
        build(self._path, made, encoder=WordEncoder(), recall_floor=_FLOOR)

    def _remove(self) -> None:
        known = sorted(doc_id for doc_id, _ in stored_sources(self._path))
        remove(self._path, [known[int(at)] for at in self._rng.choice(len(known), 6, replace=False)])

    def _publish(self) -> None:
        with Writer(self._path) as writer:
            publish_generation(writer, _FACTORIES[self._n_changes % len(_FACTORIES)], recall_floor=_FLOOR)


def write(path: Path, texts: Sequence[Document], seed: int, pause_seconds: float, stop: Event) -> Tally:
    """Change an index again and again."""
    tally, changes = Tally(), Changes(path, texts, seed)
    while not stop.is_set():
        for name, step in changes.steps.items():
            if stop.wait(pause_seconds):
                break
            tally.guarded(name, step)  # type: ignore[arg-type]
            tally.changes[name] += 1
    return tally


def _run(work: Callable[..., Tally], arguments: Sequence[Any], stop: Event, sender: Connection) -> None:
    warnings.simplefilter("ignore")
    tally = Tally()
    tally.guarded("the process", lambda: vars(tally).update(vars(work(*arguments, stop))))
    sender.send(tally)


def together(works: Sequence[tuple[Callable[..., Tally], Sequence[Any]]], seconds: float) -> list[Tally]:
    """Run functions in processes for a time; each also gets an event that ends it, and returns a tally."""
    context = multiprocessing.get_context("forkserver")  # a fork of this process could find FAISS or torch locked
    context.set_forkserver_preload([__name__])
    stop, pipes = context.Event(), [context.Pipe(duplex=False) for _ in works]
    processes = []
    for one, (_, sender) in zip(works, pipes, strict=True):
        processes.append(context.Process(target=_run, args=(*one, stop, sender), daemon=True))
        processes[-1].start()
        sender.close()
    time.sleep(seconds)
    stop.set()
    return [tally_of(process, receiver) for process, (receiver, _) in zip(processes, pipes, strict=True)]


def tally_of(process: BaseProcess, receiver: Connection) -> Tally:
    """The tally that a process sends at its end; an error for a process that died or does not end."""
    try:
        if receiver.poll(_LAST_STEP_SECONDS):
            tally: Tally = receiver.recv()
            process.join()
            return tally
        process.kill()
        reason = f"no end within {_LAST_STEP_SECONDS:.0f} s"
    except EOFError:
        process.join()
        reason = f"ended with exit code {process.exitcode}"
    return Tally(errors=[f"the process: {reason}"], n_errors=1)


def percentiles(times: Sequence[float]) -> tuple[float, float]:
    """p50 and p99, to a tenth; 0 without times."""
    p50, p99 = np.percentile(times, [50, 99]) if times else (0.0, 0.0)
    return round(float(p50), 1), round(float(p99), 1)


@program
@click.option("--minutes", default=30.0, type=click.FloatRange(min=0, min_open=True))
@click.option("--idle-minutes", default=3.0, help="Duration of the same readers without a writer, before the run.")
@measurement(seed="Seed of documents, queries and changes.", work="Folder to work in; by default a temporary one.")
def main(run: Measurement, minutes: float, idle_minutes: float) -> None:
    """Let readers query an index while a writer updates, removes, compacts, repairs and publishes.

    \b
    Example:
        python -m benchmarks study concurrency --minutes 30
    """
    with tempfile.TemporaryDirectory(prefix="longmatch-", dir=run.given_work) as folder:
        path, texts = Path(folder) / "x.lm", list(documents(SHORT, _N_DOCUMENTS, run.seed))
        build(path, texts, encoder=WordEncoder(), factory=_FACTORIES[0], recall_floor=_FLOOR)
        readers = [(read, (path, run.seed + number, _PAUSE)) for number in range(_N_READERS)]
        idle = together(readers, idle_minutes * 60)
        log(f"idle: {sum(len(one.query_ms) for one in idle):,} queries")
        writer, *beside = together([(write, (path, texts, run.seed, _PAUSE)), *readers], minutes * 60)
        n_findings = len(verify(path))
    everyone = [*idle, writer, *beside]
    idle_p50, idle_p99 = percentiles([ms for one in idle for ms in one.query_ms])
    p50, p99 = percentiles([ms for one in beside for ms in one.query_ms])
    refresh_p50, refresh_p99 = percentiles([ms for one in beside for ms in one.refresh_ms])
    record = ConcurrencyRecord(
        n_documents=_N_DOCUMENTS,
        minutes=minutes,
        n_readers=_N_READERS,
        changes=dict(writer.changes),
        n_queries=sum(len(one.query_ms) for one in beside),
        n_refreshes=sum(len(one.refresh_ms) for one in beside),
        n_errors=sum(one.n_errors for one in everyone),
        n_findings=n_findings,
        n_idle_queries=sum(len(one.query_ms) for one in idle),
        idle_p50_ms=idle_p50,
        idle_p99_ms=idle_p99,
        p50_ms=p50,
        p99_ms=p99,
        refresh_p50_ms=refresh_p50,
        refresh_p99_ms=refresh_p99,
        problems=[error for one in everyone for error in one.errors],
        origin=run.origin,
    )
    run.keep(record)
    click.echo("\n".join(record.promises + record.problems))
