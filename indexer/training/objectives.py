"""Training objectives as values: a class for each objective, with its own settings. Trains nothing.

The model card prints the first sentence of each class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from engine.errors import TrainingError
from engine.training.tasks.fine_tuning import FineTuningSettings, Loss
from engine.training.tasks.samplers import Sampling
from engine.training.tasks.section_contrast import ContrastSettings
from engine.training.tasks.smith_pretraining import Objective as SmithLoss
from engine.training.tasks.text_pairs import TextPairsSettings


class Negatives(StrEnum):
    """Where hard negatives come from."""

    MODEL = "model"  # search of an index made by the encoder that training starts from
    BM25 = "bm25"
    NONE = "none"  # no hard negatives


@dataclass(frozen=True)
class PairsObjective:
    """Ranks the targets of each query above the other documents of a batch.

    Raises:
        TrainingError: distillation and its teacher are not given together.
    """

    name: ClassVar[str] = "pairs"
    settings: FineTuningSettings = field(default_factory=FineTuningSettings)
    miner: Negatives = Negatives.MODEL
    teacher: str = ""  # an encoder, for the loss "distillation"
    query_chunks: int = 6  # maximum of a query that a step encodes
    target_chunks: int = 4  # maximum of a target

    def __post_init__(self) -> None:
        """Check that a teacher is given if, and only if, a loss needs it."""
        is_wanted = bool(self.settings.losses.get(Loss.DISTILLATION))
        if is_wanted and not self.teacher:
            raise TrainingError("distillation needs a teacher; name a stronger encoder: --teacher NAME")
        if self.teacher and not is_wanted:
            raise TrainingError(f"no loss learns from the teacher {self.teacher}; add --loss distillation=1")


@dataclass(frozen=True)
class SectionsObjective:
    """Draws together the sections of each document and of the documents that belong with it, as CoLDE does."""

    name: ClassVar[str] = "sections"
    settings: ContrastSettings = field(default_factory=ContrastSettings)  # its seed is that of the run


@dataclass(frozen=True)
class TextPairsObjective:
    """Distinguishes texts that match from texts that do not, sentence by sentence and by topics, as TDE does.

    Raises:
        TrainingError: there are no positives, or no negatives.
    """

    name: ClassVar[str] = "text-pairs"
    settings: TextPairsSettings = field(default_factory=TextPairsSettings)
    miner: Negatives = Negatives.MODEL
    positives_per_query: int = 10  # at most; drawn from the members of a large class
    negatives_per_positive: int = 1  # hard ones as long as the miner has any, then random ones

    def __post_init__(self) -> None:
        """Check the ranges."""
        if min(self.positives_per_query, self.negatives_per_positive) < 1:
            raise TrainingError(
                f"{self.positives_per_query} positives of a query and {self.negatives_per_positive} negatives per "
                "positive leave nothing to compare; give at least 1 of both"
            )


@dataclass(frozen=True)
class ViewsObjective:
    """Draws the two views of each document together, and views of different documents apart.

    With a queue, the views of earlier steps are negatives too (Momentum Contrast).

    Raises:
        TrainingError: a setting of the loss does not work with a queue.
    """

    name: ClassVar[str] = "views"
    sampling: Sampling = Sampling.DOCSPLIT
    batch_size: int = 36
    view_tokens: int = 512  # maximum of a view
    joined_views: bool = False  # a view is one chunk, across headings, as published
    temperature: float = 0.05
    symmetric: bool = False
    mlm_weight: float = 0.0  # of the masked-word loss
    mlp_head: bool = False
    queue: int = 0
    momentum: float = 0.9995  # of the encoder that fills the queue
    group_tokens: int | None = None  # maximum tokens with a graph at a time

    def __post_init__(self) -> None:
        """Check that the settings of the loss fit the queue."""
        if self.queue and (self.symmetric or self.mlm_weight or self.mlp_head or self.group_tokens):
            raise TrainingError(
                f"a queue of {self.queue} goes with none of symmetric, mlm weight, mlp head and group tokens; "
                "leave them out, or train with the negatives of the batch: --queue 0"
            )


@dataclass(frozen=True)
class TensionObjective:
    """Trains two encoders to agree on the same text and on no other (Contrastive Tension)."""

    name: ClassVar[str] = "ct"
    batch_size: int = 16  # pairs, of which one in negatives + 1 is the same text twice
    view_tokens: int = 512
    negatives: int = 7


@dataclass(frozen=True)
class WordsObjective:
    """Predicts masked words, as BERT does."""

    name: ClassVar[str] = "words"
    batch_size: int = 32
    view_tokens: int = 512
    group_tokens: int | None = None


@dataclass(frozen=True)
class SmithObjective:
    """Predicts masked words and masked sentence blocks, as SMITH does."""

    name: ClassVar[str] = "smith"
    losses: frozenset[SmithLoss] | None = None  # by default all that the encoder can learn
    batch_size: int = 32


FineTuningObjective = PairsObjective | SectionsObjective | TextPairsObjective
PretrainingObjective = ViewsObjective | TensionObjective | WordsObjective | SmithObjective
