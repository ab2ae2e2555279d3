from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks.papers.comparison import Conditions, Size, Variant
from benchmarks.papers.papers import PAPERS, main, run_comparison
from benchmarks.papers.tables import GivenScale, PaperDetails
from benchmarks.runs import Run, read_run, run_files
from indexer.origin import Origin
from tests.benchmarks.papers.cases import conditions, write_citations
from tests.benchmarks.papers.fakes import FakeJudge, FakeSystem, comparison

pytest.importorskip("accelerate")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_citations(tmp_path / "data")


def run(data: Path, encoder: Path, *options: str) -> Result:
    work = data.parent / "work"
    arguments = ["smith", "--comparisons", "pretraining-aan", "--encoder", str(encoder), "--quick"]
    arguments += ["--data", str(data), "--work", str(work), *options]
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def written(folder: Path) -> dict[str, Run]:
    return {run.name: run for run in map(read_run, run_files(folder))}


@pytest.mark.slow
def test_a_comparison_is_run_and_continued(data: Path, bert_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = run(data, bert_folder, "--variants", "np", "--out", str(out), "--steps", "2")
    assert first.exit_code == 0
    both = run(data, bert_folder, "--variants", "np,wp", "--out", str(out), "--steps", "2")
    assert "pretraining-aan, np: its run is there, with the same data, scale and settings" in both.stderr
    runs = written(out)
    names = [f"clscisumm_quick-{name}-bert-first1-SMITH-pretraining-aan-test" for name in ("np", "wp")]
    assert list(runs) == names
    np, wp = (run.details_as(PaperDetails) for run in runs.values())
    assert (np.scale.steps, np.published, wp.below) == (2, 0.7725, ["np"])
    assert wp.n_steps > np.n_steps  # pretraining comes on top
    command = "python -m benchmarks study papers smith --comparisons pretraining-aan --variants np"
    assert runs[names[0]].origin.command.startswith(command)
    assert "**SMITH, pretraining-aan**" in both.stdout and "| wp |" in both.stdout


@pytest.mark.slow
def test_a_quick_run_writes_no_record_by_default(
    data: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.measuring.measurement.RESULTS", tmp_path / "results")
    done = run(data, bert_folder, "--variants", "np")
    assert "here on clscisumm_quick@" in done.stdout
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_a_failed_variant_is_reported_at_the_end(data: Path, bert_folder: Path, tmp_path: Path) -> None:
    done = run(data, bert_folder, "--variants", "wp", "--out", str(tmp_path / "out"), "--scale", "n_test=1,n_train=1")
    assert done.exit_code == 1
    assert "1 failed; pretraining-aan, wp: " in done.stderr
    assert written(tmp_path / "out") == {}


@pytest.mark.parametrize("paper", PAPERS)
def test_comparisons_are_listed(paper: str) -> None:
    done = CliRunner().invoke(main, [paper, "--list"], catch_exceptions=False)
    assert {"smith": "blocks-aan: 2, 4, 8", "colde": "sections: 2, 3, 4, 5", "docsplit": "bbc: backbone, ct"}.get(
        paper, "topics: tde, without-topics"
    ) in done.output


def test_mistakes_are_reported_in_one_line(tmp_path: Path, bert_folder: Path) -> None:
    done = CliRunner().invoke(main, ["tde", "--comparisons", "blocks"])
    assert "'blocks' is not one of topics, losses, topic-number-2017, topic-number-2018" in done.stderr
    done = CliRunner().invoke(main, ["tde", "--variants", "np"])
    assert "'np' is not one of tde, without-topics, sc-ce-0.07" in done.stderr
    done = CliRunner().invoke(main, ["tde", "--scale", "step=5"])
    assert "'step=5' is not NAME=NUMBER, with a name of batch, training_tokens" in done.stderr
    places = ["--data", str(tmp_path), "--work", str(tmp_path / "work"), "--encoder", str(bert_folder)]
    done = CliRunner().invoke(main, ["colde", "--comparisons", "sections", "--quick", *places])
    assert done.exit_code == 1 and "dataset clscisumm" in done.stderr


@pytest.fixture
def given(tmp_path: Path, origin: Origin) -> Conditions:
    return conditions(tmp_path, tmp_path, origin)


def test_runs_hold_the_measured_and_the_published(given: Conditions, tmp_path: Path) -> None:
    (one, other), failed = run_comparison(comparison(FakeJudge()), [], given, tmp_path / "out")
    assert (one.name, other.name, failed) == (
        "pets-np-bert-SMITH-pretraining-test",
        "pets-wp-bert-SMITH-pretraining-test",
        [],
    )
    details = one.details_as(PaperDetails)
    assert (one.values("accuracy"), one.groups, details.size) == ([0.0, 1.0, 0.0], ["0", "1", "1"], Size(2, 32, 1000))
    assert (details.published, details.below, other.details_as(PaperDetails).below) == (0.7, [], ["np"])
    assert (details.scale, details.n_train, details.n_steps, details.best_step) == (
        GivenScale.of(given.scale),
        24,
        3,
        2,
    )


def test_a_measured_variant_is_not_measured_again(given: Conditions, tmp_path: Path) -> None:
    judge = FakeJudge()
    (first,), _ = run_comparison(comparison(judge), ["np"], given, tmp_path / "out")
    again, _ = run_comparison(comparison(judge), [], given, tmp_path / "out")
    assert judge.judged == ["np", "wp"]
    assert again[0] == first and [run.system for run in again] == ["np", "wp"]


@pytest.mark.parametrize("change", ["dataset", "scale", "seed", "settings", "learned from"])
def test_other_conditions_are_measured_again(change: str, given: Conditions, tmp_path: Path) -> None:
    run_comparison(comparison(FakeJudge()), ["np"], given, tmp_path / "out")
    judge = FakeJudge("pets@1") if change == "dataset" else FakeJudge()
    compared = comparison(judge)
    if change == "scale":
        given = replace(given, scale=replace(given.scale, batch=16))
    if change == "seed":
        given = replace(given, origin=replace(given.origin, seed=1))
    if change == "settings":
        compared = replace(compared, variants=(Variant("np", FakeSystem("np", (1.0, 1.0, 1.0))), compared.variants[1]))
    if change == "learned from":
        compared = replace(compared, variants=(Variant("np", FakeSystem("np", data="pets@1")), compared.variants[1]))
    run_comparison(compared, ["np"], given, tmp_path / "out")
    assert judge.judged == ["np"]


def test_each_seed_has_a_run_and_earlier_runs_are_kept(given: Conditions, tmp_path: Path) -> None:
    judge = FakeJudge()
    runs, _ = run_comparison(comparison(judge), ["np"], given, tmp_path / "out", n_seeds=2)
    more, _ = run_comparison(comparison(judge), ["np"], given, tmp_path / "out", n_seeds=3)
    assert [run.origin.seed for run in more] == [0, 1, 2] and more[:2] == runs
    assert [run.name for run in more] == [
        f"pets-np-bert-SMITH-pretraining-test{end}" for end in ("", "-seed1", "-seed2")
    ]
    assert judge.judged == ["np"] * 3


def test_a_failed_variant_is_reported_and_the_others_are_measured(given: Conditions, tmp_path: Path) -> None:
    judge = FakeJudge()
    runs, failed = run_comparison(comparison(judge, failure="the loss is nan"), [], given, tmp_path / "out")
    assert ([run.system for run in runs], failed) == (["wp"], ["pretraining, np: the loss is nan"])
    repeated, _ = run_comparison(comparison(judge), [], given, tmp_path / "out")  # it is tried again
    assert [run.system for run in repeated] == ["np", "wp"] and judge.judged == ["wp", "np"]
