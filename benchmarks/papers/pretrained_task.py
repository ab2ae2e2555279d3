"""Variants that are one backbone pretrained by another objective, judged by classification probes or by retrieval."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.datasets import checksum, open_dataset, read_documents, read_qrels, read_queries
from benchmarks.metrics import PRIMARY
from benchmarks.papers.comparison import Conditions, Measured, Scale, Size, flat
from benchmarks.papers.pairs_task import backbone_label, size_of
from benchmarks.prepare import prepared_documents, prepared_index
from benchmarks.probing.labelled import LabelledCorpus, open_labelled, part_of
from benchmarks.probing.probes import encoder_vectors
from benchmarks.quick import Size as PartSize
from benchmarks.quick import quick_part
from benchmarks.sections.subcorpus import sample_documents
from benchmarks.systems import DocumentCosine, Settings
from benchmarks.tasks import retrieval
from benchmarks.tasks.probe import ProbeDetails, ProbeTrial, documents_to_probe, measure
from engine.document import Document
from engine.encoders.loading import load_encoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import TrainingError
from engine.training.run.trainer import TrainerSettings
from engine.training.tasks.samplers import Sampling
from indexer.training import PretrainingRecipe, Start, TensionObjective, ViewsObjective, pretrain

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
            TrainingError: the seconds of the scale were over before all steps were made; objectives are compared
                after as many steps each. The next call goes on from there.
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
            stop=_deadline(scale.seconds),
        )
        outcome = trained.outcome
        if outcome.steps < scale.steps:
            raise TrainingError(
                f"{scale.seconds:,.0f} s were over after {outcome.steps} of {scale.steps} steps; run it again, and it "
                "goes on from there, or allow more: --seconds"
            )
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


def _deadline(seconds: float) -> Callable[[int], bool]:
    """Says when seconds are over; a step is always made, so that each call gets further."""
    deadline = time.monotonic() + seconds
    asked: list[int] = []

    def stop(step: int) -> bool:
        asked.append(step)
        return len(asked) > 1 and time.monotonic() > deadline

    return stop


def _size(encoder: str) -> Size | None:
    loaded = load_encoder(encoder, device="cpu")
    return size_of(loaded) if isinstance(loaded, TrainableEncoder) else None


def _write(path: Path, documents: Iterable[Document]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for document in documents:
            line: Mapping[str, str] = {"id": document.doc_id, "title": "", "text": document.text}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


ACCURACY = "accuracy"
_N_DRAWS = 10  # of few labels, as in the paper
_VALID_SHARE = 5  # a fifth as many documents choose the classifier's C as test it


@dataclass(frozen=True)
class ProbeTask:
    """Classes of documents; a case of the scale is a document of each class.

    With all labels a value is 1 where a document of test is classified rightly. With few it is the
    accuracy of a draw of labels: cases are the draws, and tests say what is chance of drawing alone.
    """

    dataset: str  # of `benchmarks.probing.labelled`
    labels: int = 0  # a class; 0 for all of the part

    @property
    def metric(self) -> str:
        """See `Task.metric`."""
        return f"{ACCURACY} from {self.labels} labels a class" if self.labels else ACCURACY

    def open(self, conditions: Conditions) -> ProbeBench:
        """See `Task.open`."""
        return ProbeBench(self, conditions)


class ProbeBench:
    """A part of a corpus with classes."""

    def __init__(self, task: ProbeTask, conditions: Conditions) -> None:
        """Draw the part.

        Raises:
            DatasetError: a corpus is not there.
            EncoderError: the backbone cannot be found.
        """
        scale = conditions.scale
        self._pretraining = Pretraining(conditions)
        whole = open_labelled(task.dataset, conditions.data)
        n = scale.n_test
        sizes = {"train": n, "valid": max(1, n // _VALID_SHARE), "test": n}
        corpus = part_of(whole, sizes, conditions.origin.seed)
        self._trial = ProbeTrial(
            corpus=corpus,
            shots=(task.labels,) if task.labels else (),
            n_draws=_N_DRAWS,
            max_words=scale.max_words,
            is_quick=conditions.is_quick,
            origin=conditions.origin,
        )
        self._task, self._conditions = task, conditions

    @property
    def settings(self) -> Settings:
        """See `Bench.settings`."""
        corpus = self._trial.corpus
        return {
            **self._pretraining.settings,
            "dataset": f"{corpus.name}@{corpus.checksum}",
            "n_labelled": len(corpus.splits["train"]),
            "n_test_documents": len(corpus.splits["test"]),
            "labels": self._task.labels,
        }

    def measure(self, arm: PretrainedArm) -> Measured:
        """See `Bench.measure`."""
        started = time.perf_counter()
        made, conditions, trial = self._pretraining.encoder(arm), self._conditions, self._trial
        documents = documents_to_probe(trial)
        with prepared_documents(_name(trial), documents, made.encoder, conditions.work, conditions.log) as ready:
            run = measure(encoder_vectors(ready), trial)
        few = run.details_as(ProbeDetails).few_shot.get(str(self._task.labels))
        values = run.values(ACCURACY) if few is None else few[ACCURACY]
        return made.measured(values, time.perf_counter() - started)


def _name(trial: ProbeTrial) -> str:
    """Of the documents, for their vectors: with all that decides which they are."""
    corpus: LabelledCorpus = trial.corpus
    sizes = "x".join(str(len(corpus.splits[split])) for split in corpus.splits)
    return f"{corpus.name}@{corpus.checksum}-first{trial.max_words}-{sizes}-seed{trial.origin.seed}"


_DEPTH = 100
_DOCUMENTS_PER_QUERY = 8  # of the part; queries and their targets among them


@dataclass(frozen=True)
class RetrievalTask:
    """Targets of some queries by the cosine of document vectors; a case of the scale is a query."""

    dataset: str  # of `benchmarks.datasets`
    split: str = "valid"

    @property
    def metric(self) -> str:
        """See `Task.metric`."""
        return PRIMARY

    def open(self, conditions: Conditions) -> RetrievalBench:
        """See `Task.open`."""
        return RetrievalBench(self, conditions)


class RetrievalBench:
    """A part of a corpus, and its queries."""

    def __init__(self, task: RetrievalTask, conditions: Conditions) -> None:
        """Write the part.

        Raises:
            DatasetError: a corpus is not there, or the split has no query that can be asked.
            EncoderError: the backbone cannot be found.
        """
        scale, seed = conditions.scale, conditions.origin.seed
        self._pretraining = Pretraining(conditions)
        whole = open_dataset(task.dataset, conditions.data)
        size = PartSize(
            n_queries=scale.n_test, n_documents=_DOCUMENTS_PER_QUERY * scale.n_test, n_words=scale.max_words
        )
        # Parts of another size have a folder of their own: the name of a part tells dataset, split and seed alone.
        sized = conditions.work / "papers" / f"part-{size.n_queries}x{size.n_documents}x{size.n_words}"
        part = quick_part(whole, task.split, sized, seed=seed, size=size)
        qrels = read_qrels(part, task.split)
        queries = read_queries(part, qrels)
        self._trial = retrieval.Trial(part, task.split, qrels, queries, _DEPTH, conditions.origin)
        self._whole = f"{whole.name}@{checksum(whole)}"
        self._conditions = conditions

    @property
    def settings(self) -> Settings:
        """See `Bench.settings`."""
        return {
            **self._pretraining.settings,
            "dataset": self._whole,
            "split": self._trial.split,
            "part": checksum(self._trial.dataset),
            "n_queries": len(self._trial.qrels),
        }

    def measure(self, arm: PretrainedArm) -> Measured:
        """See `Bench.measure`; a value is the metric of a query."""
        started = time.perf_counter()
        made, conditions = self._pretraining.encoder(arm), self._conditions
        with prepared_index(self._trial.dataset, made.encoder, conditions.work, conditions.log) as ready:
            run, _ = retrieval.measure(DocumentCosine(ready.index, ready.encoder), ready.cost, self._trial)
        return made.measured(run.values(PRIMARY), time.perf_counter() - started)
