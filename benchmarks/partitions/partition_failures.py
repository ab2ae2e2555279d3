"""Makes one of the partitions of a query fail in every way, and counts wrong, late and unmarked answers."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

import click

from benchmarks.markdown import markdown, origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.partitions.faults import Fault, Relay, Served, served
from benchmarks.partitions.records import FailureRecord, FailureRow
from benchmarks.program import program
from benchmarks.speed.recall import sampled_queries
from benchmarks.tiny_encoder import frequent_words, save_tiny_bert
from engine import Document, Index, Result
from engine.encoders.encoder import Encoder
from engine.encoders.loading import load_encoder
from engine.errors import PartitionUnavailable
from engine.remote.exchange import TOKEN_VARIABLE, Access
from engine.result import Status
from engine.store.manifest import partition_of
from indexer.building.builder import build
from indexer.partitions.connecting import connect
from indexer.partitions.splitting import partition

P, K, LOST = 4, 10, 1  # LOST is the partition that fails
DEADLINE = 2.0  # seconds of a round
ROUNDS = 3  # of a search: describe, rank, show
EACH = 20  # failures of a kind
N_ENCODED = 40  # documents of the index with vectors
OTHER, STOPPED, KILLED, ENCODER = "another partition", "stopped process", "killed process", "another encoder"
_TOKEN = "token-of-this-study"
_NOTE = (
    f"One of {P} partitions (one of 2 for another encoder) fails in the first, second or third round of a query. Half "
    "of the queries allow a partial result. Complete: the partition had no hit to return in the round that failed. "
    "Wrong: a result that differs from that of the other partitions, or an error that names another partition. Late: "
    "longer than the deadlines of all rounds plus one second."
)


def row_of(fault: str, judgments: Sequence[tuple[str, float]]) -> FailureRow:
    """Count outcomes, and answers that are late, by the results of `judged`."""
    outcomes = Counter(outcome for outcome, _ in judgments)
    seconds = [one for _, one in judgments]
    errors, partial, whole, wrong = (outcomes[name] for name in ("error", "partial", "whole", "wrong"))
    n_late = sum(one > ROUNDS * DEADLINE + 1 for one in seconds)
    return FailureRow(fault, len(judgments), errors, partial, whole, wrong, n_late, round(max(seconds), 2))


@dataclass(frozen=True)
class Net:
    """A manifest whose partition `LOST` is behind a relay."""

    folder: Path
    n_partitions: int
    relay: Relay
    encoder: Encoder | None = None


def judged(net: Net, truth: Result, *, is_partial: bool) -> tuple[str, float]:
    """Search during a failure; returns the outcome (error, partial, whole or wrong) and the seconds.

    A result is whole where the partition had no hit to show in the round that would have failed.
    """
    access, address = Access(DEADLINE, is_partial, _TOKEN), net.relay.address
    started = time.perf_counter()
    with Index.open(net.folder, encoder=net.encoder, access=access) as index:
        try:
            found = index.search(truth.query, k=K)
        except PartitionUnavailable as error:
            is_right = not is_partial and f"partition {LOST} at {address}" in str(error)
            return "error" if is_right else "wrong", time.perf_counter() - started
        seconds = time.perf_counter() - started
    whole = [(hit.doc_id, hit.score) for hit in truth]
    left = [one for one in whole if partition_of(one[0], net.n_partitions) != LOST][:K]
    hits = [(hit.doc_id, hit.score) for hit in found]
    if found.status is truth.status and (hits, found.n_searched) == (whole[:K], truth.n_searched):
        return "whole", seconds
    is_marked = is_partial and found.status is Status.PARTIAL and found.n_not_searched > 0
    return "partial" if is_marked and hits == left else "wrong", seconds


def failed(
    net: Net, truths: Iterator[Result], fault: str, spoil: Fault, n: int, prepare: Callable[[], None] = lambda: None
) -> FailureRow:
    """Search `n` times with the queries of `truths`, after `prepare`; the relay fails in each round in turn."""
    judgments = []
    for number in range(n):
        prepare()
        net.relay.spoil(spoil, number // 2 % ROUNDS)
        judgments.append(judged(net, next(truths), is_partial=number % 2 == 1))
    net.relay.spoil(Fault.NONE)
    row = row_of(fault, judgments)
    log(str(row))
    return row


def examine(net: Net, truths: Sequence[Result], servers: Sequence[Served], folder: Path, n: int) -> list[FailureRow]:
    """Fail in every way except another encoder, `n` times each; the server of the partition is killed at the end.

    The results of one index, `truths`, have more hits than are requested; `folder` is that of partition `LOST`.
    """
    queries, process, relay = cycle(truths), servers[LOST].process, net.relay
    plain = [fault for fault in Fault if fault not in (Fault.NONE, Fault.KILLED)]
    rows = [failed(net, queries, fault.value, fault, n) for fault in plain]
    relay.port = servers[LOST + 1].port
    rows.append(failed(net, queries, OTHER, Fault.NONE, n))
    relay.port = servers[LOST].port
    process.send_signal(signal.SIGSTOP)
    rows.append(failed(net, queries, STOPPED, Fault.NONE, n))
    process.send_signal(signal.SIGCONT)
    process.kill()
    process.wait()
    rows.append(failed(net, queries, KILLED, Fault.NONE, n))
    with ExitStack() as restarted:

        def restart() -> None:
            (server,) = restarted.enter_context(served([folder], _environment()))
            relay.port, relay.kill = server.port, server.process.kill

        return [*rows, failed(net, queries, Fault.KILLED.value, Fault.KILLED, n, restart)]


def other_encoder(documents: Sequence[Document], work: Path, n: int) -> FailureRow:
    """Search two partitions of documents with vectors, while the server of one has vectors of another encoder."""
    words = frequent_words(document.text for document in documents)
    encoders = [load_encoder(str(save_tiny_bert(work / f"encoder{seed}", words, seed=seed))) for seed in (0, 1)]
    for number, encoder in enumerate(encoders):
        build(work / f"{number}.lm", documents, encoder=encoder)
        partition(work / f"{number}.lm", work / f"{number}.parts", 2)
    with Index.open(work / "0.lm", encoder=encoders[0]) as one:
        truths = [one.search(document, k=10 * K) for document in documents[:n]]
    kept, right = (work / "0.parts" / f"{number:04d}.lm" for number in range(2))
    with (
        served([kept, right, work / "1.parts" / "0001.lm"], _environment()) as servers,
        Relay(servers[1].port) as relay,
    ):
        connect(work / "encoded.net", [servers[0].address, relay.address], Access(60.0, token=_TOKEN))
        relay.port = servers[2].port
        return failed(Net(work / "encoded.net", 2, relay, encoders[0]), cycle(truths), ENCODER, Fault.NONE, n)


def _environment() -> dict[str, str]:
    return os.environ | {TOKEN_VARIABLE: _TOKEN}


def failures_table(records: Sequence[FailureRecord]) -> str:
    """A row for each kind of failure."""
    head = ["Failure", "Queries", "Errors that name the partition", "Partial", "Complete", "Wrong", "Late"]
    head += ["Longest (s)"]
    rows = []
    for row in (row for record in records for row in record.rows):
        counts = row.n_failures, row.n_errors, row.n_partial, row.n_whole, row.n_wrong, row.n_late
        rows.append([row.fault, *map(str, counts), f"{row.longest_seconds:.1f}"])
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *origins(records)])


@program
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--each", "n", default=EACH, type=click.IntRange(1), help="Failures of each kind.")
@measurement(work="Folder for the partitions; a temporary one by default.")
def main(run: Measurement, path: Path, n: int) -> None:
    """Search 4 partitions of INDEX, of words alone, while one of them fails, and record the answers.

    \b
    Example:
        python -m benchmarks study partition_failures papers.lm
    """
    with Index.open(path) as one:
        names = sampled_queries(one.snapshot.doc_ids(), max(n, N_ENCODED), run.seed)
        documents = [one.document(name) for name in names]
        truths = [one.search(document, k=10 * K) for document in documents[:n]]
        documents = [replace(document, text=document.text) for document in documents]  # read before the index closes
    with run.folder() as work:
        partition(path, work / "x.parts", P)
        folders = [work / "x.parts" / f"{number:04d}.lm" for number in range(P)]
        with served(folders, _environment()) as servers, Relay(servers[LOST].port) as relay:
            addresses = [relay.address if number == LOST else one.address for number, one in enumerate(servers)]
            connect(work / "x.net", addresses, Access(60.0, token=_TOKEN))
            rows = examine(Net(work / "x.net", P, relay), truths, servers, folders[LOST], n)
            with suppress(ProcessLookupError):
                servers[LOST].process.send_signal(signal.SIGCONT)
        rows.append(other_encoder(documents, work, n))
    record = FailureRecord(path.stem.partition("@")[0], P, DEADLINE, rows, run.seconds, run.origin)
    run.publish([record], failures_table)
