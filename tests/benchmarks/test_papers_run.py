from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks.papers.record import PaperRecord
from benchmarks.papers_run import PAPERS, main
from benchmarks.record_file import rebuild
from tests.benchmarks.papers.cases import write_citations

pytest.importorskip("accelerate")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_citations(tmp_path / "data")


def run(data: Path, encoder: Path, *options: str) -> Result:
    work = data.parent / "work"
    arguments = ["smith", "--comparisons", "pretraining-aan", "--encoder", str(encoder), "--quick"]
    arguments += ["--data", str(data), "--work", str(work), *options]
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def written(folder: Path) -> dict[str, PaperRecord]:
    found = {}
    for path in sorted(folder.glob("*.json")):
        values = json.loads(path.read_text())
        assert values.pop("kind") == PaperRecord.kind
        found[path.stem] = rebuild(PaperRecord, values)
    return found


def test_a_comparison_is_made_and_goes_on(data: Path, bert_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = run(data, bert_folder, "--variants", "np", "--out", str(out), "--steps", "2")
    assert first.exit_code == 0
    both = run(data, bert_folder, "--variants", "np,wp", "--out", str(out), "--steps", "2")
    assert "pretraining-aan, np: its record is there, with the same data, scale and settings" in both.stderr
    records = written(out)
    assert list(records) == ["paper-SMITH-pretraining-aan-np-quick", "paper-SMITH-pretraining-aan-wp-quick"]
    np, wp = records.values()
    assert (np.scale.steps, np.published, wp.below, wp.is_quick) == (2, 0.7725, ["np"], True)
    assert wp.n_steps > np.n_steps  # pretraining comes on top
    assert np.origin.command.startswith(
        "python -m benchmarks study papers_run smith --comparisons pretraining-aan --variants np"
    )
    assert "**SMITH, pretraining-aan**" in both.stdout and "| wp |" in both.stdout


def test_a_quick_run_writes_only_where_it_is_told(
    data: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.papers_run.RESULTS", tmp_path / "results")
    done = run(data, bert_folder, "--variants", "np")
    assert "A quick run: its figures mean nothing." in done.stdout
    assert not (tmp_path / "results").exists()


def test_a_variant_that_fails_is_told_at_the_end(data: Path, bert_folder: Path, tmp_path: Path) -> None:
    done = run(data, bert_folder, "--variants", "wp", "--out", str(tmp_path / "out"), "--scale", "n_test=1,n_train=1")
    assert done.exit_code == 1
    assert "1 failed; pretraining-aan, wp: " in done.stderr
    assert written(tmp_path / "out")["paper-SMITH-pretraining-aan-wp-quick"].failure


@pytest.mark.parametrize("paper", PAPERS)
def test_comparisons_are_listed(paper: str) -> None:
    done = CliRunner().invoke(main, [paper, "--list"], catch_exceptions=False)
    assert {"smith": "blocks-aan: 2, 4, 8", "colde": "sections: 2, 3, 4, 5", "docsplit": "bbc: backbone, ct"}.get(
        paper, "topics: tde, without-topics"
    ) in done.output


def test_mistakes_are_one_line(tmp_path: Path, bert_folder: Path) -> None:
    done = CliRunner().invoke(main, ["tde", "--comparisons", "blocks"])
    assert "'blocks' is not one of topics, losses, topic-number-2017, topic-number-2018" in done.stderr
    done = CliRunner().invoke(main, ["tde", "--variants", "np"])
    assert "'np' is not one of tde, without-topics, sc-ce-0.07" in done.stderr
    done = CliRunner().invoke(main, ["tde", "--scale", "step=5"])
    assert "'step=5' is not NAME=NUMBER, with a name of batch, training_tokens" in done.stderr
    places = ["--data", str(tmp_path), "--work", str(tmp_path / "work"), "--encoder", str(bert_folder)]
    done = CliRunner().invoke(main, ["colde", "--comparisons", "sections", "--quick", *places])
    assert done.exit_code == 1 and "dataset clscisumm" in done.stderr
