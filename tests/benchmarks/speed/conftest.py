"""A corpus of a dozen documents and a sample of it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import Dataset, open_dataset
from benchmarks.peers.peer import PeerConfig
from benchmarks.speed.encode import Job, Sample, draw_sample
from engine.encoders.loading import load_encoder

_WORDS = "the quick brown fox jumps over a lazy dog old river house light dark model finds every vector long".split()


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
def sample(whole: Dataset, config: PeerConfig, tmp_path: Path) -> Sample:
    folder = tmp_path / "sample"
    folder.mkdir()
    return draw_sample(whole, load_encoder(config.encoder, device="cpu"), 20, folder, seed=0)


@pytest.fixture
def job(sample: Sample, config: PeerConfig, tmp_path: Path) -> Job:
    return Job(config, sample, tmp_path)
