from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks.encoding.sample import Sample
from benchmarks.encoding.ways import Job, batches, encode_all, encode_texts, first_chunks, index_all
from engine.encoders.backbone import hardware
from indexer.building import pipeline
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus


def test_documents_to_index_are_timed_with_their_parts_and_leave_nothing(job: Job, sample: Sample) -> None:
    before = sorted(job.work.iterdir())
    told = index_all(job)
    assert told["n_chunks"] == sample.n_chunks and sorted(job.work.iterdir()) == before
    assert 0 < told["encode_seconds"] < told["seconds"] and told["generation_seconds"] > 0
    assert told["cpu_seconds"] > 0


def test_the_encoder_alone_reads_the_same_chunks(job: Job, sample: Sample) -> None:
    told = encode_all(job)
    assert told["n_chunks"] == sample.n_chunks and min(told["seconds"], told["cpu_seconds"]) > 0


@pytest.mark.parametrize(("has_our_settings", "precision"), [(False, "highest"), (True, "medium")])
def test_the_rival_has_torch_as_it_comes_or_as_ours(
    job: Job, sample: Sample, has_our_settings: bool, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sentence_transformers")
    monkeypatch.setattr(hardware, "_stays_float32", lambda: True)
    torch.set_float32_matmul_precision("highest")
    told = encode_texts(job, "float32", has_our_settings)
    assert told["n_chunks"] == sample.n_chunks and told["seconds"] > 0
    assert (torch.get_float32_matmul_precision(), torch.get_num_threads()) == (precision, 1)


def test_batches_are_those_of_indexing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = make_corpus(4, boilerplate=" ".join(["w" * 1000] * 200))  # each has 0.4 of a batch's characters
    indexed = FakeEncoder()
    build(tmp_path / "index.lm", documents, encoder=indexed)
    cut = list(batches([FakeEncoder().segment(document) for document in documents]))
    assert [[one.document.doc_id for one in batch] for batch in cut] == indexed.batches
    assert [len(batch) for batch in cut] == [3, 1] and 2 * len(documents[0].text) < pipeline.BATCH_CHARS


def test_the_first_documents_are_taken_until_they_have_enough_chunks() -> None:
    segmented = [FakeEncoder().segment(document) for document in make_corpus(5)]
    n_first = len(segmented[0].chunks)
    assert first_chunks(iter(segmented), n_first) == segmented[:1]
    assert first_chunks(iter(segmented), n_first + 1) == segmented[:2]
    assert first_chunks(iter(segmented), 10_000) == segmented
