from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.datasets import read_documents
from benchmarks.papers.comparison import Conditions
from benchmarks.papers.pretrained_task import PretrainedArm, RetrievalBench, RetrievalTask
from engine.encoders.loading import load_encoder
from indexer.training.origin import Origin
from tests.benchmarks.papers.cases import conditions, write_articles, write_citations

pytest.importorskip("ir_measures")
TASK = RetrievalTask("clscisumm")


@pytest.fixture
def given(tmp_path: Path, bert_folder: Path, origin: Origin) -> Conditions:
    write_articles(write_citations(tmp_path / "data"))
    return conditions(tmp_path, bert_folder, origin)


def test_values_are_those_of_the_cosine_of_document_vectors(given: Conditions) -> None:
    bench = RetrievalBench(TASK, given)
    measured = bench.measure(PretrainedArm())
    part, qrels = bench._trial.dataset, bench._trial.qrels
    documents = list(read_documents(part))
    encoder = load_encoder(given.encoder)
    vectors = {one.doc_id: encoded.document for one, encoded in zip(documents, encoder.encode(documents), strict=True)}
    for query_id, value in zip(qrels, measured.values, strict=True):
        others = [doc_id for doc_id in vectors if doc_id != query_id]
        ranked = sorted(others, key=lambda doc_id: -float(vectors[query_id] @ vectors[doc_id]))
        assert (value > 0) == any(qrels[query_id].get(doc_id, 0) > 0 for doc_id in ranked[:10])
    assert 0 < sum(measured.values) < len(measured.values)


def test_the_part_is_as_large_as_the_scale_says(given: Conditions) -> None:
    settings = RetrievalBench(TASK, given).settings
    assert settings["n_queries"] == 6
    other = conditions(given.data.parent, Path(given.encoder), given.origin, n_test=4)
    assert RetrievalBench(TASK, other).settings["part"] != settings["part"]
    assert RetrievalBench(TASK, given).settings == settings  # the smaller part lies beside it
