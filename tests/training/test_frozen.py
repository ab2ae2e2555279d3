"""Training with a frozen first stage: only the second stage changes, and documents are read once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.encoders.colde import ColdeConfig, ColdeEncoder
from engine.encoders.encoder import SegmentedDocument, Variant
from engine.encoders.loading import load_trainable
from engine.encoders.smith import SmithEncoder
from engine.encoders.smith_config import Combination, Overflow
from engine.encoders.tde import TdeConfig, TdeEncoder
from engine.encoders.trainable import MeanEncoder, TrainableEncoder
from engine.errors import TrainingError
from engine.training.selection import keep_chunks
from engine.training.task import FrozenFirstStage
from tests.fakes import make_document
from tests.training.made import SMITH, pairs_of_texts

# It reads a block of padding beside the others, so that its second stage uses weights of the first.
PADDED = replace(SMITH, variant=Variant.RELEASED, overflow=Overflow.TRUNCATE, combination=Combination.SUM)
COLDE = ColdeConfig(chunk_tokens=12, lstm_width=16, projection_width=24)
TDE = TdeConfig(n_topics=4, topic_width=8, topic_hidden_width=16)
DOCUMENTS = pairs_of_texts(3, n_words=60)

Make = Callable[[Path], TrainableEncoder]

ENCODERS: dict[str, Make] = {
    "smith": lambda folder: SmithEncoder.create(folder, SMITH, device="cpu"),
    "smith-padded": lambda folder: SmithEncoder.create(folder, PADDED, device="cpu"),
    "colde": lambda folder: ColdeEncoder.create(folder, COLDE, device="cpu", dtype=torch.float32),
    "tde": lambda folder: TdeEncoder.create(folder, [one.text for one in DOCUMENTS], TDE, device="cpu"),
}


@pytest.fixture(params=ENCODERS)
def encoder(request: pytest.FixtureRequest, bert_folder: Path) -> TrainableEncoder:
    return ENCODERS[request.param](bert_folder)


class Counting(SmithEncoder):
    """Remembers which documents its first stage has read."""

    read: list[str]

    def states(self, documents: Sequence[SegmentedDocument]) -> list[Tensor]:
        self.read += [document.document.doc_id for document in documents]
        return super().states(documents)


@pytest.fixture
def counting(bert_folder: Path) -> Counting:
    Counting.read = []
    return Counting.create(bert_folder, SMITH, device="cpu")


def segmented(encoder: TrainableEncoder) -> list[SegmentedDocument]:
    return [encoder.segment(document) for document in DOCUMENTS]


def loss(encoder: TrainableEncoder, documents: Sequence[SegmentedDocument]) -> Tensor:
    embedded = encoder.embed(documents)
    return (embedded.documents @ embedded.documents[0]).square().sum() + embedded.chunks.sum()


def test_vectors_are_those_of_the_encoder_inside(encoder: TrainableEncoder) -> None:
    documents = segmented(encoder)
    expected = encoder.encode_segmented(documents)
    for one, own in zip(FrozenFirstStage(encoder).encode_segmented(documents), expected, strict=True):
        np.testing.assert_allclose(one.document, own.document, atol=2e-3)
        np.testing.assert_allclose(one.sections, own.sections, atol=2e-3)
        np.testing.assert_allclose(one.chunks, own.chunks, atol=2e-3)
        assert (one.chunk_spans, one.coverage) == (own.chunk_spans, own.coverage)


def test_a_step_changes_the_second_stage_alone(encoder: TrainableEncoder) -> None:
    frozen = FrozenFirstStage(encoder)
    documents = segmented(encoder)
    before = {name: weight.detach().clone() for name, weight in encoder.module.named_parameters()}
    first_stage = [state.clone() for state in encoder.states(documents)]
    optimizer = torch.optim.AdamW(encoder.module.parameters(), lr=1e-3, weight_decay=0.1)
    encoder.module.train()
    loss(frozen, documents).backward()
    optimizer.step()
    encoder.module.eval()
    changed = {name for name, weight in encoder.module.named_parameters() if not torch.equal(weight, before[name])}
    learning = {name for name, weight in encoder.module.named_parameters() if weight.grad is not None}
    assert set() != changed <= learning  # the bias of keys shifts all logits alike, and has the gradient 0
    assert len(changed) > 0.8 * len(learning)
    for state, own in zip(encoder.states(documents), first_stage, strict=True):
        assert torch.equal(state, own)


def test_gradients_of_the_second_stage_are_those_of_the_encoder_inside(bert_folder: Path) -> None:
    encoder = ENCODERS["smith"](bert_folder)
    documents = segmented(encoder)
    loss(encoder, documents).backward()
    expected = {name: weight.grad for name, weight in encoder.module.named_parameters() if "document" in name}
    encoder.module.zero_grad()
    frozen = FrozenFirstStage(encoder)
    frozen.encode_segmented(documents)  # validation reads them first, without gradients
    loss(frozen, documents).backward()
    for name, weight in encoder.module.named_parameters():
        if name in expected and expected[name] is not None:
            torch.testing.assert_close(weight.grad, expected[name], atol=2e-2, rtol=2e-2)
        if name.startswith("sentence"):
            assert weight.grad is None and not weight.requires_grad


def test_the_first_stage_reads_each_document_once_also_those_with_the_same_id(counting: Counting) -> None:
    frozen = FrozenFirstStage(counting)
    counting.read.clear()
    documents = segmented(counting)
    frozen.encode_segmented(documents[:2])
    for kept in ([0], [1, 3], [2, 0]):
        frozen.states([keep_chunks(document, kept) for document in documents])
    assert counting.read == [document.doc_id for document in DOCUMENTS]
    texts = ("the quick brown fox", "the brown quick fox")
    one, other = (counting.segment(make_document("same", text)) for text in texts)
    assert one.chunks == other.chunks
    states = [frozen.states([document])[0] for document in (one, other, one)]
    assert torch.equal(states[0], states[2]) and not torch.equal(states[0], states[1])


def test_a_part_of_a_document_has_the_states_of_its_chunks(counting: Counting) -> None:
    document = segmented(counting)[0]
    whole = counting.states([document])[0]
    part = FrozenFirstStage(counting).states([keep_chunks(document, [3, 1])])[0]
    torch.testing.assert_close(part, whole[[1, 3]], atol=1e-3, rtol=0)
    assert part.dtype == torch.float32


def test_saving_writes_the_encoder_inside(bert_folder: Path, tmp_path: Path) -> None:
    encoder = ENCODERS["smith"](bert_folder)
    frozen = FrozenFirstStage(encoder)
    frozen.save_pretrained(tmp_path / "saved", dtype=torch.float32)
    loaded = load_trainable(str(tmp_path / "saved"), device="cpu", dtype=torch.float32)
    assert isinstance(loaded, SmithEncoder)
    assert loaded.fingerprint == frozen.fingerprint == encoder.fingerprint
    assert (frozen.kind, frozen.width, frozen.chunk_tokens) == ("smith", 32, encoder.chunk_tokens)


def test_an_encoder_of_one_stage_is_refused(mean_encoder: MeanEncoder) -> None:
    with pytest.raises(TrainingError) as raised:
        FrozenFirstStage(mean_encoder)
    assert str(raised.value) == (
        "this encoder of type mean has no parameters after its first stage, so nothing is left to train "
        "with that frozen; freeze some layers only, or begin with smith, colde or a tde with topics"
    )


def test_an_encoder_without_weights_in_its_second_stage_is_refused_when_it_should_learn(bert_folder: Path) -> None:
    encoder = TdeEncoder.create(bert_folder, [], replace(TDE, n_topics=0), device="cpu")
    frozen = FrozenFirstStage(encoder)
    documents = segmented(encoder)
    assert len(frozen.encode_segmented(documents)) == len(documents)
    with pytest.raises(TrainingError, match=r"^this encoder of type tde has no parameters after its first stage"):
        frozen.embed(documents)


def test_a_frozen_encoder_cannot_be_loaded_from_a_folder(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"^load the encoder itself, then wrap it$"):
        FrozenFirstStage.load(tmp_path, {}, name="", device=None, dtype=None)
