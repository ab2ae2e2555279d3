"""Variants that are one backbone pretrained on the same documents by another objective, kept in a work folder."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.datasets import checksum, open_dataset, read_documents
from benchmarks.papers.comparison import Conditions, Measured, Scale, Size, flat
from benchmarks.papers.encoder_arm import size_of
from benchmarks.papers.matching_task import backbone_label
from benchmarks.sections.subcorpus import sample_documents
from benchmarks.systems import Settings
from engine.document import Document
from engine.encoders.loading import load_encoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import TrainingError
from engine.training.run.trainer import TrainerSettings
from engine.training.tasks.samplers import Sampling
from indexer.training import PretrainingRecipe, Start, Step, TensionObjective, ViewsObjective, pretrain

PRETRAINING_CORPUS = "wikipedia_seealso"  # articles of Wikipedia, as in the paper
_QUEUE_BATCHES = 16  # of Momentum Contrast
_MOMENTUM = 0.9  # .9995 would hold the second encoder where it began: it follows in 2,000 steps
_TENSION_PAIRS = 8  # of one text, seven of them with another one


@dataclass(frozen=True)
class PretrainedArm:
    """An objective by its name; as it was given where there is none."""

    sampling: Sampling | None = None
    learning_rate: float = 5e-5
    mlm_weight: float = 0.0  # of hidden words
    has_queue: bool = False  # negatives of earlier steps too

    @property
    def settings(self) -> Settings:
        """See `Arm.settings`."""
        return flat(asdict(self)) if self.sampling else {"sampling": "none"}

    def recipe(self, encoder: str, scale: Scale, seed: int) -> PretrainingRecipe:
        """How it learns; the steps are those of the scale for every objective.

        The batch counts documents, each with two views. Contrastive Tension counts pairs of texts instead, and
        takes twice as many of them, so that about as many texts are read.
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


@dataclass(frozen=True)
class Pretrained:
    """An encoder in a folder."""

    encoder: str  # a folder, or what was given
    begins_with: str  # as name@checksum
    size: Size | None
    n_train: int  # documents
    n_steps: int
    remark: str = ""

    def measured(self, values: Sequence[float], seconds: float) -> Measured:
        """What came of it, each case by itself."""
        return Measured(
            values=values,
            groups=range(len(values)),
            encoder=self.begins_with,
            begins_with=self.begins_with.partition("@")[0],
            size=self.size,
            n_train=self.n_train,
            n_steps=self.n_steps,
            best_step=self.n_steps,
            seconds=seconds,
            remark=self.remark,
        )


@dataclass
class Pretraining:
    """The documents that all objectives of a comparison learn from."""

    conditions: Conditions
    dataset: str = field(init=False)  # name@checksum
    backbone: str = field(init=False)  # name@checksum

    def __post_init__(self) -> None:
        """Look for corpus and backbone; documents are read when they are needed.

        Raises:
            DatasetError: the corpus is not there.
            EncoderError: the backbone is not there.
        """
        self._corpus = open_dataset(PRETRAINING_CORPUS, self.conditions.data)
        self.dataset = f"{self._corpus.name}@{checksum(self._corpus)}"
        self.backbone = backbone_label(self.conditions.encoder)

    @property
    def settings(self) -> Settings:
        """What encoders depend on, beside scale, seed and objective."""
        return {"pretrained_on": self.dataset, "backbone": self.backbone}

    def encoder(self, arm: PretrainedArm) -> Pretrained:
        """Pretrain by an objective, or take what an earlier run made; one that was interrupted goes on.

        Raises:
            TrainingError: the seconds of the scale were over before all steps were made, of which a quarter is
                finished that has begun; objectives are compared after as many steps each. The next call goes on
                from the last checkpoint.
        """
        conditions, scale = self.conditions, self.conditions.scale
        if arm.sampling is None:
            return Pretrained(conditions.encoder, self.backbone, _size(conditions.encoder), 0, 0)
        asked = {
            **self.settings,
            **arm.settings,
            "seed": conditions.origin.seed,
            **{name: getattr(scale, name) for name in ("steps", "batch", "training_tokens", "n_train")},
        }
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]
        folder = conditions.work / "papers" / f"{arm.sampling}-{digest}"
        recipe = arm.recipe(conditions.encoder, scale, conditions.origin.seed)
        trained = pretrain(
            folder,
            [self._documents()],
            recipe,
            device=conditions.device,
            command=conditions.origin.command,
            watch=_Deadline(scale.seconds, recipe.trainer.checkpoint_every),
        )
        outcome = trained.outcome
        remark = f"{outcome.n_tokens:,} tokens read in {outcome.seconds:.0f} s"
        return Pretrained(str(folder), self.backbone, _size(str(folder)), scale.n_train, outcome.steps, remark)

    def _documents(self) -> Path:
        """A file of the documents to learn from, drawn by the seed, whole."""
        scale, seed = self.conditions.scale, self.conditions.origin.seed
        path = self.conditions.work / "papers" / f"{self.dataset}-{scale.n_train}-seed{seed}.jsonl"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".tmp")
            _write(unfinished, sample_documents(read_documents(self._corpus), scale.n_train, seed))
            unfinished.replace(path)
        return path


class _Deadline:
    """A `Watch` that ends a run whose seconds are over, in the step after a checkpoint: so each call gets further."""

    def __init__(self, seconds: float, checkpoint_every: int) -> None:
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._every = checkpoint_every
        self._n_made = 0  # steps of this call

    def __call__(self, step: Step) -> None:
        is_kept = self._n_made > 0 and (step.number - 1) % self._every == 0
        self._n_made += 1
        if is_kept and time.monotonic() > self._deadline:
            raise TrainingError(
                f"{self._seconds:,.0f} s were over before all steps were made; run it again, and it goes on from its "
                "last checkpoint, or allow more: --seconds"
            )


def _size(encoder: str) -> Size | None:
    loaded = load_encoder(encoder, device="cpu")
    return size_of(loaded) if isinstance(loaded, TrainableEncoder) else None


def _write(path: Path, documents: Iterable[Document]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for document in documents:
            line: Mapping[str, str] = {"id": document.doc_id, "title": "", "text": document.text}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
