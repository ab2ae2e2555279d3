from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.records import read_records
from benchmarks.speed import plan
from benchmarks.speed.plan import PlanRecord, draw_corpus, main, plan_and_run
from engine.errors import EngineError


@pytest.mark.slow
def test_a_plan_is_compared_with_its_run(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--quick", "--documents", "3", "--encoder", str(bert_folder), "--memory", "8G", "--out", str(out)]
    done = CliRunner().invoke(main, [str(folder), *options])
    assert done.exit_code == 0, done.output
    (record,) = read_records(out)
    assert isinstance(record, PlanRecord)
    assert (record.name, record.n_documents, record.factory) == ("plan-pets-3-memory8000m-quick", 3, "Flat")
    (kept,) = record.rounds
    assert kept.plan_seconds > kept.seconds > 0 < kept.planned_seconds
    assert 0.3 < kept.peak_bytes / kept.planned_bytes < 3
    assert 0.8 < kept.disk_bytes / kept.planned_disk_bytes < 1.2
    assert record.n_tokens > 3 and "| pets | 3 |" in done.output


@pytest.mark.slow
def test_the_error_for_a_budget_that_cannot_be_kept_has_the_reason(folder: Path, bert_folder: Path) -> None:
    options = ["--quick", "--encoder", str(bert_folder), "--memory", "1M"]
    done = CliRunner().invoke(main, [str(folder), *options])
    assert done.exit_code == 1
    assert "longmatch index ended with" in done.stderr and "mend that first" in done.stderr


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": f"d{number}"}) + "\n" for number in range(50))
    return path


def _drawn(corpus: Path, n_documents: int | None, seed: int, path: Path) -> list[str]:
    n_drawn = draw_corpus(corpus, n_documents, seed, path)
    names = [json.loads(line)["id"] for line in path.read_text().splitlines()]
    assert len(names) == n_drawn
    return names


def test_a_draw_keeps_the_order_and_is_the_same_again(corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "drawn.jsonl"
    once, again, other = (_drawn(corpus, 7, seed, path) for seed in (0, 0, 1))
    assert once == again != other
    assert len(set(once)) == 7 and once == sorted(once, key=lambda name: int(name[1:]))
    assert _drawn(corpus, None, 0, path) == [f"d{number}" for number in range(50)]


def test_a_corpus_with_holes_is_refused(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "_printed", lambda arguments: {"n_added": 49})
    with pytest.raises(EngineError, match="49 of 50 documents were indexed; measure a corpus without holes"):
        plan_and_run(corpus, 50, "longmatch-minilm", None, tmp_path / "index.lm")
