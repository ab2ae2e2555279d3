from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import benchmarks.speed.gpu_search as module
from benchmarks.speed.gpu_search import WAYS, gpu_search_table, main, measure
from engine.errors import EngineError, QueryError
from engine.store.writer import Writer
from indexer import build
from indexer.origin import Origin
from tests.fakes import FakeEncoder, make_corpus


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search without a process of its own, whose start takes seconds; its answer still goes through JSON."""

    def run_here(target: Callable[..., dict[str, Any]], *arguments: Any) -> tuple[dict[str, Any], None]:  # noqa: ANN401
        return json.loads(json.dumps(target(*arguments))), None

    monkeypatch.setattr(module, "run_fresh", run_here)
    monkeypatch.setattr(module, "limited_threads", lambda threads, width: nullcontext())


def test_the_same_queries_are_searched_in_four_ways(built_folder: Path, origin: Origin) -> None:
    record = measure(built_folder, "demo", device="cpu", n_queries=3, k=2, threads=1, origin=origin)
    assert list(record.ways) == list(WAYS)
    assert record.ways["cpu exact"].recall == record.ways["gpu exact"].recall == 1.0
    assert record.ways["gpu exact"].largest_difference == 0.0  # the processor stands in for the GPU
    assert (record.name, record.n_queries, record.k) == ("gpu-search-demo", 3, 2)
    table = gpu_search_table([record])
    assert "| demo |" in table and "| GPU lists |" in table and "1.000 at 2" in table


def test_a_gpu_that_cannot_be_used_is_an_error_with_the_reason(
    built_folder: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.gpu.acceleration.gpu_numbers", lambda _: [99])
    monkeypatch.setattr("engine.index.check_device", lambda device: device)
    with pytest.raises(EngineError, match=r"cuda:99 cannot be measured; searched on the CPU: faiss-\S+ \S+ "):
        measure(built_folder, "demo", device="cuda:99", n_queries=1, k=1, threads=1, origin=origin)


def test_an_empty_index_is_refused(tmp_path: Path, origin: Origin) -> None:
    folder = tmp_path / "x.lm"
    documents = make_corpus(1)
    build(folder, documents, encoder=FakeEncoder())
    with Writer(folder) as writer:
        writer.remove([there.id for there in writer.indexed([document.doc_id for document in documents]).values()])
    with pytest.raises(QueryError, match="index x holds 0 documents, at least 1 is needed; build it first"):
        measure(folder, "x", device="cpu", n_queries=1, k=1, threads=1, origin=origin)


def test_a_processor_is_not_measured_as_a_gpu(built_folder: Path) -> None:
    done = CliRunner().invoke(main, [str(built_folder), "--device", "cpu"])
    assert done.exit_code != 0 and "device 'cpu' is no GPU; name cuda or cuda:N" in str(done.output) + str(
        done.exception
    )
