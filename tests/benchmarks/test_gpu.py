from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from benchmarks.gpu import main
from benchmarks.gpus.record import GpuRecord
from benchmarks.gpus.stages import PEERS, SIZES
from benchmarks.gpus.table import gpu_table
from benchmarks.record_file import rebuild


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> tuple[Result, GpuRecord]:
    out = tmp_path_factory.mktemp("gpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmarks.gpus.machine.LEAST_SECONDS", 0.01)
        result = run("--quick", "--device", "cpu", "--encoder", bert_folder, "--chunks", "2000,4000", "--out", out)
    (file,) = out.iterdir()
    assert file.name == "gpu-cpu-quick.json"
    values = json.loads(file.read_text())
    assert values.pop("kind") == "gpu"
    return result, rebuild(GpuRecord, values)


def test_every_stage_comes_to_its_end(done: tuple[Result, GpuRecord]) -> None:
    result, record = done
    assert set(record.failed) <= {PEERS}, record.failed  # sentence-transformers is an extra
    assert result.exit_code == bool(record.failed)
    assert record.peak is not None and record.is_quick
    assert [(one.factory.partition(",")[2], one.n_vectors) for one in record.searched] == [
        (" float16", 2000),
        (" float16", 4000),
        ("SQ8", 4000),
        ("SQ8", 2000),
    ]
    assert list(record.stage_seconds)[:2] == ["peak", "layers"]
    assert record.origin.command == (
        f"python -m benchmarks.gpu --device cpu --encoder {record.encoder.split('@')[0]} --chunks 2000,4000 --quick"
    )


def test_hits_are_those_of_the_exact_scan(done: tuple[Result, GpuRecord]) -> None:
    measured = done[1].end_to_end
    assert measured is not None
    assert (measured.n_documents, measured.n_queries, measured.equal_hits) == (6, 6, 1.0)
    assert measured.score_error < 1e-6
    assert measured.told.startswith("searched on the GPU: every chunk in float16, ")


def test_the_table_is_what_is_printed(done: tuple[Result, GpuRecord]) -> None:
    result, record = done
    table = gpu_table([record])
    assert table in result.output
    assert "| cpu | 2,000 x 64 | Flat, float16 |  | 40 | " in table
    assert "100.0% of 6 queries" in table


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--device", "cpu"], "device 'cpu' is no GPU; name one, as cuda:0, or try the program: --quick"),
        (["--device", "cuda:77"], "device 'cuda:77' was asked for, torch"),
        (["--quick", "--device", "tpu"], "device 'tpu' is none of cpu, cuda, cuda:N"),
        (["--chunks", "none"], "'none' must be whole numbers"),
        (["--chunks", "39"], "--chunks 39 is less than a document has; give 40 or more"),
    ],
)
def test_wrong_use_ends_with_one_line(arguments: list[str], told: str) -> None:
    result = run(*arguments)
    assert result.exit_code in (1, 2) and told in result.stderr


def test_the_sizes_of_the_help_are_those_that_are_measured() -> None:
    assert f"[default: {SIZES[0]},{SIZES[1]}]" in " ".join(run("--help").output.split())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
def test_a_gpu_is_measured_by_the_same_stages() -> None:
    result = run("--quick", "--device", "cuda:0")
    assert "Error" not in result.stderr.replace(PEERS, ""), result.stderr
