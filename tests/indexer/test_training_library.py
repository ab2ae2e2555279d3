"""The progress that is logged while a training corpus is indexed."""

from __future__ import annotations

from engine.training.corpus import TrainingCorpus
from indexer.building.report import BuildReport
from indexer.training.tasks import _IndexProgress
from tests.fakes import make_corpus


def test_progress_of_indexing_is_logged_at_intervals() -> None:
    lines: list[str] = []
    documents = {one.doc_id: one for one in make_corpus(40)}
    progress = _IndexProgress(TrainingCorpus("papers", documents), lines.append)
    progress(BuildReport(n_unchanged=10))
    assert lines == []  # too soon
    progress._last -= 60
    progress(BuildReport(n_unchanged=20))
    progress(BuildReport(n_unchanged=30))
    assert lines == ["papers: 20 of 40 documents indexed"]
