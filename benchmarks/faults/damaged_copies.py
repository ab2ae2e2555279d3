"""One damaged copy of an index: its answers, the findings of `verify`, and the result of `repair`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from benchmarks.faults.calls import Change
from benchmarks.faults.operations import ENCODER, INDEX, OPERATIONS, ORIGINALS, PARTS, UNSEALED
from benchmarks.faults.recording import State, killed_state, queried, read_state, record, visible, write_state
from benchmarks.faults.records import Case
from benchmarks.measuring.isolation import ProcessFailed, described, in_child, limit_memory
from benchmarks.store.contents import Contents, compare, read_contents
from engine.encoders.loading import load_encoder  # noqa: F401 - repair needs it: loaded before any child is forked
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


def damaged(original: Original, rng: np.random.Generator, work: Path, *, is_repaired: bool) -> tuple[str, Case]:
    """Damage a random file in a random way, each kind of file and of damage equally often, and check the result.

    Returns:
        The kind of the file, and the result.
    """
    kinds = [kind for kind in _KINDS if original.files(kind)]
    kind = kinds[int(rng.integers(len(kinds)))]
    places = original.files(kind)
    place, damage = places[int(rng.integers(len(places)))], list(Damage)[int(rng.integers(len(Damage)))]
    seed, with_encoder = int(rng.integers(2**32)), bool(rng.integers(2))

    def case() -> Case:
        limit_memory()  # a damaged length must not exhaust the memory
        found = Case()
        write_state(original.state, work)
        how = inflict(work / place, damage, np.random.default_rng(seed))
        _ask(found, original, work / original.index)
        _verify(found, original, work / original.index, Path(place).name)
        if is_repaired:
            found.outcomes.add("repaired")
            _repair(found, original, work / original.index, kind, with_encoder=with_encoder)
        found.problems = [f"{original.name}, {place} {how}: {problem}" for problem in found.problems]
        return found

    try:
        return kind, in_child(case)
    except ProcessFailed as error:
        return kind, Case(problems=[f"{original.name}, {place} {damage.value}, seed {seed}: {error}"])


def _ask(found: Case, original: Original, index: Path) -> None:
    with found.guarded("a query", "refused"):
        matches = [_is_as(index, truth) for truth in original.truths]
        found.outcomes.add("right" if matches[-1] else "earlier" if any(matches) else "wrong")
        if not any(matches):
            found.problems.append("a silently different answer")


def _is_as(index: Path, truth: Contents) -> bool:
    return compare(read_contents(index, list(truth.hits)), truth).is_none


def _verify(found: Case, original: Original, index: Path, file: str) -> None:
    with found.guarded("verify", "found"):
        if findings := verify(index):
            found.outcomes.add("found")
            is_row = any(one.damage is Loss.DOCUMENT for one in findings)  # it names the document, not the file
            if not is_row and not any(file in f"{one.where} {one.what}" for one in findings):
                found.problems.append(f"verify does not name the file: {findings}")
    # Damage can lose what a killed writer left in the log, as a kill a moment earlier would.
    is_harmless = not original.is_sealed and found.outcomes & {"right", "earlier"}
    if "found" not in found.outcomes and not is_harmless:
        found.problems.append(f"verify found nothing, and the outcome was {found.outcomes}")


def _repair(found: Case, original: Original, index: Path, kind: str, *, with_encoder: bool) -> None:
    lost: list[str] = []
    with found.guarded("repair", "given_up"):
        lost = repair(index, encode=with_encoder, encoder=ENCODER).lost
    if "given_up" in found.outcomes:
        if kind in ("shard", "reference", "FAISS", "postings of words"):
            found.problems.append("repair refused what can be derived or dropped")
        return
    found.outcomes.add("lost" if lost else "mended")
    try:
        if findings := verify(index):
            found.problems.append(f"after repair verify finds {findings}")
        # Another reference has other thresholds, so that scores differ, as `repair` reports.
        if lost or kind == "reference":
            is_well = _is_without(index, original.truths, lost)
        else:
            is_well = any(_is_as(index, truth) for truth in original.truths)
        if not is_well:
            found.problems.append(f"after repair, which lost {lost}, the index holds something else")
    except Exception as error:  # noqa: BLE001 - the index is refused, or worse
        found.problems.append(f"after repair: {described(error)}")


def _is_without(index: Path, truths: Sequence[Contents], lost: list[str]) -> bool:
    """Whether an index holds its earlier documents except the lost ones; hits depend on them, and are not compared."""
    present = Contents(read_contents(index, []).documents, {})
    kept = [{name: one for name, one in truth.documents.items() if name not in lost} for truth in truths]
    return any(compare(present, Contents(documents, {})).is_none for documents in kept)
