"""`recipe.json` in the folder of a run: its settings and their changes, checked when the run resumes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import TrainingError
from engine.store.durable import write_durably
from engine.training.corpus import TrainingCorpus
from engine.training.run.checkpoint import latest_checkpoint
from engine.training.run.trainer import CHECKPOINT_FOLDER
from indexer.training.recipe import Setting

RECIPE_FILE = "recipe.json"
# Neither the gradients nor the choice of parameters depend on these, except for rounding.
_FREE = frozenset({"group tokens", "checkpoint gradients", "checkpoint every", "saved dtype", "licence"})
# A run may resume with other values of these; the card reports the changes.
_ADJUSTABLE = frozenset({"steps", "learning rate", "patience", "validate every", "mixed precision"})


@dataclass(frozen=True)
class Record:
    """The command, corpora and settings of a run."""

    command: str  # train or pretrain
    corpora: Mapping[str, str]  # checksum by name, in their order
    settings: Mapping[str, Setting]
    changes: tuple[str, ...] = ()  # since it began


def make_record(command: str, corpora: Sequence[TrainingCorpus], settings: Mapping[str, Setting]) -> Record:
    """The record of a requested run."""
    return Record(command, {corpus.name: corpus.checksum for corpus in corpora}, settings)


def reached_step(folder: Path) -> int | None:
    """The step of the last checkpoint of a run; None where there is none."""
    checkpoint = latest_checkpoint(folder / CHECKPOINT_FOLDER)
    return None if checkpoint is None else int(checkpoint.name.rpartition("-")[2])


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
        "command": record.command,
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
        return Record(content["command"], content["corpora"], content["settings"], tuple(content["changes"]))
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
    """The differences; settings that the record of the run does not name are left out."""
    differing = []
    if begun.command != requested.command:
        differing.append(_Difference("longmatch", begun.command, requested.command))
    if list(begun.corpora) != list(requested.corpora):
        differing.append(_Difference("corpora", ", ".join(begun.corpora), ", ".join(requested.corpora)))
    else:
        differing += [
            _Difference(f"checksum of {name}", checksum, requested.corpora[name])
            for name, checksum in begun.corpora.items()
            if checksum != requested.corpora[name]
        ]
    differing += [
        _Difference(name, _shown(begun.settings[name]), _shown(value))
        for name, value in requested.settings.items()
        if name not in _FREE and name in begun.settings and begun.settings[name] != value
    ]
    return differing


def _shown(value: Setting) -> str:
    return "none" if value in (None, "") else str(value)
