from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from benchmarks.measuring.isolation import Memory
from benchmarks.record_file import rebuild
from benchmarks.speed.encode import encode
from benchmarks.speed.encode.encode import cosines, main, measure_fidelity
from benchmarks.speed.encode.ways import WAYS, Job, Sample
from benchmarks.speed.records import Fidelity, ThroughputRecord

pytest.importorskip("sentence_transformers")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def run_here(target: Callable[..., Any], *arguments: object, **_: object) -> tuple[Any, Memory]:
    """As `run_fresh`, in this process: ten processes would take minutes to start."""
    return json.loads(json.dumps(target(*arguments))), Memory(100.0, 200.0, 80.0, 120.0)


@pytest.mark.slow
def test_every_way_has_its_turn_and_all_is_recorded(
    folder: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode, "run_fresh", run_here)
    places = ["--work", tmp_path / "work", "--out", tmp_path / "out"]
    done = run(folder, "--quick", "--rounds", "1", "--threads", "1", "--encoder", bert_folder, *places)
    assert done.exit_code == 0, done.output
    (file,) = (tmp_path / "out").iterdir()
    values = json.loads(file.read_text())
    assert values.pop("kind") == "throughput" and not list((tmp_path / "work").iterdir())
    record = rebuild(ThroughputRecord, values)
    assert record.name == file.stem == "throughput-pets-bert-threads1-quick"
    assert (record.is_quick, record.n_rounds, record.n_documents) == (True, 1, 4)
    assert record.n_chunks == record.fidelity.n_chunks == record.fidelity.rival_chunks
    assert record.ways.keys() == WAYS.keys()
    for way in record.ways.values():
        assert len(way.passes) == 1 and way.passes[0].seconds > 0 and way.passes[0].peak_mib > 0
    assert 0 < record.indexing[0].encode_seconds < record.ways["longmatch"].passes[0].seconds
    assert record.gflop > 0 < record.operator_seconds["linear layers"] and len(record.products[0]) == 8
    assert min(record.products[0].values()) > 0 and "bfloat16 2048x2048x2048" in record.products[0]
    assert record.fidelity.rival_lowest > 0.9999 and record.fidelity.mean > 0.99
    assert "| sentence-transformers, defaults | float32 |" in done.output and "Limit, GFLOP/s" in done.output


def test_a_missing_device_is_reported_in_one_line(bert_folder: Path) -> None:
    done = run("pets", "--device", "cuda:99", "--encoder", bert_folder)
    assert done.exit_code == 1 and done.stderr.startswith("Error: ") and "cuda:99" in done.stderr


def test_cosines_are_those_of_a_loop() -> None:
    one, other = np.random.default_rng(0).standard_normal((2, 5, 8)).astype(np.float32)
    by_hand = [float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))) for a, b in zip(one, other, strict=True)]
    np.testing.assert_allclose(cosines(one, other), by_hand, rtol=1e-5)


def test_stored_vectors_are_near_those_of_float32_and_the_rival_has_the_same(job: Job, sample: Sample) -> None:
    fidelity = Fidelity(**measure_fidelity(job, 10_000))
    assert fidelity.n_chunks == fidelity.rival_chunks == sample.n_chunks
    assert 0.99 < fidelity.lowest <= fidelity.mean < 1.0001
    assert fidelity.rival_lowest > 0.9999
