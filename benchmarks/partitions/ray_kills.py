"""Kills encoders, writers and the driver of indexing runs on Ray, and compares the index with an undisturbed one."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import click
import xxhash

from benchmarks.markdown import markdown, origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.partitions.ray_job import ENCODER, WRITER, Job, Running
from benchmarks.partitions.records import RayKillRecord, RayOverhead
from benchmarks.program import program
from benchmarks.speed.recall import sampled_queries
from benchmarks.store.contents import compare, look, read_contents
from benchmarks.tiny_encoder import tiny_encoder
from engine.encoders.loading import DEFAULT_ENCODER
from engine.errors import EngineError
from engine.extras import check_extra
from engine.store.manifest import index_folders
from engine.text.document import Document
from indexer import read_corpus
from indexer.building.builder import build
from indexer.partitions.splitting import partition

DEMO = Path(__file__).resolve().parents[2] / "demo" / "corpus"
P, N_WORKERS = 2, 2
DRIVER = "driver"
VICTIMS = (ENCODER, WRITER, ENCODER, WRITER, DRIVER)  # in turn
_BATCH_CHARS = 1 << 14  # small, so that a run has many commits
_LONGEST_SECONDS = 3600.0
_QUERIES = 10
_OVERHEAD_HELP = "Measure the overhead also, over this number of documents."
_NAMES = {ENCODER: "encoders", WRITER: "writers", DRIVER: "driver"}
_NOTE = (
    f"A job over {P} partitions with {N_WORKERS} encoders. Processes are killed (SIGKILL) one after another, each "
    "after something was committed since the previous kill. After a kill of the driver the same command runs again. "
    "Missing: documents without vectors at the end. Encoded twice: documents that were encoded again after their "
    "commit. Different documents, different shards: not equal byte for byte to those of a run without kills."
)


class Trial:
    """One index during kills: the documents committed so far, and the number encoded twice."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._committed: dict[str, int] = {}  # the id of the first chunk of each document
        self.n_twice = 0

    def look(self) -> int:
        """Count the documents with vectors; those whose chunks have other ids than before were encoded twice."""
        found = {doc_id: seen.first_chunk for doc_id, seen in look(self._path).items()}
        encoded = {doc_id: first for doc_id, first in found.items() if first is not None}
        self.n_twice += sum(encoded.get(doc_id) != first for doc_id, first in self._committed.items())
        self._committed = encoded
        return len(encoded)


def disturb(job: Job, n_kills: int) -> tuple[Counter[str], Trial]:
    """Kill processes of a job `n_kills` times, then let it end.

    Raises:
        EngineError: a run fails, or ends before all kills.
    """
    killed: Counter[str] = Counter()
    trial, running = Trial(job.index), job.start()
    n_before = trial.look()
    while killed.total() < n_kills:
        victim = VICTIMS[killed.total() % len(VICTIMS)]
        n_before = _kill(running, victim, trial, n_before)
        killed[victim] += 1
        log(f"kill {killed.total()}: {_NAMES[victim]}, {n_before} documents encoded")
        if victim == DRIVER:
            running.process.wait()
            running = job.start()
    running.finish(_LONGEST_SECONDS)
    trial.look()
    return killed, trial


def _kill(running: Running, victim: str, trial: Trial, n_before: int) -> int:
    """Kill one process as soon as more than `n_before` documents are encoded; returns the number encoded."""
    deadline, n_now = time.monotonic() + _LONGEST_SECONDS, n_before
    while time.monotonic() < deadline:
        if running.process.poll() is not None:
            raise EngineError(f"the run ended before all kills; see {running.log}, or pass fewer --kills")
        n_now = trial.look() if n_now == n_before else n_now
        found = [running.process.pid] if victim == DRIVER else running.workers(victim)
        if n_now > n_before and found:
            os.kill(found[0], signal.SIGKILL)
            return n_now
    raise EngineError(f"nothing was committed for {_LONGEST_SECONDS:.0f} s; see {running.log}")


def overhead(corpus: Path, n_documents: int, work: Path) -> RayOverhead:
    """Processor and wall seconds of `build` and of a job on Ray over the same documents, one after the other."""
    some = work / "some"
    some.mkdir()
    files = sorted(path for path in corpus.rglob("*") if path.is_file())[:n_documents]
    for number, path in enumerate(files):
        shutil.copy(path, some / f"{number:05d}{path.suffix}")
    spent = []
    for name, n_workers in (("build", 0), ("ray", N_WORKERS)):
        started = time.perf_counter()
        job = Job(work / f"{name}.lm", some, DEFAULT_ENCODER, n_workers)
        cpu = job.start().finish(24 * 3600.0)
        spent.append((round(cpu, 1), round(time.perf_counter() - started, 1)))
        log(f"{name}: {cpu:.1f} s of processors")
    name = corpus.parent.name if corpus.name == "corpus" else corpus.stem
    return RayOverhead(len(files), DEFAULT_ENCODER, *spent[0], *spent[1], corpus=name)


def shard_digests(path: Path) -> dict[str, str]:
    """The digest of each shard, by partition and name."""
    shards = (one for part in index_folders(path) for one in sorted((part / "shards").glob("*")))
    return {f"{one.parents[1].name}/{one.name}": xxhash.xxh3_128_hexdigest(one.read_bytes()) for one in shards}


def ray_kills_table(records: Sequence[RayKillRecord]) -> str:
    """A row for each corpus, and the overhead where it was measured."""
    head = ["Corpus", "Documents", "Chunks", "Kills", "Runs", "Missing", "Encoded twice"]
    head += ["Different documents", "Different shards"]
    rows = [
        [
            record.corpus,
            f"{record.n_documents:,}",
            f"{record.n_chunks:,}",
            f"{record.n_encoder_kills} encoders, {record.n_writer_kills} writers, {record.n_driver_kills} driver",
            str(record.n_driver_kills + 1),
            *map(str, (record.n_missing, record.n_twice, record.n_other_documents, record.n_other_shards)),
        ]
        for record in records
    ]
    overheads = [_overhead_line(record.overhead) for record in records if record.overhead is not None]
    notes = "\n\n".join([_NOTE, *overheads])
    return "\n".join([*markdown(head, rows), "", notes, "", *origins(records)])


def _overhead_line(found: RayOverhead) -> str:
    share = found.ray_cpu_seconds / found.build_cpu_seconds - 1
    return (
        f"Overhead with {found.n_documents:,} documents of {found.corpus} and {found.encoder}: `build` takes "
        f"{found.build_cpu_seconds:,.0f} s of processor time in {found.build_wall_seconds:,.0f} s, and a run on Ray "
        f"{found.ray_cpu_seconds:,.0f} s in {found.ray_wall_seconds:,.0f} s: {100 * share:+.0f} % processor time."
    )


@program
@click.option("--kills", "n_kills", default=20, type=click.IntRange(1), help="Processes to kill.")
@click.option("--overhead", "n_overhead", type=click.IntRange(1), metavar="N_DOCS", help=_OVERHEAD_HELP)
@click.option(
    "--overhead-corpus", type=click.Path(exists=True, path_type=Path), help="Corpus of the overhead, if not the demo's."
)
@measurement(seed="Seed of the tiny encoder.", work="Folder for the indexes; a temporary one by default.")
def main(run: Measurement, n_kills: int, n_overhead: int | None, overhead_corpus: Path | None) -> None:
    """Kill encoders, writers and the driver of a job on Ray with a tiny encoder, and compare the index.

    The overhead is measured without kills, with the real encoder; the first N_DOCS files of a folder are indexed.

    \b
    Example:
        python -m benchmarks study ray_kills --kills 20
        python -m benchmarks study ray_kills --kills 20 --overhead 2000 --overhead-corpus articles
    """
    check_extra("ray", "ray_kills", "Ray", "ray")
    with run.folder() as work:
        bert = str(tiny_encoder(DEMO, work, run.seed))
        words = (one for one in read_corpus([str(DEMO)]) if isinstance(one, Document))
        build(work / "words.lm", words, encode="none")
        calm, killed = work / "calm.parts", work / "killed.parts"
        partition(work / "words.lm", calm, P)
        shutil.copytree(calm, killed)
        Job(calm, DEMO, bert, N_WORKERS, _BATCH_CHARS).start().finish(_LONGEST_SECONDS)
        kills, trial = disturb(Job(killed, DEMO, bert, N_WORKERS, _BATCH_CHARS), n_kills)
        queries = sampled_queries(sorted(look(calm)), _QUERIES, run.seed)
        expected = read_contents(calm, queries)
        difference = compare(read_contents(killed, queries), expected)
        differing = set(shard_digests(killed).items()) ^ set(shard_digests(calm).items())
        record = RayKillRecord(
            corpus=DEMO.parent.name,
            n_documents=len(expected.documents),
            n_chunks=sum(len(one.spans) for one in expected.documents.values()),
            n_partitions=P,
            n_encoder_kills=kills[ENCODER],
            n_writer_kills=kills[WRITER],
            n_driver_kills=kills[DRIVER],
            n_missing=len(expected.documents) - trial.look(),
            n_twice=trial.n_twice,
            n_other_documents=len({*difference.documents, *difference.vectors}),
            n_other_shards=len(differing),
            n_other_hits=len(difference.hits),
            ray=version("ray"),
            overhead=None if n_overhead is None else overhead(overhead_corpus or DEMO, n_overhead, work),
            seconds=run.seconds,
            origin=run.origin,
        )
    run.publish([record], ray_kills_table)
