"""The loss of hidden words: its equation, and several passes compared with one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import AlbertConfig, AlbertModel

from engine.encoders.backbone.backbone import Backbone
from engine.errors import TrainingError
from engine.training.tasks.masked_word_loss import MaskedWordLoss
from engine.training.tasks.masked_words import choose_by_chance, mask_words, maskable


@pytest.fixture
def backbone(bert_folder: Path) -> Backbone:
    return Backbone(bert_folder, device="cpu", dtype=torch.float32)


def sequences_of(backbone: Backbone) -> list[list[int]]:
    texts = ["the old fox runs over the house", "a model finds every vector of a long document", "one two three four"]
    return [list(ids) for ids, _ in backbone.tokenize(texts * 3)]


def gradients(backbone: Backbone, loss: MaskedWordLoss) -> list[Tensor]:
    weights = [*backbone.model.parameters(), *loss.parameters()]
    found = [weight.grad.clone() for weight in weights if weight.grad is not None]
    for weight in weights:
        weight.grad = None
    return found


def test_the_loss_is_the_mean_cross_entropy_of_the_hidden_words(backbone: Backbone) -> None:
    loss, sequences = MaskedWordLoss(backbone), sequences_of(backbone)[:1] * 4
    ids, mask = backbone.tokenizer.pad(sequences)
    generator = torch.Generator().manual_seed(7)
    chosen = choose_by_chance(maskable(ids, mask, loss.special), generator)
    n_words = backbone.tokenizer.vocabulary_size
    hidden = mask_words(ids, chosen, generator, mask_id=loss.mask_id, vocabulary_size=n_words)
    logits = loss.head(
        backbone.model(input_ids=hidden.ids)[0][chosen], backbone.model.embeddings.word_embeddings.weight
    )
    expected = cross_entropy(logits, ids[chosen])
    found = loss.backward(backbone, sequences, Tensor.backward, weight=1.0, token_budget=10_000, seed=7)
    assert found == pytest.approx(expected.item(), rel=1e-5)


def test_the_weight_scales_gradients_and_the_value_stays(backbone: Backbone) -> None:
    loss, sequences = MaskedWordLoss(backbone), sequences_of(backbone)
    values, found = [], []
    for weight in (1.0, 0.1):
        values.append(loss.backward(backbone, sequences, Tensor.backward, weight=weight, token_budget=40, seed=1))
        found.append(gradients(backbone, loss))
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    for one, tenth in zip(*found, strict=True):
        torch.testing.assert_close(tenth, one / 10, atol=1e-6, rtol=1e-4)


def test_passes_add_up_to_the_loss_of_the_batch(backbone: Backbone) -> None:
    """With all sequences alike, how they are batched does not change what is hidden, only when."""
    loss, parts = MaskedWordLoss(backbone), []
    sequences = sequences_of(backbone)[:1] * 60

    def counted(value: Tensor) -> None:
        parts.append(value.item())
        value.backward()

    mean = loss.backward(backbone, sequences, counted, weight=1.0, token_budget=90, seed=1)
    assert len(parts) == 6
    assert mean == pytest.approx(sum(parts), rel=1e-6)
    whole = loss.backward(backbone, sequences, Tensor.backward, weight=1.0, token_budget=10_000, seed=1)
    assert whole == pytest.approx(mean, rel=0.1)


def test_where_nothing_is_hidden_there_is_no_loss(backbone: Backbone) -> None:
    loss = MaskedWordLoss(backbone)
    values = [
        loss.backward(backbone, [[7]], Tensor.backward, weight=1.0, token_budget=10, seed=seed) for seed in range(20)
    ]
    assert 0.0 in values


def test_embeddings_of_another_width_are_refused(bert_folder: Path, tmp_path: Path) -> None:
    for file in bert_folder.glob("*token*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = AlbertConfig(
        vocab_size=300, embedding_size=16, hidden_size=32, num_attention_heads=4, intermediate_size=64
    )
    AlbertModel(config).save_pretrained(tmp_path)
    with pytest.raises(TrainingError, match="are 16 wide, its states 32; train without masked words"):
        MaskedWordLoss(Backbone(tmp_path, device="cpu", dtype=torch.float32))
