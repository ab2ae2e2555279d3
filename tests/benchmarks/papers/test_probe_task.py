from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.papers.comparison import Conditions
from benchmarks.papers.pretrained_task import PretrainedArm, ProbeBench, ProbeTask
from indexer.training.origin import Origin
from tests.benchmarks.papers.cases import conditions, write_articles

pytest.importorskip("sklearn")


@pytest.fixture
def given(tmp_path: Path, bert_folder: Path, origin: Origin) -> Conditions:
    write_articles(tmp_path / "data")
    return conditions(tmp_path, bert_folder, origin)


def test_a_value_tells_whether_a_document_is_classified_rightly(given: Conditions) -> None:
    bench = ProbeBench(ProbeTask("bbc_news"), given)
    measured = bench.measure(PretrainedArm())
    assert (len(measured.values), set(measured.values) <= {0.0, 1.0}) == (12, True)
    assert sum(measured.values) > 9  # words tell the classes apart
    assert (bench.settings["n_labelled"], bench.settings["labels"]) == (12, 0)


def test_of_few_labels_the_values_are_those_of_draws(given: Conditions) -> None:
    task = ProbeTask("bbc_news", labels=2)
    measured = ProbeBench(task, given).measure(PretrainedArm())
    assert task.metric == "accuracy from 2 labels a class"
    assert (len(measured.values), list(measured.groups)) == (10, list(range(10)))
    assert all(0 <= value <= 1 for value in measured.values)


def test_other_sizes_have_vectors_of_their_own(given: Conditions) -> None:
    ProbeBench(ProbeTask("bbc_news"), given).measure(PretrainedArm())
    smaller = conditions(given.data.parent, Path(given.encoder), given.origin, n_test=3)
    measured = ProbeBench(ProbeTask("bbc_news"), smaller).measure(PretrainedArm())
    assert len(measured.values) == 6
    assert len(list(given.work.glob("bbc_news@*.lm"))) == 2
