"""Ways to encode: a sample of a corpus, indexing and encoding alone, the rival, and the program that times them."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.datasets import Dataset, read_documents
from benchmarks.fetching.sources import corpus_document
from benchmarks.peers.peer import PeerConfig
from benchmarks.runs import read_runs
from benchmarks.speed import encode
from benchmarks.speed.encode import (
    TITLES,
    Job,
    Sample,
    batches,
    draw_sample,
    encode_all,
    encode_texts,
    first_chunks,
    index_all,
    main,
)
from engine.encoders import hardware
from engine.encoders.loading import load_encoder
from engine.index import Index
from indexer.building import pipeline
from indexer.building.builder import build
from tests.benchmarks.conftest import run_here
from tests.benchmarks.corpora import WORDS, write_dataset
from tests.benchmarks.made_runs import error_of, run_program
from tests.fakes import FakeEncoder, make_corpus

pytestmark = pytest.mark.usefixtures("restored_settings")


@pytest.fixture
def whole(tmp_path: Path) -> Dataset:
    """Twelve documents of two sections, 40 to 150 words each."""
    rng = np.random.default_rng(0)
    documents = []
    for number in range(12):
        texts = [" ".join(rng.choice(WORDS, int(rng.integers(40, 150)))) + "." for _ in range(2)]
        documents.append(corpus_document(f"d{number}", f"Title {number}", [("Part", text) for text in texts], {}))
    return write_dataset(tmp_path / "words", documents, [("d0", "d1", 1)], {"test": ["d0"]})


@pytest.fixture
def sample(whole: Dataset, config: PeerConfig, tmp_path: Path) -> Sample:
    folder = tmp_path / "sample"
    folder.mkdir()
    return draw_sample(whole, load_encoder(config.encoder, device="cpu"), 20, folder, seed=0)


@pytest.fixture
def job(sample: Sample, config: PeerConfig, tmp_path: Path) -> Job:
    return Job(config, sample, tmp_path)


def test_indexing_is_timed_with_its_parts_and_reads_the_chunks_of_the_encoder_alone(job: Job, sample: Sample) -> None:
    before = sorted(job.work.iterdir())
    indexed, alone = index_all(job), encode_all(job)
    assert indexed["n_chunks"] == alone["n_chunks"] == sample.n_chunks and sorted(job.work.iterdir()) == before
    assert 0 < indexed["encode_seconds"] < indexed["seconds"] and indexed["generation_seconds"] > 0
    assert min(indexed["cpu_seconds"], alone["seconds"], alone["cpu_seconds"]) > 0


def test_the_rival_runs_with_the_defaults_of_torch(job: Job, sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers")
    monkeypatch.setattr(hardware, "_stays_float32", lambda: True)
    torch.set_float32_matmul_precision("highest")
    measured = encode_texts(job, "float32")
    assert measured["n_chunks"] == sample.n_chunks and measured["seconds"] > 0
    assert (torch.get_float32_matmul_precision(), torch.get_num_threads()) == ("highest", 1)


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


def drawn(dataset: Dataset, n_chunks: int, folder: Path, *, seed: int = 0) -> Sample:
    folder.mkdir()
    return draw_sample(dataset, FakeEncoder(), n_chunks, folder, seed=seed)


def doc_ids(dataset: Dataset) -> list[str]:
    return [document.doc_id for document in read_documents(dataset)]


def test_lines_of_the_corpus_are_kept_in_order_until_there_are_enough_chunks(whole: Dataset, tmp_path: Path) -> None:
    sample = drawn(whole, 60, tmp_path / "some")
    n_chunks = {one.doc_id: len(FakeEncoder().segment(one).chunks) for one in read_documents(whole)}
    kept = [n_chunks[doc_id] for doc_id in doc_ids(sample.dataset)]
    assert sample.n_chunks == len(sample.texts) == sum(kept) >= 60 > sum(kept) - max(kept)
    assert (sample.n_documents, sample.n_tokens) == (len(kept), sum(sample.chunk_tokens))
    own, all_lines = (gzip.decompress(dataset.corpus.read_bytes()).splitlines() for dataset in (sample.dataset, whole))
    assert own == [line for line in all_lines if line in own] and 0 < len(own) < len(all_lines)


def test_texts_are_those_of_the_chunks_that_an_index_holds(sample: Sample, config: PeerConfig, tmp_path: Path) -> None:
    encoder = load_encoder(config.encoder, device="cpu")
    build(tmp_path / "index.lm", read_documents(sample.dataset), encoder=encoder)
    with Index.open(tmp_path / "index.lm", encoder=encoder) as index:
        held = [
            index.document(doc_id).text[chunk.start : chunk.stop]
            for doc_id in doc_ids(sample.dataset)
            for chunk in index.stored_query(doc_id).vectors.chunk_spans
        ]
    assert sample.texts == held and len(held) == sample.n_chunks


@pytest.mark.slow
def test_every_way_has_its_turn_and_all_is_recorded(
    folder: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sentence_transformers")
    monkeypatch.setattr(encode, "run_fresh", run_here)
    options = ["--quick", "--rounds", "1", "--threads", "1", "--encoder", bert_folder]
    done = run_program(main, folder, *options, "--work", tmp_path / "work", "--out", tmp_path / "out")
    (run_file,) = read_runs(tmp_path / "out")
    assert run_file.name == "pets_quick-way-to-encode-bert-cpu-threads1-test" and not list(
        (tmp_path / "work").iterdir()
    )
    assert [case.id for case in run_file.cases if "cores" in case.values] == list(TITLES.values())
    rates = {case.id: case.values["chunks/s"] for case in run_file.cases}
    whole, with_index = list(rates)[:2]
    assert 0 < rates[with_index] < rates[whole]
    assert {case.values["ratio"] for case in run_file.cases if case.id == TITLES["st-float32"]} == {1.0}
    assert "| sentence-transformers, defaults | cpu, 1 threads | float32 |" in done.output


def test_a_missing_device_is_reported_in_one_line(bert_folder: Path) -> None:
    pytest.importorskip("sentence_transformers")
    error = error_of(main, "pets", "--device", "cuda:99", "--encoder", bert_folder)
    assert error.startswith("Error: ") and "cuda:99" in error
