"""The record of a run: `recipe.json`, checked when it resumes, and the part of the model card that describes it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.encoders.files import MINILM_NAME
from engine.errors import TrainingError
from engine.store.durable import write_durably
from engine.training.card import CHANGES, CorpusSummary, RunSummary, ValidationChange
from engine.training.corpus import TrainingCorpus
from engine.training.trainer import CHECKPOINT_FOLDER, Outcome, latest_checkpoint, step_of
from indexer.origin import Machine, describe_origin
from indexer.training.recipe import Recipe, Setting, settings_of, shown
from indexer.training.start import Made

RECIPE_FILE = "recipe.json"
# Neither the gradients nor the choice of parameters depend on these, except for rounding.
_FREE = frozenset({"group tokens", "checkpoint gradients", "checkpoint every", "half", "licence"})
# A run may resume with other values of these; the card reports the changes.
_ADJUSTABLE = frozenset({"steps", "learning rate", "patience", "validate every", "mixed precision"})


@dataclass(frozen=True)
class Record:
    """The corpora and settings of a run."""

    corpora: Mapping[str, str]  # checksum by name, in their order
    settings: Mapping[str, Setting]
    changes: tuple[str, ...] = ()  # since it began


def make_record(corpora: Sequence[TrainingCorpus], settings: Mapping[str, Setting]) -> Record:
    """The record of a requested run."""
    return Record({corpus.name: corpus.checksum for corpus in corpora}, settings)


def reached_step(folder: Path) -> int | None:
    """The step of the last checkpoint of a run; None where there is none."""
    checkpoint = latest_checkpoint(folder / CHECKPOINT_FOLDER)
    return None if checkpoint is None else step_of(checkpoint)


def reconcile(folder: Path, requested: Record) -> Record:
    """Compare a record with that of the run in a folder, if the run has a checkpoint to resume from.

    A run without a record resumes as requested.

    Returns:
        The requested record, with the changes of the run so far.

    Raises:
        TrainingError: something differs that may not change during a run, or the file is damaged.
    """
    step, file = reached_step(folder), folder / RECIPE_FILE
    if step is None or not file.exists():
        return requested
    begun = _read(file)
    differing = _differences(begun, requested)
    if refused := [f"{one.name} {one.begun}, not {one.requested}" for one in differing if one.name not in _ADJUSTABLE]:
        raise TrainingError(
            f"the run in {folder} began with {'; '.join(refused)}; "
            "give again what it began with, or name another folder for a new run"
        )
    changes = tuple(f"{one.name} {one.begun} became {one.requested} after step {step:,}" for one in differing)
    return replace(requested, changes=begun.changes + changes)


def write_record(folder: Path, record: Record) -> None:
    """Write the record of a run into its folder, which is created if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "corpora": dict(record.corpora),
        "settings": dict(record.settings),
        "changes": list(record.changes),
    }

    def write(unfinished: Path) -> None:
        unfinished.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")

    write_durably(folder / RECIPE_FILE, write)


def _read(file: Path) -> Record:
    try:
        content: dict[str, Any] = json.loads(file.read_text("utf-8"))
        return Record(content["corpora"], content["settings"], tuple(content["changes"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(
            f"{file} is damaged ({error!r}); delete it, and the run goes on with what it is given now"
        ) from error


@dataclass(frozen=True)
class _Difference:
    name: str
    begun: str
    requested: str


def _differences(begun: Record, requested: Record) -> list[_Difference]:
    """The differences of two records."""
    differing = []
    if list(begun.corpora) != list(requested.corpora):
        differing.append(_Difference("corpora", ", ".join(begun.corpora), ", ".join(requested.corpora)))
    else:
        differing += [
            _Difference(f"checksum of {name}", checksum, requested.corpora[name])
            for name, checksum in begun.corpora.items()
            if checksum != requested.corpora[name]
        ]
    differing += [
        _Difference(name, _shown(begun.settings.get(name)), _shown(value))
        for name, value in requested.settings.items()
        if name not in _FREE and begun.settings.get(name) != value
    ]
    return differing


def _shown(value: Setting) -> str:
    return "none" if value in (None, "") else str(value)


_ON_THE_HUB = {MINILM_NAME: "sentence-transformers/all-MiniLM-L6-v2"}


def summarize(
    out: Path,
    recipe: Recipe,
    outcome: Outcome,
    corpora: Sequence[TrainingCorpus],
    made: Made,
    record: Record,
    *,
    command: str,
    changes: Sequence[ValidationChange],
) -> RunSummary:
    """Summarize a run for its model card."""
    seed = recipe.trainer.seed
    origin = describe_origin(command, seed)
    taken, encoder, needs_pairs = made.taken, made.encoder, recipe.objective.needs_pairs
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
        settings=_chosen(settings_of(recipe), record.changes),
        seed=seed,
        steps=outcome.steps,
        best_step=outcome.best_step,
        n_tokens=outcome.n_tokens,
        chunk_tokens=encoder.chunk_tokens,
        longest_words=max(len(value.text.split()) for corpus in corpora for value in corpus.documents.values()),
        seconds=outcome.seconds,
        machine=_described(origin.machine),
        commit=origin.commit,
        validations=changes,
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
