"""Differences between the answers of one index and of its partitions are counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.partitions.partitions import Trial, answers, compared, partitions_table, schemas
from benchmarks.partitions.records import PartitionRecord
from engine.index import Index
from engine.store.manifest import holds_index
from indexer.building.builder import build
from indexer.partitions.splitting import partition
from tests.benchmarks.partitions.test_partition_plan import ORIGIN
from tests.fakes import make_corpus
from tests.postgres_server import server_url

QUERIES = ["doc001", "doc004", "doc007"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("partitions-study")
    build(home / "one.lm", make_corpus(12), encode="none")
    partition(home / "one.lm", home / "x.parts", 2)
    return home


def trial(folder: Path) -> Trial:
    with Index.open(folder / "one.lm") as one:
        return Trial(folder / "one.lm", QUERIES, True, answers(one, QUERIES, exact=True)[0])


def test_equal_answers_differ_in_nothing(folder: Path) -> None:
    row = trial(folder).row("here", 2, folder / "x.parts")
    assert (row.n_queries, row.n_other_hits, row.n_other_orders, row.n_other_counts) == (3, 0, 0, 0)
    assert (row.largest_score, row.largest_part) == (0.0, 0.0)


def test_differences_are_counted(folder: Path) -> None:
    truth = list(trial(folder).truth)
    swapped = replace(truth[0], hits=truth[0].hits[1::-1] + truth[0].hits[2:])
    shorter = replace(truth[1], hits=truth[1].hits[:-1], n_found=truth[1].n_found - 1)
    row = compared("here", 2, ([swapped, shorter, truth[2]], 3.0, 1.5), truth)
    assert (row.n_other_hits, row.n_other_orders, row.n_other_counts) == (1, 2, 1)
    assert row.largest_score == pytest.approx(abs(truth[0].hits[0].score - truth[0].hits[1].score))
    assert (row.wall_ms, row.cpu_ms) == (1000.0, 500.0)


def test_the_table_names_the_way(folder: Path) -> None:
    row = trial(folder).row("here", 2, folder / "x.parts")
    record = PartitionRecord("papers", 12, 10, [row], 1.0, ORIGIN, is_exact=True)
    assert record.name == "partitions-papers-exact"
    assert "| papers, exact | 2 here | 3 | 0 | 0 | 0 | 0e+00 | 0e+00 |" in partitions_table([record])


@pytest.mark.postgres
def test_schemas_are_dropped_afterwards(folder: Path) -> None:
    with schemas(server_url(), [folder / "x.parts" / "0000.lm"]) as (place,):
        assert holds_index(place)
    assert not holds_index(place)
