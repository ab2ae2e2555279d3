"""The steps of every training run: check arguments, train, and write the encoder with its card."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from engine.encoders.backbone.hardware import default_device
from engine.encoders.loading import load_encoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import EncoderError, MissingExtra, TrainingError
from engine.training.corpus import TrainingCorpus
from engine.training.run.card import Validation as Compared
from engine.training.run.card import compare_validations, write_card
from engine.training.run.history import CURVES_FILE, HISTORY_FILE
from engine.training.run.processes import Processes
from engine.training.run.trainer import Outcome, Trainer
from engine.training.run.validation import Validation
from engine.training.task import Task
from indexer.training.recipe import PretrainingRecipe, TrainingRecipe, settings_of
from indexer.training.record import Record, make_record, reached_step, reconcile, write_record
from indexer.training.start import starting_encoder
from indexer.training.summary import summarize
from indexer.training.watch import Log, Reporter, Watch, Watched

RUN_FOLDER = "run"
INDEX_FOLDER = "indexes"


@dataclass(frozen=True)
class Context:
    """The device of a run, its command, and its callbacks."""

    device: str | None = None
    command: str = ""  # the command line of the run, for its card
    log: Log = lambda line: None
    watch: Watch = lambda step: None
    stop: Callable[[int], bool] = lambda step: False


@dataclass(frozen=True)
class Run:
    """A new or resumed run: its folder, settings and corpora, and the encoder that it trains."""

    out: Path
    recipe: TrainingRecipe | PretrainingRecipe
    corpora: Sequence[TrainingCorpus]
    encoder: TrainableEncoder
    taken: str | None  # see `Made`
    record: Record
    context: Context
    processes: Processes

    @property
    def folder(self) -> Path:
        """The folder of history, checkpoints and the best parameters."""
        return self.out / RUN_FOLDER


@dataclass(frozen=True)
class Trained:
    """A trained encoder, and the results of its run."""

    folder: Path  # `load_encoder` reads it
    outcome: Outcome
    validations: tuple[Compared, ...]  # before training, and as it was saved
    is_first: bool = True  # whether this process wrote the folder


def check_start(out: Path, encoder: str, device: str | None) -> None:
    """Check that training can begin, before any slow step.

    Raises:
        TrainingError: `out` cannot be the folder of a run.
        EncoderError: torch cannot use the device.
        MissingExtra: accelerate is not installed.
    """
    if importlib.util.find_spec("accelerate") is None:
        raise MissingExtra("training", "accelerate", "training")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise EncoderError(
            f"device {device!r} cannot be used ({reason}); see what there is: longmatch doctor"
        ) from error
    if out.resolve() == Path(encoder).resolve():
        raise TrainingError(f"{out} is the encoder that training starts from; name another folder for the new one")
    if out.exists() and not out.is_dir():
        raise TrainingError(f"{out} is a file; name a folder for the encoder")
    if out.is_dir() and not (out / RUN_FOLDER).is_dir():
        others = sorted(path.name for path in out.iterdir() if path.name != INDEX_FOLDER and path.name[0] != ".")
        if others:
            raise TrainingError(
                f"{out} holds {others[0]}, and no run to go on with; OUT, which comes first, must be a new folder"
            )


def open_run(
    out: Path,
    name: str,
    recipe: TrainingRecipe | PretrainingRecipe,
    corpora: Sequence[TrainingCorpus],
    context: Context,
) -> Run:
    """Resume a run, or begin it.

    Args:
        out: the folder, checked by `check_start`.
        name: of the command: train or pretrain.
        recipe: the requested settings.
        corpora: the training data.
        context: device, command and callbacks.

    Raises:
        TrainingError: the run in the folder began with something else, or patience is given but no corpus has
            valid queries.
        EncoderError: the encoder cannot be loaded or made.
    """
    processes = Processes(torch.device(context.device or default_device()))
    if not processes.is_first:
        context = replace(context, log=lambda line: None, watch=lambda step: None)
    for corpus in corpora:
        unreadable = f", {corpus.n_unreadable:,} not readable" if corpus.n_unreadable else ""
        pairs = f", {corpus.n_pairs:,} pairs" if isinstance(recipe, TrainingRecipe) else ""
        context.log(f"{corpus.name}: {len(corpus.documents):,} documents{unreadable}{pairs}")
    if recipe.trainer.patience is not None and not any(corpus.valid for corpus in corpora):
        raise TrainingError(
            f"a patience of {recipe.trainer.patience} counts validations, and no corpus has valid queries "
            "(splits.json and qrels.tsv); leave it out"
        )
    folder = out / RUN_FOLDER
    record = reconcile(folder, make_record(name, corpora, settings_of(recipe)))
    for change in record.changes:
        context.log(change)
    made = starting_encoder(
        recipe.start,
        [corpus.documents[doc_id] for corpus in corpora for doc_id in corpus.trainable],
        seed=recipe.trainer.seed,
        device=context.device,
        is_resumed=reached_step(folder) is not None,
        log=context.log,
    )
    if _has_bigbird(made.encoder):
        recipe = replace(recipe, trainer=replace(recipe.trainer, mixed_precision=False))
    return Run(out, recipe, corpora, made.encoder, made.taken, record, context, processes)


def _has_bigbird(encoder: TrainableEncoder) -> bool:
    """True for a BigBird, which cannot be trained under autocast.

    Under autocast the attention of transformers 5.23 scatters numbers of one precision into a tensor of another,
    which torch refuses on a CPU.
    """
    configs = (getattr(module, "config", None) for module in encoder.module.modules())
    return any(getattr(config, "model_type", None) == "big_bird" for config in configs)


def validations(run: Run, encoder: TrainableEncoder) -> list[Validation]:
    """A validation for each corpus that has valid judgments."""
    return [
        Validation(
            corpus,
            encoder,
            chunks=run.recipe.valid_chunks,
            queries=run.recipe.valid_queries,
            documents=run.recipe.valid_documents,
        )
        for corpus in run.corpora
        if corpus.valid
    ]


def carry_out(run: Run, task: Task[Any]) -> Outcome:
    """Train to the end."""
    settings = run.recipe.trainer
    reporter = Reporter(run.folder / HISTORY_FILE, settings.steps, run.context.log, run.context.watch)
    if run.processes.is_first:
        write_record(run.folder, run.record)
        task = Watched(task, reporter, n_processes=run.processes.n)
    own = validations(run, run.encoder)
    stop = run.context.stop
    return Trainer(task, run.encoder, run.folder, settings, validations=own, stop=stop, log=reporter.log).run()


def finish(run: Run, outcome: Outcome) -> Trained:
    """Write the best weights, curves, history and card into the run's `out`."""
    best = load_encoder(str(outcome.folder), device="cpu", dtype=torch.float32)
    assert isinstance(best, TrainableEncoder)
    return publish(run, outcome, best, compare_validations(outcome.history, outcome.best_step))


def publish(run: Run, outcome: Outcome, best: TrainableEncoder, compared: tuple[Compared, ...]) -> Trained:
    """As `finish`, for a given encoder and its validations."""
    if run.processes.is_first:
        _write(run, outcome, best, compared)
    run.processes.wait()
    return Trained(run.out, outcome, compared, run.processes.is_first)


def _write(run: Run, outcome: Outcome, best: TrainableEncoder, compared: tuple[Compared, ...]) -> None:
    best.save_pretrained(run.out, dtype=run.recipe.saved_dtype)
    for name in (HISTORY_FILE, CURVES_FILE):
        if (run.folder / name).exists():
            (run.out / name).write_bytes((run.folder / name).read_bytes())
    summary = summarize(
        run.out,
        run.recipe,
        outcome,
        run.corpora,
        encoder=best,
        taken=run.taken,
        command=run.context.command,
        validations=compared,
        changes=run.record.changes,
    )
    write_card(run.out, summary)
