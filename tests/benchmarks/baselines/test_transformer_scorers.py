from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from benchmarks.baselines.neural_scorers import (
    SBert512Config,
    SiameseLongConfig,
    sbert_512,
    siamese_long,
)
from benchmarks.baselines.pair_model import TrainedScorer, n_parameters
from benchmarks.baselines.text_inputs import FirstTokens, first_tokens
from engine.encoders.backbone.backbone import Backbone
from engine.encoders.files import weights_sha256
from engine.errors import EncoderError
from indexer.training.long_encoder import LongAttention, LongSizes, long_backbone
from tests.benchmarks.baselines.pair_cases import OVERFITTING_TRANSFORMER, fitted, share_right, topical_pairs, turned
from tests.fakes import make_document


@pytest.fixture
def backbone(bert_folder: Path) -> Backbone:
    return Backbone(bert_folder, device="cpu", dtype=torch.float32)


def test_a_vector_is_the_pooled_output_of_bert_in_any_batch(backbone: Backbone) -> None:
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
    """The BERT of the tests with parameters a tenth as large, because the original learns slowly."""
    folder = tmp_path / "calm"
    folder.mkdir()
    for file in bert_folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    file = folder / "model.safetensors"
    weights = {name: value / 10 if value.dim() > 1 else value for name, value in load_file(file).items()}
    save_file(weights, file, {"format": "pt"})
    return folder


@pytest.mark.slow
def test_s_bert_fits_its_training_pairs_and_scores_them_the_same_in_either_order(calm_bert_folder: Path) -> None:
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


def tiny(attention: LongAttention, folder: Path) -> SiameseLongConfig:
    return SiameseLongConfig(
        attention, bert=str(folder), sizes=LongSizes(64, window=8, block_tokens=4, random_blocks=1)
    )


@pytest.mark.slow
@pytest.mark.parametrize("attention", LongAttention)
def test_long_models_fit_their_training_pairs(attention: LongAttention, calm_bert_folder: Path) -> None:
    scorer = fitted(siamese_long(tiny(attention, calm_bert_folder), OVERFITTING_TRANSFORMER), steps=40)
    pairs = topical_pairs()
    assert share_right(scorer, pairs) > 0.95
    np.testing.assert_allclose(scorer.score(pairs), scorer.score(turned(pairs)), atol=1e-5)
    assert scorer.name == f"s-{attention}"
    assert scorer.settings.items() >= {"weights": "", "bert": "calm", "sizes_window": 8, "max_tokens": 64}.items()


def test_pretrained_parameters_have_their_own_sizes(bert_folder: Path, tmp_path: Path) -> None:
    made = long_backbone(bert_folder, LongAttention.LONGFORMER, LongSizes(32, window=8))
    made.save_pretrained(tmp_path / "long")
    given = replace(tiny(LongAttention.LONGFORMER, bert_folder), weights=str(tmp_path / "long"))
    scorer = siamese_long(given, OVERFITTING_TRANSFORMER, device="cpu")
    fitted(scorer, steps=1)
    assert not {"bert", "sizes_window"} & scorer.settings.keys()
    assert (scorer.settings["weights"], scorer.settings["max_tokens"]) == ("long", 32)
    assert scorer.encoder == f"long@{weights_sha256(tmp_path / 'long')[:12]}"


def test_a_pooler_that_is_not_used_is_not_learned(bert_folder: Path) -> None:
    backbone = Backbone(bert_folder, device="cpu", dtype=torch.float32)
    n_pooler = sum(weight.numel() for weight in backbone.model.pooler.parameters())
    whole = n_parameters(FirstTokens(backbone, pooler=backbone.model.pooler))
    assert n_parameters(FirstTokens(backbone)) == whole - n_pooler
