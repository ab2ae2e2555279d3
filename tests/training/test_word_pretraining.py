"""Pretraining on hidden words alone: batches of runs of chunks, and a loss that falls."""

from __future__ import annotations

import copy

import pytest
import torch

from engine.encoders.mean import MeanEncoder
from engine.errors import TrainingError
from engine.training.task import Task
from engine.training.tasks.samplers import SAMPLERS, Sampling
from engine.training.tasks.view_pairs import ViewPairs
from engine.training.tasks.word_pretraining import WordBatch, WordPretraining
from tests.fakes import make_document

TEXT = "The quick brown fox jumps over the lazy dog. We search long documents in every house. "


def make(encoder: MeanEncoder, *texts: str) -> WordPretraining:
    documents = [make_document(f"d{number}", text) for number, text in enumerate(texts)]
    pairs = ViewPairs(encoder, documents, SAMPLERS[Sampling.SIMCSE], batch_size=len(texts), max_tokens=24)
    return WordPretraining(encoder, pairs)


def test_a_batch_holds_runs_of_chunks_within_the_limit_of_tokens(mean_encoder: MeanEncoder) -> None:
    task: Task[WordBatch] = make(copy.deepcopy(mean_encoder), TEXT * 4, TEXT, " ")
    batch = task.batch(3)
    assert batch == task.batch(3) != task.batch(4)
    assert len(batch.documents) == 2  # one is blank
    sizes = [sum(map(len, document.token_ids)) for document in batch.documents]
    assert max(sizes) <= 24 and task.n_tokens(batch) == sum(sizes)


@pytest.mark.slow
def test_words_are_learned(mean_encoder: MeanEncoder) -> None:
    task = make(copy.deepcopy(mean_encoder), TEXT, TEXT)
    optimizer = torch.optim.AdamW(task.module.parameters(), lr=3e-3)
    losses = []
    for step in range(40):
        optimizer.zero_grad()
        losses.append(task.backward(task.batch(step), torch.Tensor.backward)["loss"])
        optimizer.step()
    assert sum(losses[-10:]) < 0.8 * sum(losses[:10])


def test_documents_without_text_are_refused(mean_encoder: MeanEncoder) -> None:
    with pytest.raises(TrainingError, match=r"^the 2 documents of step 0 have no text that can be read$"):
        make(mean_encoder, " ", " ").batch(0)
