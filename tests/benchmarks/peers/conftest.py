"""Peers over the random BERT of the tests, in float32; and the same vectors from our own backbone, text by text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engine.encoders.backbone import Backbone
from engine.encoders.encoder import Vectors
from engine.text.document import Document
from tests.fakes import make_document

_WORDS = (
    "the quick brown fox jumps over a lazy dog old river house light dark model finds every vector long search".split()
)
# Every word is one token, so that chunks end after exactly 46 tokens.
_RNG = np.random.default_rng(0)
TEXTS = {f"d{number}": " ".join(_RNG.choice(_WORDS, int(_RNG.integers(5, 120)))) for number in range(12)}


@pytest.fixture
def documents() -> list[Document]:
    return [make_document(doc_id, text) for doc_id, text in TEXTS.items()]


@pytest.fixture(scope="session")
def backbone(bert_folder: Path) -> Backbone:
    return Backbone(bert_folder, device="cpu", dtype=torch.float32)


@pytest.fixture
def token_ids(backbone: Backbone) -> dict[str, list[int]]:
    """All token ids of each document, without special tokens."""
    found = backbone.tokenizer.tokenize(list(TEXTS.values()))
    return {doc_id: ids for doc_id, (ids, _) in zip(TEXTS, found, strict=True)}


@pytest.fixture
def chunks(token_ids: dict[str, list[int]], backbone: Backbone) -> dict[str, Vectors]:
    """(n, D) vectors of the chunks of 46 tokens of each document, encoded one at a time."""

    def one(ids: list[int]) -> Vectors:
        return np.concatenate([backbone.encode([ids[first : first + 46]], 512) for first in range(0, len(ids), 46)])

    return {doc_id: one(ids) for doc_id, ids in token_ids.items()}
