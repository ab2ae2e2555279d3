from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

import numpy
import pytest
from click.testing import CliRunner, Result

from benchmarks.papers.comparison import Comparison, Conditions, Measured, Size, Variant
from benchmarks.papers.papers import PAPERS, main, run_comparison
from benchmarks.papers.runs import PaperDetails, compared, paper_table, variant_run
from benchmarks.runs import Run, read_run, run_files
from benchmarks.significance import bootstrap_interval, holm, randomization_p
from benchmarks.systems import Settings
from engine.errors import TrainingError
from indexer.training.origin import Origin
from tests.benchmarks.papers.cases import SCALE, conditions, write_citations

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


def test_a_comparison_is_made_and_goes_on(data: Path, bert_folder: Path, tmp_path: Path) -> None:
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


def test_a_quick_run_writes_only_where_it_is_told(
    data: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.papers.papers.RESULTS", tmp_path / "results")
    done = run(data, bert_folder, "--variants", "np")
    assert "here on clscisumm_quick@" in done.stdout
    assert not (tmp_path / "results").exists()


def test_a_variant_that_fails_is_told_at_the_end(data: Path, bert_folder: Path, tmp_path: Path) -> None:
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


@dataclass
class FakeArm:
    values: tuple[float, ...]
    failure: str = ""

    @property
    def settings(self) -> Settings:
        return {"mean": sum(self.values)}


@dataclass
class FakeTask:
    """A task that is a bench, too; knows which arms it has measured."""

    dataset: str = "pets@0"
    metric: str = "accuracy"
    asked: list[FakeArm] = field(default_factory=list)

    @property
    def settings(self) -> Settings:
        return {"dataset": self.dataset}

    def open(self, conditions: Conditions) -> FakeTask:
        return self

    def measure(self, arm: FakeArm) -> Measured:
        self.asked.append(arm)
        if arm.failure:
            raise TrainingError(arm.failure)
        return Measured(arm.values, [0, 1, 1], "bert@0", "bert", Size(2, 32, 1000), 24, 3, 2, 1.25)


def comparison(task: FakeTask, *, failure: str = "") -> Comparison:
    variants = (
        Variant("np", FakeArm((0.0, 1.0, 0.0), failure), 0.7),
        Variant("wp", FakeArm((1.0, 1.0, 0.0)), 0.8),
    )
    return Comparison("pretraining", "SMITH", "table 5", task, "wp", variants, SCALE)


@pytest.fixture
def given(tmp_path: Path, origin: Origin) -> Conditions:
    return conditions(tmp_path, tmp_path, origin)


def test_runs_hold_the_measured_and_the_published(given: Conditions, tmp_path: Path) -> None:
    (one, other), failed = run_comparison(comparison(FakeTask()), [], given, tmp_path / "out")
    assert (one.name, other.name, failed) == (
        "pets-np-bert-SMITH-pretraining-test",
        "pets-wp-bert-SMITH-pretraining-test",
        [],
    )
    details = one.details_as(PaperDetails)
    assert (one.values("accuracy"), one.groups, details.size) == ([0.0, 1.0, 0.0], ["0", "1", "1"], Size(2, 32, 1000))
    assert (details.published, details.below, other.details_as(PaperDetails).below) == (0.7, [], ["np"])
    assert (details.scale, details.n_train, details.n_steps, details.best_step) == (given.scale, 24, 3, 2)


def test_a_measured_variant_is_not_measured_again(given: Conditions, tmp_path: Path) -> None:
    task = FakeTask()
    (first,), _ = run_comparison(comparison(task), ["np"], given, tmp_path / "out")
    again, _ = run_comparison(comparison(task), [], given, tmp_path / "out")
    assert [arm.settings["mean"] for arm in task.asked] == [1.0, 2.0]
    assert again[0] == first and [run.system for run in again] == ["np", "wp"]


@pytest.mark.parametrize("change", ["dataset", "scale", "seed", "settings"])
def test_other_conditions_are_measured_again(change: str, given: Conditions, tmp_path: Path) -> None:
    run_comparison(comparison(FakeTask()), ["np"], given, tmp_path / "out")
    task = FakeTask("pets@1") if change == "dataset" else FakeTask()
    if change == "scale":
        given = replace(given, scale=replace(given.scale, batch=16))
    if change == "seed":
        given = replace(given, origin=replace(given.origin, seed=1))
    asked = comparison(task)
    if change == "settings":
        asked = replace(asked, variants=(Variant("np", FakeArm((1.0, 1.0, 1.0))), asked.variants[1]))
    run_comparison(asked, ["np"], given, tmp_path / "out")
    assert len(task.asked) == 1


def test_a_variant_that_fails_is_named_and_the_rest_goes_on(given: Conditions, tmp_path: Path) -> None:
    task = FakeTask()
    runs, failed = run_comparison(comparison(task, failure="the loss is nan"), [], given, tmp_path / "out")
    assert ([run.system for run in runs], failed) == (["wp"], ["pretraining, np: the loss is nan"])
    mended, _ = run_comparison(comparison(task), [], given, tmp_path / "out")  # it is tried again
    assert [run.system for run in mended] == ["np", "wp"] and len(task.asked) == 3


GROUPS = [at // 2 for at in range(80)]
TRIED = {"wp-sp": (0.6, 0.8536), "np": (0.2, 0.7725), "wp": (0.95, 0.84)}


@pytest.fixture
def runs(given: Conditions) -> list[Run]:
    """Three variants; here the paper's second is the best."""
    variants = [Variant(name, FakeArm(()), TRIED[name][1]) for name in ("np", "wp", "wp-sp")]
    shown = Comparison("pretraining", "SMITH", "table 5", FakeTask(), "wp-sp", tuple(variants), SCALE)
    found = []
    for seed, variant in enumerate(variants):
        values = (numpy.random.default_rng(seed).random(len(GROUPS)) < TRIED[variant.name][0]).astype(float).tolist()
        size = Size(4, 128, 4552704)
        measured = Measured(values, GROUPS, "bert@0", "random weights", size, 24, 3, 2, 7.4)
        found.append(variant_run(shown, variant, FakeTask(), given, measured))
    return found


def test_rows_stand_in_the_order_of_the_paper_beside_its_numbers(runs: list[Run]) -> None:
    np, wp, best = runs
    adjusted = holm(
        [randomization_p(one.values("accuracy"), best.values("accuracy"), groups=GROUPS) for one in (np, wp)]
    )
    assert adjusted.max() < 0.001
    low, high = bootstrap_interval(np.values("accuracy"), groups=GROUPS)
    lines = paper_table([best, np, wp]).split("\n")
    assert lines[0].startswith("**SMITH, pretraining** (published: table 5), here on pets@0. Scale: at most 3 steps")
    assert "4 layers, 128 wide, 4,552,704 parameters, begun with random weights; seed 0." in lines[0]
    assert lines[2] == "| Variant | accuracy [95 %] | p | Published | Steps | Seconds |"
    mean = fmean(np.values("accuracy"))
    assert lines[4] == f"| np | {mean:.3f} [{low:.3f}, {high:.3f}] | < 0.001 | 0.7725 | 3 (2) | 7 |"
    assert [line.split(" | ")[0] for line in lines[5:7]] == ["| wp", "| **wp-sp**"]


def test_orderings_are_counted_below(runs: list[Run]) -> None:
    found = compared(runs)
    assert (found.n_pairs, found.n_shared, found.n_reversed) == (3, 2, 1)
    assert (found.n_decided, found.n_decided_shared) == (3, 2)
    text = "Orderings of the paper shared: 2 of 3 (1 reversed); of those decided here 2 of 3. Kendall's tau 0.33."
    assert text in paper_table(runs)
    assert "] |  | 0.7725 |" in paper_table(runs[:2])  # without the reference
    assert paper_table([]) == ""
