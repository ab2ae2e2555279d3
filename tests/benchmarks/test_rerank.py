from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from numpy.typing import NDArray

from benchmarks.baselines.lexical import BM25Pairs
from benchmarks.datasets import Dataset, DatasetError, read_qrels
from benchmarks.metrics import PRIMARY
from benchmarks.pairs.scorer import Pair
from benchmarks.report import is_partial
from benchmarks.runs import Run, read_run, run_files
from benchmarks.systems import Ranking
from benchmarks.tasks.rerank import BEST, RerankDetails, by_relevance, main, rerank, rerank_table
from benchmarks.tasks.retrieval import main as retrieval
from indexer.origin import Origin
from tests.benchmarks.made_runs import made_run
from tests.benchmarks.pairs.linked_corpus import write_linked


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return write_linked(tmp_path_factory.mktemp("rerank") / "linked")


def run(dataset: Dataset, *options: str) -> Result:
    arguments = [str(dataset.corpus.parent), "--pairs-per-step", "8", "--steps", "12", "--small", *options]
    arguments += ["--work", str(dataset.corpus.parent.parent / "work")]
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


@pytest.fixture(scope="module")
def runs(linked: Dataset, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    out = tmp_path_factory.mktemp("out")
    done = run(linked, "--systems", "re2", "--depth", "8", "--out", str(out))
    assert done.exit_code == 0, done.stderr
    return {one.system: one for one in map(read_run, run_files(out))}


def test_the_first_system_ranks_as_it_does_by_itself(linked: Dataset, runs: dict[str, Run], tmp_path: Path) -> None:
    options = ["--systems", "bm25", "--out", str(tmp_path)]
    CliRunner().invoke(retrieval, [str(linked.corpus.parent), *options], catch_exceptions=False)
    (alone,) = map(read_run, run_files(tmp_path))
    assert [case.ranking for case in runs["bm25"].cases] == [case.ranking for case in alone.cases]
    assert runs["re2"].case_ids == alone.case_ids == list(read_qrels(linked, "test"))


def test_no_order_of_the_same_targets_is_above_the_best(runs: dict[str, Run]) -> None:
    before, after, best = (np.array(runs[name].values(PRIMARY)) for name in ("bm25", "re2", BEST))
    assert np.all(after <= best + 1e-9) and np.all(before <= best + 1e-9)
    assert np.any(after != before)
    # Reranking adds no target and loses none.
    assert runs["re2"].values("Recall@100") == runs["bm25"].values("Recall@100")
    course = runs["re2"].details_as(RerankDetails).course
    assert course is not None and course.n_steps > 0


def test_a_run_is_named_by_stage_scorer_and_what_was_chosen(runs: dict[str, Run]) -> None:
    assert runs["re2"].name.startswith("linked-re2-bm25-first8-aan-")
    assert (runs["bm25"].name, runs[BEST].name) == ("linked-bm25-first8-test", "linked-at best-bm25-first8-test")


def test_runs_of_valid_are_shown_nowhere(runs: dict[str, Run]) -> None:
    assert [is_partial(runs["re2"]), is_partial(replace(runs["re2"], split="valid"))] == [False, True]


def test_the_table_tests_scorers_against_the_first_system(origin: Origin) -> None:
    stage = RerankDetails("bm25", {}, 8)
    learned = replace(stage, protocol="aan", chosen={"is_small": True})

    def made(system: str, value: float, details: RerankDetails) -> Run:
        return made_run(system, [value] * 12, origin, task="rerank", details=asdict(details), seconds=6.0)

    table = rerank_table([made("re2", 0.5, learned), made(BEST, 1.0, stage), made("bm25", 0.25, stage)])
    assert table.splitlines()[2:5] == [
        "| pets (12) | bm25, 8 | **bm25** | 0.250 [0.250, 0.250] | 0.250 |  |  |  |",
        "| pets (12) | bm25, 8 | re2, small, pairs aan | 0.500 [0.500, 0.500] | 0.500 | 0.50 |  | < 0.001 |",
        "| pets (12) | bm25, 8 | at best | 1.000 [1.000, 1.000] | 1.000 |  |  |  |",
    ]
    assert rerank_table([]) == ""


def test_queries_of_a_split_that_scorers_learn_from_are_refused(linked: Dataset, tmp_path: Path) -> None:
    refused = run(linked, "--split", "valid", "--out", str(tmp_path))
    assert refused.exit_code == 1
    assert "queries of split 'valid' stand in pairs that scorers learn from" in refused.stderr
    assert list(run_files(tmp_path)) == []


@pytest.mark.slow
def test_a_quick_run_prints_the_scorers_that_work_and_wrong_names_are_refused(linked: Dataset) -> None:
    done = run(linked, "--quick", "--systems", "matchbert,re2", "--encoder", "nowhere-at-all")
    assert done.exit_code == 1 and "1 of 2 scorers failed; matchbert:" in done.stderr
    assert "| re2, small, pairs aan |" in done.output
    refused = run(linked, "--systems", "bm25")
    assert refused.exit_code == 2 and "'bm25' is not one of dssm," in refused.stderr


RUN: dict[str, Ranking] = {"q": [("a", 9.0), ("b", 8.0), ("c", 7.0), ("d", 6.0)], "lonely": []}


class Given(BM25Pairs):
    """A scorer with given scores."""

    name = "given"

    def __init__(self, scores: dict[tuple[str, str], float]) -> None:
        super().__init__()
        self.scores = scores
        self.scored: list[tuple[str, str]] = []

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        self.scored += [(pair.first, pair.second) for pair in pairs]
        return np.array([self.scores[pair.first, pair.second] for pair in pairs], np.float64)


def targets(ranking: Ranking) -> list[str]:
    return [target for target, _ in ranking]


def test_only_the_first_targets_are_scored_and_the_others_stay_behind_them() -> None:
    scorer = Given({("q", "a"): -1.0, ("q", "b"): 2.0, ("q", "c"): 3.0})
    run = rerank(RUN, scorer, 3)
    assert targets(run["q"]) == ["c", "b", "a", "d"]
    assert run["lonely"] == []
    assert scorer.scored == [("q", "a"), ("q", "b"), ("q", "c")]


def test_equal_scores_keep_the_order_and_written_scores_fall() -> None:
    run = rerank(RUN, Given({("q", one): 1.0 for one in "abcd"}), 20)
    assert targets(run["q"]) == ["a", "b", "c", "d"]
    written = [score for _, score in run["q"]]
    assert written == sorted(set(written), reverse=True)


def test_the_best_order_is_that_of_relevance_within_the_depth() -> None:
    run = by_relevance(RUN, {"q": {"d": 2, "c": 2, "b": 1}, "lonely": {"a": 1}}, 3)
    assert targets(run["q"]) == ["c", "b", "a", "d"]


def test_the_error_for_a_score_that_is_not_a_number_names_the_pair() -> None:
    with pytest.raises(DatasetError, match="given gives q and b the score nan"):
        rerank(RUN, Given({("q", "a"): 1.0, ("q", "b"): float("nan")}), 2)
