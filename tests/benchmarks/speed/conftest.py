"""A corpus of a dozen documents and a sample of it; settings of torch and FAISS are restored after every test."""

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
from benchmarks.peers.peer import PeerConfig
from benchmarks.speed.encode import Job, Sample, draw_sample
from engine.encoders.loading import load_encoder

_WORDS = "the quick brown fox jumps over a lazy dog old river house light dark model finds every vector long".split()


@pytest.fixture(autouse=True)
def restored_settings() -> Iterator[None]:
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
    return Job(config, sample, tmp_path)
