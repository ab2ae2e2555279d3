"""Variants that are trained on labelled pairs: a recipe of pair matching, and what of it is otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from benchmarks.pairs.comparing import Comparison
from benchmarks.pairs.pair_tasks import Learned
from benchmarks.pairs.recipes import recipe
from benchmarks.pairs.scorer import Budget
from benchmarks.pairs.selection import Selection
from benchmarks.pairs.trained_encoders import Recipe, TrainedEncoder
from benchmarks.papers.comparison import Conditions, Scale, Size, flat
from benchmarks.systems import Settings
from engine.encoders.backbone.backbone import Backbone
from engine.encoders.smith.encoder import SmithEncoder
from engine.encoders.trainable import TrainableEncoder
from engine.encoders.variant import Variant
from engine.errors import TrainingError

LearnedT = TypeVar("LearnedT", bound=Learned)
# Looks at valid count against the seconds: ten of them would leave a run of some minutes no time to train.
_SELECTION = Selection(pairs=100, looks=2, patience=2)
_SECTIONS, _CHUNKS = "n_sections", "max_chunks"  # sizes of a CoLDE


@dataclass(frozen=True)
class EncoderArm:
    """How an encoder of a comparison is trained."""

    recipe: str  # of `benchmarks.pairs.recipes`
    sizes: Mapping[str, str] = field(default_factory=dict)  # of a new encoder, beside those of the recipe
    variant: Variant | None = None  # of a new encoder, in place of the recipe's
    learned: Mapping[str, float] = field(default_factory=dict)  # what is minimised, beside the recipe's
    comparison: Comparison | None = None  # in place of the recipe's
    batch: int | None = None  # in place of the scale's
    training_tokens: int | None = None  # likewise
    budgets: float = 1.0  # of steps and of seconds: 2 where pretraining comes on top, 1/2 for batches twice as large

    @property
    def settings(self) -> Settings:
        """See `Arm.settings`."""
        return flat({one.name: getattr(self, one.name) for one in fields(self)})

    def budget(self, scale: Scale) -> Budget:
        """What it may spend."""
        return Budget(
            steps=max(1, round(scale.steps * self.budgets)),
            pairs_per_step=self.batch or scale.batch,
            seconds=scale.seconds * max(1.0, self.budgets),
        )

    def tokens(self, scale: Scale) -> int:
        """Of a document that are read in an update."""
        return self.training_tokens or scale.training_tokens

    def scorer(self, conditions: Conditions) -> TrainedEncoder:
        """What learns from pairs and scores them, not trained yet.

        Raises:
            TrainingError: what is to be otherwise is nothing of the recipe.
            EncoderError: the recipe needs another backbone.
        """
        tokens = self.tokens(conditions.scale)
        made = self._changed(recipe(self.recipe, conditions.encoder, tokens))
        return TrainedEncoder(self.recipe, made, training_tokens=tokens, device=conditions.device, selection=_SELECTION)

    def _changed(self, base: Recipe) -> Recipe:
        start, new = base.start, base.start.new
        if new is not None:
            sizes = {**new.sizes, **_refitted(new.sizes, self.sizes), **self.sizes}
            start = replace(start, new=replace(new, sizes=sizes, variant=self.variant or new.variant))
        elif self.sizes or self.variant:
            raise TrainingError(f"the recipe {self.recipe} makes no new encoder, so its sizes and variant are given")
        return replace(
            base,
            start=start,
            learned=_replaced(base.learned, self.learned),
            comparison=self.comparison or base.comparison,
        )


def size_of(encoder: TrainableEncoder) -> Size:
    """Layers, width of a state, weights; layers of topics, attention and heads are not counted as such."""
    weights = sum(weight.numel() for weight in encoder.module.parameters())
    if isinstance(encoder, SmithEncoder):
        config = encoder.config
        return Size(config.sentence_layers + config.document_layers, config.width, weights)
    backbone = getattr(encoder, "backbone", None)
    if not isinstance(backbone, Backbone):
        raise TrainingError(f"an encoder of type {encoder.kind} tells no number of layers; compare those of a backbone")
    return Size(backbone.model.config.num_hidden_layers, backbone.width, weights)


def _refitted(own: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str]:
    """As many chunks of a document in all, where it is cut into another number of sections."""
    if _SECTIONS not in asked or _CHUNKS not in own:
        return {}
    n_chunks = int(own[_CHUNKS]) * int(own.get(_SECTIONS, "2"))
    return {_CHUNKS: str(max(1, n_chunks // int(asked[_SECTIONS])))}


def _replaced(learned: LearnedT, changes: Mapping[str, Any]) -> LearnedT:
    known = [one.name for one in fields(learned)]
    if unknown := [name for name in changes if name not in known]:
        raise TrainingError(f"{type(learned).__name__} has no {unknown[0]!r}; it has {', '.join(known)}")
    return replace(learned, **changes)
