"""One damaged copy of an index: its answers, the findings of `verify`, and the result of `repair`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from benchmarks.faults.calls import Change
from benchmarks.faults.operations import ENCODER, INDEX, OPERATIONS, ORIGINALS, PARTS, UNSEALED
from benchmarks.faults.recording import State, killed_state, queried, read_state, record, visible, write_state
from benchmarks.measuring.isolation import ProcessFailed, described, in_child, limit_memory
from benchmarks.store.contents import Contents, compare, read_contents
from engine.encoders.loading import load_encoder  # noqa: F401 - repair needs it: loaded before any child is forked
from engine.errors import EngineError
from indexer.upkeep.repair import repair
from indexer.upkeep.verify import Damage as Loss
from indexer.upkeep.verify import verify

PAGE_BYTES = 4096
_KINDS = {  # patterns of paths below the index, by kind of file
    "catalog": "*catalog.sqlite",
    "seal": "*catalog.sqlite.seal",
    "write-ahead log": "*catalog.sqlite-wal",
    "shard": "*shards/*",
    "reference": "*reference/*",
    "FAISS": "*ann/*.faiss",
    "postings of words": "*ann/*words.safetensors",
    "manifest": "partitions.json",
}


class Damage(StrEnum):
    """What happens to a file."""

    TRUNCATED = "truncated"  # at a random length
    FLIPPED = "flipped"  # one bit of a random byte
    ZEROED = "zeroed"  # one page of 4 KiB
    EMPTIED = "emptied"
    DELETED = "deleted"


def inflict(path: Path, damage: Damage, rng: np.random.Generator) -> str:
    """Damage a file, and return how; an empty file is deleted or stays as it is."""
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
    """An undamaged index, and every state of it that was committed."""

    name: str
    state: State
    index: str  # its place in the state
    truths: list[Contents]  # the last is the present state; a lost log can bring back the others
    is_sealed: bool

    def files(self, kind: str) -> list[str]:
        """The places of files of a kind."""
        below = {place: place.removeprefix(f"{self.index}/") for place in self.state if self.state[place]}
        return [place for place, name in below.items() if fnmatch(name, _KINDS[kind])]


@dataclass
class Damaged:
    """The result of one case."""

    kind: str = ""
    answer: str = ""  # right, earlier, refused or wrong
    is_found: bool = False  # by `verify`
    repaired: str = ""  # "", or one of `mended`, `lost`, `refused`
    problems: list[str] = field(default_factory=list)  # empty if all is well


def make_originals(work: Path) -> list[Original]:
    """Sealed indexes of each sort, and unsealed ones as left by a writer that is killed after a commit."""
    made = []
    for name, begin in ORIGINALS.items():
        index = PARTS if name == "partitions" else INDEX
        write_state({}, work)
        in_child(lambda begin=begin: begin(work))  # type: ignore[misc]
        state = {place: content for place, content in read_state(work).items() if place.startswith(index)}
        truth = in_child(lambda index=index: queried(work / index))  # type: ignore[misc]
        made.append(Original(name, state, index, [truth], is_sealed=True))
    return made + [_unsealed(name, work) for name in UNSEALED]


def _unsealed(name: str, work: Path) -> Original:
    operation = next(one for one in OPERATIONS if one.name == name)
    recording = record(operation, work).recording
    truths, committed = [], []
    for at in recording.acknowledged:
        write_state(killed_state(recording, at), work)
        if in_child(lambda: bool(visible(work / INDEX))):
            committed.append(at)
            truths.append(in_child(lambda: queried(work / INDEX)))
    # The last commit is in the log, and not yet in the catalog.
    first = committed[-2] if len(committed) > 1 else 0
    in_log = [at for at in range(first, committed[-1]) if recording.calls[at].change is Change.SYNC]
    logs = [at for at in in_log if recording.calls[at].path.endswith("-wal")]
    state = killed_state(recording, logs[-1] + 1 if logs else committed[-1])
    return Original(f"{name}, unsealed", state, INDEX, truths, is_sealed=False)


def damaged(original: Original, rng: np.random.Generator, work: Path, *, is_repaired: bool) -> Damaged:
    """Damage a random file in a random way, each kind of file and of damage equally often, and check the result."""
    kinds = [kind for kind in _KINDS if original.files(kind)]
    kind = kinds[int(rng.integers(len(kinds)))]
    places = original.files(kind)
    place, damage = places[int(rng.integers(len(places)))], list(Damage)[int(rng.integers(len(Damage)))]
    seed, with_encoder = int(rng.integers(2**32)), bool(rng.integers(2))

    def case() -> Damaged:
        limit_memory()  # a damaged length must not exhaust the memory
        found = Damaged(kind)
        write_state(original.state, work)
        how = inflict(work / place, damage, np.random.default_rng(seed))
        _ask(found, original, work / original.index)
        _verify(found, original, work / original.index, Path(place).name)
        if is_repaired:
            _repair(found, original, work / original.index, kind, with_encoder=with_encoder)
        found.problems = [f"{original.name}, {place} {how}: {problem}" for problem in found.problems]
        return found

    try:
        return in_child(case)
    except ProcessFailed as error:
        return Damaged(kind, problems=[f"{original.name}, {place} {damage.value}, seed {seed}: {error}"])


def _guarded(found: Damaged, step: str, act: Callable[[], None]) -> bool:
    """Do a step; False where the engine refused. Other errors are problems."""
    try:
        act()
    except EngineError:
        return False
    except Exception as error:  # noqa: BLE001 - whatever is not the engine's error is what we look for
        found.problems.append(f"{step}: {described(error)}")
    return True


def _ask(found: Damaged, original: Original, index: Path) -> None:
    def ask() -> None:
        matches = [number for number, truth in enumerate(original.truths) if _is_as(index, truth)]
        last = len(original.truths) - 1
        found.answer = "right" if last in matches else "earlier" if matches else "wrong"
        if not matches:
            found.problems.append("a silently different answer")

    if not _guarded(found, "a query", ask):
        found.answer = "refused"


def _is_as(index: Path, truth: Contents) -> bool:
    return compare(read_contents(index, list(truth.hits)), truth).is_none


def _verify(found: Damaged, original: Original, index: Path, file: str) -> None:
    def check() -> None:
        findings = verify(index)
        found.is_found = bool(findings)
        is_row = any(one.damage is Loss.DOCUMENT for one in findings)  # it names the document, not the file
        if findings and not is_row and not any(file in f"{one.where} {one.what}" for one in findings):
            found.problems.append(f"verify does not name the file: {findings}")

    if not _guarded(found, "verify", check):
        found.is_found = True
    # Damage can lose what a killed writer left in the log, as a kill a moment earlier would.
    is_harmless = not original.is_sealed and found.answer in ("right", "earlier")
    if not found.is_found and not is_harmless:
        found.problems.append(f"verify found nothing, and the answer was {found.answer}")


def _repair(found: Damaged, original: Original, index: Path, kind: str, *, with_encoder: bool) -> None:
    lost: list[str] = []

    def mend() -> None:
        lost.extend(repair(index, encode=with_encoder, encoder=ENCODER).lost)

    if not _guarded(found, "repair", mend):
        found.repaired = "refused"
        if kind in ("shard", "reference", "FAISS", "postings of words"):
            found.problems.append("repair refused what can be derived or dropped")
        return
    found.repaired = "lost" if lost else "mended"

    def check() -> None:
        if findings := verify(index):
            found.problems.append(f"after repair verify finds {findings}")
        # Another reference has other thresholds, so that scores differ, as `repair` reports.
        is_same_score = not lost and kind != "reference"
        is_well = any(_is_as(index, truth) for truth in original.truths) if is_same_score else False
        if not is_well and (is_same_score or not _is_without(index, original.truths, lost)):
            found.problems.append(f"after repair, which lost {lost}, the index holds something else")

    if not _guarded(found, "after repair", check):
        found.problems.append("after repair the index is refused")


def _is_without(index: Path, truths: Sequence[Contents], lost: list[str]) -> bool:
    """Whether an index holds its earlier documents except the lost ones; hits depend on them, and are not compared."""
    present = read_contents(index, []).documents
    for truth in truths:
        kept = {name: one for name, one in truth.documents.items() if name not in lost}
        if compare(Contents(present, {}), Contents(kept, {})).is_none:
            return True
    return False
