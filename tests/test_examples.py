"""The examples in examples/ run on a few documents."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EIPS = ROOT / "demo/corpus/eips"


def run(name: str, monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of proposals that cite each other."""
    folder = tmp_path / "demo/corpus/eips"
    folder.mkdir(parents=True)
    for file in sorted(EIPS.glob("*.md")):
        (folder / file.name).symlink_to(file)
    (tmp_path / "demo/queries").symlink_to(ROOT / "demo/queries")
    return folder


def test_the_filter_example_counts_matching_documents(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("filter.py", monkeypatch, folder)
    printed = capsys.readouterr().out
    n_documents = len(list(folder.iterdir()))
    assert f"where None: {n_documents - 1} documents, certified" in printed
    assert "where {'number': {'>=': 2000, '<': 4000}}: 4 documents" in printed


@pytest.mark.slow
def test_the_notebook_example_prints_sums_of_parts_equal_to_scores(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    run("notebook.py", monkeypatch)
    *_, sums, scores = capsys.readouterr().out.splitlines()
    assert sums == scores and folder.exists()


@pytest.mark.slow
def test_the_training_example_saves_an_encoder(
    folder: Path, tmp_path: Path, bert_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("train_own.py", monkeypatch, folder, tmp_path / "own", "--encoder", bert_folder, "--steps", 2)
    assert " pairs\n" in capsys.readouterr().out
    assert any((tmp_path / "own/encoder").rglob("*.safetensors"))
