"""Partitions as actors of Ray give the results of folders; dead actors are an error, or left out like servers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from engine.errors import PartitionUnavailable
from engine.index import Index
from engine.remote.exchange import Access
from engine.result import Status
from engine.store.manifest import index_folders, partition_of
from indexer.building.builder import build
from indexer.cli import main
from indexer.partitions.splitting import partition
from indexer.serving.live_index import LiveIndex
from indexer.serving.settings import Settings
from tests.fakes import make_corpus
from tests.ray_cluster import ray_cluster

if TYPE_CHECKING:
    from indexer.cluster.session import Cluster

pytestmark = pytest.mark.ray
P, N = 2, 40
DOCUMENTS = make_corpus(N)


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return ray_cluster()


@pytest.fixture(scope="module")
def partitioned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("partitioned")
    build(home / "one.lm", DOCUMENTS, encode="none")
    partition(home / "one.lm", home / "x.parts", P)
    return home / "x.parts"


@pytest.fixture
def access(partitioned: Path, cluster: Cluster) -> Iterator[Access]:
    from indexer.cluster.partitions import placed

    with placed(index_folders(partitioned)) as actors:
        yield Access(seconds=60, channel=actors)


def test_actors_give_the_results_of_folders(partitioned: Path, access: Access) -> None:
    with Index.open(partitioned, access=access) as found, Index.open(partitioned) as expected:
        for where in (None, "family = 'even'"):
            mine, theirs = (one.search(DOCUMENTS[3], where=where, k=7) for one in (found, expected))
            assert [(hit.doc_id, hit.score) for hit in mine] == [(hit.doc_id, hit.score) for hit in theirs]
            assert (mine.n_found, mine.n_searched, mine.status) == (theirs.n_found, theirs.n_searched, theirs.status)


def test_a_restarted_actor_is_searched_and_a_dead_one_is_an_error_or_left_out(
    partitioned: Path, access: Access
) -> None:
    import ray

    actors = access.channel.actors  # type: ignore[union-attr]
    with Index.open(partitioned, access=access) as index:
        whole = index.search(DOCUMENTS[3])
        ray.kill(actors["actor 0001.lm"], no_restart=False)
        again = index.search(DOCUMENTS[3])
        assert [(hit.doc_id, hit.score) for hit in again] == [(hit.doc_id, hit.score) for hit in whole]
        ray.kill(actors["actor 0001.lm"])
        with pytest.raises(PartitionUnavailable, match=r"partition 1 at actor 0001\.lm does not answer"):
            index.search(DOCUMENTS[3])
        index.is_partial = True
        partly = index.search(DOCUMENTS[3])
        assert partly.status is Status.PARTIAL
        assert partly.missing_partitions == ("partition 1 at actor 0001.lm",)
        assert {partition_of(hit.doc_id, P) for hit in partly} == {0}


def test_actors_see_later_commits(partitioned: Path, cluster: Cluster, tmp_path: Path) -> None:
    from indexer.cluster.partitions import placed

    folder = Path(shutil.copytree(partitioned, tmp_path / "x.parts"))
    with placed(index_folders(folder)) as actors, Index.open(folder, access=Access(60, channel=actors)) as index:
        assert index.search(DOCUMENTS[3]).n_searched == N
        build(folder, make_corpus(N + 4), encode="none")
        assert index.search(DOCUMENTS[3]).n_searched == N + 4


def test_the_command_searches_actors(partitioned: Path, cluster: Cluster) -> None:
    command = ["query", str(partitioned), "--id", "doc003", "--format", "trec"]
    found, expected = (CliRunner().invoke(main, [*command, *more]) for more in (["--ray", "local"], []))
    assert found.stdout == expected.stdout and found.exit_code == 0


def test_a_server_searches_actors(partitioned: Path, access: Access) -> None:
    settings = Settings(threads=1, access=access)
    live = LiveIndex(partitioned, settings)
    live.load()
    with live.lease() as index, Index.open(partitioned) as expected:
        mine, theirs = (one.search(DOCUMENTS[3]) for one in (index, expected))
        assert [(hit.doc_id, hit.score) for hit in mine] == [(hit.doc_id, hit.score) for hit in theirs]
    live.close()
