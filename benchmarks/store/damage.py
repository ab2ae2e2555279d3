"""Damages copies of an index, file by file, and compares what it then answers, reports and repairs with the truth."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path

import click
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measuring.isolation import finish, start
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.program import program
from benchmarks.speed.recall import sampled_queries
from benchmarks.store.contents import Hits, ask, read_contents
from benchmarks.store.examination import Examined, Truth, Unsealed, examine, examine_unsealed
from benchmarks.store.fault_points import FaultPoint, read_steps
from benchmarks.store.kill import DEMO, index_corpus, tiny_encoder
from benchmarks.store.records import DamageCounts, DamageRecord
from engine.encoders.loading import load_encoder
from engine.store.snapshot import Snapshot
from engine.store.writer import Writer
from indexer import build, read_corpus
from indexer.training.origin import Origin

PAGE_BYTES = 4096
_QUERIES = 6
_RECALL_FLOOR = 0.5  # random weights make vectors that codes separate badly


class Damage(StrEnum):
    """What happens to a file."""

    TRUNCATED = "truncated"  # at a random length
    FLIPPED = "flipped"  # one bit of a random byte
    ZEROED = "zeroed"  # one page of 4 KiB
    EMPTIED = "emptied"
    DELETED = "deleted"


class FileKind(StrEnum):
    """A sort of file in an index folder."""

    CATALOG = "catalog"
    SEAL = "seal"
    SHARD = "shard"
    REFERENCE = "reference"
    FLAT = "flat generation"
    IVF = "IVF generation"
    POSTINGS = "postings of words"
    LOCK = "lock"
    LOG = "write-ahead log"  # while no writer closed the index
    SHARED_MEMORY = "shared memory of the log"


_PATTERNS = {
    FileKind.CATALOG: "catalog.sqlite",
    FileKind.SEAL: "catalog.sqlite.seal",
    FileKind.SHARD: "shards/*.safetensors",
    FileKind.REFERENCE: "reference/*.safetensors",
    FileKind.FLAT: "ann/*/*.faiss",
    FileKind.IVF: "ann/*/*.faiss",
    FileKind.POSTINGS: "ann/*/words.safetensors",
    FileKind.LOCK: "writer.lock",
    FileKind.LOG: "catalog.sqlite-wal",
    FileKind.SHARED_MEMORY: "catalog.sqlite-shm",
}
_SEALED = list(FileKind)[:7]  # of an index that its writer closed
_PLACES = {FileKind.FLAT: FileKind.FLAT, FileKind.IVF: FileKind.IVF, FileKind.POSTINGS: FileKind.IVF}
FACTORIES = {FileKind.FLAT: "Flat", FileKind.IVF: "IVF16,PQ32x4fs"}


def choose_file(index: Path, kind: FileKind, rng: np.random.Generator) -> Path:
    """A random file of a kind."""
    files = sorted(index.glob(_PATTERNS[kind]))
    return files[int(rng.integers(len(files)))]


def inflict(path: Path, damage: Damage, rng: np.random.Generator) -> str:
    """Damage a file, and say how; an empty one can only be deleted, or stay as it is."""
    content = bytearray(path.read_bytes())
    size = len(content)
    if damage is Damage.DELETED:
        path.unlink()
        return "deleted"
    if not size:
        return "empty as it was"
    match damage:
        case Damage.EMPTIED:
            content, how = bytearray(), f"emptied of {size} bytes"
        case Damage.TRUNCATED:
            length = int(rng.integers(size))
            content, how = content[:length], f"cut from {size} to {length} bytes"
        case Damage.FLIPPED:
            at, bit = int(rng.integers(size)), int(rng.integers(8))
            content[at] ^= 1 << bit
            how = f"bit {bit} flipped at byte {at} of {size}"
        case Damage.ZEROED:  # a page that is not zero already
            starts = [at for at in range(0, size, PAGE_BYTES) if any(content[at : at + PAGE_BYTES])]
            at = starts[int(rng.integers(len(starts)))] if starts else 0
            stop = min(at + PAGE_BYTES, size)
            content[at:stop] = bytes(stop - at)
            how = f"bytes {at} to {stop} of {size} zeroed"
    path.write_bytes(content)
    return how


@dataclass(frozen=True)
class Original:
    """An undamaged index and what is true of it."""

    path: Path
    truth: Truth


def make_originals(corpus: Path, encoder: Path, work: Path, seed: int) -> dict[FileKind, Original]:
    """Index a corpus once under every factory string, and learn what is true."""
    originals = {}
    with threadpool_limits(1):  # as in the processes of the cases, whose scores must be the same to the last bit
        for kind, factory in FACTORIES.items():
            path = work / f"original-{factory.split(',')[0]}.lm"
            build(path, read_corpus([str(corpus)]), encoder=str(encoder), factory=factory, recall_floor=_RECALL_FLOOR)
            originals[kind] = Original(path, _truth_of(path, seed))
    return originals


def _truth_of(path: Path, seed: int) -> Truth:
    with Snapshot(path) as snapshot:
        names, numbers = np.array(snapshot.doc_ids()), snapshot.roster.shard
        files = {row.id: row.file for row in snapshot.shard_rows}
    queries = sampled_queries(sorted(names.tolist()), _QUERIES, seed)
    shards = {file: sorted(names[numbers == number].tolist()) for number, file in files.items()}
    without = {file: _hits_without(path, lost, queries) for file, lost in shards.items()}
    return Truth(read_contents(path, queries), ask(path, queries, exact=True), shards, without)


def _hits_without(path: Path, lost: list[str], queries: Sequence[str]) -> dict[str, Hits]:
    copy = copied(path, path.with_suffix(".without"))
    with Writer(copy) as writer:
        writer.remove([known.id for known in writer.indexed(lost).values()])
    hits = ask(copy, [doc_id for doc_id in queries if doc_id not in lost])
    shutil.rmtree(copy)
    return hits


def make_unsealed(corpus: Path, encoder: Path, work: Path, seed: int) -> list[Unsealed]:
    """Kill a writer after each of its commits, and again after the checkpoint that follows."""
    log = work / "steps"
    finish(start(index_corpus, work / "steps.lm", corpus, encoder, log, None, output=work / "steps.out"), 600.0)
    commits = [at + 1 for at, step in enumerate(read_steps(log)) if step == "fsync shards"]
    made: list[Unsealed] = []
    states: dict[int, dict[str, Hits]] = {}
    queries: list[str] = []
    for at in [step for commit in commits for step in (commit, commit + 1)]:
        path, fault = work / f"unsealed-{at}.lm", FaultPoint(at, is_after=True)
        finish(start(index_corpus, path, corpus, encoder, work / "unsealed.steps", fault, output=work / "out"), 600.0)
        with Snapshot(copied(path, work / "state.lm")) as snapshot:
            queries = queries or sampled_queries(sorted(snapshot.doc_ids()), _QUERIES, seed)
            n_documents = snapshot.n_documents
        with threadpool_limits(1):
            states[n_documents] = ask(work / "state.lm", queries)
        made.append(Unsealed(path, n_documents, states, queries, corpus, encoder))
    return made


def copied(path: Path, copy: Path) -> Path:
    """Copy an index over whatever is at `copy`, and name the copy."""
    shutil.rmtree(copy, ignore_errors=True)
    return Path(shutil.copytree(path, copy))


def judge(kind: FileKind, file: str, examined: Examined, truth: Truth) -> tuple[list[str], list[str]]:
    """Counters of `DamageCounts` that a case raises, and what is wrong with it: nothing, if all is well."""
    raised, problems = _searched(examined)
    if any(file in f"{where} {what}" for _, where, what in examined.findings):
        raised.append("n_verified")
    elif kind is not FileKind.LOCK:
        problems.append(f"verify did not name it: {examined.findings}")
    if kind is FileKind.SHARD:
        is_exact = examined.lost == truth.shards[file] and examined.after == "right"
        is_back = examined.after_encoding == "right"
        raised += ["n_lost_exactly"] * is_exact + ["n_reencoded"] * is_back
        problems += [] if is_exact else [f"repair lost {len(examined.lost)}: {examined.after}"]
        problems += [] if is_back else [f"repair --encode: {examined.after_encoding}"]
    elif examined.repaired == "done" and examined.after == "right" and not examined.lost:
        raised.append("n_mended")
    elif examined.repaired == "refused" and kind is FileKind.CATALOG:
        raised.append("n_given_up")
    else:
        problems.append(f"repair: {examined.after} {examined.repair_error}")
    return raised, problems


def judge_unsealed(examined: Examined, unsealed: Unsealed) -> tuple[list[str], list[str]]:
    """As `judge`, for an index whose writer was killed; a state committed before is right, too."""
    raised, problems = _searched(examined)
    if examined.asked == "right" and examined.n_documents < unsealed.n_documents:
        raised.append("n_earlier")
    if examined.repaired == "done" and examined.after == "right":
        raised.append("n_mended")
    elif examined.repaired == "refused":
        raised.append("n_given_up")
    else:
        problems.append(f"the next run: {examined.after} {examined.repair_error}")
    return raised, problems


def _searched(examined: Examined) -> tuple[list[str], list[str]]:
    raised = [f"n_{examined.asked}"] if examined.asked else []
    problems = [f"a wrong hit among {examined.n_documents} documents"] if examined.asked == "wrong" else []
    if "wrong" in (examined.after, examined.after_encoding) and examined.asked != "wrong":
        raised.append("n_wrong")
    if examined.crash:
        raised.append("n_crashed")
        problems.append(examined.crash)
    return raised, problems


class Damages:
    """Runs cases, and counts by the names of `DamageCounts`."""

    def __init__(self, work: Path, seed: int, log: Callable[[str], None]) -> None:
        """Copies are made in `work`."""
        self._copy = work / "case.lm"
        self._rng = np.random.default_rng(seed)
        self._log = log
        self.by_kind: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.by_damage: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.problems: list[str] = []
        self.largest_score_difference = 0.0
        self.n_cases = 0

    def damage(self, original: Original, kind: FileKind, damage: Damage) -> None:
        """One case on an index that was closed."""
        file = choose_file(copied(original.path, self._copy), kind, self._rng)
        how = inflict(file, damage, self._rng)
        examined = examine(self._copy, file, original.truth)
        name = file.relative_to(self._copy).as_posix()
        self.largest_score_difference = max(self.largest_score_difference, examined.score_difference)
        self._count(kind, damage, f"{name} {how}", *judge(kind, name, examined, original.truth))

    def damage_unsealed(self, unsealed: Unsealed, original: Original, kind: FileKind, damage: Damage) -> None:
        """One case on an index whose writer was killed; a state committed before is right."""
        how = inflict(choose_file(copied(unsealed.path, self._copy), kind, self._rng), damage, self._rng)
        examined = examine_unsealed(self._copy, unsealed, original.truth)
        self._count(kind, damage, f"{unsealed.path.stem}, {how}", *judge_unsealed(examined, unsealed))

    def _count(self, kind: FileKind, damage: Damage, what: str, raised: list[str], problems: list[str]) -> None:
        for counts in (self.by_kind[kind.value], self.by_damage[damage.value]):
            counts.update(["n_cases", *raised])
        self.problems += [f"{kind.value}, {what}: {problem}" for problem in problems]
        self.n_cases += 1
        self._log(f"{self.n_cases} cases, {len(self.problems)} problems; {kind.value} {what}: {', '.join(raised)}")


def run_cases(
    damages: Damages, originals: dict[FileKind, Original], unsealed: Sequence[Unsealed], n_cases: int, n_unsealed: int
) -> None:
    """Go round files and damages; then the lock, which must not matter, and unsealed indexes."""
    pairs = [(kind, damage) for damage in Damage for kind in _SEALED]
    for number in range(n_cases):
        kind, damage = pairs[number % len(pairs)]
        other = list(originals.values())[(number // len(pairs)) % len(originals)]
        damages.damage(originals[_PLACES[kind]] if kind in _PLACES else other, kind, damage)
    if n_cases >= len(pairs):
        damages.damage(originals[FileKind.FLAT], FileKind.LOCK, Damage.DELETED)
    kinds = (FileKind.LOG, FileKind.LOG, FileKind.LOG, FileKind.SHARED_MEMORY)
    for number in range(n_unsealed if unsealed else 0):
        chosen, kind, damage = unsealed[number % len(unsealed)], kinds[number % 4], list(Damage)[number % 5]
        damages.damage_unsealed(chosen, originals[FileKind.FLAT], kind, damage)


def record_of(damages: Damages, original: Original, encoder: Path, origin: Origin) -> DamageRecord:
    """Put the counts together."""
    with Snapshot(original.path) as snapshot:
        n_documents, n_chunks = snapshot.n_documents, snapshot.n_chunks
    return DamageRecord(
        encoder=f"{encoder.name}@{load_encoder(str(encoder)).fingerprint[:12]}",
        n_documents=n_documents,
        n_chunks=n_chunks,
        n_queries=len(original.truth.contents.hits),
        factories=list(FACTORIES.values()),
        n_cases=damages.n_cases,
        counts=_counts(damages.by_kind),
        by_damage=_counts(damages.by_damage),
        largest_score_difference=damages.largest_score_difference,
        problems=damages.problems,
        origin=origin,
    )


def _counts(tallies: Mapping[str, Counter[str]]) -> dict[str, DamageCounts]:
    names = [field.name for field in fields(DamageCounts)]
    return {key: DamageCounts(**{name: counts[name] for name in names}) for key, counts in tallies.items()}


@program
@click.option("--cases", "n_cases", default=300, show_default=True, type=click.IntRange(0), help="Damaged copies.")
@click.option(
    "--unsealed", "n_unsealed", default=20, show_default=True, type=click.IntRange(0), help="Of killed writers."
)
@click.option("--encoder", type=click.Path(path_type=Path, exists=True), help="Folder; by default a tiny random BERT.")
@click.option("--corpus", default=DEMO / "corpus", type=click.Path(path_type=Path, exists=True))
@measurement(
    seed="Of files, places, queries and the tiny encoder.", work="Folder to work in, kept; by default a temporary one."
)
def main(run: Measurement, n_cases: int, n_unsealed: int, encoder: Path | None, corpus: Path) -> None:
    """Damage copies of an index in every way, and write a record of what came through: nothing.

    \b
    Example:
        python -m benchmarks study damage --cases 300
    """
    with run.folder() as folder:
        used = encoder or tiny_encoder(corpus, folder, run.seed)
        damages = Damages(folder, run.seed, log)
        originals = make_originals(corpus, used, folder, run.seed)
        unsealed = make_unsealed(corpus, used, folder, run.seed) if n_unsealed else []
        run_cases(damages, originals, unsealed, n_cases, n_unsealed)
        record = record_of(damages, originals[FileKind.FLAT], used, run.origin)
    run.keep(record)
    click.echo("\n".join([*record.promises, *record.problems]))
