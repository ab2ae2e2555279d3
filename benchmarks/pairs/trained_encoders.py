"""Encoders trained on labelled pairs within a budget; valid pairs choose the parameters that are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.pair_scorer import LABELS_ALONE, Budget, Course, Fit, Pair, documents_of
from benchmarks.pair_selection import Selection, best_accuracy, sample_valid, train_to_best
from benchmarks.pairs.comparing import Comparer, Comparison, Side, encoded_sides
from benchmarks.pairs.pair_tasks import Learned, labels_alone, n_chunks, pair_task
from benchmarks.systems import Settings, encoder_label
from engine.encoders.files import resolve_backbone, weights_sha256
from engine.encoders.smith.encoder import SmithEncoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import TrainingError
from engine.text.document import Document
from engine.training.card import CARD_FILE
from engine.training.fine_tuning import FineTuningSettings
from engine.training.section_contrast import ContrastSettings
from engine.training.selection import spread_chunks
from engine.training.smith_pretraining import Objective, SmithPretraining, SmithSettings
from engine.training.task import Task
from engine.training.text_pairs import TextPairsSettings
from engine.training.trainer import TrainerSettings
from indexer.training.start import Start, starting_encoder


class ValidAccuracy:
    """The accuracy on some pairs; each call encodes their documents again, reduced to chunks spread over each."""

    def __init__(
        self,
        encoder: TrainableEncoder,
        documents: Mapping[str, Document],
        pairs: Sequence[Pair],
        comparison: Comparison,
        *,
        chunks: int,
    ) -> None:
        """Segment the documents of `pairs`, of which both kinds are needed."""
        self._encoder = encoder
        self._comparer = Comparer(encoder, comparison)
        self._pairs = pairs
        self._doc_ids = sorted(documents_of(pairs))
        self._segmented = [spread_chunks(encoder.segment(documents[doc_id]), chunks) for doc_id in self._doc_ids]

    def __call__(self) -> float:
        """The accuracy at the threshold that is best for these pairs, in [0.5, 1] if they are balanced."""
        encoded = self._encoder.encode_segmented(self._segmented)
        sides = {doc_id: self._comparer.side(one) for doc_id, one in zip(self._doc_ids, encoded, strict=True)}
        scores = [self._comparer.score(sides[pair.first], sides[pair.second]) for pair in self._pairs]
        return best_accuracy(scores, self._pairs)


_TOPIC_EPOCHS = 200  # most epochs of topics


@dataclass(frozen=True)
class Recipe:
    """How an encoder is trained on pairs, and how pairs are scored."""

    start: Start
    learned: Learned  # the budget replaces its batch size
    comparison: Comparison
    learning_rate: float
    head_learning_rate: float | None = None
    pretraining: frozenset[Objective] = frozenset()  # of a SMITH, on the documents of train, with half of the budget


class TrainedEncoder:
    """A `PairScorer` that trains an encoder, encodes each whole document by itself, and compares vectors.

    Fitting before training (the topics of a TDE: as many epochs as there are steps, at most 200) and scoring valid
    pairs do not count as steps of the budget. Training and validation read stretches of documents; `score` reads whole
    documents.
    """

    is_trained = True

    def __init__(
        self,
        name: str,
        recipe: Recipe,
        *,
        training_tokens: int,
        device: str | None = None,
        selection: Selection = Selection(),  # noqa: B008
    ) -> None:
        """Train by a recipe, on stretches of `training_tokens` tokens, special tokens counted."""
        self.name = name
        self.encoder = ""
        self.course: Course | None = None
        self.comparison = recipe.comparison
        own = {f"selection_{field}": value for field, value in asdict(selection).items()}
        self.settings: Settings = {**_settings(recipe), "training_tokens": training_tokens, **own}
        self._recipe = recipe
        self._training_tokens = training_tokens
        self._device = device
        self._selection = selection
        self._documents: Mapping[str, Document] = {}
        self._sides: dict[str, Side] = {}
        self._trained: TrainableEncoder | None = None

    def fit(self, given: Fit) -> None:
        """As `PairScorer.fit`."""
        budget, seed = given.budget, given.seed
        named = documents_of(given.train)
        texts = {doc_id: document for doc_id, document in given.documents.items() if doc_id in named}
        encoder = self._begin(list(texts.values()), budget, seed)
        pretraining = self._pretrain(encoder, texts, budget, seed)
        n_pretraining, n_tokens = (pretraining.n_steps, pretraining.n_tokens) if pretraining else (0, 0)
        tokens = self._training_tokens
        learned = self._recipe.learned
        task = pair_task(encoder, learned, texts, given.train, budget=budget, training_tokens=tokens, seed=seed)
        looked_at = sample_valid(given.valid, self._selection.pairs, seed)
        chunks = n_chunks(encoder, tokens)
        validate = ValidAccuracy(encoder, given.documents, looked_at, self._recipe.comparison, chunks=chunks)
        course = self._run(task, encoder, validate, budget.steps - n_pretraining, seed)
        self.course = replace(course, pretraining_steps=n_pretraining, n_tokens=course.n_tokens + n_tokens)
        self._trained, self._documents, self._sides = encoder, given.documents, {}

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """As `PairScorer.score`; each document is encoded once, when it is first needed."""
        assert self._trained is not None, "fit comes before score"
        comparer = Comparer(self._trained, self._recipe.comparison)
        named = dict.fromkeys(doc_id for pair in pairs for doc_id in (pair.first, pair.second))
        unknown = {doc_id: self._documents[doc_id] for doc_id in named if doc_id not in self._sides}
        self._sides |= encoded_sides(self._trained, comparer, unknown)
        return np.array([comparer.score(self._sides[pair.first], self._sides[pair.second]) for pair in pairs])

    @property
    def trained(self) -> TrainableEncoder:
        """The encoder, with the parameters that were kept."""
        assert self._trained is not None, "fit comes first"
        return self._trained

    def save(self, folder: Path) -> None:
        """Write the encoder to a folder for `load_encoder`; its card also states what training read."""
        assert self.course is not None, "fit comes first"
        self.trained.save_pretrained(folder)
        card = folder / CARD_FILE
        n_steps = self.course.pretraining_steps + self.course.n_steps
        rows = {"begins with": self.settings["begins_with"], "steps": n_steps, "tokens read": self.course.n_tokens}
        table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
        card.write_text(
            f"{card.read_text('utf-8').rstrip()}\n\n## Training\n\n|  |  |\n| --- | --- |\n{table}\n", "utf-8"
        )

    def _begin(self, texts: Sequence[Document], budget: Budget, seed: int) -> TrainableEncoder:
        """The encoder before training; also records the parameters from which it starts."""
        start = self._recipe.start
        if start.new is not None:
            start = replace(start, new=replace(start.new, topic_epochs=min(_TOPIC_EPOCHS, budget.steps)))
        made = starting_encoder(start, texts, seed=seed, device=self._device, is_resumed=False, log=lambda line: None)
        label = f"{encoder_label(start.encoder)}@{weights_sha256(resolve_backbone(start.encoder))[:12]}"
        self.encoder = label
        self.settings["begins_with"] = "random weights" if made.taken is None else f"{label}{made.taken}"
        return made.encoder

    def _pretrain(
        self, encoder: TrainableEncoder, texts: Mapping[str, Document], budget: Budget, seed: int
    ) -> Course | None:
        """Pretrain a SMITH on masked words and blocks of the documents of train; None for other recipes."""
        if not self._recipe.pretraining:
            return None
        if not isinstance(encoder, SmithEncoder):
            raise TrainingError(f"pretraining by hidden words and blocks is SMITH's, not that of {encoder.kind}")
        if budget.steps < 2:
            raise TrainingError(f"a budget of {budget.steps} steps has no half for pretraining; give at least 2")
        config = SmithSettings(
            tasks=self._recipe.pretraining, batch_size=min(budget.pairs_per_step, len(texts)), seed=seed
        )
        task = SmithPretraining(encoder, [encoder.segment(text) for text in texts.values()], config)
        return self._run(task, encoder, None, budget.steps // 2, seed)

    def _run(
        self,
        task: Task[Any],
        encoder: TrainableEncoder,
        validate: ValidAccuracy | None,
        steps: int,
        seed: int,
    ) -> Course:
        settings = TrainerSettings(
            steps=steps,
            learning_rate=self._recipe.learning_rate,
            head_learning_rate=self._recipe.head_learning_rate,
            seed=seed,
        )
        return train_to_best(task, encoder, validate, settings, selection=self._selection)


def _settings(recipe: Recipe) -> Settings:
    """The recipe as flat settings, for people and records."""
    start, learned = recipe.start, recipe.learned
    flat: Settings = {"learning_rate": recipe.learning_rate, LABELS_ALONE: labels_alone(learned)}
    if start.new is not None:
        flat |= {"new": start.new.kind.value, "variant": start.new.variant.value}
        flat |= {f"size_{name}": text for name, text in start.new.sizes.items()}
    if recipe.head_learning_rate is not None:
        flat["head_learning_rate"] = recipe.head_learning_rate
    if recipe.pretraining:
        flat["pretraining"] = ",".join(sorted(recipe.pretraining))
    match learned:
        case FineTuningSettings():
            flat["losses"] = ",".join(f"{name}={weight:g}" for name, weight in learned.losses.items())
            flat["temperature"] = learned.temperature
        case ContrastSettings():
            flat["losses"] = "sections" if learned.contrastive else "bce"
            flat["whole_probability"] = learned.whole_probability
        case TextPairsSettings():
            flat["losses"] = "topics,sentences,head"
            flat["temperature"] = learned.temperature
    return flat
