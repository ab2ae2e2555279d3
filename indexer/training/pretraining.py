"""`pretrain`: an encoder learns from documents alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.encoders.encoder import Encoder, SegmentedDocument
from engine.encoders.mean import MeanEncoder
from engine.encoders.smith.encoder import SmithEncoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import DocumentError, TrainingError
from engine.text.document import Document
from engine.training.run.card import compare_validations
from engine.training.run.history import MEAN
from engine.training.run.trainer import METRIC, Outcome
from engine.training.task import Task
from engine.training.tasks.contrastive_pretraining import ContrastiveConfig, ContrastivePretraining
from engine.training.tasks.contrastive_tension import ContrastiveTension
from engine.training.tasks.momentum_contrast import MomentumContrast
from engine.training.tasks.samplers import SAMPLERS, PairSampler, Sampling
from engine.training.tasks.smith_pretraining import Objective as SmithLoss
from engine.training.tasks.smith_pretraining import SmithPretraining, SmithPretrainingConfig
from engine.training.tasks.view_pairs import ViewPairs
from engine.training.tasks.word_pretraining import WordPretraining
from indexer.training.corpora import Given, read_documents
from indexer.training.objectives import SmithObjective, TensionObjective, ViewsObjective, WordsObjective
from indexer.training.recipe import PretrainingRecipe
from indexer.training.run import (
    Context,
    Run,
    Trained,
    carry_out,
    check_start,
    finish,
    open_run,
    publish,
    validations,
)
from indexer.training.watch import Log, Watch


def pretrain(
    out: str | Path,
    corpora: Sequence[Given],
    recipe: PretrainingRecipe | None = None,
    *,
    device: str | None = None,
    command: str = "",
    log: Log = lambda line: None,
    watch: Watch = lambda step: None,
    stop: Callable[[int], bool] = lambda step: False,
) -> Trained:
    """Train an encoder on documents alone, and write it to a folder.

    A run that was stopped resumes from its last checkpoint when this is called again.
    If a corpus has valid judgments, they choose the best parameters; otherwise the last are kept.

    Args:
        out: becomes a folder that `load_encoder` reads, with card, history and curves.
        corpora: folders in the layout of `engine.training.corpus`, or files and folders
            of any format that `longmatch index` reads.
        recipe: the settings; DocSplit by default.
        device: where the encoder is trained.
        command: the command line of the run, for its card.
        log: called with a line of progress now and then.
        watch: called with every step.
        stop: whether to end before the step of this number, from 0; the next call resumes there.

    Raises:
        TrainingError: there are too few readable documents, encoder and objective do not fit, the
            run in the folder is another one, or the loss is not finite.
        DocumentError: a path does not exist, or has no file of a readable format.
        EncoderError: the encoder cannot be loaded, made or trained.
        MissingExtra: a package of the extra "training" is not installed.
    """
    out, recipe = Path(out), recipe or PretrainingRecipe()
    check_start(out, recipe.start.encoder, device)
    read = read_documents(corpora)
    run = open_run(out, "pretrain", recipe, read, Context(device, command, log, watch, stop))
    documents = [corpus.documents[doc_id] for corpus in read for doc_id in corpus.trainable]
    task = _task(run.encoder, documents, recipe)
    outcome = carry_out(run, task)
    return _finish_tension(run, task, outcome) if isinstance(task, ContrastiveTension) else finish(run, outcome)


def _task(encoder: TrainableEncoder, documents: Sequence[Document], recipe: PretrainingRecipe) -> Task[Any]:
    seed = recipe.trainer.seed
    match recipe.objective:
        case ViewsObjective() as objective:
            return _views(encoder, documents, objective, seed)
        case TensionObjective() as objective:
            if not isinstance(encoder, MeanEncoder):
                raise TrainingError(_unfit("ct", encoder, "a mean encoder; name a backbone: --encoder"))
            pairs = _pairs(encoder, documents, SAMPLERS[Sampling.CT], objective, seed)
            return ContrastiveTension(encoder, pairs, negatives=objective.negatives)
        case WordsObjective() as objective:
            pairs = _pairs(encoder, documents, SAMPLERS[Sampling.SIMCSE], objective, seed)
            return WordPretraining(encoder, pairs, group_tokens=objective.group_tokens, seed=seed)
        case SmithObjective() as objective:
            return _smith(encoder, documents, objective, seed)


def _pairs(
    encoder: Encoder,
    documents: Sequence[Document],
    sampler: PairSampler,
    objective: ViewsObjective | TensionObjective | WordsObjective,
    seed: int,
) -> ViewPairs:
    return ViewPairs(
        encoder,
        documents,
        sampler,
        batch_size=objective.batch_size,
        max_tokens=objective.view_tokens,
        joined=isinstance(objective, ViewsObjective) and objective.joined_views,
        seed=seed,
    )


def _views(encoder: TrainableEncoder, documents: Sequence[Document], objective: ViewsObjective, seed: int) -> Task[Any]:
    pairs = _pairs(encoder, documents, SAMPLERS[objective.sampling], objective, seed)
    if objective.queue:
        return MomentumContrast(
            encoder, pairs, queue_size=objective.queue, momentum=objective.momentum, temperature=objective.temperature
        )
    config = ContrastiveConfig(
        temperature=objective.temperature,
        symmetric=objective.symmetric,
        mlm_weight=objective.mlm_weight,
        mlp_head=objective.mlp_head,
        group_tokens=objective.group_tokens,
        seed=seed,
    )
    return ContrastivePretraining(encoder, pairs, config)


def _smith(
    encoder: TrainableEncoder, documents: Sequence[Document], objective: SmithObjective, seed: int
) -> SmithPretraining:
    if not isinstance(encoder, SmithEncoder):
        raise TrainingError(_unfit("smith", encoder, "a SMITH; make one: --new smith"))
    all_of_it = frozenset(SmithLoss) if encoder.config.is_hierarchical else frozenset({SmithLoss.WORDS})
    config = SmithPretrainingConfig(
        objectives=objective.losses or all_of_it, batch_size=objective.batch_size, seed=seed
    )
    return SmithPretraining(encoder, _readable(encoder, documents), config)


def _readable(encoder: Encoder, documents: Sequence[Document]) -> list[SegmentedDocument]:
    found = []
    for document in documents:
        try:
            found.append(encoder.segment(document))
        except DocumentError:
            continue
    return found


def _unfit(task: str, encoder: TrainableEncoder, wanted: str) -> str:
    return f"the task {task} does not train an encoder of type {encoder.kind}, but {wanted}"


def _finish_tension(run: Run, task: ContrastiveTension, outcome: Outcome) -> Trained:
    """Keep the encoder that is better on valid: the first at its best step, or the second at the end."""
    by_corpus = {one.name: one.ndcg() for one in validations(run, task.encoders[1])}
    if not by_corpus:
        return finish(run, outcome)
    by_corpus[MEAN] = sum(by_corpus.values()) / len(by_corpus)
    best_of_first = float(outcome.history.validation(METRIC)[MEAN].values.max())
    kept = task.better(lambda encoder: best_of_first if encoder is task.encoders[0] else by_corpus[MEAN])
    run.context.log(
        f"valid {METRIC}: the first encoder {best_of_first:.4f} at best, the second {by_corpus[MEAN]:.4f} at the end; "
        f"the {'first' if kept is task.encoders[0] else 'second'} is kept"
    )
    if kept is task.encoders[0]:
        return finish(run, outcome)
    compared = compare_validations(outcome.history, outcome.best_step)
    as_kept = tuple(replace(one, after=by_corpus[one.corpus]) for one in compared)
    return publish(run, replace(outcome, best_step=outcome.steps), kept, as_kept)
