"""A corpus of a dozen documents, a sample of it, and a record; torch as it was before, after every test."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import faiss
import numpy as np
import pytest
import torch

from benchmarks.datasets import Dataset, open_dataset
from benchmarks.encoding.fidelity import Fidelity
from benchmarks.encoding.record import IndexingParts, Pass, ThroughputRecord, WayRun
from benchmarks.encoding.sample import Sample, draw_sample
from benchmarks.encoding.ways import Job
from benchmarks.peers.peer import PeerConfig
from engine.encoders.loading import load_encoder
from indexer.training.origin import Origin

_WORDS = "the quick brown fox jumps over a lazy dog old river house light dark model finds every vector long".split()


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threads = torch.get_num_threads(), faiss.omp_get_max_threads()
    multiplied = faiss.cvar.distance_compute_blas_threshold, torch.get_float32_matmul_precision()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAYON_NUM_THREADS", "1")
        yield
    faiss.cvar.distance_compute_blas_threshold = multiplied[0]
    torch.set_float32_matmul_precision(multiplied[1])
    torch.set_num_threads(threads[0])
    faiss.omp_set_num_threads(threads[1])


@pytest.fixture
def whole(tmp_path: Path) -> Dataset:
    """Twelve documents of two sections, 40 to 150 words each."""
    folder = tmp_path / "words"
    folder.mkdir()
    rng = np.random.default_rng(0)
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        for number in range(12):
            texts = [" ".join(rng.choice(_WORDS, int(rng.integers(40, 150)))) + "." for _ in range(2)]
            sections = [{"heading": "Part", "text": text} for text in texts]
            file.write(json.dumps({"id": f"d{number}", "title": f"Title {number}", "sections": sections}) + "\n")
    (folder / "qrels.tsv").write_text("query_id\tdoc_id\trelevance\nd0\td1\t1\n")
    (folder / "splits.json").write_text(json.dumps({"test": ["d0"]}))
    return open_dataset(str(folder))


@pytest.fixture
def config(bert_folder: Path) -> PeerConfig:
    return PeerConfig(str(bert_folder), bert_folder, "bert@0123", "mean", 48, 2, 32, "float32", 1)


@pytest.fixture
def sample(whole: Dataset, config: PeerConfig, tmp_path: Path) -> Sample:
    folder = tmp_path / "sample"
    folder.mkdir()
    return draw_sample(whole, load_encoder(config.encoder, device="cpu"), 20, folder, seed=0)


@pytest.fixture
def job(sample: Sample, config: PeerConfig, tmp_path: Path) -> Job:
    return Job(config, sample.dataset, sample.texts, tmp_path)


@pytest.fixture
def record(origin: Origin) -> ThroughputRecord:
    """Two rounds; sentence-transformers takes 8 and 12 s, ours 2 s."""

    def run(dtype: str, *seconds: float) -> WayRun:
        return WayRun(dtype, [Pass(one, 2 * one, 400.0 + one) for one in seconds])

    return ThroughputRecord(
        task="pets",
        dataset="pets@ab",
        is_quick=False,
        encoder="bert@01",
        threads=2,
        n_documents=10,
        n_chunks=400,
        n_tokens=40_000,
        gflop=1000.0,
        ways={
            "longmatch": run("bfloat16", 2.0, 2.0),
            "longmatch-encoder": run("bfloat16", 1.9, 1.8),
            "st-float32": run("float32", 8.0, 12.0),
            "st-float32-tuned": run("float32", 6.0, 6.0),
            "st-bfloat16": run("bfloat16", 4.0, 4.0),
        },
        indexing=[IndexingParts(1.9, 0.5), IndexingParts(1.96, 0.5)],
        products=[
            {"float32 8x8x8": 400.0, "float32 9x9x9": 300.0, "bfloat16 8x8x8": 1000.0},
            {"float32 8x8x8": 200.0, "float32 9x9x9": 250.0, "bfloat16 8x8x8": 800.0},
        ],
        operator_seconds={"linear layers": 3.0, "attention": 1.0},
        fidelity=Fidelity(2000, 0.99995, 0.9998, 256, 0.999999, 0.9999),
        origin=origin,
    )
