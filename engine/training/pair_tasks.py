"""The tasks of CoLDE and TDE over pairs that match or do not: sections of documents, and texts.

Letters in shapes: N vectors of a batch, D width.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from engine.encoders.colde import ColdeEncoder, PlacedSection
from engine.encoders.encoder import SegmentedDocument
from engine.encoders.tde import TdeEncoder, TdeModule
from engine.encoders.trainable import Embedded
from engine.errors import TrainingError
from engine.result import root_of
from engine.settings import ABOVE_ZERO, COUNT, FROM_ZERO, PROBABILITY, Checked, Range, setting
from engine.training.losses import SMITH_SCALE, bce_of_cosine, supervised_contrastive
from engine.training.selection import keep_chunks
from engine.training.task import Backward, backward_in_groups, epoch_slice, full_precision, step_generator, tokens_read

Pairs = NDArray[np.bool_]


@dataclass(frozen=True)
class ContrastSettings(Checked):
    """Settings of the batches, and the choice of the loss."""

    n_classes: int = setting(25, "P: classes of a batch, or documents drawn with their neighbours", COUNT)
    n_each: int = setting(2, "K: documents of a class", Range(least=2))
    whole_probability: float = setting(0.3, "that a document is also read unsplit; 0 in the paper", PROBABILITY)
    contrastive: bool = setting(True, "false is the ablation: cross-entropy of the cosines of whole documents")
    seed: int = 0


class Relation(Protocol):
    """The known relations between documents, which are positions in a list."""

    def draw(self, step: int, settings: ContrastSettings) -> list[int]:
        """Different documents for the batch of a step, each with some that belong with it."""

    def relate(self, documents: Sequence[int]) -> tuple[Pairs, Pairs]:
        """Positive pairs of these documents, and pairs that are neither positive nor negative: two (B, B) arrays."""


class Classes:
    """Documents of one label belong together, documents of different labels do not."""

    def __init__(self, labels: Sequence[int]) -> None:
        """Take the label of every document."""
        self.labels = np.array(labels, np.int64)
        members = [np.flatnonzero(self.labels == label) for label in np.unique(self.labels)]
        self.members = [member for member in members if len(member) > 1]
        if not self.members:
            raise TrainingError(f"{len(labels)} documents have as many labels; give some of them the same")

    def draw(self, step: int, settings: ContrastSettings) -> list[int]:
        """P classes of at least two documents, K documents of each, or all of a smaller class."""
        generator = step_generator(settings.seed, step)
        drawn: list[int] = []
        for number in epoch_slice(len(self.members), settings.n_classes, step, settings.seed):
            members = self.members[number]
            drawn += generator.choice(members, min(settings.n_each, len(members)), replace=False).tolist()
        return drawn

    def relate(self, documents: Sequence[int]) -> tuple[Pairs, Pairs]:
        """Positive where the label is the same; every other pair is negative."""
        labels = self.labels[list(documents)]
        return labels[:, None] == labels, np.zeros((len(labels), len(labels)), np.bool_)


class PairGraph:
    """Documents of a pair belong together; documents that share a neighbour may, so they are not negatives.

    The "sets of similar papers" of the paper (section 4.1.1) are not classes where the sets
    overlap, as sets of cited papers do.
    """

    def __init__(self, n_documents: int, pairs: Sequence[tuple[int, int]]) -> None:
        """Take the pairs, in either direction."""
        self.neighbours: list[set[int]] = [set() for _ in range(n_documents)]
        for first, second in pairs:
            if first != second:
                self.neighbours[first].add(second)
                self.neighbours[second].add(first)
        self.anchors = [number for number, neighbours in enumerate(self.neighbours) if neighbours]
        if not self.anchors:
            raise TrainingError(f"no pair of two different documents among {len(pairs)}; give one at least")

    def draw(self, step: int, settings: ContrastSettings) -> list[int]:
        """P documents that have neighbours, each with K - 1 neighbours or all of fewer; no document twice."""
        generator = step_generator(settings.seed, step)
        drawn: dict[int, None] = {}
        for number in epoch_slice(len(self.anchors), settings.n_classes, step, settings.seed):
            anchor = self.anchors[number]
            members = sorted(self.neighbours[anchor])
            chosen = generator.choice(members, min(settings.n_each - 1, len(members)), replace=False).tolist()
            drawn |= dict.fromkeys([anchor, *chosen])
        return list(drawn)

    def relate(self, documents: Sequence[int]) -> tuple[Pairs, Pairs]:
        """Positive where a pair joins them; open where only two pairs through another document do."""
        positives = np.eye(len(documents), dtype=np.bool_)
        open_pairs = np.zeros_like(positives)
        for (i, first), (j, second) in product(enumerate(documents), repeat=2):
            if i != j:
                positives[i, j] = second in self.neighbours[first]
                open_pairs[i, j] = not positives[i, j] and not self.neighbours[first].isdisjoint(
                    self.neighbours[second]
                )
        return positives, open_pairs


@dataclass(frozen=True, slots=True)
class ContrastBatch:
    """Documents of a batch, and how each is read."""

    documents: tuple[int, ...]
    whole: tuple[bool, ...]  # whether it is also read unsplit


@dataclass(eq=False)
class SectionContrast:
    """Draws together the sections of each document and of the documents that belong with it.

    Section 3.3 of CoLDE: a document is split into S sections of one label, and
    `supervised_contrastive` runs over the vectors of all of them. The
    ablations of the paper are "w/o Aug" (S = 1 and `without_positions` in the `ColdeConfig`),
    "w/o LSTM" (`without_lstm` there) and "w/o CL" (`contrastive` off here, and S = 1 there).

    Search encodes documents unsplit, which never occurs in the training of the paper: here
    some are read both ways (`whole_probability`).
    """

    encoder: ColdeEncoder
    documents: Sequence[SegmentedDocument]  # segmented by the encoder
    relation: Relation
    settings: ContrastSettings

    @property
    def module(self) -> nn.Module:
        """All parameters of the encoder; the task has no others."""
        return self.encoder.module

    def batch(self, step: int) -> ContrastBatch:
        """Draw the batch of a step; see `Relation.draw`."""
        drawn = self.relation.draw(step, self.settings)
        chance = step_generator(self.settings.seed + 1, step).random(len(drawn))
        splits = self.settings.contrastive and self.encoder.config.n_sections > 1
        whole = tuple(bool(value < self.settings.whole_probability) and splits for value in chance)
        return ContrastBatch(tuple(drawn), whole)

    def n_tokens(self, batch: ContrastBatch) -> int:
        """Tokens that the encoder reads of a batch, those of whole views too; see `Task.n_tokens`."""
        _, views = self._views(batch)
        return sum(len(chunk.token_ids) for sections in views for section in sections for chunk in section)

    def backward(self, batch: ContrastBatch, backward: Backward) -> Mapping[str, float]:
        """Loss of a batch, and its gradients; see `Task.backward`."""
        numbers, views = self._views(batch)
        vectors = self.encoder.embed_sections(views)  # (N, D)
        with full_precision(vectors.device):
            if self.settings.contrastive:
                owners = [number for number, sections in zip(numbers, views, strict=True) for _ in sections]
                loss = self._contrast(vectors, batch.documents, owners)
            else:
                loss = self._cross_entropy(vectors, batch.documents)
        backward(loss)
        return {"loss": loss.item()}

    def _views(self, batch: ContrastBatch) -> tuple[list[int], list[tuple[PlacedSection, ...]]]:
        """The views of the documents of a batch, after the position of each view's document in the batch."""
        owners: list[int] = []
        views: list[tuple[PlacedSection, ...]] = []
        n_sections = self.encoder.config.n_sections if self.settings.contrastive else 1
        for number, (document, whole) in enumerate(zip(batch.documents, batch.whole, strict=True)):
            for parts in (n_sections, 1) if whole else (n_sections,):
                owners.append(number)
                views.append(self.encoder.split(self.documents[document], parts))
        return owners, views

    def _contrast(self, vectors: Tensor, documents: Sequence[int], owners: list[int]) -> Tensor:
        """The loss over the vectors of sections; `owners` has the position of each section's document."""
        positives, open_pairs = (pairs[np.ix_(owners, owners)] for pairs in self.relation.relate(documents))
        return supervised_contrastive(
            vectors,
            torch.from_numpy(positives).to(vectors.device),
            temperature=self.encoder.config.temperature,
            ignored=torch.from_numpy(open_pairs).to(vectors.device),
        )

    def _cross_entropy(self, vectors: Tensor, documents: Sequence[int]) -> Tensor:
        """The average of the mean over positive pairs and the mean over negative pairs, so that both count the same.

        The paper says "cosine similarity" for this loss; the logit is that of SMITH's code.
        """
        positives, open_pairs = self.relation.relate(documents)
        above = np.triu(np.ones_like(positives), k=1)
        losses = [
            self._mean_cross_entropy(vectors, pairs & above, is_match)
            for pairs, is_match in ((positives, True), (~positives & ~open_pairs, False))
            if (pairs & above).any()
        ]
        return torch.stack(losses).mean()

    def _mean_cross_entropy(self, vectors: Tensor, pairs: Pairs, is_match: bool) -> Tensor:
        left, right = (torch.from_numpy(side).to(vectors.device) for side in np.nonzero(pairs))
        cosine = (vectors[left] * vectors[right]).sum(dim=1)
        return bce_of_cosine(cosine, torch.full_like(cosine, is_match), SMITH_SCALE, 0.0)


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
class TextPairsSettings(Checked):
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


@dataclass(eq=False)
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

    encoder: TdeEncoder
    texts: Sequence[SegmentedDocument]  # segmented by the encoder
    pairs: Sequence[LabelledPair]
    settings: TextPairsSettings = TextPairsSettings()
    seed: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        if min(self.settings.batch_pairs, len(self.pairs)) < _FEWEST_PAIRS:
            raise TrainingError(
                f"a batch of {self.settings.batch_pairs} out of {len(self.pairs)} pairs has too few texts that do not "
                f"match; give at least {_FEWEST_PAIRS} of both"
            )

    @property
    def module(self) -> TdeModule:
        """Backbone, topics and pair head."""
        return self.encoder.module

    def batch(self, step: int) -> TextPairBatch:
        """Draw pairs, each once per epoch, and sentences of texts that have more than `max_sentences`."""
        picked = [
            self.pairs[position]
            for position in epoch_slice(len(self.pairs), self.settings.batch_pairs, step, self.seed)
        ]
        texts = sorted({position for pair in picked for position in (pair.query, pair.target)})
        place = {position: number for number, position in enumerate(texts)}
        rng = step_generator(self.seed, step)
        return TextPairBatch(
            tuple(sampled(self.texts[position], self.settings.max_sentences, rng) for position in texts),
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
    parents: dict[int, int] = {}
    for pair in pairs:
        if pair.matches:
            first, other = sorted((root_of(parents, pair.query), root_of(parents, pair.target)))
            parents[other] = first
    return [root_of(parents, text) for text in range(n_texts)]


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
