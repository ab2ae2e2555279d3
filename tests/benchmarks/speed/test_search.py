from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

import benchmarks.speed.search as module
from benchmarks.speed.search import document_recall, main, measure, sampled_queries
from engine.errors import EngineError, QueryError
from engine.store.writer import Writer
from indexer import build
from indexer.origin import Origin
from tests.benchmarks.conftest import run_here
from tests.fakes import FakeEncoder, make_corpus


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "run_fresh", run_here)
    monkeypatch.setattr(module, "limited_threads", lambda threads, width: nullcontext())


def test_the_same_queries_are_searched_by_lists_and_exactly(built_folder: Path, origin: Origin) -> None:
    run = measure(built_folder, "demo", device="cpu", n_queries=3, k=2, threads=1, origin=origin)
    lists, exact = run.cases
    assert (run.name, lists.id, exact.id) == ("demo-search-test", "demo, CPU, lists", "demo, CPU, exact")
    assert exact.values["recall"] == exact.values["lowest recall"] == 1.0 and exact.values["largest difference"] == 0.0
    assert exact.values["queries"] == 3 and lists.values["p50, ms"] <= lists.values["p99, ms"]


def test_recall_is_the_share_of_exact_targets_found() -> None:
    found, truth = [["a", "b"], ["c"], [], []], [["b", "z"], ["c"], ["a"], []]
    assert document_recall(found, truth) == [0.5, 1.0, 0.0, 1.0]


def test_the_sample_is_the_same_for_the_same_seed() -> None:
    names = [f"d{number}" for number in range(50)]
    sample = sampled_queries(names, 20, seed=4)
    assert len(set(sample)) == 20
    assert sampled_queries(names, 20, seed=4) == sample != sampled_queries(names, 20, seed=5)
    assert sorted(sampled_queries(names, 99, seed=4)) == sorted(names)


def test_a_gpu_that_cannot_be_used_is_an_error_with_the_reason(
    built_folder: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.gpu.acceleration.gpu_numbers", lambda _: [99])
    monkeypatch.setattr("engine.index.check_device", lambda device: device)
    with pytest.raises(EngineError, match=r"cuda:99 cannot be measured; searched on the CPU: torch sees \d GPUs"):
        measure(built_folder, "demo", device="cuda:99", n_queries=1, k=1, threads=1, origin=origin)


def test_an_empty_index_is_refused(tmp_path: Path, origin: Origin) -> None:
    folder = tmp_path / "x.lm"
    documents = make_corpus(1)
    build(folder, documents, encoder=FakeEncoder())
    with Writer(folder) as writer:
        writer.remove([there.id for there in writer.indexed([document.doc_id for document in documents]).values()])
    with pytest.raises(QueryError, match="index x holds 0 documents, at least 1 is needed; build it first"):
        measure(folder, "x", device="cpu", n_queries=1, k=1, threads=1, origin=origin)


def test_the_command_prints_the_table(built_folder: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, [str(built_folder), "--queries", "2", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "| Search | machine | lists | documents |" in done.output
