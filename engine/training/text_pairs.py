"""The training of TDE: first the topics by themselves, then its task, pairs of texts that match or do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from engine.encoders.encoder import SegmentedDocument
from engine.encoders.tde.encoder import TdeEncoder
from engine.encoders.tde.layers import TdeModule
from engine.encoders.trainable import Embedded
from engine.errors import TrainingError
from engine.training.losses import supervised_contrastive
from engine.training.selection import keep_chunks
from engine.training.settings import ABOVE_ZERO, COUNT, FROM_ZERO, Settings, setting
from engine.training.task import Backward, backward_in_groups, epoch_slice, full_precision, step_generator, tokens_read

# The paper gives no learning rates. A BERT is tuned at the usual rate; topics and head begin at random.
BACKBONE_RATE = 2e-5
HEAD_RATE = 1e-3
_FEWEST_PAIRS = 8  # a matched pair alone has no negatives


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two texts, and whether they match."""

    query: int  # position among the texts
    target: int
    matches: bool


@dataclass(frozen=True)
class TextPairsSettings(Settings):
    """Settings of the training of a TDE; the paper gives only the temperature."""

    batch_pairs: int = setting(8, "pairs of a batch", COUNT)
    max_sentences: int = setting(64, "sentences of a text in a batch; of longer texts, this number is drawn", COUNT)
    temperature: float = setting(0.07, "temperature of the loss over sentences", ABOVE_ZERO)
    contrastive_weight: float = setting(1.0, "weight of the loss over sentences, lambda_1", FROM_ZERO)
    classification_weight: float = setting(1.0, "weight of the pair head, lambda_2", FROM_ZERO)
    group_tokens: int | None = setting(None, "most tokens of a backward pass; fewer need less memory", COUNT)


@dataclass(frozen=True, slots=True)
class TextPairBatch:
    """Some pairs, and their texts."""

    texts: tuple[SegmentedDocument, ...]  # each one once
    pairs: tuple[LabelledPair, ...]  # by position among these texts


class TextPairs:
    """A `Task`: trains a TDE to predict which texts match.

        L = L_etm + lambda_1 L_sc + lambda_2 L_ce

    L_etm is `EmbeddedTopicModel.loss`, half of it the mean over whole texts, half over
    sentences. L_sc draws the sentences of a class together (`supervised_contrastive`
    over chunk vectors; the factor 1/|P_i| is inside the sum, where eq. 2 as printed has it
    outside). Texts that match, directly or through other texts of the batch, are one class;
    the paper says only that texts which do not match are of two classes. L_ce is the
    cross-entropy of the pair head, as in eq. 1.
    """

    def __init__(
        self,
        encoder: TdeEncoder,
        texts: Sequence[SegmentedDocument],
        pairs: Sequence[LabelledPair],
        settings: TextPairsSettings | None = None,
        *,
        seed: int = 0,
    ) -> None:
        """Train on texts that the encoder segmented.

        Raises:
            TrainingError: there are fewer than 8 pairs, in all or in a batch.
        """
        self.settings = settings or TextPairsSettings()
        if min(self.settings.batch_pairs, len(pairs)) < _FEWEST_PAIRS:
            raise TrainingError(
                f"a batch of {self.settings.batch_pairs} out of {len(pairs)} pairs has too few texts that do not "
                f"match; give at least {_FEWEST_PAIRS} of both"
            )
        self.encoder = encoder
        self.pairs = tuple(pairs)
        self._texts = texts
        self._seed = seed

    @property
    def module(self) -> TdeModule:
        """Backbone, topics and pair head."""
        return self.encoder.module

    def batch(self, step: int) -> TextPairBatch:
        """Draw pairs, each once per epoch, and sentences of texts that have more than `max_sentences`."""
        picked = [
            self.pairs[position]
            for position in epoch_slice(len(self.pairs), self.settings.batch_pairs, step, self._seed)
        ]
        texts = sorted({position for pair in picked for position in (pair.query, pair.target)})
        place = {position: number for number, position in enumerate(texts)}
        rng = step_generator(self._seed, step)
        return TextPairBatch(
            tuple(sampled(self._texts[position], self.settings.max_sentences, rng) for position in texts),
            tuple(LabelledPair(place[pair.query], place[pair.target], pair.matches) for pair in picked),
        )

    def n_tokens(self, batch: TextPairBatch) -> int:
        """See `Task.n_tokens`."""
        return tokens_read(batch.texts)

    def backward(self, batch: TextPairBatch, backward: Backward) -> Mapping[str, float]:
        """See `Task.backward`; the parts are the terms of L, not weighted."""
        parts: dict[str, Tensor] = {}

        def loss(embedded: Embedded) -> Tensor:
            with full_precision(embedded.documents.device):
                parts.update(self.losses(batch, embedded))
            return (
                parts["topics"]
                + self.settings.contrastive_weight * parts["contrastive"]
                + self.settings.classification_weight * parts["classification"]
            )

        whole = backward_in_groups(self.encoder, batch.texts, loss, backward, self.settings.group_tokens)
        return {"loss": whole, **{name: value.item() for name, value in parts.items()}}

    def losses(self, batch: TextPairBatch, embedded: Embedded) -> dict[str, Tensor]:
        """L_etm ("topics"; 0 without a topic model), L_sc ("contrastive") and L_ce ("classification")."""
        device = embedded.documents.device
        queries = torch.tensor([pair.query for pair in batch.pairs], device=device)
        targets = torch.tensor([pair.target for pair in batch.pairs], device=device)
        labels = torch.tensor([int(pair.matches) for pair in batch.pairs], device=device)
        logits = self.module.head(embedded.documents[queries], embedded.documents[targets])
        classes = torch.tensor(match_classes(len(batch.texts), batch.pairs), device=device)
        of_sentences = classes.repeat_interleave(embedded.mask.sum(1))  # (N,), N sentences of all texts
        return {
            "topics": self._topic_loss(batch.texts),
            "contrastive": supervised_contrastive(
                embedded.chunks[embedded.mask],
                of_sentences[:, None] == of_sentences,
                temperature=self.settings.temperature,
            ),
            "classification": cross_entropy(logits, labels),
        }

    def _topic_loss(self, texts: Sequence[SegmentedDocument]) -> Tensor:
        if self.module.topics is None:
            return torch.zeros((), device=self.encoder.backbone.device)
        model = self.module.topics.model
        whole = [text.document.text for text in texts]
        sentences = [text.document.text[chunk.start : chunk.stop] for text in texts for chunk in text.chunks]
        return (model.loss(model.bags(whole)).mean() + model.loss(model.bags(sentences)).mean()) / 2


def sampled(text: SegmentedDocument, n: int, rng: np.random.Generator) -> SegmentedDocument:
    """At most n chunks of a document, drawn uniformly, in reading order."""
    if len(text.chunks) <= n:
        return text
    return keep_chunks(text, rng.choice(len(text.chunks), n, replace=False))


def match_classes(n_texts: int, pairs: Sequence[LabelledPair]) -> list[int]:
    """For each text the first text of its class; matching pairs join classes (union-find)."""
    parents = list(range(n_texts))

    def root(text: int) -> int:
        while parents[text] != text:
            parents[text] = parents[parents[text]]
            text = parents[text]
        return text

    for pair in pairs:
        if pair.matches:
            first, other = sorted((root(pair.query), root(pair.target)))
            parents[other] = first
    return [root(text) for text in range(n_texts)]


def pretrain_topics(
    encoder: TdeEncoder,
    texts: Sequence[str],
    *,
    epochs: int = 200,
    batch_texts: int = 1000,
    learning_rate: float = 0.005,
    weight_decay: float = 1.2e-6,
    seed: int = 0,
) -> list[float]:
    """Fit the topic model of an encoder by itself, with the settings of its authors' code.

    Returns:
        The mean of `EmbeddedTopicModel.loss` in each epoch.

    Raises:
        TrainingError: there is no topic model, or no text has a word of its vocabulary.
    """
    if encoder.module.topics is None:
        raise TrainingError("the encoder has n_topics 0, so no topics to fit; create it with n_topics 50, say")
    model = encoder.module.topics.model
    bags = model.bags(texts)
    known = bags.lengths.nonzero().squeeze(1)
    if not len(known):
        raise TrainingError(
            f"none of {len(texts)} texts has one of the {len(model.vocabulary)} words of the vocabulary; "
            "fit it to texts like these"
        )
    bags = bags.take(known)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, weight_decay=weight_decay)
    n_steps = len(known) // min(batch_texts, len(known))
    means: list[float] = []
    was_training = model.training
    model.train()
    with torch.random.fork_rng(devices=[known.device] if known.is_cuda else []):
        torch.manual_seed(seed)
        for epoch in range(epochs):
            losses = []
            for step in range(epoch * n_steps, (epoch + 1) * n_steps):
                picked = torch.tensor(epoch_slice(len(known), batch_texts, step, seed), device=known.device)
                loss = model.loss(bags.take(picked)).mean()
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                losses.append(loss.item())
            means.append(float(np.mean(losses)))
    model.train(was_training)
    return means
