from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from benchmarks.baselines.first_tokens import FirstTokens, first_tokens
from benchmarks.baselines.sbert_512 import SBert512Config, sbert_512
from benchmarks.baselines.trained_scorer import TrainedScorer
from engine.encoders.backbone.backbone import Backbone
from engine.errors import EncoderError
from tests.benchmarks.baselines.pair_cases import OVERFITTING_TRANSFORMER, fitted, share_right, topical_pairs, turned
from tests.fakes import make_document


@pytest.fixture
def backbone(bert_folder: Path) -> Backbone:
    return Backbone(bert_folder, device="cpu", dtype=torch.float32)


def test_a_vector_is_berts_pooled_output_whatever_stands_beside_it(backbone: Backbone) -> None:
    bert = backbone.model
    sequences = [[7, 8, 9], [10], list(range(5, 40))]
    read = FirstTokens(backbone, pooler=bert.pooler).eval().encode(sequences)
    for sequence, row in zip(sequences, read, strict=True):
        ids, _ = backbone.tokenizer.pad([sequence])
        torch.testing.assert_close(row, bert(input_ids=ids).pooler_output[0], atol=1e-5, rtol=1e-5)


def test_only_the_first_tokens_are_read_across_sections(backbone: Backbone) -> None:
    document = make_document("d", [("", "the old fox "), ("", "is red and the dog is brown")])
    whole = first_tokens(document, backbone, 512)
    assert len(whole) == 10
    assert first_tokens(document, backbone, 7) == whole[:5]
    long = make_document("long", "fox " * 500)
    assert len(first_tokens(long, backbone, 512)) == 46  # what this BERT can read


@pytest.fixture
def calm_bert_folder(bert_folder: Path, tmp_path: Path) -> Path:
    """The BERT of the tests with weights a tenth as large: from its own on, it learns slowly."""
    folder = tmp_path / "calm"
    folder.mkdir()
    for file in bert_folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    file = folder / "model.safetensors"
    weights = {name: value / 10 if value.dim() > 1 else value for name, value in load_file(file).items()}
    save_file(weights, file, {"format": "pt"})
    return folder


def test_it_learns_pairs_by_heart_and_does_not_mind_their_order(calm_bert_folder: Path) -> None:
    scorer = fitted(sbert_512(SBert512Config(str(calm_bert_folder)), OVERFITTING_TRANSFORMER), steps=40)
    pairs = topical_pairs()
    assert share_right(scorer, pairs) == 1
    np.testing.assert_allclose(scorer.score(pairs), scorer.score(turned(pairs)), atol=1e-5)
    assert scorer.settings["weights"] == "calm"


def test_a_model_without_berts_pooler_is_refused(tmp_path: Path, bert_folder: Path) -> None:
    from transformers import DistilBertConfig, DistilBertModel

    for file in bert_folder.glob("*token*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    words = Backbone(bert_folder, device="cpu").tokenizer.vocabulary_size
    DistilBertModel(DistilBertConfig(vocab_size=words, dim=32, n_layers=1, n_heads=2, hidden_dim=64)).save_pretrained(
        tmp_path
    )
    scorer: TrainedScorer[list[int]] = sbert_512(SBert512Config(str(tmp_path)))
    with pytest.raises(EncoderError, match="is a distilbert, S-BERT reads the pooler of a bert"):
        fitted(scorer)
