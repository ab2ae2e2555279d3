"""Partitions as actors of Ray give the results of folders; a dead actor is an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from engine.errors import ClusterError, QueryError
from engine.index import Index
from engine.search.request import Mode, Request
from engine.store.catalog import index_folders
from indexer.building.builder import build
from indexer.building.rewriting import partition
from indexer.cli import main
from indexer.serving.live_index import LiveIndex
from indexer.serving.settings import ServerSettings
from tests.fakes import make_corpus
from tests.ray_cluster import ray_cluster

if TYPE_CHECKING:
    from indexer.cluster.job import PartitionActors
    from indexer.cluster.session import RayCluster

pytestmark = pytest.mark.ray
P, N = 2, 40
DOCUMENTS = make_corpus(N)


@pytest.fixture(scope="module")
def cluster() -> RayCluster:
    return ray_cluster()


@pytest.fixture(scope="module")
def partitioned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("partitioned")
    build(home / "one.lm", DOCUMENTS, encode="none")
    partition(home / "one.lm", home / "x.parts", P)
    return home / "x.parts"


@pytest.fixture
def actors(partitioned: Path, cluster: RayCluster) -> Iterator[PartitionActors]:
    from indexer.cluster.job import PartitionActors

    with closing(PartitionActors(index_folders(partitioned))) as actors:
        yield actors


def test_actors_give_the_results_of_folders(partitioned: Path, actors: PartitionActors) -> None:
    with Index.open(partitioned, placement=actors) as found, Index.open(partitioned) as expected:
        for where in (None, "family = 'even'"):
            mine, theirs = (
                one.search(DOCUMENTS[3], Request(where=where, k=7, with_itself=True)) for one in (found, expected)
            )
            assert [(hit.doc_id, hit.score) for hit in mine] == [(hit.doc_id, hit.score) for hit in theirs]
            assert (mine.n_found, mine.n_searched, mine.status) == (theirs.n_found, theirs.n_searched, theirs.status)


def test_novelty_on_actors_is_that_of_folders(partitioned: Path, actors: PartitionActors) -> None:
    with Index.open(partitioned, placement=actors) as index, Index.open(partitioned) as expected:
        results = [one.search(DOCUMENTS[3], Request(mode=Mode.NOVELTY)) for one in (index, expected)]
        rows = [[(row.section, row.hit and row.hit.score) for row in result.sections or ()] for result in results]
        assert rows[0] == rows[1] != []


def test_a_filter_that_does_not_parse_is_the_same_error_on_actors(partitioned: Path, actors: PartitionActors) -> None:
    with Index.open(partitioned, placement=actors) as index, pytest.raises(QueryError, match="topic"):
        index.search(DOCUMENTS[3], Request(where="topic ~ 3", with_itself=True))


def test_a_restarted_actor_is_searched_and_a_dead_one_is_an_error(partitioned: Path, actors: PartitionActors) -> None:
    import ray

    with Index.open(partitioned, placement=actors) as index:
        hits = [(hit.doc_id, hit.score) for hit in index.search(DOCUMENTS[3], Request(with_itself=True))]
        ray.kill(actors.actors["actor 0001.lm"], no_restart=False)
        assert [(hit.doc_id, hit.score) for hit in index.search(DOCUMENTS[3], Request(with_itself=True))] == hits
        ray.kill(actors.actors["actor 0001.lm"])
        with pytest.raises(ClusterError, match=r"actor 0001\.lm does not answer"):
            index.search(DOCUMENTS[3], Request(with_itself=True))


def test_actors_search_the_documents_that_an_index_was_opened_with(cluster: RayCluster, tmp_path: Path) -> None:
    from indexer.cluster.job import PartitionActors

    build(tmp_path / "one.lm", DOCUMENTS, encode="none")
    partition(tmp_path / "one.lm", tmp_path / "x.parts", P)
    folder = tmp_path / "x.parts"
    with closing(PartitionActors(index_folders(folder))) as actors, Index.open(folder, placement=actors) as older:
        assert older.search(DOCUMENTS[3], Request(with_itself=True)).n_searched == N
        build(folder, make_corpus(N + 4), encode="none")
        assert older.search(DOCUMENTS[3], Request(with_itself=True)).n_searched == N
        with Index.open(folder, placement=actors) as newer:
            assert newer.search(DOCUMENTS[3], Request(with_itself=True)).n_searched == N + 4
        with pytest.raises(ClusterError, match="holds other documents"):
            older.search(DOCUMENTS[3], Request(with_itself=True))


def test_the_command_searches_actors(partitioned: Path, cluster: RayCluster) -> None:
    command = ["query", str(partitioned), "--id", "doc003", "--format", "trec"]
    found, expected = (CliRunner().invoke(main, [*command, *more]) for more in (["--ray", "local"], []))
    assert found.stdout == expected.stdout and found.exit_code == 0


def test_a_server_searches_actors(partitioned: Path, actors: PartitionActors) -> None:
    settings = ServerSettings(threads=1, placement=actors)
    live = LiveIndex(partitioned, settings)
    live.load()
    with live.lease() as index, Index.open(partitioned) as expected:
        mine, theirs = (one.search(DOCUMENTS[3], Request(with_itself=True)) for one in (index, expected))
        assert [(hit.doc_id, hit.score) for hit in mine] == [(hit.doc_id, hit.score) for hit in theirs]
    live.close()
