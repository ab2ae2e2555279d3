"""Kills `longmatch index` at random moments and around every durable step, lets it go on, and records what was lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.context import ForkServerProcess as Process
from pathlib import Path
from typing import TypeAlias

import click
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measuring.isolation import finish, kill_after, start, warm_up
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.program import program
from benchmarks.speed.recall import sampled_queries
from benchmarks.store.contents import Contents, Seen, compare, look, read_contents
from benchmarks.store.fault_points import FaultPoint, read_steps, watch
from benchmarks.store.records import KillRecord
from benchmarks.tiny_encoder import frequent_words, save_tiny_bert
from engine.document import Document
from engine.encoders.loading import load_encoder
from engine.errors import EngineError, IndexMismatch
from engine.store.snapshot import Snapshot
from indexer import read_corpus, verify
from indexer.training.origin import Origin

DEMO = Path(__file__).resolve().parents[2] / "demo"
QUERIES_BY_ID = 10
# What is killed: `index --encode all`; `--encode later` with all vectors after the words; or queries that encode
# documents of an index of words and a small sample, and the run that encodes the rest.
WAYS = ("all", "later", "queries")
_LONGEST_SECONDS = 600.0
_MOST_FAULT_POINTS = 200
_OPENING_STEPS = 16  # second kills fall on steps up to this: opening, sweeping, first commit
_SAMPLE = 5  # documents with vectors before the first query
_CANDIDATES = "6"

Moment: TypeAlias = float | FaultPoint  # seconds after the start, or a step


@dataclass(frozen=True)
class Trial:
    """A corpus, an encoder, and what an index of it must be."""

    corpus: Path
    encoder: Path
    queries: list[Document]
    work: Path
    expected: Contents
    asked: list[str]  # doc_ids
    seconds: float  # of the uninterrupted run
    steps: list[str]  # of the uninterrupted run
    way: str = "all"

    @property
    def base(self) -> Path:
        """The index of words and a sample that every case of `queries` begins with."""
        return self.work / "base.lm"

    def start(self, path: Path, log: Path, fault: FaultPoint | None, output: Path) -> Process:
        """Begin a run, or go on with one, in a process of its own."""
        if self.way != "queries":
            return start(index_corpus, path, self.corpus, self.encoder, log, fault, self.way, output=output)
        if not path.exists():
            shutil.copytree(self.base, path)
        return start(query_and_encode, path, self.asked, log, fault, output=output)


@dataclass
class Outcome:
    """What all cases together showed, by the names of `KillRecord`."""

    n_timed_kills: int = 0
    n_fault_point_kills: int = 0
    n_second_kills: int = 0
    last_steps: Counter[str] = field(default_factory=Counter)
    n_looks: int = 0
    n_committed_seen: int = 0
    n_lost: int = 0
    n_encoded_twice: int = 0
    n_different_documents: int = 0
    n_different_vectors: int = 0
    largest_vector_difference: float = 0.0
    n_different_hits: int = 0
    largest_score_difference: float = 0.0
    n_unclean: int = 0
    n_looks_refused: int = 0
    n_not_finished: int = 0
    problems: list[str] = field(default_factory=list)


def index_corpus(
    path: Path, corpus: Path, encoder: Path, log: Path, fault: FaultPoint | None, way: str = "all"
) -> None:
    """`longmatch index` in this process, its durable steps watched."""
    from indexer.cli import main as longmatch

    watch(path, log, fault)
    options = ["--encoder", str(encoder), "--encode", way, "--json"]
    longmatch.main(["index", str(path), str(corpus), *options], standalone_mode=False)


def index_sample(path: Path, corpus: Path, encoder: Path) -> None:
    """`longmatch index --encode later` in this process, with vectors of a few documents."""
    import indexer.generation.reference as reference
    from indexer.cli import main as longmatch

    reference.ALL_TOKENS, reference.FIRST_DOCUMENTS, reference.FEWEST_FIRST = 0, _SAMPLE, _SAMPLE
    longmatch.main(["index", str(path), str(corpus), "--encoder", str(encoder)], standalone_mode=False)


def query_and_encode(path: Path, doc_ids: list[str], log: Path, fault: FaultPoint | None) -> None:
    """`longmatch query` for each document, then `longmatch index` for the rest, in this process, steps watched."""
    from indexer.cli import main as longmatch

    watch(path, log, fault)
    for doc_id in doc_ids:
        options = ["--id", doc_id, "--candidates", _CANDIDATES, "-o", os.devnull]
        longmatch.main(["query", str(path), *options], standalone_mode=False)
    longmatch.main(["index", str(path), "--json"], standalone_mode=False)


def prepare(corpus: Path, queries: Path, encoder: Path | None, work: Path, seed: int, way: str = "all") -> Trial:
    """Make the encoder if none is given, and index the corpus once without interruption."""
    encoder = encoder or tiny_encoder(corpus, work, seed)
    asked_with = [document for document in read_corpus([str(queries)]) if isinstance(document, Document)]
    path, log = work / "clean.lm", work / "clean.steps"
    warm_up()
    trial = Trial(corpus, encoder, asked_with, work, Contents({}, {}), [], 0.0, [], way)
    if way == "queries":
        output = work / "base.out"
        _finish_well(start(index_sample, trial.base, corpus, encoder, output=output), output)
        trial = replace(trial, asked=sampled_queries(sorted(look(trial.base)), QUERIES_BY_ID, seed))
    started = time.monotonic()
    _finish_well(trial.start(path, log, None, work / "clean.out"), work / "clean.out")
    seconds = time.monotonic() - started
    asked = trial.asked or sampled_queries(sorted(look(path)), QUERIES_BY_ID, seed)
    expected = read_contents(path, asked, asked_with)
    return replace(trial, expected=expected, asked=asked, seconds=seconds, steps=read_steps(log))


def tiny_encoder(corpus: Path, work: Path, seed: int) -> Path:
    """A random encoder that knows the words of a corpus, in a folder of `work`."""
    texts = [document.text for document in read_corpus([str(corpus)]) if isinstance(document, Document)]
    return save_tiny_bert(work / "encoder", frequent_words(texts), seed=seed)


def _finish_well(process: Process, output: Path) -> None:
    ended = finish(process, _LONGEST_SECONDS)
    if not ended.is_well:
        raise EngineError(f"the uninterrupted run ended with {ended.exit_code}; see {output}")


class Case:
    """One index that is killed, looked at, gone on with, and compared."""

    def __init__(self, trial: Trial, name: str, outcome: Outcome) -> None:
        """Begin with no index; findings go to `outcome`."""
        self._trial = trial
        self._name = name
        self._outcome = outcome
        self._path = trial.work / f"{name}.lm"
        self._log = trial.work / f"{name}.steps"
        self._output = trial.work / f"{name}.out"
        self._committed: dict[str, Seen] = {}
        self._n_problems = len(outcome.problems)

    def kill(self, moment: Moment) -> bool:
        """Run `longmatch index` up to a moment; False if it had ended before."""
        fault = moment if isinstance(moment, FaultPoint) else None
        process = self._trial.start(self._path, self._log, fault, self._output)
        if isinstance(moment, FaultPoint):
            ended = finish(process, _LONGEST_SECONDS)
            is_killed = ended.exit_code < 0
            if ended.is_late or ended.exit_code > 0:
                self._problem(f"the run ended with {ended.exit_code}: {self._last_line()}")
        else:
            is_killed = kill_after(process, moment, self.look)
        self.look()
        self._outcome.n_committed_seen += len(self._committed) if is_killed else 0
        return is_killed

        self._outcome.n_committed_seen += len(self._committed) if is_killed else 0
        return is_killed

    def look(self) -> None:
        """Open the index as any reader may, and compare it with what was seen before."""
        self._outcome.n_looks += 1
        try:
            found = look(self._path)
        except IndexMismatch:
            found = {}  # nothing was begun, or nothing committed
        except Exception as error:  # noqa: BLE001 - any error here is a finding, not only the engine's
            self._outcome.n_looks_refused += 1
            self._problem(f"a look was refused: {type(error).__name__}: {error}")
            return
        for doc_id, seen in self._committed.items():
            there = found.get(doc_id)
            if there is None or there.content_hash != seen.content_hash:
                self._outcome.n_lost += 1
                self._problem(f"lost: {doc_id}")
            elif there.id != seen.id or seen.first_chunk not in (None, there.first_chunk):
                self._outcome.n_encoded_twice += 1
                self._problem(f"encoded twice: {doc_id} was {seen} and is {there}")
        self._committed |= found

    def last_step(self) -> str:
        """The last durable step, numbers aside."""
        steps = read_steps(self._log)
        return re.sub(r"\d+", "N", steps[-1]) if steps else "none"

    def complete(self) -> None:
        """Run to the end, and compare with the uninterrupted run."""
        trial, outcome = self._trial, self._outcome
        n_before = len(self._committed)
        process = trial.start(self._path, self._log, None, self._output)
        ended = finish(process, _LONGEST_SECONDS)
        if not ended.is_well:
            outcome.n_not_finished += 1
            self._problem(f"the last run ended with {ended.exit_code}: {self._last_line()}")
            return
        self._check_report(n_before)
        self.look()
        try:
            self._compare()
        except Exception as error:  # noqa: BLE001 - a finding as any other
            outcome.n_not_finished += 1
            self._problem(f"cannot be compared: {type(error).__name__}: {error}")
        if len(outcome.problems) == self._n_problems:
            shutil.rmtree(self._path)
            self._log.unlink()
            self._output.unlink()

    def _check_report(self, n_before: int) -> None:
        report = json.loads(next(line for line in self._output.read_text().splitlines() if line.startswith("{")))
        n_again = report["n_added"] + report["n_replaced"] - (len(self._trial.expected.documents) - n_before)
        if n_again:
            self._outcome.n_encoded_twice += max(0, n_again)
            self._problem(f"{n_before} documents were committed, and yet {report['n_added']} were added")

    def _compare(self) -> None:
        trial, outcome = self._trial, self._outcome
        difference = compare(read_contents(self._path, trial.asked, trial.queries), trial.expected)
        outcome.n_different_documents += len(difference.documents)
        outcome.n_different_vectors += len(difference.vectors)
        outcome.n_different_hits += len(difference.hits)
        outcome.largest_vector_difference = max(outcome.largest_vector_difference, difference.largest_vector_difference)
        outcome.largest_score_difference = max(outcome.largest_score_difference, difference.largest_score_difference)
        if not difference.is_none:
            self._problem(f"differs: {difference}")
        if findings := verify(self._path):
            outcome.n_unclean += 1
            self._problem(f"verify: {findings}")

    def _last_line(self) -> str:
        return (self._output.read_text().splitlines() or [""])[-1]

    def _problem(self, text: str) -> None:
        self._outcome.problems.append(f"{self._name}: {text}")


def timed_moments(n: int, seconds: float, rng: np.random.Generator) -> list[float]:
    """Random moments of a run, one in each of `n` equal parts of it."""
    return [float(moment) for moment in (np.arange(n) + rng.random(n)) / n * seconds]


def fault_points(n_steps: int, most: int, rng: np.random.Generator) -> list[FaultPoint]:
    """Before and after every step; of more than `most`, a random choice in order."""
    points = [FaultPoint(step, is_after) for step in range(n_steps) for is_after in (False, True)]
    if len(points) <= most:
        return points
    return [points[number] for number in np.sort(rng.choice(len(points), most, replace=False))]


def run_cases(trial: Trial, n_kills: int, n_points: int, seed: int, log: Callable[[str], None]) -> Outcome:
    """All cases: timed kills, then fault points; every other case is killed again while it goes on."""
    rng = np.random.default_rng(seed)
    outcome = Outcome()
    moments: list[Moment] = [*timed_moments(n_kills, trial.seconds, rng)]
    moments += fault_points(len(trial.steps), n_points, rng)
    for number, moment in enumerate(moments):
        case = Case(trial, f"case-{number:03d}", outcome)
        is_killed = case.kill(moment)
        if isinstance(moment, FaultPoint):
            outcome.n_fault_point_kills += is_killed
        else:
            outcome.n_timed_kills += is_killed
            outcome.last_steps[case.last_step() if is_killed else "ended by itself"] += 1
        if number % 2:
            again = FaultPoint(int(rng.integers(_OPENING_STEPS)), bool(rng.integers(2)))
            outcome.n_second_kills += case.kill(again)
        case.complete()
        log(f"{number + 1} of {len(moments)} cases, {len(outcome.problems)} problems")
    return outcome


def record_of(trial: Trial, outcome: Outcome, origin: Origin) -> KillRecord:
    """Put the counts together."""
    with Snapshot(trial.work / "clean.lm") as snapshot:
        n_chunks = snapshot.n_chunks
    return KillRecord(
        encoder=f"{trial.encoder.name}@{load_encoder(str(trial.encoder)).fingerprint[:12]}",
        n_documents=len(trial.expected.documents),
        n_chunks=n_chunks,
        clean_seconds=round(trial.seconds, 1),
        clean_steps=dict(Counter(re.sub(r"\d+", "N", step) for step in trial.steps)),
        n_queries=len(trial.expected.hits),
        origin=origin,
        way=trial.way,
        **{**vars(outcome), "last_steps": dict(outcome.last_steps.most_common())},
    )


@program
@click.option("--kills", "n_kills", default=50, show_default=True, type=click.IntRange(0), help="At random moments.")
@click.option(
    "--fault-points", "n_points", default=_MOST_FAULT_POINTS, show_default=True, help="Kills at steps, at most."
)
@click.option(
    "--way", type=click.Choice(WAYS), default="all", show_default=True, help="What is killed: a way of encoding."
)
@click.option("--encoder", type=click.Path(path_type=Path, exists=True), help="Folder; by default a tiny random BERT.")
@click.option("--corpus", default=DEMO / "corpus", type=click.Path(path_type=Path, exists=True))
@click.option("--queries", default=DEMO / "queries", type=click.Path(path_type=Path, exists=True))
@measurement(
    seed="Of moments, second kills, queries and the tiny encoder.",
    work="Folder to work in, kept; by default a temporary one.",
)
def main(
    run: Measurement, n_kills: int, n_points: int, way: str, encoder: Path | None, corpus: Path, queries: Path
) -> None:
    """Kill `longmatch index` again and again, and write a record of what was lost: nothing.

    \b
    Example:
        python -m benchmarks study kill --kills 50
        python -m benchmarks study kill --kills 20 --way queries
    """
    with run.folder() as folder, threadpool_limits(1):
        trial = prepare(corpus.resolve(), queries, encoder, folder, run.seed, way)
        outcome = run_cases(trial, n_kills, n_points, run.seed, log)
        record = record_of(trial, outcome, run.origin)
    run.keep(record)
    click.echo("\n".join([*record.promises, *record.problems]))
