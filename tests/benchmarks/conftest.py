"""A corpus of four documents, and the data that not every machine has."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import pytest
import torch

from benchmarks.datasets import DATA, TASKS, Dataset, open_dataset
from benchmarks.fetching.sources import corpus_document
from benchmarks.isolation import Memory
from benchmarks.peers.peer import PeerConfig
from engine.machine import Machine, Origin
from tests.benchmarks.corpora import write_dataset, write_faceted, write_long, write_real_index

CORPUS = {
    "cat": "The cat sat beside another cat on the warm mat.",
    "kitten": "A kitten is a young cat and loves mats.",
    "dog": "A dog barks at the postman and at one cat.",
    "rocket": "Rocket engines burn liquid oxygen and kerosene.",
}
QRELS = [("cat", "kitten", 2), ("cat", "dog", 1), ("dog", "cat", 1)]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs_data: reads the shared corpora; skipped where they are absent")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    absent = [task.folder for task in TASKS.values() if not (DATA / task.folder).is_dir()]
    for item in items:
        if absent and item.get_closest_marker("needs_data"):
            item.add_marker(pytest.mark.skip(reason=f"the shared corpora are absent: {', '.join(absent)}"))


@pytest.fixture
def restored_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Settings of torch, FAISS and the environment are as they were after the test."""
    monkeypatch.setenv("LANCE_CPU_THREADS", "9")
    monkeypatch.setenv("RAYON_NUM_THREADS", "9")
    threads = torch.get_num_threads(), faiss.omp_get_max_threads()
    multiplied = faiss.cvar.distance_compute_blas_threshold, torch.get_float32_matmul_precision()
    yield
    faiss.cvar.distance_compute_blas_threshold = multiplied[0]
    torch.set_float32_matmul_precision(multiplied[1])
    torch.set_num_threads(threads[0])
    faiss.omp_set_num_threads(threads[1])


def run_here(target: Callable[..., Any], *arguments: object, **_: object) -> tuple[Any, Memory]:
    """As `run_fresh`, in this process: processes would take minutes to start."""
    return json.loads(json.dumps(target(*arguments))), Memory(200.0, 80.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset in the layout of `benchmarks.datasets`."""
    documents = [corpus_document(doc_id, doc_id, [("Story", text)], {"year": 2020}) for doc_id, text in CORPUS.items()]
    write_dataset(tmp_path / "pets", documents, QRELS, {"test": ["dog", "cat"], "valid": ["rocket"]})
    return tmp_path / "pets"


@pytest.fixture
def beir_folder(tmp_path: Path) -> Path:
    """A dataset in the layout of BEIR; its query has the id of an unrelated document."""
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    texts = {"1": "Rocket engines burn kerosene.", "2": "The cat sat on the mat.", "3": ""}
    lines = [json.dumps({"_id": doc_id, "title": "", "text": text, "metadata": {}}) for doc_id, text in texts.items()]
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "1", "text": "which cat sat"}) + "\n")
    for split in ("dev", "test"):
        (folder / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n1\t2\t1\n")
    return folder


@pytest.fixture(scope="session")
def real_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of 240 documents, see `write_real_index`."""
    folder = tmp_path_factory.mktemp("real") / "papers@0.lm"
    write_real_index(folder)
    return folder


@pytest.fixture(scope="session")
def config(bert_folder: Path) -> PeerConfig:
    return PeerConfig(str(bert_folder), bert_folder, "bert@0123", "mean", 48, 2, 32, "float32", 1)


@pytest.fixture
def dataset(folder: Path) -> Dataset:
    return open_dataset(str(folder))


@pytest.fixture
def origin() -> Origin:
    machine = Machine("A Processor", 2, 24, "")
    return Origin("python -m benchmarks run retrieval pets", "0123456789abcdef", False, 0, machine, {"numpy": "2.0"})


@pytest.fixture(scope="session")
def long_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_long(tmp_path_factory.mktemp("datasets") / "long")


@pytest.fixture
def faceted_folder(tmp_path: Path) -> Path:
    return write_faceted(tmp_path / "facets")
