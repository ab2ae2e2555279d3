"""Pretraining by Contrastive Tension: two equal encoders learn to agree on the same text, and on no other."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engine.encoders.encoder import SegmentedDocument
from engine.encoders.mean import TOKEN_BUDGET, MeanEncoder
from engine.errors import DocumentError, TrainingError
from engine.training.precision import full_precision
from engine.training.task import Backward, epoch_slice, step_generator, tokens_read
from engine.training.tasks.objectives import contrastive_tension
from engine.training.tasks.view_pairs import ViewPairs


@dataclass(frozen=True, slots=True)
class TensionBatch:
    """P texts for the first encoder; for the second the same texts, each followed by K others."""

    one: tuple[SegmentedDocument, ...]  # P
    other: tuple[SegmentedDocument, ...]  # P (K + 1)
    labels: tuple[bool, ...]  # P (K + 1)


class ContrastiveTension:
    """A `Task`: Carlsson et al. (2021), "Semantic Re-tuning with Contrastive Tension".

        L = mean BCE( <f_1(s), f_2(x)>, x = s )  over x = s and K random other texts, for each s

    with raw dot products and means over tokens. The encoders start equal and share no
    parameters. The first encoder encodes a text once, where the paper encodes it K + 1
    times; only dropout differs. The optimizer is the trainer's AdamW with its schedule,
    where the authors use RMSprop with learning rates that fall from 1e-5 to 2e-6 in four steps.
    """

    def __init__(self, encoder: MeanEncoder, pairs: ViewPairs, *, negatives: int = 7) -> None:
        """Hold an encoder and a copy of it.

        Args:
            encoder: its parameters are trained.
            pairs: segmented by the same encoder. Its batch size counts the pairs of texts, of which K in
                K + 1 are of different texts. Its sampler is not used: both encoders read the same text.
            negatives: K, at least 1.

        Raises:
            TrainingError: K is below 1, there are fewer than K other documents, or the batch size is not a
                multiple of K + 1.
        """
        if not 1 <= negatives < len(pairs.documents):
            raise TrainingError(
                f"{negatives} negatives must be at least 1, and fewer than the {len(pairs.documents)} documents"
            )
        if pairs.batch_size % (negatives + 1):
            raise TrainingError(
                f"a batch of {pairs.batch_size} pairs is no multiple of one text with {negatives} others; "
                f"take {max(1, pairs.batch_size // (negatives + 1)) * (negatives + 1)}"
            )
        self.encoders = (encoder, copy.deepcopy(encoder))
        self.pairs = pairs
        self.negatives = negatives
        self.module = nn.ModuleDict({"one": encoder.module, "other": self.encoders[1].module})

    def batch(self, step: int) -> TensionBatch:
        """See `Task.batch`."""
        pairs = self.pairs
        rng = step_generator(pairs.seed, step)
        n_texts = pairs.batch_size // (self.negatives + 1)
        one, other, labels = [], [], []
        for position in epoch_slice(len(pairs.documents), n_texts, step, pairs.seed):
            drawn = rng.choice(len(pairs.documents) - 1, self.negatives, replace=False)
            # Positions from `position` on move up by one, so that a text is not its own negative.
            places = [position, *(int(place) + (place >= position) for place in drawn)]
            try:
                texts = [pairs.stretch(pairs.documents[place], rng) for place in places]
            except DocumentError:
                continue
            one.append(texts[0])
            other += texts
            labels += [True] + [False] * self.negatives
        if not one:
            raise TrainingError(f"the {n_texts} documents of step {step} have no text that can be read")
        return TensionBatch(tuple(one), tuple(other), tuple(labels))

    def n_tokens(self, batch: TensionBatch) -> int:
        """Tokens that the two encoders read; see `Task.n_tokens`."""
        return tokens_read((*batch.one, *batch.other))

    def backward(self, batch: TensionBatch, backward: Backward) -> Mapping[str, float]:
        """See `Task.backward`."""
        one = raw_vectors(self.encoders[0], batch.one).repeat_interleave(self.negatives + 1, dim=0)
        other = raw_vectors(self.encoders[1], batch.other)
        with full_precision(one.device):
            loss = contrastive_tension(one, other, torch.tensor(batch.labels, device=one.device))
        backward(loss)
        return {"loss": loss.item()}

    def better(self, quality: Callable[[MeanEncoder], float]) -> MeanEncoder:
        """The encoder of higher quality; the first one where they are equal."""
        return max(self.encoders, key=quality)


def raw_vectors(encoder: MeanEncoder, documents: Sequence[SegmentedDocument]) -> Tensor:
    """(B, D) means over the tokens of documents, not of unit length."""
    sequences = [ids for document in documents for ids in document.token_ids]
    pooled = encoder.backbone.pool(sequences, TOKEN_BUDGET)
    vectors = []
    with full_precision(pooled.device):
        for document, own in zip(documents, torch.split(pooled, [len(one.chunks) for one in documents]), strict=True):
            tokens = torch.tensor([chunk.n_tokens for chunk in document.chunks], dtype=own.dtype, device=own.device)
            vectors.append(tokens @ own / tokens.sum())
    return torch.stack(vectors)
