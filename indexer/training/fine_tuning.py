"""`train`: an encoder learns from pairs of documents."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from engine.training.corpus import TrainingCorpus
from engine.training.selection import EvidenceChunks, RandomRuns, Selector
from engine.training.task import Task
from engine.training.tasks.fine_tuning import FineTuning, Loss, Source
from engine.training.tasks.teacher import IndexTeacher
from indexer.training.corpora import Given, read_with_pairs
from indexer.training.library import Library
from indexer.training.objectives import Negatives, PairsObjective, SectionsObjective, TextPairsObjective
from indexer.training.recipe import TrainingRecipe
from indexer.training.relations import check_text_pairs, section_contrast, text_pairs
from indexer.training.run import INDEX_FOLDER, Context, Run, Trained, carry_out, check_start, finish, open_run
from indexer.training.watch import Log, Watch


def train(
    out: str | Path,
    corpora: Sequence[Given],
    recipe: TrainingRecipe | None = None,
    *,
    indexes: str | Path | None = None,
    device: str | None = None,
    command: str = "",
    log: Log = lambda line: None,
    watch: Watch = lambda step: None,
) -> Trained:
    """Train an encoder on pairs of documents, and write it to a folder.

    A run that was stopped resumes from its last checkpoint when this is called again.

    Args:
        out: becomes a folder that `load_encoder` reads, with card, history and curves.
        corpora: folders in the layout of `engine.training.corpus`, as FOLDER or FOLDER:SUFFIX.
        recipe: the settings; by default those of `TrainingRecipe`.
        indexes: folder of the indexes of the corpora, by which negatives and chunks are
            chosen, as NAME.lm; built if missing. OUT/indexes by default.
        device: where the encoder is trained.
        command: the command line of the run, for its card.
        log: called with a line of progress now and then.
        watch: called with every step.

    Raises:
        TrainingError: the corpora hold no pairs, encoder and objective do not fit, the
            run in the folder is another one, or the loss is not finite.
        EncoderError: the encoder cannot be loaded, made or trained.
        MissingExtra: a package of the extra "training" is not installed.
    """
    out, recipe = Path(out), recipe or TrainingRecipe()
    check_start(out, recipe.start.encoder, device)
    classes = isinstance(recipe.objective, SectionsObjective) and recipe.label is not None
    read = read_with_pairs(corpora, label=None if classes else recipe.label, needs_pairs=not classes)
    run = open_run(out, "train", recipe, read, Context(device, command, log, watch))
    with ExitStack() as stack:
        library = Library(Path(indexes) if indexes else out / INDEX_FOLDER, run, stack)
        return finish(run, carry_out(run, _task(run, recipe, library)))


def _task(run: Run, recipe: TrainingRecipe, library: Library) -> Task[Any]:
    seed = recipe.trainer.seed
    match recipe.objective:
        case PairsObjective() as objective:
            sources = [_source(corpus, recipe, objective, library) for corpus in run.corpora]
            return FineTuning(run.encoder, sources, objective.settings, seed=seed)
        case SectionsObjective() as objective:
            return section_contrast(run.encoder, run.corpora, objective, label=recipe.label, seed=seed)
        case TextPairsObjective() as objective:
            check_text_pairs(run.encoder)
            miners = [library.miner(objective.miner, corpus, recipe.start.encoder) for corpus in run.corpora]
            return text_pairs(run.encoder, run.corpora, miners, objective, seed=seed)


def _source(corpus: TrainingCorpus, recipe: TrainingRecipe, objective: PairsObjective, library: Library) -> Source:
    encoder = recipe.start.encoder
    has_teacher = bool(objective.settings.losses.get(Loss.DISTILLATION))
    teacher = IndexTeacher(library.index(corpus, objective.teacher)) if has_teacher else None
    selector: Selector = RandomRuns(objective.query_chunks, objective.target_chunks)
    # A new encoder cuts other chunks than the index holds: the index is by its backbone alone.
    if objective.miner is Negatives.MODEL and recipe.start.new is None:
        crowd = objective.settings.crowd
        index = library.index(corpus, encoder)
        selector = EvidenceChunks(index, objective.query_chunks, objective.target_chunks, crowd=crowd)
    return Source(corpus, selector, library.miner(objective.miner, corpus, encoder), teacher)
