"""The encoder that training starts from: its dropout and attention are set, and nothing else is changed."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from engine.encoders.backbone import Backbone
from engine.encoders.colde import ColdeEncoder, Freeze
from engine.encoders.encoder import Variant
from engine.encoders.loading import load_trainable
from engine.encoders.smith import SmithEncoder
from engine.encoders.smith_config import Activation, Combination
from engine.encoders.tde import TdeEncoder
from engine.encoders.trainable import MeanEncoder
from engine.errors import EncoderError, TrainingError
from indexer.training.start import (
    Kind,
    LongSizes,
    NewEncoder,
    Start,
    StartingEncoder,
    long_backbone,
    make_encoder,
    set_dropout,
    starting_encoder,
    topic_texts,
)
from tests.fakes import make_document
from tests.indexer.training_sizes import COLDE, SMITH, TDE


def begun(start: Start) -> MeanEncoder:
    made = starting_encoder(start, (), seed=0, device="cpu", is_resumed=False, log=lambda line: None)
    assert isinstance(made.encoder, MeanEncoder)
    return made.encoder


def test_without_dropout_training_computes_the_vectors_of_encoding(bert_folder: Path) -> None:
    encoder = begun(Start(str(bert_folder), dropout=0.0))
    sequences = [[7, 8, 9, 10], [11, 12]]
    read = encoder.backbone.embed(sequences, 64)
    encoder.module.train()
    torch.testing.assert_close(encoder.backbone.embed(sequences, 64), read)


def test_dropout_is_that_of_the_saved_encoder_by_default(bert_folder: Path) -> None:
    encoder = begun(Start(str(bert_folder)))
    assert {part.p for part in encoder.module.modules() if isinstance(part, nn.Dropout)} == {0.1}
    set_dropout(encoder.module, 0.3)
    assert {part.p for part in encoder.module.modules() if isinstance(part, nn.Dropout)} == {0.3}


def test_plain_attention_gives_the_same_vectors(bert_folder: Path, mean_encoder: MeanEncoder) -> None:
    encoder = begun(Start(str(bert_folder)))
    assert encoder.backbone.model.config._attn_implementation == "eager"
    sequences = [[7, 8, 9, 10, 11], [12], [13, 14]]
    found, expected = encoder.backbone.encode(sequences, 64), mean_encoder.backbone.encode(sequences, 64)
    torch.testing.assert_close(torch.from_numpy(found), torch.from_numpy(expected), atol=1e-5, rtol=0)


SIZES = LongSizes(max_tokens=96, window=8, block_tokens=4, random_blocks=1)


@pytest.mark.parametrize("attention", [Kind.LONGFORMER, Kind.BIGBIRD])
def test_a_text_that_the_attention_covers_has_the_vector_of_the_bert(attention: Kind, bert_folder: Path) -> None:
    bert = Backbone(bert_folder, device="cpu", dtype=torch.float32)
    long = long_backbone(bert_folder, attention, SIZES, device="cpu")
    short = [list(range(5, 9)), [7]]  # with special tokens, half a window
    np.testing.assert_allclose(long.encode(short, 100), bert.encode(short, 100), atol=1e-5)


@pytest.mark.parametrize("attention", [Kind.LONGFORMER, Kind.BIGBIRD])
def test_positions_are_those_of_the_bert_repeated(attention: Kind, bert_folder: Path) -> None:
    bert = Backbone(bert_folder, device="cpu", dtype=torch.float32)
    long = long_backbone(bert_folder, attention, SIZES, device="cpu")
    assert (bert.max_tokens, long.max_tokens) == (46, 94)
    own = bert.model.embeddings.position_embeddings.weight
    rows = long.model.embeddings.position_embeddings.weight[-96:]
    torch.testing.assert_close(rows, torch.cat([own, own]))
    assert np.isfinite(long.encode([list(range(5, 90))], 100)).all()


@pytest.mark.parametrize("attention", [Kind.LONGFORMER, Kind.BIGBIRD])
def test_vectors_do_not_depend_on_padding(attention: Kind, bert_folder: Path) -> None:
    long = long_backbone(bert_folder, attention, SIZES, device="cpu")
    sequences = [list(range(5, 5 + length)) for length in (3, 20, 45, 62)]
    alone = np.concatenate([long.encode([sequence], 1000) for sequence in sequences])
    np.testing.assert_allclose(long.encode(sequences, 1000), alone, atol=1e-5)


def test_a_new_longformer_reads_whole_sections_and_is_saved_as_any_encoder(bert_folder: Path, tmp_path: Path) -> None:
    new = NewEncoder(Kind.LONGFORMER, sizes={"max_tokens": "96", "window": "8"})
    made = make_encoder(new, str(bert_folder), (), seed=0, device="cpu")
    assert made.inherited == " (with the attention of longformer, positions repeated)"
    document = make_document("d", [("", "the old red fox " * 16)])
    made.encoder.save_pretrained(tmp_path)
    kept = made.encoder.encode([document])[0]
    del made
    gc.collect()
    read = load_trainable(str(tmp_path), device="cpu", dtype=torch.float32).encode([document])[0]
    assert [span.n_tokens for span in read.chunk_spans] == [64]
    np.testing.assert_allclose(read.document, kept.document, atol=1e-6)


def test_what_is_no_bert_and_sizes_out_of_range_are_refused(bert_folder: Path, tmp_path: Path) -> None:
    long_backbone(bert_folder, Kind.BIGBIRD, SIZES).save_pretrained(tmp_path)
    with pytest.raises(EncoderError, match="holds a big_bird; a longformer is made from a BERT"):
        long_backbone(tmp_path, Kind.LONGFORMER, SIZES)
    with pytest.raises(EncoderError, match="a window of 7 tokens has no equal halves"):
        LongSizes(window=7)
    with pytest.raises(EncoderError, match="random_blocks 0; give at least 16, 1 and 1"):
        LongSizes(random_blocks=0)
    with pytest.raises(TrainingError, match="longformer has no size 'layers'; it has max_tokens, window"):
        make_encoder(NewEncoder(Kind.LONGFORMER, sizes={"layers": "2"}), str(bert_folder), (), seed=0, device=None)


TEXTS = ["The old fox runs over the river bank.", "The old fox and the young dog.", "A river runs over the bank."]
# As the backbone of the tests: the same width, layers and heads.
SAME = {**SMITH, "sentence_layers": "2", "sentence_heads": "4", "sentence_ffn": "64"}


def make(new: NewEncoder, backbone: Path, *, seed: int = 0) -> StartingEncoder:
    return make_encoder(new, str(backbone), TEXTS, seed=seed, device="cpu")


def words(encoder: SmithEncoder) -> torch.Tensor:
    return encoder.module.sentence.bert.get_input_embeddings().weight


def test_a_smith_takes_the_word_embeddings_of_a_bert_of_its_width(bert_folder: Path) -> None:
    other = make(NewEncoder(Kind.SMITH, sizes={**SMITH, "width": "64"}), bert_folder)
    made = make(NewEncoder(Kind.SMITH, sizes=SMITH), bert_folder)
    published = make(NewEncoder(Kind.COLDE, sizes=COLDE), bert_folder).encoder.backbone.model
    assert other.inherited is None and other.encoder.config.width == 64
    assert made.inherited == " (the word embeddings alone)"
    n = len(words(made.encoder))
    torch.testing.assert_close(words(made.encoder), published.get_input_embeddings().weight[:n], rtol=0, atol=0)


def test_a_smith_takes_a_bert_of_the_same_sizes_as_its_sentence_encoder(bert_folder: Path) -> None:
    made = make(NewEncoder(Kind.SMITH, sizes=SAME), bert_folder)
    published = make(NewEncoder(Kind.COLDE, sizes=COLDE), bert_folder).encoder.backbone.model.state_dict()
    assert made.inherited == " (in the sentence encoder)"
    name = "encoder.layer.1.output.dense.weight"
    assert torch.equal(made.encoder.module.sentence.bert.state_dict()[name], published[name])


def test_the_seed_alone_decides_the_parameters(bert_folder: Path) -> None:
    new = NewEncoder(Kind.COLDE, sizes=COLDE)
    one, same, other = (make(new, bert_folder, seed=seed).encoder.fingerprint for seed in (0, 0, 1))
    assert one == same != other


def test_variants_bring_their_own_choices(bert_folder: Path) -> None:
    smith = make(NewEncoder(Kind.SMITH, Variant.RELEASED, SMITH), bert_folder).encoder
    colde = make(NewEncoder(Kind.COLDE, Variant.RELEASED, COLDE), bert_folder).encoder
    assert isinstance(smith, SmithEncoder) and smith.config.final_activation is Activation.RELU
    assert isinstance(colde, ColdeEncoder) and colde.config.freeze is Freeze.ALL_BUT_LAST
    with pytest.raises(EncoderError, match="no code of TDE was published"):
        make(NewEncoder(Kind.TDE, Variant.RELEASED), bert_folder)


def test_sizes_may_be_numbers_or_choices(bert_folder: Path) -> None:
    sizes = {**SMITH, "combination": "attention", "dropout": "0.2"}
    config = make(NewEncoder(Kind.SMITH, sizes=sizes), bert_folder).encoder.config
    assert (config.combination, config.dropout) == (Combination.ATTENTION, 0.2)
    tde = make(NewEncoder(Kind.TDE, sizes={**TDE, "pooling": "cls"}), bert_folder).encoder
    assert isinstance(tde, TdeEncoder) and tde.config.pooling == "cls" and tde.config.n_topics == 2


@pytest.mark.parametrize("kind", [Kind.SMITH_SHORT, Kind.MATCHBERT])
def test_the_smaller_smiths_can_be_made(kind: Kind, bert_folder: Path) -> None:
    sizes = {**SAME, "max_blocks": "1" if kind is Kind.MATCHBERT else "3"}
    del sizes["document_layers"]
    made = make(NewEncoder(kind, sizes=sizes), bert_folder).encoder
    assert made.config.is_hierarchical == (kind is Kind.SMITH_SHORT)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"widht": "128"}, "smith has no size 'widht'; it has block_tokens, max_blocks, width, "),
        ({"width": "wide"}, "size width cannot be 'wide'; give a whole number"),
        ({"tied": "false"}, "smith has no size 'tied'; it has block_tokens, max_blocks, width, "),
        ({"combination": "most"}, "size combination cannot be 'most'; give normal, sum, mean, attention"),
        ({"variant": "paper"}, "smith has no size 'variant'; it has "),
    ],
)
def test_wrong_sizes_are_refused(sizes: dict[str, str], message: str, bert_folder: Path) -> None:
    with pytest.raises(TrainingError) as raised:
        make(NewEncoder(Kind.SMITH, sizes=sizes), bert_folder)
    assert str(raised.value).startswith(message)


def test_topic_texts_are_documents_and_drawn_sentences_of_each() -> None:
    documents = [make_document("a", "One. Two. Three."), make_document("b", "Four.")]
    texts = topic_texts(documents, seed=0, most=4)
    assert texts[:2] == ["One. Two. Three.", "Four."]
    assert (
        len(texts) == 5 and texts[4] == "Four." and {text.strip() for text in texts[2:4]} < {"One.", "Two.", "Three."}
    )
    assert len(topic_texts(documents, seed=0)) == 6
