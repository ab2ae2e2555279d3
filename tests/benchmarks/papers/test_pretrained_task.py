from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.datasets import DatasetError, read_documents
from benchmarks.papers.comparison import Conditions
from benchmarks.papers.pretrained_task import (
    PretrainedArm,
    Pretraining,
    ProbeBench,
    ProbeTask,
    RetrievalBench,
    RetrievalTask,
)
from engine.encoders.loading import load_encoder
from engine.errors import TrainingError
from engine.training.tasks.samplers import Sampling
from indexer.training import TensionObjective, ViewsObjective
from indexer.training.origin import Origin
from tests.benchmarks.papers.cases import SCALE, conditions, write_articles, write_citations

pytest.importorskip("accelerate")


@pytest.fixture
def given(tmp_path: Path, bert_folder: Path, origin: Origin) -> Conditions:
    write_articles(tmp_path / "data")
    return conditions(tmp_path, bert_folder, origin)


def test_every_objective_makes_as_many_steps_with_the_same_documents() -> None:
    docsplit = PretrainedArm(Sampling.DOCSPLIT, mlm_weight=0.1).recipe("bert", SCALE, 5)
    tension = PretrainedArm(Sampling.CT, learning_rate=1e-5).recipe("bert", SCALE, 5)
    contriever = PretrainedArm(Sampling.CONTRIEVER, has_queue=True).recipe("bert", SCALE, 5)
    assert {(one.trainer.steps, one.trainer.seed) for one in (docsplit, tension, contriever)} == {(3, 5)}
    assert docsplit.objective == ViewsObjective(Sampling.DOCSPLIT, 8, 96, mlm_weight=0.1, momentum=0.9)
    assert tension.objective == TensionObjective(batch_size=16, view_tokens=96, negatives=7)
    assert isinstance(contriever.objective, ViewsObjective) and contriever.objective.queue == 128
    assert tension.trainer.learning_rate == 1e-5


@pytest.mark.parametrize("sampling", [Sampling.DOCSPLIT, Sampling.CT])
def test_an_encoder_is_pretrained_once(sampling: Sampling, given: Conditions, bert_folder: Path) -> None:
    arm = PretrainedArm(sampling)
    made = Pretraining(given).encoder(arm)
    assert Path(made.encoder).name.startswith(f"{sampling}-")
    assert (made.n_steps, made.n_train, made.begins_with.partition("@")[0]) == (3, 12, "bert")
    assert load_encoder(made.encoder).fingerprint != load_encoder(str(bert_folder)).fingerprint
    written = Path(made.encoder, "model.safetensors").read_bytes()
    again = Pretraining(given).encoder(arm)
    assert again.encoder == made.encoder
    assert Path(made.encoder, "model.safetensors").read_bytes() == written
    more = Pretraining(replace(given, scale=replace(given.scale, steps=2))).encoder(arm)
    assert more.encoder != made.encoder


def test_documents_are_drawn_by_the_seed_and_whole(given: Conditions) -> None:
    Pretraining(given).encoder(PretrainedArm(Sampling.SIMCSE))
    (file,) = (given.work / "papers").glob("*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 12
    assert min(len(line["text"].split()) for line in lines) > given.scale.max_words


def test_without_an_objective_it_is_the_backbone(given: Conditions) -> None:
    made = Pretraining(given).encoder(PretrainedArm())
    assert (made.encoder, made.n_steps, made.n_train) == (given.encoder, 0, 0)
    assert PretrainedArm().settings == {"sampling": "none"}
    assert PretrainedArm(Sampling.ICT).settings["sampling"] == "ict"


def test_a_run_out_of_time_compares_nothing(given: Conditions) -> None:
    late = replace(given, scale=replace(given.scale, seconds=1e-9))
    with pytest.raises(TrainingError, match="0 s were over after 1 of 3 steps; run it again, and it goes on"):
        Pretraining(late).encoder(PretrainedArm(Sampling.SIMCSE))
    with pytest.raises(TrainingError, match="0 s were over after 2 of 3"):
        Pretraining(late).encoder(PretrainedArm(Sampling.SIMCSE))
    assert Pretraining(late).encoder(PretrainedArm(Sampling.SIMCSE)).n_steps == 3  # each call gets further


def test_without_articles_there_is_nothing_to_learn_from(tmp_path: Path, bert_folder: Path, origin: Origin) -> None:
    with pytest.raises(DatasetError, match="dataset wikipedia_seealso"):
        Pretraining(conditions(tmp_path, bert_folder, origin))


pytest.importorskip("sklearn")


@pytest.fixture
def given_probe_task(tmp_path: Path, bert_folder: Path, origin: Origin) -> Conditions:
    write_articles(tmp_path / "data")
    return conditions(tmp_path, bert_folder, origin)


def test_a_value_tells_whether_a_document_is_classified_rightly(given_probe_task: Conditions) -> None:
    bench = ProbeBench(ProbeTask("bbc_news"), given_probe_task)
    measured = bench.measure(PretrainedArm())
    assert (len(measured.values), set(measured.values) <= {0.0, 1.0}) == (12, True)
    assert sum(measured.values) > 9  # words tell the classes apart
    assert (bench.settings["n_labelled"], bench.settings["labels"]) == (12, 0)


def test_of_few_labels_the_values_are_those_of_draws(given_probe_task: Conditions) -> None:
    task = ProbeTask("bbc_news", labels=2)
    measured = ProbeBench(task, given_probe_task).measure(PretrainedArm())
    assert task.metric == "accuracy from 2 labels a class"
    assert (len(measured.values), list(measured.groups)) == (10, list(range(10)))
    assert all(0 <= value <= 1 for value in measured.values)


def test_other_sizes_have_vectors_of_their_own(given_probe_task: Conditions) -> None:
    ProbeBench(ProbeTask("bbc_news"), given_probe_task).measure(PretrainedArm())
    smaller = conditions(
        given_probe_task.data.parent, Path(given_probe_task.encoder), given_probe_task.origin, n_test=3
    )
    measured = ProbeBench(ProbeTask("bbc_news"), smaller).measure(PretrainedArm())
    assert len(measured.values) == 6
    assert len(list(given_probe_task.work.glob("bbc_news@*.lm"))) == 2


pytest.importorskip("ir_measures")
TASK = RetrievalTask("clscisumm")


@pytest.fixture
def given_retrieval_task(tmp_path: Path, bert_folder: Path, origin: Origin) -> Conditions:
    write_articles(write_citations(tmp_path / "data"))
    return conditions(tmp_path, bert_folder, origin)


def test_values_are_those_of_the_cosine_of_document_vectors(given_retrieval_task: Conditions) -> None:
    bench = RetrievalBench(TASK, given_retrieval_task)
    measured = bench.measure(PretrainedArm())
    part, qrels = bench._trial.dataset, bench._trial.qrels
    documents = list(read_documents(part))
    encoder = load_encoder(given_retrieval_task.encoder)
    vectors = {one.doc_id: encoded.document for one, encoded in zip(documents, encoder.encode(documents), strict=True)}
    for query_id, value in zip(qrels, measured.values, strict=True):
        others = [doc_id for doc_id in vectors if doc_id != query_id]
        ranked = sorted(others, key=lambda doc_id: -float(vectors[query_id] @ vectors[doc_id]))
        assert (value > 0) == any(qrels[query_id].get(doc_id, 0) > 0 for doc_id in ranked[:10])
    assert 0 < sum(measured.values) < len(measured.values)


def test_the_part_is_as_large_as_the_scale_says(given_retrieval_task: Conditions) -> None:
    settings = RetrievalBench(TASK, given_retrieval_task).settings
    assert settings["n_queries"] == 6
    other = conditions(
        given_retrieval_task.data.parent, Path(given_retrieval_task.encoder), given_retrieval_task.origin, n_test=4
    )
    assert RetrievalBench(TASK, other).settings["part"] != settings["part"]
    assert RetrievalBench(TASK, given_retrieval_task).settings == settings  # the smaller part lies beside it
