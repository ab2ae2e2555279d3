"""Results during the failure of a partition are judged by what the other partitions hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from benchmarks.partitions import partition_failures
from benchmarks.partitions.faults import Fault, Relay
from benchmarks.partitions.partition_failures import LOST, ROUNDS, Net, failed, failures_table, judged, row_of
from benchmarks.partitions.records import FailureRecord, FailureRow
from engine.index import Index
from engine.store.manifest import partition_of
from engine.views import Result
from indexer.building.builder import build
from indexer.partitions.connecting import connect
from indexer.partitions.splitting import partition
from tests.benchmarks.partitions.test_partition_plan import ORIGIN
from tests.fakes import make_corpus
from tests.remote.servers import serving


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Net, Result]]:
    home = tmp_path_factory.mktemp("failures-study")
    build(home / "one.lm", make_corpus(30), encode="none")
    partition(home / "one.lm", home / "x.parts", 2)
    with ExitStack() as opened:
        addresses = [opened.enter_context(serving(home / "x.parts" / f"000{number}.lm")) for number in range(2)]
        relay = opened.enter_context(Relay(int(addresses[LOST].rpartition(":")[2])))
        connect(home / "x.net", [addresses[0], relay.address])
        with Index.open(home / "one.lm") as one:
            truth = one.search(make_corpus(1)[0], k=100)
        yield Net(home / "x.net", 2, relay), truth


@pytest.fixture(autouse=True)
def deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_failures, "DEADLINE", 30.0)


@pytest.mark.parametrize(("is_partial", "expected"), [(False, "error"), (True, "partial")])
def test_a_failing_partition_gives_an_error_or_a_partial_result(
    case: tuple[Net, Result], is_partial: bool, expected: str
) -> None:
    net, truth = case
    net.relay.spoil(Fault.REFUSED)
    assert judged(net, truth, is_partial=is_partial)[0] == expected
    net.relay.spoil(Fault.NONE)
    assert judged(net, truth, is_partial=is_partial)[0] == "whole"


def test_a_result_that_differs_from_that_of_the_other_partitions_is_wrong(case: tuple[Net, Result]) -> None:
    net, truth = case
    kept = next(hit.doc_id for hit in truth if partition_of(hit.doc_id, 2) != LOST)
    other = replace(truth, hits=tuple(hit for hit in truth if hit.doc_id != kept))
    assert judged(net, other, is_partial=True)[0] == "wrong"
    net.relay.spoil(Fault.REFUSED)
    assert judged(net, other, is_partial=True)[0] == "wrong"
    net.relay.spoil(Fault.NONE)


def test_every_round_fails_with_and_without_partial(case: tuple[Net, Result]) -> None:
    net, truth = case
    row = failed(net, iter([truth] * 6), "refused", Fault.REFUSED, 2 * ROUNDS)
    assert (row.n_failures, row.n_wrong, row.n_late) == (6, 0, 0)
    assert row.n_errors + row.n_partial + row.n_whole == 6 and row.n_errors >= 2 and row.n_partial >= 2


def test_a_row_counts_outcomes_and_late_answers() -> None:
    row = row_of("slow", [("error", 0.5), ("partial", 1.0), ("partial", 2.0), ("whole", 92.0), ("wrong", 3.0)])
    assert row == FailureRow("slow", 5, 1, 2, 1, 1, n_late=1, longest_seconds=92.0)
    table = failures_table([FailureRecord("papers", 2, 30.0, [row], 1.0, ORIGIN)])
    assert "| slow | 5 | 1 | 2 | 1 | 1 | 1 | 92.0 |" in table
