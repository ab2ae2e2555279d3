from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from numpy.typing import NDArray

from benchmarks.datasets import Dataset, DatasetError
from benchmarks.matching import Trial, main, measure
from benchmarks.pairs import negatives
from benchmarks.pairs.judging import Judgment
from benchmarks.pairs.record import MatchingRecord
from benchmarks.pairs.scorer import Budget, Course, Fit, Pair
from benchmarks.pairs.scorers import ScorerOptions, make_scorer
from benchmarks.pairs.splitting import Split, SplitRule
from benchmarks.records import read_records
from benchmarks.systems import Settings
from indexer.training.origin import Origin
from tests.benchmarks.pairs.linked_corpus import DOC_IDS, write_linked
from tests.benchmarks.pairs.published_sets import write_aan


@pytest.fixture
def linked(tmp_path: Path) -> Dataset:
    return write_linked(tmp_path / "linked")


def run(dataset: Dataset, *options: str) -> Result:
    arguments = [str(dataset.corpus.parent), "--pairs-per-step", "8", "--steps", "4"]
    arguments += ["--work", str(dataset.corpus.parent.parent / "work"), *options]
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def records_of(dataset: Dataset, out: Path, *options: str) -> dict[str, MatchingRecord]:
    done = run(dataset, "--out", str(out), *options)
    assert done.exit_code == 0, done.stderr
    return {record.scorer: record for record in written(out)}


def written(folder: Path) -> list[MatchingRecord]:
    return [record for record in read_records(folder) if isinstance(record, MatchingRecord)]


def test_scorers_are_measured_on_the_same_pairs(linked: Dataset, bert_folder: Path, tmp_path: Path) -> None:
    options = ["--scorers", "tfidf,bm25,maxsim,cosine-bce", "--encoder", str(bert_folder), "--training-tokens", "96"]
    records = records_of(linked, tmp_path / "out", *options)
    assert list(records) == ["bm25", "cosine-bce", "maxsim", "tfidf"]
    assert len({(record.pairs, tuple(record.labels)) for record in records.values()}) == 1
    tfidf = records["tfidf"]
    assert tfidf.name == f"matching-linked-aan-document-tfidf-{tfidf.pairs[:6]}"
    assert tfidf.at_accuracy.accuracy > 0.9  # words are of the topic, and so are links
    assert tfidf.n_pairs["test"] == len(tfidf.scores) == len(tfidf.labels)
    trained = records["cosine-bce"]
    assert trained.course is not None and trained.course.n_steps in (1, 2, 3, 4)
    assert (trained.budget, tfidf.budget, tfidf.course) == (Budget(4, 8), None, None)
    assert trained.chosen == {"training_tokens": 96}
    assert trained.encoder.startswith("bert@") and records["maxsim"].encoder.startswith("bert@")
    assert tfidf.origin.command.startswith("python -m benchmarks study matching linked --scorers tfidf,")
    assert "--work" not in tfidf.origin.command


def test_the_same_command_gives_the_same_scores(linked: Dataset, bert_folder: Path, tmp_path: Path) -> None:
    options = ["--scorers", "cosine-bce", "--encoder", str(bert_folder), "--training-tokens", "48", "--seed", "3"]
    first, again = (records_of(linked, tmp_path / out, *options)["cosine-bce"] for out in ("first", "again"))
    assert first.scores == again.scores
    assert first.name == again.name
    assert first.name.startswith(f"matching-linked-aan-document-cosine-bce-{first.encoder}-{first.pairs[:6]}-")
    assert first.name.endswith("-seed3")


def test_fewer_pairs_do_not_overwrite_all_of_them(linked: Dataset, tmp_path: Path) -> None:
    run(linked, "--scorers", "bm25", "--out", str(tmp_path / "out"))
    run(linked, "--scorers", "bm25", "--out", str(tmp_path / "out"), "--most-pairs", "3")
    assert sorted(record.n_pairs["test"] == 6 for record in written(tmp_path / "out")) == [False, True]


def test_a_quick_run_writes_only_where_it_is_told(
    linked: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.matching.RESULTS", tmp_path / "results")
    done = run(linked, "--scorers", "bm25", "--quick")
    assert "Budget: none. A quick run: its figures mean nothing." in done.output
    assert not (tmp_path / "results").exists()
    run(linked, "--scorers", "bm25")
    assert len(written(tmp_path / "results")) == 1


def test_pairs_of_a_user_need_no_judgments(linked: Dataset, tmp_path: Path) -> None:
    for path in (linked.qrels, linked.splits):
        path.unlink()
    labels = [(one, other, at % 2) for at, one in enumerate(DOC_IDS) for other in DOC_IDS[at + 1 : at + 3]]
    lines = [f"{one}\t{other}\t{label}" for one, other, label in labels]
    (tmp_path / "mine.tsv").write_text("\n".join(["id1\tid2\tlabel", *lines, ""]))
    options = ["--scorers", "tfidf", "--pairs", str(tmp_path / "mine.tsv"), "--split", "pair"]
    record = records_of(linked, tmp_path / "out", *options)["tfidf"]
    assert (record.protocol, record.split_rule, record.n_pairs["test"]) == ("given", SplitRule.PAIR, len(labels) // 10)


def test_hard_negatives_are_drawn_by_bm25(linked: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(negatives, "LEXICAL_DEPTH", 5)  # of the fewer than 50 documents of a split
    easy, hard = (
        records_of(linked, tmp_path / protocol, "--scorers", "bm25", "--protocol", protocol)["bm25"]
        for protocol in ("aan", "aan-hard")
    )
    assert hard.at_accuracy.auc < easy.at_accuracy.auc
    assert easy.pairs != hard.pairs


def test_a_scorer_that_fails_does_not_stop_the_others(linked: Dataset, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = run(linked, "--scorers", "cosine,bm25", "--encoder", str(empty), "--out", str(tmp_path / "out"))
    assert [record.scorer for record in written(tmp_path / "out")] == ["bm25"]
    assert (done.exit_code, done.stderr.splitlines()[-1].split("; ")[0]) == (1, "Error: 1 of 2 scorers failed")


def test_mistakes_are_one_line(linked: Dataset, tmp_path: Path) -> None:
    def said(*options: str) -> str:
        return run(linked, *options).stderr.splitlines()[-1]

    assert "'bm24' is not one of bm25, tfidf, doc2vec" in said("--scorers", "bm24")
    assert said("--split", "given").startswith("Error: --split given goes with --pairs; take")
    linked.qrels.write_text("query_id\tdoc_id\trelevance\n")
    assert said("--scorers", "bm25").startswith("Error: no pair of test and valid and train is left by the protocol")


def test_the_scorer_that_others_are_tested_against_must_be_known(linked: Dataset) -> None:
    assert "'bm24' is not one of 'bm25'" in run(linked, "--against", "bm24").stderr


def test_pairs_of_a_published_set_need_no_corpus(tmp_path: Path) -> None:
    folder = write_aan(tmp_path / "tsv", 20)
    options = ["--pairs", str(folder), "--split", "given", "--scorers", "tfidf", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, ["lra", *options], catch_exceptions=False)
    assert "**lra**, protocol given, splits as given; pairs: train 20 of 21 documents (1 went)" in done.output
    (record,) = written(tmp_path / "out")
    assert (record.n_lost, record.at_accuracy.accuracy) == ({"train": 1, "valid": 1, "test": 1}, 1.0)
    assert record.origin.command == "python -m benchmarks study matching lra --scorers tfidf --split given --pairs tsv"


def test_small_baselines_say_so_at_whatever_budget(linked: Dataset, tmp_path: Path) -> None:
    options = ["--scorers", "dssm", "--device", "cpu", "--small"]
    done = run(linked, "--out", str(tmp_path / "out"), *options)
    (record,) = written(tmp_path / "out")
    assert (record.is_quick, record.settings["is_small"]) == (False, True)
    assert record.chosen.items() >= {"is_small": True, "widths": "64 64 32"}.items()
    assert "| dssm, small |" in done.output


class Told:
    """A scorer that was told its scores."""

    name = "told"
    encoder = "mine@0a"
    is_trained = True

    def __init__(self, scores: dict[str, float]) -> None:
        self.settings: Settings = {"k": 1}
        self.course: Course | None = None
        self.fitted_on: list[object] = []
        self._scores = scores

    def fit(self, given: Fit) -> None:
        self.fitted_on = [list(given.train), list(given.valid), given.budget, given.seed]
        self.course = Course(3, 2, 0.75)

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        return np.array([self._scores[pair.second] for pair in pairs])


def trial(origin: Origin) -> Trial:
    """Of valid the best threshold is 0.5, of test it would be 0.15."""
    splits = {
        Split.TRAIN: (Pair("a", "a1", True), Pair("a", "a2", False)),
        Split.VALID: (Pair("b", "b1", True), Pair("b", "b2", False)),
        Split.TEST: (Pair("c", "c1", True), Pair("d", "c2", True), Pair("d", "c3", False), Pair("c", "c4", False)),
    }
    n_lost = {Split.TRAIN: 2, Split.VALID: 0, Split.TEST: 1}
    return Trial("pets", "pets@0a", "aan", SplitRule.PAIR, {}, splits, n_lost, Budget(7, 8, 9.0), False, origin)


SCORES = {"b1": 0.8, "b2": 0.2, "c1": 0.9, "c2": 0.2, "c3": 0.1, "c4": 0.0}


def test_thresholds_are_those_of_valid_and_judgments_those_of_test(origin: Origin) -> None:
    scorer = Told(SCORES)
    record = measure(scorer, trial(origin), {"k": 1})
    expected = Judgment(threshold=0.5, accuracy=0.75, precision=1.0, recall=0.5, f1=2 / 3, auc=1.0)
    assert record.at_accuracy == replace(expected, f1=record.at_accuracy.f1)
    assert record.at_accuracy.f1 == pytest.approx(expected.f1)
    assert record.at_f1 == record.at_accuracy
    assert (record.scores, record.labels, record.groups) == ([0.9, 0.2, 0.1, 0.0], [1, 1, 0, 0], [0, 1, 1, 0])
    assert scorer.fitted_on == [*map(list, list(trial(origin).splits.values())[:2]), Budget(7, 8, 9.0), 0]
    assert (record.encoder, record.budget, record.course) == ("mine@0a", Budget(7, 8, 9.0), Course(3, 2, 0.75))
    assert (record.n_lost, record.n_documents["test"]) == ({"train": 2, "valid": 0, "test": 1}, 6)


def test_a_score_that_is_no_number_names_its_pair(origin: Origin) -> None:
    said = "told gives d and c2 the score nan, no finite number; leave this scorer out, or spend less on its training"
    with pytest.raises(DatasetError, match=said):
        measure(Told({**SCORES, "c2": float("nan")}), trial(origin))


def test_scorers_are_made_small_where_only_a_look_is_wanted() -> None:
    small, whole = (make_scorer("dssm", ScorerOptions(is_small=is_small)).settings for is_small in (True, False))
    assert small != whole
