from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from benchmarks.pairs.comparing import Comparison
from benchmarks.pairs.recipes import RECIPES, recipe
from engine.encoders.colde.encoder import ColdeEncoder
from engine.encoders.smith.encoder import SmithEncoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import EncoderError, TrainingError
from engine.training.section_contrast import ContrastSettings
from engine.training.smith_pretraining import Objective
from indexer.training.start import starting_encoder


def begun(name: str, folder: Path, training_tokens: int = 1536) -> TrainableEncoder:
    start = recipe(name, str(folder), training_tokens).start
    return starting_encoder(start, [], seed=0, device="cpu", is_resumed=False, log=lambda line: None).encoder


def test_the_smiths_differ_in_their_pretraining_and_blocks(bert_folder: Path) -> None:
    names = ("smith-np", "smith-wp", "smith-wp-sp", "smith-short")
    pretraining = [recipe(name, str(bert_folder), 1).pretraining for name in names]
    assert pretraining == [frozenset(), {Objective.WORDS}, {Objective.WORDS, Objective.BLOCKS}, frozenset()]
    configs = [encoder.config for name in names if isinstance(encoder := begun(name, bert_folder), SmithEncoder)]
    # A block of SMITH-Short has 48 tokens here, as many positions as the backbone has.
    assert [(config.block_tokens, config.max_blocks) for config in configs] == [(32, 48)] * 3 + [(48, 4)]


@pytest.mark.parametrize("name", ["smith-np", "smith-short"])
def test_a_smith_has_the_parameters_of_its_backbone_in_the_sentence_encoder(name: str, bert_folder: Path) -> None:
    start = recipe(name, str(bert_folder), 1536).start
    made = starting_encoder(start, [], seed=0, device="cpu", is_resumed=False, log=lambda line: None)
    encoder = made.encoder
    assert isinstance(encoder, SmithEncoder)
    config = encoder.config
    assert (config.width, config.sentence_layers, config.document_layers) == (32, 2, 3)
    assert made.taken == " (in the sentence encoder)"
    published, own = load_file(bert_folder / "model.safetensors"), encoder.module.sentence.bert.state_dict()
    for name in ("embeddings.word_embeddings.weight", "encoder.layer.1.output.dense.weight"):
        torch.testing.assert_close(own[name], published[name], atol=0, rtol=0)


def test_sizes_replace_those_of_a_recipe(bert_folder: Path) -> None:
    new = recipe("smith-np", str(bert_folder), 1536, sizes={"max_blocks": "16"}).start.new
    assert new is not None
    assert (new.sizes["max_blocks"], new.sizes["width"]) == ("16", "32")
    with pytest.raises(TrainingError, match="cosine-bce makes no new encoder, so that max_blocks cannot be set"):
        recipe("cosine-bce", str(bert_folder), 1536, sizes={"max_blocks": "16"})


def test_a_colde_and_its_ablations_have_their_sections_chunks_and_layers(bert_folder: Path) -> None:
    names = ("colde", "colde-without-aug", "colde-without-lstm", "colde-without-cl")
    encoders = [begun(name, bert_folder) for name in names]
    assert all(isinstance(encoder, ColdeEncoder) for encoder in encoders)
    configs = [encoder.config for encoder in encoders if isinstance(encoder, ColdeEncoder)]
    assert [config.n_sections for config in configs] == [2, 1, 2, 1]
    assert [config.max_chunks for config in configs] == [6, 12, 6, 12]
    assert [config.without_positions for config in configs] == [False, True, False, True]
    assert [config.without_lstm for config in configs] == [False, False, True, False]
    learned = [recipe(name, str(bert_folder), 1536).learned for name in names]
    assert [isinstance(one, ContrastSettings) and one.contrastive for one in learned] == [True, True, True, False]


@pytest.mark.parametrize(("tokens", "twice"), [(512, False), (1024, True)])
def test_a_colde_computes_the_layers_of_long_documents_twice(bert_folder: Path, tokens: int, twice: bool) -> None:
    assert recipe("colde", str(bert_folder), tokens).start.checkpoint_gradients is twice


def test_only_a_tde_is_compared_by_its_head(bert_folder: Path) -> None:
    by_head = {name for name in RECIPES if recipe(name, str(bert_folder), 1536).comparison is Comparison.HEAD}
    assert by_head == {"tde", "tde-without-topics"}


def test_smith_short_refuses_a_backbone_that_is_not_a_bert(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "mpnet"}')
    with pytest.raises(EncoderError, match="holds no BERT, which SMITH reads sentences by; name one: --encoder"):
        recipe("smith-short", str(tmp_path), 1536)
