"""`train` and `pretrain`: from folders of documents to an encoder; the order of the steps, nothing more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch

from engine.encoders.encoder import Encoder
from engine.encoders.loading import DEFAULT_ENCODER, load_encoder
from engine.encoders.mean import MeanEncoder
from engine.encoders.trainable import TrainableEncoder
from engine.encoders.weights import OFFLINE_NAME
from engine.errors import TrainingError
from engine.index import Index
from engine.origin import Machine, describe_origin
from engine.training.card import CorpusSummary, RunSummary, compare_validations, write_card
from engine.training.corpus import TrainingCorpus, read_training_corpus
from engine.training.fine_tuning import FineTuning, FineTuningSettings, Loss, Source
from engine.training.frozen import FrozenFirstStage
from engine.training.history import CURVES_FILE, HISTORY_FILE
from engine.training.mining import IndexMiner, LexicalMiner, Miner
from engine.training.selection import EvidenceChunks, RandomRuns, Selector
from engine.training.task import Task
from engine.training.teacher import IndexTeacher, Teacher
from engine.training.trainer import Outcome, Trainer, TrainerSettings
from engine.training.validation import Validation
from indexer.builder import build

Tell = Callable[[str], None]
BASE_MODELS = {OFFLINE_NAME: "sentence-transformers/all-MiniLM-L6-v2"}


class Negatives(StrEnum):
    """Where hard negatives come from."""

    MODEL = "model"  # search of an index made by the encoder that training starts from
    BM25 = "bm25"
    NONE = "none"  # only the other targets of a batch


@dataclass(frozen=True)
class CorpusPath:
    """A folder of documents and judgments, and which of its tasks is meant."""

    folder: Path
    suffix: str = ""  # of the names of judgment files, as "_citation"

    @classmethod
    def parse(cls, text: str) -> CorpusPath:
        """`FOLDER` or `FOLDER:SUFFIX`."""
        folder, _, suffix = text.partition(":")
        return cls(Path(folder), suffix)


@dataclass(frozen=True)
class Recipe:
    """Everything that makes a run what it is, beside its data."""

    encoder: str = DEFAULT_ENCODER
    fine_tuning: FineTuningSettings = field(default_factory=FineTuningSettings)
    trainer: TrainerSettings = field(default_factory=TrainerSettings)
    negatives: Negatives = Negatives.MODEL
    teacher: str = ""  # an encoder; needed by the loss "distillation"
    query_chunks: int = 6  # of a query that are encoded in a step
    target_chunks: int = 4
    frozen_layers: int = 0  # of the backbone, from the bottom, with its embeddings
    frozen_first_stage: bool = False
    label: str | None = None
    valid_chunks: int | None = None  # of a document that validation encodes; all by default
    valid_queries: int | None = None
    valid_documents: int | None = None
    saved_dtype: torch.dtype = torch.float32
    licence: str = ""


def train(
    out: Path,
    corpora: Sequence[CorpusPath],
    recipe: Recipe,
    *,
    indexes: Path | None = None,
    device: str | None = None,
    command: str = "",
    tell: Tell = lambda _: None,
) -> Outcome:
    """Fine-tune an encoder on pairs of documents, and write it to a folder.

    A run that was stopped goes on from its last checkpoint when it is called again.

    Args:
        out: becomes a folder that `load_encoder` takes, with card, history and curves.
        corpora: folders in the layout of `engine.training.corpus`.
        recipe: what is done with them.
        indexes: where the indexes of the corpora lie that negatives and chunks are
            chosen by, as NAME.lm; made where missing. `out` by default.
        device: where the encoder is trained.
        command: what made the run, for its card.
        tell: hears a line of progress now and then.

    Raises:
        TrainingError: the corpora hold no pairs, or the loss is no number any more.
        EncoderError: the encoder cannot be loaded or trained.
        MissingExtra: a package of the extra "training" is not installed.
    """
    encoder = trainable(recipe, device)
    read = [read_training_corpus(one.folder, suffix=one.suffix, label=recipe.label) for one in corpora]
    for corpus in read:
        tell(f"{corpus.name}: {len(corpus.documents):,} documents, {corpus.n_pairs:,} pairs")
    with ExitStack() as stack:
        library = _Library(indexes or out / "indexes", device, stack, tell)
        sources = [_source(corpus, recipe, library) for corpus in read]
        task = FineTuning(encoder, sources, recipe.fine_tuning, seed=recipe.trainer.seed)
        validations = [
            Validation(
                corpus,
                encoder,
                chunks=recipe.valid_chunks,
                queries=recipe.valid_queries,
                documents=recipe.valid_documents,
            )
            for corpus in read
            if corpus.valid
        ]
        return _run(out, task, encoder, read, validations, recipe, command, tell)


def trainable(recipe: Recipe, device: str | None) -> TrainableEncoder:
    """Load the encoder that training starts from, in float32, frozen as the recipe says.

    Raises:
        EncoderError: it cannot be loaded, or has fewer layers than are to be frozen.
        TrainingError: it has no weights to train.
    """
    encoder: Encoder = load_encoder(recipe.encoder, device=device, dtype=torch.float32)
    if not isinstance(encoder, TrainableEncoder):
        raise TrainingError(f"{recipe.encoder} has no weights that can be trained; name another encoder")
    if recipe.frozen_layers:
        if not isinstance(encoder, MeanEncoder):
            raise TrainingError(f"layers of an encoder of type {encoder.kind} cannot be frozen one by one")
        encoder.backbone.freeze(recipe.frozen_layers)
    return FrozenFirstStage(encoder) if recipe.frozen_first_stage else encoder


class _Library:
    """Indexes of the corpora, opened once, built where they are missing."""

    def __init__(self, folder: Path, device: str | None, stack: ExitStack, tell: Tell) -> None:
        self._folder = folder
        self._device = device
        self._stack = stack
        self._tell = tell

    def index(self, corpus: TrainingCorpus, encoder: str) -> Index:
        name = corpus.name if encoder == DEFAULT_ENCODER else f"{corpus.name}-{Path(encoder).name}"
        path = self._folder / f"{name}.lm"
        self._tell(f"{corpus.name}: index {path.name} by {encoder}")
        build(path, corpus.documents.values(), encoder=encoder, device=self._device)
        return self._stack.enter_context(Index.open(path, device=self._device))


def _source(corpus: TrainingCorpus, recipe: Recipe, library: _Library) -> Source:
    selector: Selector = RandomRuns(recipe.query_chunks, recipe.target_chunks)
    miner: Miner | None = None
    if recipe.negatives is Negatives.MODEL:
        index = library.index(corpus, recipe.encoder)
        miner = IndexMiner(index, corpus)
        crowd = recipe.fine_tuning.crowd
        selector = EvidenceChunks(index, recipe.query_chunks, recipe.target_chunks, crowd=crowd)
    elif recipe.negatives is Negatives.BM25:
        miner = LexicalMiner(corpus)
    teacher: Teacher | None = None
    if recipe.fine_tuning.losses.get(Loss.DISTILLATION):
        if not recipe.teacher:
            raise TrainingError("distillation needs a teacher; name a stronger encoder: --teacher NAME")
        teacher = IndexTeacher(library.index(corpus, recipe.teacher))
    return Source(corpus, selector, miner, teacher)


def _run(
    out: Path,
    task: Task[Any],
    encoder: TrainableEncoder,
    corpora: Sequence[TrainingCorpus],
    validations: Sequence[Validation],
    recipe: Recipe,
    command: str,
    tell: Tell,
) -> Outcome:
    outcome = Trainer(task, encoder, out / "run", recipe.trainer, validations=validations, tell=tell).run()
    best = load_encoder(str(outcome.folder), device="cpu", dtype=torch.float32)
    assert isinstance(best, TrainableEncoder)
    best.save_pretrained(out, dtype=recipe.saved_dtype)
    for name in (HISTORY_FILE, CURVES_FILE):
        if (out / "run" / name).exists():
            (out / name).write_bytes((out / "run" / name).read_bytes())
    write_card(out, summarize(out, best, outcome, corpora, recipe, command, task))
    return outcome


def summarize(
    out: Path,
    encoder: TrainableEncoder,
    outcome: Outcome,
    corpora: Sequence[TrainingCorpus],
    recipe: Recipe,
    command: str,
    task: Task[Any],
) -> RunSummary:
    """What the model card tells of a run."""
    origin = describe_origin(command, recipe.trainer.seed)
    return RunSummary(
        name=out.resolve().name,
        encoder=encoder.kind,
        command=command or "not recorded",
        base=recipe.encoder,
        base_model=BASE_MODELS.get(recipe.encoder, ""),
        licence=recipe.licence,
        corpora=[
            CorpusSummary(one.name, len(one.documents), one.n_pairs, one.checksum, one.licence) for one in corpora
        ],
        objective=_first_sentence(type(task)),
        settings=_settings(recipe),
        seed=recipe.trainer.seed,
        steps=outcome.steps,
        best_step=outcome.best_step,
        n_tokens=outcome.n_tokens,
        chunk_tokens=encoder.chunk_tokens,
        longest_words=max(len(one.text.split()) for corpus in corpora for one in corpus.documents.values()),
        seconds=outcome.seconds,
        machine=_told(origin.machine),
        commit=origin.commit,
        validations=compare_validations(outcome.history, outcome.best_step),
    )


def _first_sentence(kind: type) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]


def _told(machine: Machine) -> str:
    gpu = f", {machine.gpu}" if machine.gpu else ""
    return f"{machine.cpu}, {machine.cores} cores, {machine.memory_gib} GiB{gpu}"


def _settings(recipe: Recipe) -> dict[str, object]:
    """All settings of a recipe, flat, for people."""
    told: dict[str, object] = {}
    for name, value in asdict(recipe).items():
        inner = value if isinstance(value, dict) else {name: value}
        told |= {key.replace("_", " "): _plain(one) for key, one in inner.items() if key not in ("seed", "licence")}
    return told


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return ", ".join(f"{key} {weight:g}" for key, weight in value.items() if weight)
    return str(value).removeprefix("torch.")
