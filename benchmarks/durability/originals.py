"""Indexes to damage: closed ones under several factory strings, and ones whose writer was killed; and their truth."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.durability.contents import Hits, ask, read_contents
from benchmarks.durability.damaging import FileKind
from benchmarks.durability.examination import Truth, Unsealed
from benchmarks.durability.fault_points import FaultPoint, read_steps
from benchmarks.durability.interrupted import index_corpus
from benchmarks.measuring.isolation import finish, start
from benchmarks.recall import sampled_queries
from engine.store.snapshot import Snapshot
from engine.store.writer import Writer
from indexer import build, read_corpus

FACTORIES = {FileKind.FLAT: "Flat", FileKind.IVF: "IVF16,PQ32x4fs"}
_QUERIES = 6
_RECALL_FLOOR = 0.5  # random weights make vectors that codes tell apart badly


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
        files = {row.id: row.file for row in snapshot._shard_rows.values()}
    asked = sampled_queries(sorted(names.tolist()), _QUERIES, seed)
    shards = {file: sorted(names[numbers == number].tolist()) for number, file in files.items()}
    without = {file: _hits_without(path, lost, asked) for file, lost in shards.items()}
    return Truth(read_contents(path, asked), ask(path, asked, exact=True), shards, without)


def _hits_without(path: Path, lost: list[str], asked: Sequence[str]) -> dict[str, Hits]:
    copy = path.with_suffix(".without")
    shutil.copytree(path, copy)
    with Writer(copy) as writer:
        writer.remove([known.id for known in writer.indexed(lost).values()])
    hits = ask(copy, [doc_id for doc_id in asked if doc_id not in lost])
    shutil.rmtree(copy)
    return hits


def make_unsealed(corpus: Path, encoder: Path, work: Path, seed: int) -> list[Unsealed]:
    """Kill a writer after each of its commits, and again after the checkpoint that follows."""
    log = work / "steps"
    finish(start(index_corpus, work / "steps.lm", corpus, encoder, log, None, output=work / "steps.out"), 600.0)
    steps = read_steps(log)
    commits = [at + 1 for at, step in enumerate(steps) if step == "fsync shards"]
    made: list[Unsealed] = []
    states: dict[int, dict[str, Hits]] = {}
    asked: list[str] = []
    for at in [step for commit in commits for step in (commit, commit + 1)]:
        path = work / f"unsealed-{at}.lm"
        fault = FaultPoint(at, is_after=True)
        finish(start(index_corpus, path, corpus, encoder, work / "unsealed.steps", fault, output=work / "out"), 600.0)
        with Snapshot(copied(path, work / "state.lm")) as snapshot:
            asked = asked or sampled_queries(sorted(snapshot.doc_ids()), _QUERIES, seed)
            n_documents = snapshot.n_documents
        with threadpool_limits(1):
            states[n_documents] = ask(work / "state.lm", asked)
        made.append(Unsealed(path, n_documents, states, asked, corpus, encoder))
    return made


def copied(path: Path, copy: Path) -> Path:
    """Copy an index over whatever is at `copy`, and name the copy."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path, copy)
    return copy
