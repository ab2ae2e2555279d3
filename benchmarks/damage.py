"""Damages copies of an index, file by file, and holds what it then answers, reports and repairs against the truth."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
import numpy as np

from benchmarks.durability.damaging import Damage, FileKind, choose_file, inflict
from benchmarks.durability.examination import Examined, Truth, Unsealed, examine, examine_unsealed
from benchmarks.durability.originals import FACTORIES, Original, copied, make_originals, make_unsealed
from benchmarks.durability.records import DamageCounts, DamageRecord
from benchmarks.kill import DEMO
from benchmarks.options import record_option
from benchmarks.program import origin_of, program
from benchmarks.record_file import write_record
from benchmarks.tiny_encoder import frequent_words, save_tiny_bert
from engine.document import Document
from engine.encoders.loading import load_encoder
from engine.store.snapshot import Snapshot
from indexer import read_corpus
from indexer.training.origin import Origin

_SEALED = (
    FileKind.CATALOG,
    FileKind.SEAL,
    FileKind.SHARD,
    FileKind.REFERENCE,
    FileKind.FLAT,
    FileKind.IVF,
    FileKind.POSTINGS,
)
_PLACES = {FileKind.FLAT: FileKind.FLAT, FileKind.IVF: FileKind.IVF, FileKind.POSTINGS: FileKind.IVF}


@dataclass
class Tally:
    """Counts of the cases of one kind, field by field as in `DamageCounts`."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DamageCounts.__annotations__, 0))

    def add(self, names: Sequence[str]) -> None:
        """Count a case."""
        for name in ("n_cases", *names):
            self.counts[name] += 1


def judge(kind: FileKind, file: str, examined: Examined, truth: Truth) -> tuple[list[str], list[str]]:
    """Counters that a case raises, and what is wrong with it: nothing, if all is well."""
    raised, problems = _asked(examined)
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
        problems.append(f"repair: {examined.after} {examined.repair_told}")
    return raised, problems


def judge_unsealed(examined: Examined, unsealed: Unsealed) -> tuple[list[str], list[str]]:
    """As `judge`, for an index whose writer was killed; a state committed before is right, too."""
    raised, problems = _asked(examined)
    if examined.asked == "right" and examined.n_documents < unsealed.n_documents:
        raised.append("n_earlier")
    if examined.repaired == "done" and examined.after == "right":
        raised.append("n_mended")
    elif examined.repaired == "refused":
        raised.append("n_given_up")
    else:
        problems.append(f"the next run: {examined.after} {examined.repair_told}")
    return raised, problems


def _asked(examined: Examined) -> tuple[list[str], list[str]]:
    raised = {"refused": ["n_refused"], "right": ["n_right"], "wrong": ["n_wrong"]}.get(examined.asked, [])
    problems = [f"a wrong hit among {examined.n_documents} documents"] if examined.asked == "wrong" else []
    if "wrong" in (examined.after, examined.after_encoding) and examined.asked != "wrong":
        raised = [*raised, "n_wrong"]
    if examined.crash:
        raised, problems = [*raised, "n_crashed"], [*problems, examined.crash]
    return list(raised), problems


class Damages:
    """Runs cases, and counts."""

    def __init__(self, work: Path, seed: int, log: Callable[[str], None]) -> None:
        """Copies are made in `work`."""
        self._copy = work / "case.lm"
        self._rng = np.random.default_rng(seed)
        self._log = log
        self.by_kind: defaultdict[str, Tally] = defaultdict(Tally)
        self.by_damage: defaultdict[str, Tally] = defaultdict(Tally)
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
        raised, problems = judge_unsealed(examined, unsealed)
        self._count(kind, damage, f"{unsealed.path.stem}, {how}", raised, problems)

    def _count(self, kind: FileKind, damage: Damage, what: str, raised: list[str], problems: list[str]) -> None:
        self.by_kind[kind.value].add(raised)
        self.by_damage[damage.value].add(raised)
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
        counts={kind: DamageCounts(**tally.counts) for kind, tally in damages.by_kind.items()},
        by_damage={damage: DamageCounts(**tally.counts) for damage, tally in damages.by_damage.items()},
        largest_score_difference=damages.largest_score_difference,
        problems=damages.problems,
        origin=origin,
    )


@program
@click.option("--cases", "n_cases", default=300, show_default=True, type=click.IntRange(0), help="Damaged copies.")
@click.option(
    "--unsealed", "n_unsealed", default=20, show_default=True, type=click.IntRange(0), help="Of killed writers."
)
@click.option("--encoder", type=click.Path(path_type=Path, exists=True), help="Folder; by default a tiny random BERT.")
@click.option("--corpus", default=DEMO / "corpus", type=click.Path(path_type=Path, exists=True))
@click.option("--seed", default=0, show_default=True, help="Of files, places, queries and the tiny encoder.")
@click.option("--work", type=click.Path(path_type=Path), help="Folder to work in, kept; by default a temporary one.")
@record_option
@click.pass_context
def main(
    context: click.Context,
    n_cases: int,
    n_unsealed: int,
    encoder: Path | None,
    corpus: Path,
    seed: int,
    work: Path | None,
    out: Path,
) -> None:
    """Damage copies of an index in every way, and write a record of what came through: nothing.

    \b
    Example:
        python -m benchmarks study damage --cases 300
    """
    folder = work or Path(tempfile.mkdtemp(prefix="longmatch-damage-"))
    folder.mkdir(parents=True, exist_ok=True)
    if encoder is None:
        texts = [document.text for document in read_corpus([str(corpus)]) if isinstance(document, Document)]
        encoder = save_tiny_bert(folder / "encoder", frequent_words(texts), seed=seed)
    damages = Damages(folder, seed, lambda line: click.echo(line, err=True))
    originals = make_originals(corpus, encoder, folder, seed)
    unsealed = make_unsealed(corpus, encoder, folder, seed) if n_unsealed else []
    run_cases(damages, originals, unsealed, n_cases, n_unsealed)
    record = record_of(damages, originals[FileKind.FLAT], encoder, origin_of(context, seed))
    click.echo(write_record(record, out).read_text("utf-8"))
    if work is None:
        shutil.rmtree(folder)
