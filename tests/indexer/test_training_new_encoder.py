"""New encoders: their kinds, variants and sizes, and what they take from the encoder below them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.encoders.colde.config import Freeze
from engine.encoders.colde.encoder import ColdeEncoder
from engine.encoders.encoder import Variant
from engine.encoders.smith.config import Activation, Combination
from engine.encoders.smith.encoder import SmithEncoder
from engine.encoders.tde.encoder import TdeEncoder
from engine.errors import EncoderError, TrainingError
from indexer.training.start import Kind, Made, NewEncoder, make_encoder, topic_texts
from tests.fakes import make_document
from tests.indexer.training_sizes import COLDE, SMITH, TDE

TEXTS = ["The old fox runs over the river bank.", "The old fox and the young dog.", "A river runs over the bank."]
# As the backbone of the tests: the same width, layers and heads.
SAME = {**SMITH, "sentence_layers": "2", "sentence_heads": "4", "sentence_ffn": "64"}


def make(new: NewEncoder, backbone: Path, *, seed: int = 0) -> Made:
    return make_encoder(new, str(backbone), lambda: TEXTS, seed=seed, device="cpu")


def words(encoder: SmithEncoder) -> torch.Tensor:
    return encoder.module.sentence.bert.get_input_embeddings().weight


def test_a_smith_takes_the_word_embeddings_of_a_bert_of_its_width(bert_folder: Path) -> None:
    other = make(NewEncoder(Kind.SMITH, sizes={**SMITH, "width": "64"}), bert_folder)
    made = make(NewEncoder(Kind.SMITH, sizes=SMITH), bert_folder)
    published = make(NewEncoder(Kind.COLDE, sizes=COLDE), bert_folder).encoder.backbone.model
    assert other.taken is None and other.encoder.config.width == 64
    assert made.taken == " (the word embeddings alone)"
    n = len(words(made.encoder))
    torch.testing.assert_close(words(made.encoder), published.get_input_embeddings().weight[:n], rtol=0, atol=0)


def test_a_smith_takes_a_bert_of_the_same_sizes_as_its_sentence_encoder(bert_folder: Path) -> None:
    made = make(NewEncoder(Kind.SMITH, sizes=SAME), bert_folder)
    published = make(NewEncoder(Kind.COLDE, sizes=COLDE), bert_folder).encoder.backbone.model.state_dict()
    assert made.taken == " (in the sentence encoder)"
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
