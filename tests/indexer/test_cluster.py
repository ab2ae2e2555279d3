"""An index that a Ray cluster encodes equals that of one process, also where workers are killed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil
import pytest
from click.testing import CliRunner

from engine.errors import ClusterError, IndexMismatch
from engine.store.catalog import index_folders
from engine.store.partitioned import open_snapshot
from indexer.building.builder import Settings, build
from indexer.building.pipeline import StoredBatch
from indexer.building.report import BuildReport
from indexer.building.rewriting import partition
from indexer.cli import main
from tests.contents import Contents, read_contents
from tests.fakes import make_corpus, make_document
from tests.ray_cluster import ray_cluster

if TYPE_CHECKING:
    from indexer.cluster.session import RayCluster

ROOT = Path(__file__).parents[2]
P, N = 2, 40
BATCH_CHARS = 2_000  # about three documents, so that a partition takes several commits
DOCUMENTS = make_corpus(N)


@pytest.fixture(scope="module")
def cluster() -> RayCluster:
    return ray_cluster()


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The words of half of the documents in two partitions; only to be copied."""
    home = tmp_path_factory.mktemp("words")
    build(home / "one.lm", DOCUMENTS[: N // 2], encode="none")
    partition(home / "one.lm", home / "x.parts", P)
    return home / "x.parts"


class Killer:
    """Kills a process of Ray after each of some commits, or after the next one at which a process of that name runs."""

    def __init__(self, name: str, *commits: int) -> None:
        self._name, self._commits = name, commits
        self._n_commits = 0
        self.killed: list[int] = []  # the commits after which a process was killed

    def __call__(self, report: BuildReport) -> None:
        self._n_commits += bool(report.n_encoded)
        due = self._commits[len(self.killed) :]
        if not due or self._n_commits < due[0]:
            return
        for process in psutil.process_iter(["name", "cmdline"]):
            if any(part.startswith(f"ray::{self._name}") for part in process.info["cmdline"] or ()):
                process.kill()
                self.killed.append(self._n_commits)
                return


def run(folder: Path, bert_folder: Path, cluster: RayCluster, killer: Killer | None = None) -> BuildReport:
    from indexer.cluster.job import build_on_cluster

    return build_on_cluster(
        folder, DOCUMENTS, cluster, Settings(str(bert_folder)), batch_chars=BATCH_CHARS, progress=killer
    )


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, words: Path, bert_folder: Path, cluster: RayCluster
) -> tuple[Path, BuildReport]:
    folder = Path(shutil.copytree(words, tmp_path_factory.mktemp("ray") / "x.parts"))
    return folder, run(folder, bert_folder, cluster)


def contents(folder: Path) -> Contents:
    return read_contents(folder, ["doc003", "doc017"])


@pytest.mark.ray
def test_a_run_counts_what_it_did(undisturbed: tuple[Path, BuildReport]) -> None:
    _, report = undisturbed
    assert (report.n_added, report.n_unchanged, report.n_encoded, report.n_missing) == (N // 2, N // 2, N, 0)
    assert report.failures == [] and report.n_tokens > report.n_chunks > N


@pytest.mark.ray
def test_the_same_command_again_encodes_nothing(
    undisturbed: tuple[Path, BuildReport], bert_folder: Path, cluster: RayCluster
) -> None:
    report = run(undisturbed[0], bert_folder, cluster)
    assert (report.n_added, report.n_unchanged, report.n_encoded) == (0, N, 0)


@pytest.mark.ray
def test_vectors_are_those_of_one_process(
    undisturbed: tuple[Path, BuildReport], tmp_path: Path, bert_folder: Path
) -> None:
    build(tmp_path / "one.lm", DOCUMENTS, encoder=str(bert_folder))
    with open_snapshot(undisturbed[0]) as found, open_snapshot(tmp_path / "one.lm") as expected:
        assert found.has_vectors.all() and found.reference.n_documents == expected.reference.n_documents == N
        for doc_id in ("doc000", "doc013", "doc039"):
            (mine, theirs) = (one.chunk_vectors(np.array([one.position(doc_id)]))[0] for one in (found, expected))
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-3)  # float16, other batches


@pytest.mark.ray
def test_a_dead_encoder_changes_no_bit(
    undisturbed: tuple[Path, BuildReport], words: Path, tmp_path: Path, bert_folder: Path, cluster: RayCluster
) -> None:
    folder = Path(shutil.copytree(words, tmp_path / "x.parts"))
    killer = Killer("encode_stored", 2, 5)
    report = run(folder, bert_folder, cluster, killer)
    assert killer.killed and report.n_encoded == N
    assert contents(folder) == contents(undisturbed[0])
    for mine, theirs in zip(index_folders(folder), index_folders(undisturbed[0]), strict=True):
        shards = [sorted(one.name for one in (part / "shards").iterdir()) for part in (mine, theirs)]
        assert shards[0] == shards[1]


@pytest.mark.ray
def test_a_cluster_encodes_an_index_without_partitions(tmp_path: Path, bert_folder: Path, cluster: RayCluster) -> None:
    from indexer.cluster.job import build_on_cluster

    empty = make_document("empty.txt", "one two three")
    report = build_on_cluster(tmp_path / "x.lm", [*DOCUMENTS[:3], empty], cluster, Settings(str(bert_folder)))
    assert (report.n_added, report.n_encoded, report.n_missing) == (4, 4, 0)


@pytest.mark.ray
def test_batches_come_back_in_order(cluster: RayCluster) -> None:
    import ray

    from indexer.cluster.job import spread

    sent: list[int] = []

    def submit(batch: StoredBatch) -> object:
        sent.append(batch[0][0])
        return ray.put(([], 0.5))

    batches = ([(number, DOCUMENTS[0])] for number in range(9))
    encoded = list(spread(batches, submit, n_at_once=2, batch_chars=1))  # type: ignore[arg-type]
    assert [(batch[0][0], seconds) for batch, _, seconds in encoded] == [(number, 0.5) for number in range(9)]
    assert sent == list(range(9))


@pytest.mark.ray
def test_a_batch_that_kills_its_process_ends_the_run(cluster: RayCluster) -> None:
    import ray

    from indexer.cluster.job import spread

    task = ray.remote(_die).options(max_retries=0)
    with pytest.raises(ClusterError, match="what was committed is safe"):
        list(spread(iter([[(1, DOCUMENTS[0])]]), lambda _: task.remote(), n_at_once=1))


def _die() -> None:
    import os

    os._exit(1)


@pytest.mark.ray
def test_another_encoder_of_the_same_name_is_refused(bert_folder: Path, cluster: RayCluster) -> None:
    from indexer.cluster.job import EncoderSettings, encode_stored

    settings = EncoderSettings(str(bert_folder), "f" * 32, "cpu", on_gpu=False)
    with pytest.raises(IndexMismatch, match="has another encoder"):
        encode_stored(settings, [(1, DOCUMENTS[0])])


@pytest.mark.ray
@pytest.mark.parametrize("address", ["ray://head:10001", "head", "http://head:8265"])
def test_an_address_of_another_form_is_refused(address: str, cluster: RayCluster) -> None:
    from indexer.cluster.session import connected

    with pytest.raises(ClusterError, match="give local, auto or HOST:PORT"), connected(address):
        pass


def test_ray_is_imported_after_the_settings_that_it_reads_then() -> None:
    code = "import sys, indexer.cluster.session; print('ray' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


@pytest.mark.ray
def test_a_local_cluster_is_on_the_loopback_interface_alone(cluster: RayCluster) -> None:
    import ray

    assert ray.util.get_node_ip_address() == "127.0.0.1"


@pytest.mark.ray
def test_the_command_encodes_on_a_cluster(words: Path, tmp_path: Path, bert_folder: Path, cluster: RayCluster) -> None:
    folder = Path(shutil.copytree(words, tmp_path / "x.parts"))
    options = ["--ray", "local", "--workers", "2", "--encoder", str(bert_folder), "--json"]
    result = CliRunner().invoke(main, ["index", str(folder), *options])
    report = json.loads(result.stdout)
    assert (result.exit_code, report["n_encoded"], report["n_missing"]) == (0, N // 2, 0)
