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
from engine.errors import EncoderError
from engine.training.tasks.section_contrast import ContrastSettings
from engine.training.tasks.smith_pretraining import Objective
from indexer.training.start import starting_encoder


def begun(name: str, folder: Path, training_tokens: int = 1536) -> TrainableEncoder:
    start = recipe(name, str(folder), training_tokens).start
    return starting_encoder(start, [], seed=0, device="cpu", is_resumed=False, log=lambda line: None).encoder


def test_a_smith_has_the_sizes_of_the_paper(bert_folder: Path) -> None:
    encoder = begun("smith-np", bert_folder)
    assert isinstance(encoder, SmithEncoder)
    config = encoder.config
    assert (config.block_tokens, config.max_blocks, config.width) == (32, 48, 256)
    assert (config.sentence_layers, config.document_layers) == (6, 3)
    pretraining = [recipe(name, str(bert_folder), 1).pretraining for name in ("smith-np", "smith-wp", "smith-wp-sp")]
    assert pretraining == [frozenset(), {Objective.WORDS}, {Objective.WORDS, Objective.BLOCKS}]


def test_smith_short_has_the_weights_of_its_backbone_in_the_sentence_encoder(bert_folder: Path) -> None:
    start = recipe("smith-short", str(bert_folder), 1536).start
    made = starting_encoder(start, [], seed=0, device="cpu", is_resumed=False, log=lambda line: None)
    encoder = made.encoder
    assert isinstance(encoder, SmithEncoder)
    config = encoder.config
    assert (config.width, config.sentence_layers, config.document_layers, config.max_blocks) == (32, 2, 3, 4)
    assert config.block_tokens == 48  # as many positions as the backbone has
    assert made.taken == " (in the sentence encoder)"
    published, own = load_file(bert_folder / "model.safetensors"), encoder.module.sentence.bert.state_dict()
    for name in ("embeddings.word_embeddings.weight", "encoder.layer.1.output.dense.weight"):
        torch.testing.assert_close(own[name], published[name], atol=0, rtol=0)


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
    with pytest.raises(EncoderError, match="holds no BERT, which SMITH-Short reads sentences by; name one: --encoder"):
        recipe("smith-short", str(tmp_path), 1536)
