from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.budgets import running
from benchmarks.budgets.running import RunFailed, draw_corpus, plan_and_run


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
    monkeypatch.setattr(running, "_told", lambda arguments: {"n_added": 49})
    with pytest.raises(RunFailed, match="49 of 50 documents were indexed; measure a corpus without holes"):
        plan_and_run(corpus, 50, "longmatch-minilm", None, tmp_path / "index.lm")
