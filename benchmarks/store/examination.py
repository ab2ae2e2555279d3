"""One damaged index, asked, verified and mended in a process that may die of it; what happened stands in a file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.measuring.isolation import Ended, finish, limit_memory, start
from benchmarks.store.contents import Contents, Hits, ask, compare, look, read_contents, score_difference
from engine.errors import EngineError
from indexer import build, read_corpus, repair, verify

TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Truth:
    """What the index answered before it was damaged, and what it must answer without the documents of one file."""

    contents: Contents
    exact: dict[str, Hits]  # by scanning all vectors; what an ANN index finds depends on which documents it covers
    shards: dict[str, list[str]]  # file to the doc_ids whose vectors it holds
    without: dict[str, dict[str, Hits]]  # file to the hits once those documents are removed


@dataclass(frozen=True)
class Unsealed:
    """An index whose writer was killed, and the hits it may give: those of a state that was committed."""

    path: Path
    n_documents: int  # committed
    states: dict[int, dict[str, Hits]]  # by number of documents
    asked: list[str]
    corpus: Path
    encoder: Path


@dataclass
class Examined:
    """What one damaged index did. Empty texts where a step was not reached."""

    asked: str = ""  # right, refused or wrong
    error: str = ""  # the error of the engine
    n_documents: int = -1  # that could be found
    findings: list[tuple[str, str, str]] = field(default_factory=list)  # damage, where, what
    repaired: str = ""  # done or refused
    repair_error: str = ""
    lost: list[str] = field(default_factory=list)
    after: str = ""  # right, wrong or unclean
    after_encoding: str = ""
    score_difference: float = 0.0  # after encoding again
    crash: str = ""  # an error that is not the engine's, a signal, a hang


def examine(index: Path, damaged: Path, truth: Truth) -> Examined:
    """Ask, verify and repair a damaged index, in a process with little memory and time."""
    report = index.with_suffix(".json")
    process = start(_examine, index, damaged.relative_to(index).as_posix(), truth, report)
    return _read(report, finish(process, TIMEOUT_SECONDS))


def examine_unsealed(index: Path, unsealed: Unsealed, truth: Truth) -> Examined:
    """Ask a damaged copy of an index whose writer was killed, and go on indexing."""
    report = index.with_suffix(".json")
    return _read(report, finish(start(_examine_unsealed, index, unsealed, truth, report), TIMEOUT_SECONDS))


def _read(report: Path, ended: Ended) -> Examined:
    examined = Examined(**json.loads(report.read_text())) if report.exists() else Examined()
    if not ended.is_well:
        examined.crash = "it hung" if ended.is_late else f"it ended with {ended.exit_code}; {examined.crash}"
    report.unlink(missing_ok=True)
    return examined


def _examine(index: Path, damaged: str, truth: Truth, report: Path) -> None:
    limit_memory()
    examined = Examined()
    spare = index.with_suffix(".spare")
    steps: list[Callable[[], None]] = [lambda: _ask(examined, index, truth), lambda: _verify(examined, index)]
    if damaged in truth.shards:
        shutil.copytree(index, spare)
        steps.append(lambda: _repair_without(examined, index, truth, damaged))
        steps.append(lambda: _encode_again(examined, spare, truth))
    else:
        steps.append(lambda: _repair(examined, index, truth))
    _run(steps, examined, report)
    shutil.rmtree(spare, ignore_errors=True)


def _examine_unsealed(index: Path, unsealed: Unsealed, truth: Truth, report: Path) -> None:
    limit_memory()
    examined = Examined()

    def answer() -> None:
        examined.n_documents = len(look(index))
        hits = ask(index, unsealed.asked)
        examined.asked = "right" if hits == unsealed.states.get(examined.n_documents) else "wrong"

    def go_on() -> None:
        try:
            build(index, read_corpus([str(unsealed.corpus)]), encoder=str(unsealed.encoder))
        except EngineError as error:
            examined.repaired, examined.repair_error = "refused", str(error)
            return
        examined.repaired = "done"
        _compare(examined, index, truth)

    _run([lambda: _refusable(examined, answer), go_on], examined, report)


def _run(steps: Sequence[Callable[[], None]], examined: Examined, report: Path) -> None:
    """Write down what is known after every step, so that the death of this process loses none of it."""
    for step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - whatever is not the engine's error is what we look for
            examined.crash += f"{type(error).__module__}.{type(error).__name__}: {error}; "
        report.write_text(json.dumps(asdict(examined)))


def _refusable(examined: Examined, answer: Callable[[], None]) -> None:
    try:
        answer()
    except EngineError as error:
        examined.asked, examined.error = "refused", str(error)


def _ask(examined: Examined, index: Path, truth: Truth) -> None:
    def answer() -> None:
        examined.asked = "right" if ask(index, list(truth.contents.hits)) == truth.contents.hits else "wrong"

    _refusable(examined, answer)


def _verify(examined: Examined, index: Path) -> None:
    try:
        examined.findings = [(found.damage.value, found.where, found.what) for found in verify(index)]
    except EngineError as error:
        examined.findings = [("refused", "", str(error))]


def _repair(examined: Examined, index: Path, truth: Truth) -> None:
    try:
        report = repair(index)
    except EngineError as error:
        examined.repaired, examined.repair_error = "refused", str(error)
        return
    examined.repaired, examined.lost = "done", report.lost
    _compare(examined, index, truth)


def _compare(examined: Examined, index: Path, truth: Truth) -> None:
    if findings := verify(index):
        examined.after, examined.repair_error = "unclean", str(findings)
        return
    difference = compare(read_contents(index, list(truth.contents.hits)), truth.contents)
    examined.after = "right" if difference.is_none else "wrong"
    examined.repair_error = "" if difference.is_none else str(difference)


def _repair_without(examined: Examined, index: Path, truth: Truth, damaged: str) -> None:
    report = repair(index)
    examined.repaired, examined.lost = "done", sorted(report.lost)
    expected = truth.without[damaged]
    is_right = ask(index, list(expected)) == expected
    examined.after = "unclean" if verify(index) else "right" if is_right else "wrong"


def _encode_again(examined: Examined, spare: Path, truth: Truth) -> None:
    report = repair(spare, encode=True)
    if report.lost or verify(spare):
        examined.after_encoding = "unclean"
        return
    found = ask(spare, list(truth.exact), exact=True)
    examined.score_difference = max(score_difference(found[name], hits) for name, hits in truth.exact.items())
    examined.after_encoding = "right" if examined.score_difference < 1e-3 else "wrong"
