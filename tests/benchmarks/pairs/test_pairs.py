from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from benchmarks.datasets import Dataset, DatasetError
from benchmarks.pairs.building import Split
from benchmarks.pairs.scorers import SCORERS, ScorerOptions, make_scorer
from benchmarks.pairs.scoring import Budget, Course, Fit, Learned, Pair, PairScorer, judge
from benchmarks.runs import Run, read_runs
from benchmarks.tables.pairs import PairsDetails
from benchmarks.tasks.architectures import encoder_facts
from benchmarks.tasks.pairs import Trial, main, measure
from engine.machine import Origin
from tests.benchmarks.corpora import write_linked


@pytest.fixture
def linked(tmp_path: Path) -> Dataset:
    return write_linked(tmp_path / "linked")


def run(dataset: Dataset, *options: str) -> Result:
    arguments = [str(dataset.corpus.parent), "--pairs-per-step", "8", "--steps", "4"]
    arguments += ["--work", str(dataset.corpus.parent.parent / "work"), *options]
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def records_of(dataset: Dataset, out: Path, *options: str) -> dict[str, Run]:
    done = run(dataset, "--out", str(out), *options)
    assert done.exit_code == 0, done.stderr
    return {run.system: run for run in read_runs(out)}


def details(run: Run) -> PairsDetails:
    return run.details_as(PairsDetails)


def auc(run: Run) -> float:
    return judge(run.values("score"), [bool(value) for value in run.values("match")], 0.0).auc


@pytest.mark.slow
def test_scorers_are_measured_on_the_same_pairs(linked: Dataset, bert_folder: Path, tmp_path: Path) -> None:
    systems = ["--systems", "tfidf,bm25,maxsim,cosine-infonce"]
    options = [*systems, "--encoder", str(bert_folder), "--training-tokens", "96"]
    records = records_of(linked, tmp_path / "out", *options)
    assert list(records) == ["bm25", "cosine-infonce", "maxsim", "tfidf"]
    assert len({(details(run).pairs, *run.case_ids) for run in records.values()}) == 1
    tfidf = records["tfidf"]
    assert tfidf.name == f"linked-tfidf-aan-document-{details(tfidf).pairs[:6]}-test"
    assert auc(tfidf) > 0.9  # words are of the topic, and so are links
    assert details(tfidf).n_pairs["test"] == len(tfidf.cases)
    trained, learned = records["cosine-infonce"], details(records["cosine-infonce"])
    assert learned.course is not None and learned.course.n_steps in (1, 2, 3, 4)
    assert (learned.budget, details(tfidf).budget, details(tfidf).course) == (Budget(4, 8), None, None)
    assert learned.chosen == {"training_tokens": 96}
    assert trained.encoder.startswith("bert@") and records["maxsim"].encoder.startswith("bert@")
    assert tfidf.origin.command.startswith("python -m benchmarks run pairs linked --systems tfidf,")
    assert "--work" not in tfidf.origin.command


@pytest.mark.slow
def test_the_same_command_gives_the_same_scores(linked: Dataset, bert_folder: Path, tmp_path: Path) -> None:
    options = ["--systems", "cosine-infonce", "--encoder", str(bert_folder), "--training-tokens", "48", "--seed", "3"]
    first, again = (records_of(linked, tmp_path / out, *options)["cosine-infonce"] for out in ("first", "again"))
    assert first.values("score") == again.values("score")
    assert first.name == again.name
    assert first.name.startswith(f"linked-cosine-infonce-bert-aan-document-{details(first).pairs[:6]}-")
    assert first.name.endswith("-test-seed3")


def test_a_trained_encoder_is_saved_with_its_facts(linked: Dataset, bert_folder: Path, tmp_path: Path) -> None:
    options = ["--systems", "bm25,cosine-infonce", "--encoder", str(bert_folder)]
    options += ["--training-tokens", "48", "--words", "9"]
    places = ["--steps", "2", "--save", str(tmp_path / "encoders"), "--out", str(tmp_path / "out")]
    run(linked, *options, *places, "--device", "cpu")
    assert {record.corpus for record in read_runs(tmp_path / "out")} == {"linked_9words"}
    assert [path.name for path in (tmp_path / "encoders").iterdir()] == ["cosine-infonce"]  # bm25 is no encoder
    facts = encoder_facts(str(tmp_path / "encoders" / "cosine-infonce"))
    assert facts.steps == 2
    assert facts.n_tokens > 0
    assert facts.begins_with.startswith(f"{bert_folder.name}@")


def test_a_scorer_that_fails_does_not_stop_the_others(linked: Dataset, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = run(linked, "--systems", "cosine,bm25", "--encoder", str(empty), "--out", str(tmp_path / "out"))
    assert [run.system for run in read_runs(tmp_path / "out")] == ["bm25"]
    assert (done.exit_code, done.stderr.splitlines()[-1].split("; ")[0]) == (1, "Error: 1 of 2 scorers failed")


def test_mistakes_are_reported_in_one_line(linked: Dataset, tmp_path: Path) -> None:
    def error_of(*options: str) -> str:
        return run(linked, *options).stderr.splitlines()[-1]

    assert "'bm24' is not one of bm25, tfidf, cosine" in error_of("--systems", "bm24")
    linked.qrels.write_text("query_id\tdoc_id\trelevance\n")
    assert error_of("--systems", "bm25").startswith("Error: no pair of test and valid and train is left")


def fixed(scores: dict[str, float], fitted_on: list[object] | None = None) -> PairScorer:
    """A scorer with given scores, which records what it is fitted on."""

    def learn(given: Fit) -> Learned:
        if fitted_on is not None:
            fitted_on.extend([list(given.train), list(given.valid), given.budget, given.seed])
        score = lambda pairs: np.array([scores[pair.second] for pair in pairs])  # noqa: E731
        return Learned(score, "mine@0a", course=Course(3, 2, 0.75))

    return PairScorer("fixed", {"k": 1}, learn, is_trained=True)


def trial(origin: Origin) -> Trial:
    """The best threshold of valid is 0.5; that of test would be 0.15."""
    splits = {
        Split.TRAIN: (Pair("a", "a1", True), Pair("a", "a2", False)),
        Split.VALID: (Pair("b", "b1", True), Pair("b", "b2", False)),
        Split.TEST: (Pair("c", "c1", True), Pair("d", "c2", True), Pair("d", "c3", False), Pair("c", "c4", False)),
    }
    n_lost = {Split.TRAIN: 2, Split.VALID: 0, Split.TEST: 1}
    return Trial("pets@0a", {}, splits, n_lost, Budget(7, 8), origin)


SCORES = {"b1": 0.8, "b2": 0.2, "c1": 0.9, "c2": 0.2, "c3": 0.1, "c4": 0.0}


def test_thresholds_are_those_of_valid_and_cases_those_of_test(origin: Origin) -> None:
    fitted_on: list[object] = []
    run, _ = measure(fixed(SCORES, fitted_on), trial(origin), {"k": 1})
    own = details(run)
    assert (own.accuracy_threshold, own.f1_threshold) == (0.5, 0.5)
    assert (run.values("score"), run.values("match")) == ([0.9, 0.2, 0.1, 0.0], [1, 1, 0, 0])
    assert (run.case_ids[0], run.groups) == ("c c1", ["c", "d", "d", "c"])
    assert fitted_on == [*map(list, list(trial(origin).splits.values())[:2]), Budget(7, 8), 0]
    assert (run.encoder, own.budget, own.course) == ("mine@0a", Budget(7, 8), Course(3, 2, 0.75))
    assert (own.n_lost, own.n_documents["test"]) == ({"train": 2, "valid": 0, "test": 1}, 6)


def test_the_error_for_a_score_that_is_not_a_number_names_the_pair(origin: Origin) -> None:
    error = "fixed gives d and c2 the score nan, no finite number; leave this scorer out, or spend less on its training"
    with pytest.raises(DatasetError, match=error):
        measure(fixed({**SCORES, "c2": float("nan")}), trial(origin))


@pytest.mark.parametrize("name", SCORERS)
def test_a_scorer_has_the_name_that_it_is_made_by(bert_folder: Path, name: str) -> None:
    assert make_scorer(name, ScorerOptions(encoder=str(bert_folder))).name == name


def test_the_help_lists_all_scorers() -> None:
    text = "".join(CliRunner().invoke(main, ["--help"]).output.split())
    assert f"Systems,separatedbycommas,of{','.join(SCORERS)};or:all." in text
