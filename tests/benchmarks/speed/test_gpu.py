import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.runs import RESULTS, read_runs, run_files
from benchmarks.speed import gpu
from benchmarks.speed.gpu import SMALL, Collection, Rates, Way, main, measure, search, timed, token_cost
from benchmarks.synthetic import save_tiny_bert, vocabulary

TINY = replace(SMALL, copied_bytes=1 << 16, side=32, scans=[(2_000, 1 << 14)])


def test_the_slower_of_products_and_memory_is_the_limit() -> None:
    assert [Rates(10.0, 100.0).seconds(*work) for work in ((200, 10), (10, 200))] == [2, 20]


def test_a_token_of_the_bundled_encoder_costs_what_was_counted_before() -> None:
    operations, n_bytes = token_cost(6, 384, 1536, 128)
    assert (round(operations / 1e6, 1), n_bytes) == (22.4, 92_160)


def test_the_first_call_is_not_counted() -> None:
    calls: list[int] = []
    assert len(timed(lambda: calls.append(1), "cpu", 0.0)) == 3 and len(calls) == 4


def test_documents_are_neighbouring_chunks_of_one_pool() -> None:
    collection = Collection(2_000, 0)
    n = len(collection.lengths)
    together = collection.read(np.arange(n))
    assert len(together) == collection.lengths.sum()
    assert (np.concatenate([collection.read(np.array([one])) for one in range(n)]) == together).all()


def test_search_is_compared_with_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    values = search(2_000, 1 << 14, 2, "cpu", 0, 0.0)
    assert values["largest difference"] < 1e-6 and 0 < values["measured"] <= values["p95"]
    monkeypatch.setattr(
        gpu, "best_chunks", lambda queries, _, starts: np.ones((2, len(queries), len(starts)), np.float32)
    )
    assert search(2_000, 1 << 14, 1, "cpu", 0, 0.0)["largest difference"] > 0.5


def test_a_path_that_fails_is_recorded_with_its_reason() -> None:
    def fail(seconds: float) -> dict[str, float]:
        raise RuntimeError("no room")

    case = measure(Way("a", "ms", 2.0, fail), 1.0)
    assert (case.labels["failed"], case.values) == ("RuntimeError('no room')", {"limit": 2.0})
    assert measure(Way("a", "ms", 2.0, lambda _: {"measured": 8.0}), 1.0).values["share"] == 0.25


def test_a_dry_run_says_so_and_is_kept_only_in_a_named_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "SMALL", TINY)
    encoder = str(save_tiny_bert(tmp_path / "tiny", vocabulary(), max_tokens=126))
    call = ["--device", "cpu", "--small", "--minutes", "0.1", "--encoder", encoder]
    before = sorted(run_files(RESULTS))
    done = CliRunner().invoke(main, call)
    assert done.exit_code == 0 and sorted(run_files(RESULTS)) == before, done.output
    done = CliRunner().invoke(main, [*call, "--out", str(tmp_path)])
    (run,) = read_runs(tmp_path)
    assert run.task == "gpu_dry_run" and run.details["note"].startswith("A dry run on a CPU: nothing here")
    assert {"copy", "products", "encoder"} <= set(run.case_ids)
    assert len(run.case_ids) + len(run.details["not begun"]) == 10


def test_it_is_loaded_without_index_and_openvino() -> None:
    blocked = "import sys; sys.modules.update(dict.fromkeys(('faiss', 'openvino', 'sqlalchemy'))); "
    subprocess.run([sys.executable, "-c", blocked + "import benchmarks.speed.gpu"], check=True)
