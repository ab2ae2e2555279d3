from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.behaviour.records import StabilityRecord
from benchmarks.behaviour.stability import DEEP, HEAD, Tally, main
from benchmarks.records import read_records
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of 500 documents under coarse codes."""
    folder = tmp_path_factory.mktemp("stable") / "papers@0.lm"
    build(folder, make_corpus(500), encoder=FakeEncoder(), factory="IVF16,PQ8x4fs", recall_floor=0.1)
    return folder


@pytest.mark.slow
def test_scores_and_orders_are_the_same_in_every_way(folder: Path, tmp_path: Path) -> None:
    options = ["--queries", "3", "--where", "doc_id >= 'doc2'", "--out", str(tmp_path)]
    done = CliRunner().invoke(main, [str(folder), *options], catch_exceptions=False)
    (record,) = read_records(tmp_path)
    assert isinstance(record, StabilityRecord) and record.name == "stability-papers"
    assert list(record.n_hits) == ["k = 10", "k = 100", "pages of 10", "filter", "scan", "2 threads"]
    assert (record.n_hits["k = 10"], record.n_hits["pages of 10"]) == (30, 3 * HEAD)
    assert min(record.n_hits["filter"], record.n_hits["scan"]) > 100
    assert not any(record.n_other_scores.values()) and not any(record.n_other_orders.values())
    assert set(record.n_other_orders) == {"k = 10", "k = 100", "pages of 10", "2 threads"}
    assert record.n_deep == 3 * (499 - HEAD) >= record.n_rises < DEEP
    assert "| papers | IVF16,PQ8x4fs | 500 (3) | 0 of 30, 0 orders | 0 of 300, 0 orders |" in done.output


def test_differences_are_counted() -> None:
    head = [(f"d{number}", 1 - number / 1000) for number in range(HEAD)]
    tally = Tally()
    tally.compare("k = 10", [*head[1:10], ("d0", 0.5)], head, is_ordered=True)
    assert (tally.n_hits, tally.n_other_scores, tally.n_other_orders) == ({"k = 10": 10}, {"k = 10": 1}, {"k = 10": 1})
    scan = [("new", 2.0), *head[1:9], head[150], *head[10:]]
    tally.drift(head, scan)
    assert tally.n_missed == {"10": 2, "100": 2, "200": 1}
    assert tally.largest_shift == {"10": 141, "100": 141, "200": 141}
    tally.rises([*head, ("x", 0.9), ("y", 0.95), ("z", 0.1)])
    assert (tally.n_deep, tally.n_rises) == (3, 2)


def test_mistakes_are_reported_in_one_line(folder: Path) -> None:
    done = CliRunner().invoke(main, [str(folder), "--where", "doc_id >", "--queries", "1"])
    assert done.exit_code == 1 and done.stderr.startswith("Error: ")
