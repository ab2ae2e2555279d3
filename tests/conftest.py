"""Fixtures of the core: a random two-layer backbone on disk, a small corpus, indexes over it."""

from __future__ import annotations

import gc
import os
import sqlite3

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when huggingface_hub is imported
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
if "PYTEST_XDIST_WORKER" in os.environ:
    # There is a worker for each core: more threads only wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # read when haystack is imported

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from benchmarks.synthetic import save_tiny_bert
from engine.store import catalog, writable
from engine.text.document import Document
from indexer.generation import generations, reference
from tests.fakes import FakeEncoder, make_corpus
from tests.ray_cluster import end_ray_cluster

if TYPE_CHECKING:
    from engine.encoders.trainable import MeanEncoder
    from engine.index import Index

# Files are synced when a power loss is tested, by processes of their own; here each sync would wait for the disk.
os.fsync = lambda _descriptor: None


def _open_without_sync(path: Path, *, read_only: bool) -> sqlite3.Connection:
    connection = catalog.open_catalog(path, read_only=read_only)
    connection.execute("PRAGMA synchronous=OFF")
    return connection


writable.open_catalog = _open_without_sync  # type: ignore[attr-defined]

# The floor of scores and the recall of lists take more than half of a small build; see `usual_floor`.
_FLOOR_QUERIES, reference.FLOOR_QUERIES = reference.FLOOR_QUERIES, 5
generations.RECALL_QUERIES = 16


hypothesis.settings.register_profile("unhurried", deadline=None)  # shared cores stall for longer than any deadline
hypothesis.settings.load_profile("unhurried")

_WORDS = (
    "the a of and in we is was old young fox dog river house bank light dark model vector search long document "
    "section chunk query target score finds shows every some many few runs jumps over under through quick slow "
    "brown lazy left right red green one two three four five six seven eight nine ten"
).split()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """`pytest` by itself is for the daily loop: a process for each core; slow tests and those of Ray are left out.

    Where files or folders are named, as `make test` does, their slow tests run too.
    """
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        return
    option = config.option
    if not option.markexpr and not option.keyword:
        option.markexpr = "not slow and not ray"
    is_worker = hasattr(config, "workerinput")  # a worker gets the same arguments, and must start no workers itself
    if (
        config.pluginmanager.has_plugin("xdist")
        and not is_worker
        and option.numprocesses is None
        and option.dist == "no"
    ):
        # The tests of a file stay in one process, as they share what is costly to make.
        option.numprocesses, option.dist = "auto", "loadfile"


def pytest_collection_finish() -> None:
    """Leave what is imported by now, such as torch, out of garbage collections: each would take half a second."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """End the Ray cluster that tests share."""
    end_ray_cluster()


@pytest.fixture(scope="session")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_bert(tmp_path_factory.mktemp("encoders") / "bert", _WORDS)


@pytest.fixture(scope="session")
def other_bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_bert(tmp_path_factory.mktemp("encoders") / "other", _WORDS, seed=1)


@pytest.fixture(scope="session")
def mean_encoder(bert_folder: Path) -> MeanEncoder:
    import torch

    from engine.encoders.backbone import Backbone
    from engine.encoders.trainable import MeanEncoder

    return MeanEncoder(Backbone(bert_folder, device="cpu", dtype=torch.float32), window_tokens=12)


@pytest.fixture(scope="module")
def usual_floor() -> Iterator[None]:
    """The floor of scores is measured with as many queries as in use."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "FLOOR_QUERIES", _FLOOR_QUERIES)
        yield


@pytest.fixture
def encoder() -> FakeEncoder:
    return FakeEncoder()


@pytest.fixture(scope="session")
def corpus() -> list[Document]:
    return make_corpus(60)


@pytest.fixture(scope="session")
def built_folder(tmp_path_factory: pytest.TempPathFactory, corpus: list[Document]) -> Path:
    """An index over `corpus` with a Flat generation, only to be read."""
    from indexer.building.builder import build

    folder = tmp_path_factory.mktemp("built") / "corpus.lm"
    build(folder, corpus, encoder=FakeEncoder(), factory="Flat")
    return folder


@pytest.fixture(scope="session")
def words_folder(tmp_path_factory: pytest.TempPathFactory, corpus: list[Document]) -> Path:
    """An index over the words of `corpus` alone, only to be read."""
    from indexer.building.builder import build

    folder = tmp_path_factory.mktemp("words") / "words.lm"
    build(folder, corpus, encode="none")
    return folder


@pytest.fixture
def index(built_folder: Path) -> Iterator[Index]:
    from engine.index import Index

    with Index.open(built_folder, encoder=FakeEncoder()) as opened:
        yield opened


@pytest.fixture
def flip_byte() -> Callable[[Path, int], None]:
    """Invert one byte of a file."""

    def flip(path: Path, at: int) -> None:
        content = bytearray(path.read_bytes())
        content[at] ^= 0xFF
        path.write_bytes(content)

    return flip
