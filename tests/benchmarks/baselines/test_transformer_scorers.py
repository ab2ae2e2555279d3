from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BigBirdConfig, BigBirdModel, LongformerConfig, LongformerModel

from benchmarks.baselines import transformer_scorers as module
from benchmarks.baselines.pair_model import TrainedScorer, n_parameters
from benchmarks.baselines.text_inputs import FirstTokens, first_tokens
from benchmarks.baselines.transformer_scorers import (
    LongKind,
    SBert512Config,
    SiameseLongConfig,
    random_backbone,
    sbert_512,
    siamese_long,
)
from engine.encoders.backbone.backbone import Backbone
from engine.encoders.backbone.weights import weights_sha256
from engine.errors import EncoderError
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


def tiny(kind: LongKind, folder: Path) -> SiameseLongConfig:
    return SiameseLongConfig(
        kind,
        tokenizer=str(folder),
        max_tokens=64,
        layers=2,
        width=32,
        heads=4,
        ffn=64,
        window=8,
        block_size=4,
        random_blocks=1,
    )


@pytest.mark.parametrize("kind", LongKind)
def test_vectors_do_not_depend_on_padding(kind: LongKind, bert_folder: Path) -> None:
    torch.manual_seed(0)
    model = FirstTokens(random_backbone(tiny(kind, bert_folder))).eval()
    sequences = [list(range(5, 5 + length)) for length in (3, 20, 45, 62)]
    expected = torch.cat([model.encode([sequence]) for sequence in sequences])
    torch.testing.assert_close(model.encode(sequences), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LongKind)
def test_models_with_random_weights_fit_their_training_pairs(kind: LongKind, bert_folder: Path) -> None:
    scorer = fitted(siamese_long(tiny(kind, bert_folder), OVERFITTING_TRANSFORMER), steps=40)
    pairs = topical_pairs()
    assert share_right(scorer, pairs) > 0.95
    np.testing.assert_allclose(scorer.score(pairs), scorer.score(turned(pairs)), atol=1e-5)
    assert (scorer.name, scorer.settings["weights"]) == (f"s-{kind}", "random")


def test_given_weights_are_read(bert_folder: Path, tmp_path: Path) -> None:
    config = tiny(LongKind.LONGFORMER, bert_folder)
    torch.manual_seed(0)
    made = random_backbone(config)
    made.model.save_pretrained(tmp_path)
    for file in bert_folder.glob("*token*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    read = module.given_backbone(replace(config, weights=str(tmp_path)))
    sequences = [[5, 6, 7], [8]]
    torch.testing.assert_close(read.embed(sequences, 100), made.embed(sequences, 100))


def test_settings_are_read_from_given_weights(bert_folder: Path, tmp_path: Path) -> None:
    config = tiny(LongKind.LONGFORMER, bert_folder)
    random_backbone(config).model.save_pretrained(tmp_path / "long")
    for file in bert_folder.glob("*token*"):
        (tmp_path / "long" / file.name).write_bytes(file.read_bytes())
    given = replace(config, weights=str(tmp_path / "long"), layers=12, window=512, tokenizer="another")
    scorer = siamese_long(given, OVERFITTING_TRANSFORMER, device="cpu")
    assert not {"layers", "window", "tokenizer"} & scorer.settings.keys()
    fitted(scorer, steps=1)
    assert scorer.settings.items() >= {"layers": 2, "width": 32, "heads": 4, "ffn": 64, "window": 8}.items()
    assert "tokenizer" not in scorer.settings
    assert scorer.encoder == f"long@{weights_sha256(tmp_path / 'long')[:12]}"


@pytest.mark.parametrize(
    ("kind", "published"),
    [
        # config.json of allenai/longformer-base-4096 and google/bigbird-roberta-base, without their vocabularies
        (
            LongKind.LONGFORMER,
            LongformerConfig(
                attention_window=[512] * 12,
                max_position_embeddings=4098,
                pad_token_id=1,
                type_vocab_size=1,
                vocab_size=99,
            ),
        ),
        (LongKind.BIGBIRD, BigBirdConfig(max_position_embeddings=4096, vocab_size=99)),
    ],
)
def test_the_default_sizes_are_the_published_ones(kind: LongKind, published: LongformerConfig | BigBirdConfig) -> None:
    with torch.device("meta"):
        ours = module.long_model(SiameseLongConfig(kind), vocabulary_size=99, pad_id=1)
        theirs = {LongKind.LONGFORMER: LongformerModel, LongKind.BIGBIRD: BigBirdModel}[kind](published)
    shapes = [{name: weight.shape for name, weight in model.state_dict().items()} for model in (ours, theirs)]
    assert shapes[0] == shapes[1]
    for name in ("num_hidden_layers", "num_attention_heads", "attention_window", "attention_type", "block_size"):
        assert getattr(ours.config, name, None) == getattr(published, name, None)
    assert getattr(ours.config, "num_random_blocks", 3) == 3


def test_a_pooler_that_is_not_used_is_not_learned(bert_folder: Path) -> None:
    backbone = Backbone(bert_folder, device="cpu", dtype=torch.float32)
    n_pooler = sum(weight.numel() for weight in backbone.model.pooler.parameters())
    whole = n_parameters(FirstTokens(backbone, pooler=backbone.model.pooler))
    assert n_parameters(FirstTokens(backbone)) == whole - n_pooler
