"""Pretraining of SMITH: hidden words and blocks, the losses against loops, and what each loss trains."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from engine.encoders.encoder import SegmentedDocument, Variant
from engine.encoders.smith import SmithEncoder, document_windows
from engine.errors import TrainingError
from engine.training.masked_words import IGNORED, Objective, SmithBatch, SmithPretraining, SmithSettings
from engine.training.task import Task
from tests.fakes import make_document
from tests.training.made import SMITH

FIXED = replace(SMITH, document_layers=2)
PAPER = replace(FIXED, variant=Variant.PAPER)
RELEASED = replace(PAPER, variant=Variant.RELEASED)
BY_VARIANT = {Variant.FIXED: FIXED, Variant.PAPER: PAPER, Variant.RELEASED: RELEASED}
WORDS, BLOCKS = frozenset({Objective.WORDS}), frozenset({Objective.BLOCKS})

TEXTS = [
    "The quick brown fox jumps over the lazy dog. We search long documents in every house. ",
    "A model finds the vector of every chunk. One two three four five six seven eight nine ten. ",
    "The old river bank is dark. Young dogs run slow under the red light of the house. ",
    "Every query finds some target. The score shows every section of a long document. ",
]

Make = Callable[..., SmithPretraining]


@pytest.fixture
def make(bert_folder: Path) -> Make:
    """A pretraining over the four texts, `repeats` of each, in evaluation mode: no dropout."""

    def make(
        variant: Variant = Variant.FIXED,
        *,
        repeats: int = 2,
        texts: list[str] = TEXTS,
        draw: int = 0,  # of the weights
        **changes: object,
    ) -> SmithPretraining:
        encoder = SmithEncoder.create(bert_folder, BY_VARIANT[variant], device="cpu", seed=draw)
        documents = [encoder.segment(make_document(text[:9], text * repeats)) for text in texts]
        task = SmithPretraining(encoder, documents, replace(SmithSettings(batch_size=4), **changes))
        task.module.eval()
        return task

    return make


def ignore(loss: Tensor) -> None:
    """A backward pass that computes no gradients."""


def test_the_loss_is_the_sum_of_its_parts_and_words_start_at_the_logarithm_of_the_vocabulary(make: Make) -> None:
    task: Task[SmithBatch] = make()
    parts = task.backward(task.batch(0), Tensor.backward)
    assert parts["loss"] == pytest.approx(parts["wp"] + parts["sp"], rel=1e-6)
    task = make(tasks=WORDS)
    expected = math.log(task.encoder.tokenizer.vocabulary_size)
    assert task.backward(task.batch(0), ignore)["wp"] == pytest.approx(expected, abs=0.1)


def test_tokens_of_a_batch_are_counted_and_word_masks_new_at_each_step(make: Make) -> None:
    for variant in Variant:
        task = make(variant, repeats=1)
        assert task.n_tokens(task.batch(0)) == sum(document.coverage.tokens_read for document in task.documents)
    assert {len(way) for way in hidden_by_document(make(), range(6)).values()} == {6}


@pytest.mark.parametrize("variant", Variant)
def test_special_and_padded_tokens_are_never_hidden(make: Make, variant: Variant) -> None:
    task = make(variant)
    special = {*task.encoder.tokenizer.prefix, *task.encoder.tokenizer.suffix, task.encoder.tokenizer.pad_id}
    for step in range(5):
        batch = task.batch(step)
        targets = set(batch.words.targets.unique().tolist()) - {IGNORED}
        assert targets
        assert not targets & special
        assert (batch.words.targets[~batch.mask] == IGNORED).all()


def hidden_by_document(task: SmithPretraining, steps: range) -> dict[str, set[str]]:
    """The different ways in which the words of each document were hidden."""
    seen: dict[str, set[str]] = {}
    for step in steps:
        batch = task.batch(step)
        for ids, targets in zip(
            batch.words.ids.split(batch.n_blocks), batch.words.targets.split(batch.n_blocks), strict=True
        ):
            original = torch.where(targets == IGNORED, ids, targets)
            seen.setdefault(str(original.tolist()), set()).add(str(ids.tolist()))
    return seen


@pytest.mark.parametrize("variant", [Variant.PAPER, Variant.RELEASED])
def test_the_papers_word_masks_are_a_function_of_document_and_seed(make: Make, variant: Variant) -> None:
    ways = hidden_by_document(make(variant, batch_size=2), range(6))
    assert {len(way) for way in ways.values()} == {1}
    assert hidden_by_document(make(variant, batch_size=4), range(2)) == ways
    assert hidden_by_document(make(variant, seed=1), range(2)) != ways


def test_the_released_pool_holds_blocks_that_do_not_exist_and_the_fixed_one_does_not(make: Make) -> None:
    short = [f"{word} fox." for word in ("The", "Old", "Red", "Dark")]  # one block each
    released = make(Variant.RELEASED, repeats=1, texts=short, tasks=BLOCKS)
    batches = [released.batch(step) for step in range(30)]
    assert {len(batch.hidden) for batch in batches} == {8}
    assert {int(block) for batch in batches for block in batch.hidden[:, 1]} == set(range(6))
    assert all(len(pair.unique()) == 2 for batch in batches for pair in batch.hidden[:, 1].split(2))
    assert len(make(repeats=1, texts=short).batch(0).hidden) == 0
    assert len(make(Variant.PAPER, repeats=1, texts=short).batch(0).hidden) == 4


def test_the_fixed_variant_leaves_a_block_to_guess_from(make: Make) -> None:
    task = make(masked_blocks=9)
    for step in range(5):
        batch = task.batch(step)
        assert torch.bincount(batch.hidden[:, 0]).tolist() == [n - 1 for n in batch.n_blocks]
        assert all(block < batch.n_blocks[document] for document, block in batch.hidden.tolist())


def test_every_window_of_a_long_document_is_read_in_turn(make: Make) -> None:
    task = make(texts=["".join(TEXTS)], tasks=BLOCKS)
    document = task.documents[0]
    windows = document_windows(document.chunks, 6)
    assert len(windows) > 2
    read = {str(task.batch(step).words.ids.tolist()) for step in range(30)}
    padded = (task.encoder.pad(document.token_ids[window.first : window.stop])[0] for window in windows)
    assert read == {str(ids.tolist()) for ids in padded}


@pytest.mark.slow
@pytest.mark.parametrize("variant", Variant)
def test_the_block_loss_starts_at_the_logarithm_of_the_candidates(make: Make, variant: Variant) -> None:
    # Random weights of `released` already distinguish blocks, some rightly and some wrongly: take the mean of draws.
    draws = [make(variant, tasks=BLOCKS, draw=draw) for draw in range(12 if variant is Variant.RELEASED else 1)]
    for step in range(3):
        batches = [task.batch(step) for task in draws]
        candidates = {len(batch.hidden) for batch in batches}
        assert candidates == {8 if variant is Variant.RELEASED else 2 * sum(n > 2 for n in batches[0].n_blocks)}
        losses = [task.backward(batch, ignore)["sp"] for task, batch in zip(draws, batches, strict=True)]
        assert fmean(losses) == pytest.approx(math.log(*candidates), abs=0.25)


def block_loss_by_hand(task: SmithPretraining, batch: SmithBatch) -> float:
    """Eq. 4 to 6 of the paper, a hidden block at a time."""
    module = task.module
    document_encoder = module.encoder.document
    assert document_encoder is not None
    truth = task.module.encoder.blocks(batch.words.ids, batch.mask)[1].split(batch.n_blocks)
    hidden = [(int(document), int(block)) for document, block in batch.hidden]
    pool = [
        truth[document][block] if block < len(truth[document]) else module.encoder.padding_block()
        for document, block in hidden
    ]
    losses = []
    for number, (document, block) in enumerate(hidden):
        if block >= len(truth[document]):
            continue
        seen = truth[document].clone()
        for other, its_block in hidden:
            if other == document and its_block < len(seen):
                seen[its_block] = module.hidden_block
        contextual = document_encoder(seen[None], torch.ones(1, len(seen), dtype=torch.bool))[0, block]
        guess = module.block_head(contextual)
        scores = torch.stack([guess @ candidate for candidate in pool])
        if module.slot_bias is not None:
            scores = scores + module.slot_bias[: len(scores)]
        losses.append(-(scores[number] - scores.logsumexp(0)))
    return float(torch.stack(losses).mean())


@pytest.mark.slow
@pytest.mark.parametrize("variant", Variant)
@torch.no_grad()
def test_the_block_loss_is_the_equation(make: Make, variant: Variant) -> None:
    task = make(variant, repeats=1)
    for weights in task.module.parameters():
        if weights.dim() == 2:
            weights.mul_(10)
    if task.module.slot_bias is not None:
        task.module.slot_bias.copy_(torch.arange(8) / 8)
    for step in range(3):
        batch = task.batch(step)
        assert task.backward(batch, ignore)["sp"] == pytest.approx(block_loss_by_hand(task, batch), abs=1e-4)


def word_losses_by_hand(task: SmithPretraining, batch: SmithBatch) -> list[tuple[int, float]]:
    """Block position and loss of every hidden word."""
    tokens, _ = task.module.encoder.blocks(batch.words.ids, batch.mask)
    embeddings = task.module.encoder.sentence.bert.get_input_embeddings().weight
    losses = []
    places = [place for n in batch.n_blocks for place in range(n)]
    for block, at in (batch.words.targets != IGNORED).nonzero().tolist():
        logits = task.module.word_head(tokens[block, at][None], embeddings)
        loss = float(cross_entropy(logits, batch.words.targets[block, at][None]))
        losses.append((places[block], loss))
    return losses


@torch.no_grad()
def test_words_are_reduced_by_mean_or_by_block_position(make: Make) -> None:
    mean, summed = make(tasks=WORDS), make(Variant.RELEASED, tasks=WORDS)
    batch = mean.batch(0)
    losses = [loss for _, loss in word_losses_by_hand(mean, batch)]
    assert mean.backward(batch, ignore)["wp"] == pytest.approx(sum(losses) / len(losses), abs=1e-4)
    batch = summed.batch(0)
    by_place: dict[int, list[float]] = {}
    for place, loss in word_losses_by_hand(summed, batch):
        by_place.setdefault(place, []).append(loss)
    expected = sum(sum(losses) / len(losses) for losses in by_place.values())
    assert len(by_place) > 2
    assert summed.backward(batch, ignore)["wp"] == pytest.approx(expected, abs=1e-3)


def trained_by(task: SmithPretraining) -> set[str]:
    """Names of the weights that get a gradient."""
    task.backward(task.batch(0), Tensor.backward)
    return {name for name, weights in task.module.named_parameters() if weights.grad is not None and weights.grad.any()}


def starting(names: set[str], *parts: str) -> set[str]:
    return {name for name in names if name.startswith(parts)}


def test_words_train_the_token_path_and_blocks_all_but_the_last_layer(make: Make) -> None:
    trained = trained_by(make(tasks=WORDS))
    assert starting(trained, "encoder.sentence.bert.encoder.", "word_head.bias")
    of_blocks = ("encoder.sentence.bert.pooler", "encoder.sentence.dense", "encoder.document", "encoder.heads", "block")
    assert not starting(trained, *of_blocks)
    trained = trained_by(make(tasks=BLOCKS))
    for part in ("sentence.bert.encoder", "sentence.bert.pooler", "sentence.dense"):
        assert starting(trained, f"encoder.{part}")
    assert starting(trained, "encoder.document.encoder", "hidden_block")
    assert not starting(trained, "encoder.heads", "encoder.document.pooler", "word_head")
    hidden = trained_by(make(Variant.PAPER, tasks=BLOCKS, masked_blocks=6))
    assert starting(hidden, "encoder.sentence") and starting(hidden, "encoder.document")


def test_documents_of_one_block_give_a_loss_of_zero_and_no_gradient(make: Make) -> None:
    task = make(repeats=1, texts=["Old fox.", "Red dog."], tasks=BLOCKS)
    calls: list[Tensor] = []
    assert task.backward(task.batch(0), calls.append) == {"sp": 0.0, "loss": 0.0}
    assert calls == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": frozenset()}, "4 documents and 0 objectives; give at least one of each"),
        ({"texts": []}, "0 documents and 2 objectives; give at least one of each"),
    ],
)
def test_settings_that_cannot_be_trained_are_refused(make: Make, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError) as raised:
        make(**changes)
    assert str(raised.value) == message


def test_matchbert_has_no_blocks_to_guess(bert_folder: Path) -> None:
    encoder = SmithEncoder.create(bert_folder, replace(FIXED, max_blocks=1, document_layers=0), device="cpu")
    documents: list[SegmentedDocument] = [encoder.segment(make_document("d", TEXTS[0]))]
    with pytest.raises(TrainingError, match=r"^an encoder of 0 document layers cannot guess blocks"):
        SmithPretraining(encoder, documents, SmithSettings(tasks=frozenset(Objective)))
    task = SmithPretraining(encoder, documents)
    assert task.backward(task.batch(0), Tensor.backward)["wp"] > 1
