"""The encoders of comparisons: trained on pairs by a recipe, or pretrained on documents by an objective.

Under equal conditions each encoder is trained once and kept in the work folder, so that several judges, and a call
that resumes an interrupted one, use the same parameters.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.datasets import DatasetError, checksum, open_dataset, read_documents
from benchmarks.pairs.comparing import Comparison
from benchmarks.pairs.pair_tasks import Learned
from benchmarks.pairs.recipes import recipe
from benchmarks.pairs.scorer import Budget, Fit, Pair
from benchmarks.pairs.selection import Selection
from benchmarks.pairs.sources import Asked, prepared_pairs
from benchmarks.pairs.splitting import PairSplits, Split, SplitRule, documents_of, pairs_checksum
from benchmarks.pairs.trained_encoders import Recipe, TrainedEncoder
from benchmarks.papers.comparison import Conditions, Made, Order, Scale, Size, flat
from benchmarks.papers.needs import Need
from benchmarks.quick import first_words
from benchmarks.record_file import rebuild
from benchmarks.sections.subcorpus import sample_documents
from benchmarks.systems import Settings
from engine.document import Document
from engine.encoders.backbone.backbone import Backbone
from engine.encoders.loading import load_encoder
from engine.encoders.smith.encoder import SmithEncoder
from engine.encoders.trainable import TrainableEncoder
from engine.encoders.variant import Variant
from engine.errors import TrainingError
from engine.training.run.trainer import TrainerSettings
from engine.training.tasks.samplers import Sampling
from indexer.training import PretrainingRecipe, Start, TensionObjective, ViewsObjective, pretrain

LearnedT = TypeVar("LearnedT", bound=Learned)
# Scoring the valid pairs takes as long as about ten steps.
_SELECTION = Selection(pairs=100, looks=2, patience=2)
_SECTIONS, _CHUNKS = "n_sections", "max_chunks"  # sizes of a CoLDE
_MADE = "made.json"  # written last: a folder with this file is complete


@dataclass(frozen=True)
class OpenPairs:
    """Pairs of a corpus and their documents; the scale limits their number and length."""

    dataset: str  # name@checksum
    splits: PairSplits
    documents: Mapping[str, Document]


@dataclass(frozen=True)
class PairData:
    """Pairs drawn from a corpus; no document is in two splits.

    A case of a scale is a matching pair together with a mismatch.
    """

    dataset: str  # of `benchmarks.datasets`
    protocol: str = "aan"  # of `benchmarks.pairs.building`
    need: Need | None = None  # pairs with a document that does not meet it are left out

    def open(self, conditions: Conditions) -> OpenPairs:
        """Read the corpus and draw its pairs.

        Raises:
            DatasetError: the corpus is missing, or no pair of a split is left.
        """
        scale, encoder = conditions.scale, conditions.encoder if self.need else ""
        return _open(self, conditions.data, conditions.draw_seed, scale.n_train, scale.n_test, scale.max_words, encoder)

    def settings(self, conditions: Conditions) -> Settings:
        """The settings that identify the pairs."""
        pairs = self.open(conditions)
        return {
            "dataset": pairs.dataset,
            "protocol": self.protocol,
            "split_rule": SplitRule.DOCUMENT.value,
            "pairs": pairs_checksum(pairs.splits),
            **(self.need.settings if self.need else {}),
        }


@lru_cache(maxsize=2)  # every variant and its judge read the same pairs
def _open(of: PairData, data: Path, seed: int, n_train: int, n_test: int, max_words: int, encoder: str) -> OpenPairs:
    # If pairs are left out, all pairs are drawn first, so that enough remain.
    asked = Asked(of.protocol, SplitRule.DOCUMENT, None, seed, None if of.need else max(n_train, n_test))
    prepared = prepared_pairs(of.dataset, data, asked)
    given = {id_: first_words(text, max_words) for id_, text in prepared.documents.items()}
    most = {Split.TRAIN: n_train, Split.VALID: n_test, Split.TEST: n_test}
    splits: dict[Split, tuple[Pair, ...]] = {}
    for split, pairs in prepared.splits.items():
        fit = pairs if of.need is None else _meeting(pairs, given, of.need, encoder, 2 * most[split])
        if not fit:
            assert of.need is not None
            raise DatasetError(
                f"no pair of {split} in {prepared.dataset} has {of.need.text} in the first {max_words:,} words of both "
                "documents, so that the variants are one and the same; raise max_words: --scale max_words=NUMBER"
            )
        # Pairs alternate, so that any beginning of even length is balanced.
        splits[split] = tuple(fit[: 2 * most[split]])
    named = {doc_id for pairs in splits.values() for doc_id in documents_of(pairs)}
    return OpenPairs(prepared.dataset, splits, {id_: text for id_, text in given.items() if id_ in named})


def _meeting(
    pairs: Sequence[Pair], documents: Mapping[str, Document], need: Need, encoder: str, most: int
) -> list[Pair]:
    """The first `most` pairs of documents that meet a need: each match with its mismatch, or neither."""
    met = cache(lambda doc_id: need.is_met(documents[doc_id], encoder))
    found: list[Pair] = []
    for two in zip(pairs[::2], pairs[1::2], strict=True):
        if len(found) == most:
            break
        if all(met(doc_id) for pair in two for doc_id in (pair.first, pair.second)):
            found += two
    return found


@dataclass(frozen=True)
class Matched:
    """An encoder trained on pairs by a recipe, with changes to it."""

    recipe: str  # of `benchmarks.pairs.recipes`
    data: PairData
    sizes: Mapping[str, str] = field(default_factory=dict)  # of a new encoder, in addition to the sizes of the recipe
    variant: Variant | None = None  # of a new encoder; `fixed` by default
    learned: Mapping[str, float] = field(default_factory=dict)  # fields of the recipe's objective to replace
    comparison: Comparison | None = None  # replaces the recipe's
    batch: int | None = None  # replaces the scale's
    training_tokens: int | None = None  # replaces the scale's
    budgets: float = 1.0  # factor of the scale's steps: 2 with pretraining, 1/2 for batches twice as large

    @property
    def settings(self) -> Settings:
        """See `System.settings`."""
        return flat({one.name: getattr(self, one.name) for one in fields(self) if one.name != "data"})

    def trained_on(self, conditions: Conditions) -> Settings:
        """See `System.trained_on`."""
        return {f"trained_{name}": value for name, value in self.data.settings(conditions).items()}

    def budget(self, scale: Scale) -> Budget:
        """The training budget."""
        return Budget(
            steps=max(1, round(scale.steps * self.budgets)),
            pairs_per_step=self.batch or scale.batch,
        )

    def make(self, conditions: Conditions) -> Made:
        """See `System.make`."""
        return _kept(self.recipe, self, conditions, lambda folder: self._train(folder, conditions))

    def scorer(self, conditions: Conditions) -> TrainedEncoder:
        """The encoder as a pair scorer, not trained yet.

        Raises:
            TrainingError: a change does not apply to the recipe.
            EncoderError: the recipe needs another backbone.
        """
        made, tokens = self.recipe_of(conditions), self._tokens(conditions)
        return TrainedEncoder(self.recipe, made, training_tokens=tokens, device=conditions.device, selection=_SELECTION)

    def recipe_of(self, conditions: Conditions) -> Recipe:
        """The recipe with the changes; raises as `scorer`."""
        variant = self.variant or Variant.FIXED
        return self._changed(recipe(self.recipe, conditions.encoder, self._tokens(conditions), variant))

    def _tokens(self, conditions: Conditions) -> int:
        return self.training_tokens or conditions.scale.training_tokens

    def _train(self, folder: Path, conditions: Conditions) -> Made:
        started = time.perf_counter()
        pairs, scorer = self.data.open(conditions), self.scorer(conditions)
        train, valid = pairs.splits[Split.TRAIN], pairs.splits[Split.VALID]
        scorer.fit(Fit(pairs.documents, train, valid, self.budget(conditions.scale), conditions.origin.seed))
        folder.mkdir(parents=True, exist_ok=True)
        scorer.trained.save_pretrained(folder)
        course = scorer.course
        assert course is not None
        return Made(
            folder=str(folder),
            encoder=scorer.encoder,
            begins_with=str(scorer.settings["begins_with"]),
            size=size_of(scorer.trained),
            chunk_tokens=scorer.trained.chunk_tokens,
            n_train=len(train),
            n_steps=course.pretraining_steps + course.n_steps,
            best_step=course.best_step,
            seconds=time.perf_counter() - started,
            comparison=scorer.comparison.value,
        )

    def _changed(self, base: Recipe) -> Recipe:
        start, new = base.start, base.start.new
        if new is not None:
            sizes = {**new.sizes, **_refitted(new.sizes, self.sizes), **self.sizes}
            start = replace(start, new=replace(new, sizes=sizes))
        elif self.sizes:
            raise TrainingError(f"the recipe {self.recipe} makes no new encoder, so its sizes are given")
        return replace(
            base,
            start=start,
            learned=_replaced(base.learned, self.learned),
            comparison=self.comparison or base.comparison,
        )


@dataclass(frozen=True)
class Reordered:
    """The encoder of another system, evaluated on pairs with documents read in another order."""

    system: Matched
    order: Order

    @property
    def settings(self) -> Settings:
        """See `System.settings`."""
        return {**self.system.settings, **flat(asdict(self.order))}

    def trained_on(self, conditions: Conditions) -> Settings:
        """See `System.trained_on`."""
        return self.system.trained_on(conditions)

    def make(self, conditions: Conditions) -> Made:
        """See `System.make`."""
        return replace(
            self.system.make(conditions), order=self.order, remark=f"{self.order.n_orders} orders a document"
        )


_QUEUE_BATCHES = 16  # of Momentum Contrast
_MOMENTUM = 0.9  # with 0.9995 the second encoder would hardly change: it needs 2,000 steps to follow the first
_TENSION_PAIRS = 8  # of one text, seven of them with another text


@dataclass(frozen=True)
class Pretrained:
    """The backbone pretrained by an objective on documents; without an objective, the given backbone."""

    dataset: str  # of `benchmarks.datasets`; its documents are the training data
    sampling: Sampling | None = None
    learning_rate: float = 5e-5
    mlm_weight: float = 0.0  # of masked language modelling
    has_queue: bool = False  # whether negatives of earlier steps are also used

    @property
    def settings(self) -> Settings:
        """See `System.settings`."""
        if self.sampling is None:
            return {"sampling": "none"}
        return flat({one.name: getattr(self, one.name) for one in fields(self) if one.name != "dataset"})

    def trained_on(self, conditions: Conditions) -> Settings:
        """See `System.trained_on`."""
        if self.sampling is None:
            return {}
        corpus = open_dataset(self.dataset, conditions.data)
        return {"trained_dataset": f"{corpus.name}@{checksum(corpus)}"}

    def make(self, conditions: Conditions) -> Made:
        """See `System.make`; interrupted pretraining is resumed."""
        if self.sampling is None:
            return self._made(conditions.encoder, conditions)
        return _kept(self.sampling, self, conditions, lambda folder: self._train(folder, conditions))

    def recipe(self, encoder: str, scale: Scale, seed: int) -> PretrainingRecipe:
        """The pretraining recipe; the steps are those of the scale for every objective.

        The batch is a number of documents, each with two views. For Contrastive Tension it is a number of pairs of
        texts, twice as large, so that about the same number of texts is read.
        """
        trainer = TrainerSettings(
            steps=scale.steps,
            learning_rate=self.learning_rate,
            checkpoint_every=max(1, scale.steps // 4),
            seed=seed,
        )
        return PretrainingRecipe(start=Start(encoder), trainer=trainer, objective=self._objective(scale))

    def _objective(self, scale: Scale) -> ViewsObjective | TensionObjective:
        assert self.sampling is not None
        if self.sampling is Sampling.CT:
            n_pairs = max(1, 2 * scale.batch // _TENSION_PAIRS) * _TENSION_PAIRS
            return TensionObjective(n_pairs, scale.training_tokens, _TENSION_PAIRS - 1)
        return ViewsObjective(
            sampling=self.sampling,
            batch_size=scale.batch,
            view_tokens=scale.training_tokens,
            mlm_weight=self.mlm_weight,
            queue=_QUEUE_BATCHES * scale.batch if self.has_queue else 0,
            momentum=_MOMENTUM,
        )

    def _train(self, folder: Path, conditions: Conditions) -> Made:
        scale = conditions.scale
        recipe = self.recipe(conditions.encoder, scale, conditions.origin.seed)
        documents = self._documents(conditions)
        command = conditions.origin.command
        outcome = pretrain(folder, [documents], recipe, device=conditions.device, command=command).outcome
        made = self._made(str(folder), conditions)
        return replace(
            made,
            n_train=scale.n_train,
            n_steps=outcome.steps,
            best_step=outcome.steps,
            seconds=outcome.seconds,
            remark=f"{outcome.n_tokens:,} tokens read in {outcome.seconds:.0f} s",
        )

    def _made(self, folder: str, conditions: Conditions) -> Made:
        loaded = load_encoder(folder, device="cpu")
        size, chunk_tokens = None, 0
        if isinstance(loaded, TrainableEncoder):
            size, chunk_tokens = size_of(loaded), loaded.chunk_tokens
        label = conditions.backbone
        return Made(folder, label, label.partition("@")[0], size, 0, 0, 0, 0.0, chunk_tokens=chunk_tokens)

    def _documents(self, conditions: Conditions) -> Path:
        """A file of the training documents in full length, the same for all objectives and seeds."""
        corpus, n, seed = open_dataset(self.dataset, conditions.data), conditions.scale.n_train, conditions.draw_seed
        path = conditions.work / "papers" / f"{corpus.name}@{checksum(corpus)}-{n}-seed{seed}.jsonl"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".tmp")
            with unfinished.open("w", encoding="utf-8") as file:
                for document in sample_documents(read_documents(corpus), n, seed):
                    line = {"id": document.doc_id, "title": "", "text": document.text}
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
            unfinished.replace(path)
        return path


def size_of(encoder: TrainableEncoder) -> Size:
    """Layers, width of a state, parameters; topics, attention and heads are not counted as layers."""
    weights = sum(weight.numel() for weight in encoder.module.parameters())
    if isinstance(encoder, SmithEncoder):
        config = encoder.config
        return Size(config.sentence_layers + config.document_layers, config.width, weights)
    backbone = getattr(encoder, "backbone", None)
    if not isinstance(backbone, Backbone):
        raise TrainingError(f"an encoder of type {encoder.kind} has no number of layers; compare others")
    return Size(backbone.model.config.num_hidden_layers, backbone.width, weights)


def _kept(name: str, system: Matched | Pretrained, conditions: Conditions, train: Callable[[Path], Made]) -> Made:
    """The encoder in the folder of these settings, scale, seed and backbone; trained if the folder is incomplete."""
    asked = {
        **system.settings,
        **system.trained_on(conditions),
        **asdict(conditions.scale),
        "backbone": conditions.backbone,
        "seed": conditions.origin.seed,
    }
    del asked["n_test"]  # already in the checksum of pairs, if it matters
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]
    folder = conditions.work / "papers" / f"{name}-{digest}"
    if (folder / _MADE).exists():
        return replace(rebuild(Made, json.loads((folder / _MADE).read_text("utf-8"))), folder=str(folder))
    conditions.log(f"{name}: up to {conditions.scale.steps:,} steps")
    made = train(folder)
    (folder / _MADE).write_text(json.dumps(asdict(made)), "utf-8")
    return made


def _refitted(own: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str]:
    """The chunks of a section that keep the total of a document, if the number of sections changes."""
    if _SECTIONS not in asked or _CHUNKS not in own:
        return {}
    n_chunks = int(own[_CHUNKS]) * int(own.get(_SECTIONS, "2"))
    return {_CHUNKS: str(max(1, n_chunks // int(asked[_SECTIONS])))}


def _replaced(learned: LearnedT, changes: Mapping[str, Any]) -> LearnedT:
    known = [one.name for one in fields(learned)]
    if unknown := [name for name in changes if name not in known]:
        raise TrainingError(f"{type(learned).__name__} has no {unknown[0]!r}; it has {', '.join(known)}")
    return replace(learned, **changes)
