"""The part of the model card that describes a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.encoders.files import MINILM_NAME
from engine.encoders.trainable import TrainableEncoder
from engine.training.corpus import TrainingCorpus
from engine.training.run.card import CHANGES, CorpusSummary, RunSummary, Validation
from engine.training.run.trainer import Outcome
from indexer.origin import Machine, describe_origin
from indexer.training.recipe import PretrainingRecipe, Setting, TrainingRecipe, settings_of, shown

_ON_THE_HUB = {MINILM_NAME: "sentence-transformers/all-MiniLM-L6-v2"}


def summarize(
    out: Path,
    recipe: TrainingRecipe | PretrainingRecipe,
    outcome: Outcome,
    corpora: Sequence[TrainingCorpus],
    *,
    encoder: TrainableEncoder,
    taken: str | None,
    command: str,
    validations: Sequence[Validation],
    changes: Sequence[str],
) -> RunSummary:
    """Summarize a run for its model card.

    Args:
        out: the folder, whose name is that of the model.
        recipe: of the run.
        outcome: the result of the trainer.
        corpora: the training data.
        encoder: the trained encoder.
        taken: which of its parameters were those of the encoder in the recipe; see `Made`.
        command: repeats the run; "" if it was run from Python.
        validations: before and after.
        changes: of settings during the run.
    """
    seed = recipe.trainer.seed
    origin = describe_origin(command, seed)
    needs_pairs = isinstance(recipe, TrainingRecipe)
    return RunSummary(
        name=out.resolve().name,
        encoder=encoder.kind,
        command=command or "# run from Python; its command was not recorded",
        base="" if taken is None else shown(recipe.start.encoder) + taken,
        base_model=_ON_THE_HUB.get(recipe.start.encoder, "") if taken is not None else "",
        licence=recipe.licence,
        corpora=[
            CorpusSummary(one.name, len(one.documents), one.n_pairs if needs_pairs else 0, one.checksum, one.licence)
            for one in corpora
        ],
        objective=_first_sentence(recipe.objective),
        settings=_chosen(settings_of(recipe), changes),
        seed=seed,
        steps=outcome.steps,
        best_step=outcome.best_step,
        n_tokens=outcome.n_tokens,
        chunk_tokens=encoder.chunk_tokens,
        longest_words=max(len(one.text.split()) for corpus in corpora for one in corpus.documents.values()),
        seconds=outcome.seconds,
        machine=_described(origin.machine),
        commit=origin.commit,
        validations=validations,
    )


def _first_sentence(objective: object) -> str:
    return (type(objective).__doc__ or "").strip().partition("\n")[0]


def _chosen(settings: dict[str, Setting], changes: Sequence[str]) -> dict[str, object]:
    """The settings that have a value, and their changes during the run."""
    fields: dict[str, object] = {
        name: "yes" if value is True else "no" if value is False else value
        for name, value in settings.items()
        if value not in (None, "") and name not in ("seed", "licence")
    }
    return {**fields, **({CHANGES: "; ".join(changes)} if changes else {})}


def _described(machine: Machine) -> str:
    gpu = f", {machine.gpu}" if machine.gpu else ""
    return f"{machine.cpu}, {machine.cores} cores, {machine.memory_gib} GiB{gpu}"
