"""Pair matching as the task of a comparison: encoders trained on pairs, by a recipe and what of it is otherwise."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from benchmarks.pairs.comparing import Comparison
from benchmarks.pairs.judging import is_correct
from benchmarks.pairs.pair_tasks import Learned
from benchmarks.pairs.recipes import recipe
from benchmarks.pairs.scorer import Budget
from benchmarks.pairs.selection import Selection
from benchmarks.pairs.sources import Asked, prepared_pairs
from benchmarks.pairs.splitting import PairSplits, Split, SplitRule, documents_of, pairs_checksum
from benchmarks.pairs.tables import PairsDetails
from benchmarks.pairs.trained_encoders import Recipe, TrainedEncoder
from benchmarks.papers.comparison import Conditions, Measured, Scale, Size, flat
from benchmarks.prepare import encoder_label
from benchmarks.quick import first_words
from benchmarks.systems import Settings
from benchmarks.tasks.pairs import Trial, measure
from engine.encoders.backbone.backbone import Backbone
from engine.encoders.backbone.weights import resolve_backbone, weights_sha256
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


ACCURACY = "accuracy"


@dataclass(frozen=True)
class MatchingTask:
    """Pairs of a corpus; a case of the scale is a pair that matches, with one that does not.

    No document stands in two splits. The threshold is that of best accuracy on valid.
    """

    dataset: str  # of `benchmarks.datasets`
    protocol: str = "aan"  # of `benchmarks.pairs.building`

    @property
    def metric(self) -> str:
        """See `Task.metric`."""
        return ACCURACY

    def open(self, conditions: Conditions) -> MatchingBench:
        """See `Task.open`."""
        return MatchingBench(self, conditions)


class MatchingBench:
    """Pairs of a corpus, and their documents."""

    def __init__(self, task: MatchingTask, conditions: Conditions) -> None:
        """Read the corpus and draw its pairs.

        Raises:
            DatasetError: the corpus is not there, or too few pairs are left.
            EncoderError: the backbone cannot be found.
        """
        scale, seed = conditions.scale, conditions.origin.seed
        most = max(scale.n_train, scale.n_test)
        asked = Asked(task.protocol, SplitRule.DOCUMENT, None, seed, most)
        prepared = prepared_pairs(task.dataset, conditions.data, asked)
        splits = _cut(
            prepared.splits, {Split.TRAIN: scale.n_train, Split.VALID: scale.n_test, Split.TEST: scale.n_test}
        )
        named = {doc_id for pairs in splits.values() for doc_id in documents_of(pairs)}
        self.conditions = conditions
        self.trial = Trial(
            dataset=prepared.dataset,
            protocol=task.protocol,
            rule=asked.rule,
            documents={
                doc_id: first_words(document, scale.max_words)
                for doc_id, document in prepared.documents.items()
                if doc_id in named
            },
            splits=splits,
            n_lost=prepared.n_lost,
            budget=Budget(),  # gives way to the arm's
            origin=conditions.origin,
        )
        self._backbone = backbone_label(conditions.encoder)

    @property
    def settings(self) -> Settings:
        """See `Bench.settings`."""
        trial = self.trial
        return {
            "dataset": trial.dataset,
            "protocol": trial.protocol,
            "split_rule": trial.rule.value,
            "pairs": pairs_checksum(trial.splits),
            "n_test_pairs": len(trial.splits[Split.TEST]),
            "backbone": self._backbone,
        }

    @property
    def groups(self) -> list[int]:
        """Of each pair of test the number of its first document: pairs of one are not independent."""
        firsts = [pair.first for pair in self.trial.splits[Split.TEST]]
        number = {doc_id: at for at, doc_id in enumerate(dict.fromkeys(firsts))}
        return [number[doc_id] for doc_id in firsts]

    def measure(self, arm: EncoderArm) -> Measured:
        """See `Bench.measure`; a value is 1 where a pair of test is called right."""
        started = time.perf_counter()
        scorer = arm.scorer(self.conditions)
        trial = self.trial
        budget = arm.budget(self.conditions.scale)
        run = measure(scorer, replace(trial, budget=budget))
        details = run.details_as(PairsDetails)
        matches = [bool(value) for value in run.values("match")]
        correct = is_correct(run.values("score"), matches, details.accuracy_threshold)
        course = details.course
        assert course is not None
        return Measured(
            values=[float(one) for one in correct],
            groups=self.groups,
            encoder=run.encoder,
            begins_with=str(run.settings["begins_with"]),
            size=size_of(scorer.trained),
            n_train=len(trial.splits[Split.TRAIN]),
            n_steps=course.pretraining_steps + course.n_steps,
            best_step=course.best_step,
            seconds=time.perf_counter() - started,
        )


def backbone_label(encoder: str) -> str:
    """An encoder as name@checksum of its weights, before it is loaded.

    Raises:
        EncoderError: it cannot be found.
    """
    return f"{encoder_label(encoder)}@{weights_sha256(resolve_backbone(encoder))[:12]}"


def _cut(splits: PairSplits, most: Mapping[Split, int]) -> PairSplits:
    """The first pairs of each split: they alternate, so that any beginning of even length is balanced."""
    return {split: pairs[: 2 * most[split]] for split, pairs in splits.items()}
