"""Supervised contrastive training of CoLDE on the sections of documents, and the relations between documents.

Letters in shapes: N vectors of a batch, D width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engine.encoders.colde.encoder import ColdeEncoder
from engine.encoders.colde.sections import PlacedSection
from engine.encoders.encoder import SegmentedDocument
from engine.errors import TrainingError
from engine.training.losses import SMITH_SCALE, bce_of_cosine, supervised_contrastive
from engine.training.settings import COUNT, PROBABILITY, Range, Settings, setting
from engine.training.task import Backward, epoch_slice, full_precision, step_generator

Pairs = NDArray[np.bool_]


@dataclass(frozen=True)
class ContrastSettings(Settings):
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
        """Take the label of every document.

        Raises:
            TrainingError: no two documents have the same label.
        """
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
            own = self.members[number]
            drawn += generator.choice(own, min(settings.n_each, len(own)), replace=False).tolist()
        return drawn

    def relate(self, documents: Sequence[int]) -> tuple[Pairs, Pairs]:
        """Positive where the label is the same; every other pair is negative."""
        own = self.labels[list(documents)]
        return own[:, None] == own, np.zeros((len(own), len(own)), np.bool_)


class Graph:
    """Documents of a pair belong together; documents that share a neighbour may, so they are not negatives.

    The "sets of similar papers" of the paper (section 4.1.1) are not classes where the sets
    overlap, as sets of cited papers do.
    """

    def __init__(self, n_documents: int, pairs: Sequence[tuple[int, int]]) -> None:
        """Take the pairs, in either direction.

        Raises:
            TrainingError: there is no pair of two different documents.
        """
        self.neighbours: list[set[int]] = [set() for _ in range(n_documents)]
        for one, other in pairs:
            if one != other:
                self.neighbours[one].add(other)
                self.neighbours[other].add(one)
        self.anchors = [number for number, own in enumerate(self.neighbours) if own]
        if not self.anchors:
            raise TrainingError(f"no pair of two different documents among {len(pairs)}; give one at least")

    def draw(self, step: int, settings: ContrastSettings) -> list[int]:
        """P documents that have neighbours, each with K - 1 neighbours or all of fewer; no document twice."""
        generator = step_generator(settings.seed, step)
        drawn: dict[int, None] = {}
        for number in epoch_slice(len(self.anchors), settings.n_classes, step, settings.seed):
            anchor = self.anchors[number]
            own = sorted(self.neighbours[anchor])
            chosen = generator.choice(own, min(settings.n_each - 1, len(own)), replace=False).tolist()
            drawn |= dict.fromkeys([anchor, *chosen])
        return list(drawn)

    def relate(self, documents: Sequence[int]) -> tuple[Pairs, Pairs]:
        """Positive where a pair joins them; open where only two pairs through another document do."""
        positives = np.eye(len(documents), dtype=np.bool_)
        open_pairs = np.zeros_like(positives)
        for (i, one), (j, other) in product(enumerate(documents), repeat=2):
            if i != j:
                positives[i, j] = other in self.neighbours[one]
                open_pairs[i, j] = not positives[i, j] and not self.neighbours[one].isdisjoint(self.neighbours[other])
        return positives, open_pairs


@dataclass(frozen=True, slots=True)
class ContrastBatch:
    """Documents of a batch, and how each is read."""

    documents: tuple[int, ...]
    whole: tuple[bool, ...]  # whether it is also read unsplit


class SectionContrast:
    """Draws together the sections of each document and of the documents that belong with it.

    Section 3.3 of CoLDE: a document is split into S sections of one label, and
    `supervised_contrastive` runs over the vectors of all of them. The
    ablations of the paper are "w/o Aug" (S = 1 and `without_positions` in the `ColdeConfig`),
    "w/o LSTM" (`without_lstm` there) and "w/o CL" (`contrastive` off here, and S = 1 there).

    Search encodes documents unsplit, which never occurs in the training of the paper: here
    some are read both ways (`whole_probability`).
    """

    def __init__(
        self,
        encoder: ColdeEncoder,
        documents: Sequence[SegmentedDocument],
        relation: Relation,
        settings: ContrastSettings | None = None,
    ) -> None:
        """Train `encoder` on documents that it segmented."""
        self.encoder = encoder
        self.documents = documents
        self.relation = relation
        self.settings = settings or ContrastSettings()

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
        one, other = (torch.from_numpy(side).to(vectors.device) for side in np.nonzero(pairs))
        cosine = (vectors[one] * vectors[other]).sum(dim=1)
        return bce_of_cosine(cosine, torch.full_like(cosine, is_match), SMITH_SCALE, 0.0)
