from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.store.contents import compare, read_contents
from benchmarks.store.fault_points import FaultPoint
from benchmarks.store.kill import Case, Outcome, Trial, fault_points, prepare, run_cases, timed_moments
from benchmarks.synthetic import LONG, documents
from engine.store.writer import Writer


@pytest.fixture(scope="module", params=["later", "queries"])
def trial(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Trial:
    """Documents for two commits, indexed once in peace; in another way of encoding in each turn."""
    folder = tmp_path_factory.mktemp("kill")
    (folder / "corpus").mkdir()
    texts = [document.text for document in documents(LONG, 30)]
    for number in range(6):
        text = "\n\n".join(texts[5 * number : 5 * number + 5])
        (folder / "corpus" / f"d{number}.txt").write_text(text)
    (folder / "query.txt").write_text(texts[0])
    (folder / "work").mkdir()
    return prepare(folder / "corpus", folder / "query.txt", None, folder / "work", seed=0, way=request.param)


def test_killed_runs_go_on_and_lose_nothing(trial: Trial) -> None:
    outcome = run_cases(trial, 0, 3, 1, lambda _: None)
    assert outcome.problems == []
    assert (outcome.n_fault_point_kills, outcome.n_lost, outcome.n_encoded_twice) == (3, 0, 0)
    assert outcome.n_committed_seen > 0


def test_a_document_that_is_gone_or_encoded_twice_is_found(trial: Trial) -> None:
    outcome = Outcome()
    case = Case(trial, "tampered", outcome)
    case.kill(FaultPoint(10_000, is_after=False))
    case.look()
    with Writer(trial.work / "tampered.lm") as writer:
        writer.remove([number for number, _ in writer.sources()][:2])
    case.look()
    assert (outcome.n_lost, len(outcome.problems)) == (2, 2)
    case.complete()
    assert outcome.n_encoded_twice > 0 or trial.way == "queries"  # which does not read the corpus again


def test_an_index_differs_from_one_without_a_document(trial: Trial, tmp_path: Path) -> None:
    assert compare(trial.expected, trial.expected).is_none
    less = read_contents(trial.work / "clean.lm", trial.asked[:1])
    first = sorted(less.documents)[0]
    del less.documents[first]
    difference = compare(less, read_contents(trial.work / "clean.lm", trial.asked[:1]))
    assert (difference.documents, difference.vectors, difference.hits) == ([first], [], [])


def test_moments_are_spread_over_the_whole_run() -> None:
    moments = timed_moments(50, 10.0, np.random.default_rng(0))
    assert [int(moment / 0.2) for moment in moments] == list(range(50))


def test_every_step_is_a_fault_point_twice_unless_they_are_too_many() -> None:
    points = fault_points(3, 200, np.random.default_rng(0))
    assert points == [FaultPoint(step, after) for step in range(3) for after in (False, True)]
    assert len(fault_points(300, 200, np.random.default_rng(0))) == 200
