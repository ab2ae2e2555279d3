"""The record of a run: `recipe.json`, checked when it resumes, and the model card of the encoder that it trained."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from engine.encoders.files import CARD_FILE, MINILM_NAME
from engine.errors import TrainingError
from engine.store.durable import write_durably
from engine.training.corpus import TrainingCorpus
from engine.training.history import CURVES_FILE, HISTORY_FILE, MEAN, History
from engine.training.trainer import CHECKPOINT_FOLDER, Outcome, latest_checkpoint, step_of
from indexer.origin import describe_origin
from indexer.training.recipe import Recipe, Setting, settings_of, shown
from indexer.training.start import StartingEncoder

_ON_THE_HUB = {MINILM_NAME: "sentence-transformers/all-MiniLM-L6-v2"}
CHANGES = "changed on the way"  # the setting that lists the settings changed when a run was resumed


@dataclass(frozen=True, slots=True)
class ValidationChange:
    """One metric on one corpus before training, and with the saved parameters."""

    corpus: str
    metric: str  # nDCG@10
    before: float
    after: float


def compare_validations(history: History, best_step: int) -> tuple[ValidationChange, ...]:
    """Compare the validation of a run before training with that at its best step.

    A corpus or metric that was not measured at both is left out, and so is the mean over one corpus.
    """
    compared = []
    for metric in history.metrics:
        by_corpus = history.validation(metric)
        for corpus, series in by_corpus.items():
            if corpus == MEAN and len(by_corpus) == 2:
                continue
            at = dict(zip(series.steps.tolist(), series.values.tolist(), strict=True))
            if 0 in at and best_step in at:
                compared.append(ValidationChange(corpus, metric, at[0], at[best_step]))
    return tuple(compared)


def write_card(
    folder: Path,
    recipe: Recipe,
    corpora: Sequence[TrainingCorpus],
    trained: StartingEncoder,
    outcome: Outcome,
    validations: Sequence[ValidationChange],
    *,
    command: str = "",
    changes: Sequence[str] = (),
) -> None:
    """Write the model card of a run, README.md with the front matter of Hugging Face, into the encoder's folder.

    Curves and history are linked if they are in the folder.

    Args:
        trained: the saved encoder.
        command: the last one given; it repeats the run unless there are `changes`, settings changed on the way.
    """
    environment = Environment(trim_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
    # A JSON value is a YAML value, whatever characters it has.
    environment.filters |= {"row": _table_row, "json": partial(json.dumps, ensure_ascii=False), "duration": _duration}
    template = files("indexer.training").joinpath("templates", "card.md").read_text("utf-8")
    has_base = trained.inherited is not None
    settings = settings_of(recipe)
    text = environment.from_string(template).render(
        name=folder.resolve().name,
        recipe=recipe,
        corpora=corpora,
        encoder=trained.encoder,
        outcome=outcome,
        validations=validations,
        command=command or "# run from Python; its command was not recorded",
        changes="; ".join(changes),
        front_matter={
            "library_name": "longmatch",
            "license": recipe.licence,
            "language": "en",
            "base_model": _ON_THE_HUB.get(recipe.start.encoder) if has_base else None,
            "tags": ["feature-extraction", "long-documents", trained.encoder.kind],
        },
        base=f"{shown(recipe.start.encoder)}{trained.inherited}" if has_base else "",
        objective=(type(recipe.objective).__doc__ or "").partition("\n")[0],
        settings={name: _answer(value) for name, value in settings.items() if name not in ("seed", "licence")},
        longest_words=max(len(document.text.split()) for corpus in corpora for document in corpus.documents.values()),
        origin=describe_origin(command, recipe.trainer.seed),
        curves=folder / CURVES_FILE,
        history=folder / HISTORY_FILE,
    )
    write_durably(folder / CARD_FILE, lambda unfinished: unfinished.write_text(text, "utf-8"))


def _answer(value: Setting) -> Setting:
    return value if not isinstance(value, bool) else "yes" if value else "no"


def _table_row(cells: Iterable[object]) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(" ".join(str(cell).split()).replace("|", r"\|") for cell in cells) + " |"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"


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


def reached_step(folder: Path) -> int | None:
    """The step of the last checkpoint of a run; None where there is none."""
    checkpoint = latest_checkpoint(folder / CHECKPOINT_FOLDER)
    return None if checkpoint is None else step_of(checkpoint)


def reconcile(folder: Path, requested: Record) -> Record:
    """Compare a record with that of the run in a folder, if the run has a checkpoint to resume from.

    A run without a record resumes as requested.

    Raises:
        TrainingError: something differs that may not change during a run, or the file is damaged.
    """
    step, file = reached_step(folder), folder / RECIPE_FILE
    if step is None or not file.exists():
        return requested
    begun = _read(file)
    differing = _differences(begun, requested)
    if refused := [f"{name} {old}, not {new}" for name, (old, new) in differing.items() if name not in _ADJUSTABLE]:
        raise TrainingError(
            f"the run in {folder} began with {'; '.join(refused)}; "
            "give again what it began with, or name another folder for a new run"
        )
    changes = tuple(f"{name} {old} became {new} after step {step:,}" for name, (old, new) in differing.items())
    return replace(requested, changes=begun.changes + changes)


def write_record(folder: Path, record: Record) -> None:
    """Write the record of a run into its folder, which is created if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps(asdict(record), indent=1, ensure_ascii=False) + "\n"
    write_durably(folder / RECIPE_FILE, lambda unfinished: unfinished.write_text(content, "utf-8"))


def _read(file: Path) -> Record:
    try:
        content: dict[str, Any] = json.loads(file.read_text("utf-8"))
        return Record(content["corpora"], content["settings"], tuple(content["changes"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(
            f"{file} is damaged ({error!r}); delete it, and the run goes on with what it is given now"
        ) from error


def _differences(begun: Record, requested: Record) -> dict[str, tuple[str, str]]:
    """Both values of what differs, by its name."""
    differing: dict[str, tuple[str, str]] = {}
    if list(begun.corpora) != list(requested.corpora):
        differing["corpora"] = ", ".join(begun.corpora), ", ".join(requested.corpora)
    else:
        for name, checksum in begun.corpora.items():
            if checksum != requested.corpora[name]:
                differing[f"checksum of {name}"] = checksum, requested.corpora[name]
    for name, value in requested.settings.items():
        if name not in _FREE and begun.settings.get(name) != value:
            differing[name] = _shown(begun.settings.get(name)), _shown(value)
    return differing


def _shown(value: Setting) -> str:
    return "none" if value in (None, "") else str(value)
