"""All settings of a run except its data, also as a flat list for people and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

import torch

from engine.errors import TrainingError
from engine.training.run.trainer import TrainerSettings
from engine.training.tasks.text_pairs import HEAD_RATE
from indexer.training.objectives import (
    FineTuningObjective,
    PairsObjective,
    PretrainingObjective,
    TensionObjective,
    TextPairsObjective,
    ViewsObjective,
)
from indexer.training.start import Start

Setting: TypeAlias = str | int | float | bool | None
_NAMES_OF_FOLDERS = ("encoder", "teacher")
_RENAMED = {"kind": "new"}  # of a new encoder


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The settings that `TrainingRecipe` and `PretrainingRecipe` share."""

    start: Start = field(default_factory=Start)
    trainer: TrainerSettings = field(default_factory=TrainerSettings)
    valid_chunks: int | None = None  # of a document that validation encodes; all by default
    valid_queries: int | None = None
    valid_documents: int | None = None
    saved_dtype: torch.dtype = torch.float32
    licence: str = ""  # of the parameters, as the hub abbreviates it


@dataclass(frozen=True, kw_only=True)
class TrainingRecipe(Recipe):
    """Settings of training on pairs of documents.

    Topics and pair head of a TDE begin at random: with the objective text-pairs they learn at `HEAD_RATE` if the
    trainer has no learning rate for heads.

    Raises:
        TrainingError: the objective or the learning rates do not fit a frozen first stage.
    """

    objective: FineTuningObjective = field(default_factory=PairsObjective)
    label: str | None = None  # a metadata field; documents that share its value are pairs, if no pairs are given

    def __post_init__(self) -> None:
        """Check that start and objective fit."""
        if self.start.frozen_first_stage and not isinstance(self.objective, PairsObjective):
            raise TrainingError(
                "a frozen first stage goes with the objective pairs alone; use --objective pairs, or --freeze-layers"
            )
        if self.start.frozen_first_stage and self.trainer.head_learning_rate is not None:
            raise TrainingError(
                "with a frozen first stage heads are all that is trained; give their rate as --learning-rate"
            )
        if isinstance(self.objective, TextPairsObjective) and self.trainer.head_learning_rate is None:
            object.__setattr__(self, "trainer", replace(self.trainer, head_learning_rate=HEAD_RATE))


@dataclass(frozen=True, kw_only=True)
class PretrainingRecipe(Recipe):
    """Settings of training on documents alone.

    Raises:
        TrainingError: start or trainer and the objective do not fit.
    """

    objective: PretrainingObjective = field(default_factory=ViewsObjective)

    def __post_init__(self) -> None:
        """Check that start, trainer and objective fit."""
        if self.start.frozen_first_stage:
            raise TrainingError(
                "pretraining reads new texts at every step, so no first stage can be kept; use --freeze-layers"
            )
        if isinstance(self.objective, TensionObjective) and self.trainer.head_learning_rate is not None:
            raise TrainingError("Contrastive Tension trains nothing beside its encoders; leave out the head's rate")


def settings_of(recipe: TrainingRecipe | PretrainingRecipe) -> dict[str, Setting]:
    """All settings by name, flat: {"objective": "pairs", "learning rate": 3e-05, "losses": "evidence=1", ...}.

    Folders are reduced to their names. The only seed is that of the trainer.
    """
    settings: dict[str, Setting] = {"objective": recipe.objective.name}
    _flatten(recipe, settings)
    return settings


def _flatten(value: object, settings: dict[str, Setting]) -> None:
    assert is_dataclass(value)
    for one in fields(value):
        inner = getattr(value, one.name)
        name = _RENAMED.get(one.name, one.name.replace("_", " "))
        if is_dataclass(inner):
            _flatten(inner, settings)
        elif one.name != "seed" or isinstance(value, TrainerSettings):
            assert name not in settings, f"two settings have the name {name!r}"
            settings[name] = shown(inner) if one.name in _NAMES_OF_FOLDERS else _plain(inner)


def _plain(value: object) -> Setting:
    match value:
        case Mapping():
            return ", ".join(
                f"{key}={one:g}" if isinstance(one, float) else f"{key}={one}" for key, one in value.items()
            )
        case frozenset():
            return ", ".join(sorted(map(str, value)))
        case torch.dtype():
            return str(value).removeprefix("torch.")
        case StrEnum():
            return value.value
        case None | bool() | int() | float() | str():
            return value
    raise TypeError(f"a setting is a {type(value).__name__}")


def shown(encoder: str) -> str:
    """An encoder's name without the folders of this machine: a folder by its own name, others as they are."""
    return Path(encoder).resolve().name if encoder and Path(encoder).is_dir() else encoder
