"""The recipe of a run, which is all of its settings but its data, and its record: `recipe.json` and the model card.

Settings are fields of dataclasses. The command line, `--list-settings`, the documentation and the model card are
made from them; the card prints the first sentence of the objective.
"""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, get_type_hints

from jinja2 import Environment, StrictUndefined

from engine.encoders.encoder import Pooling
from engine.encoders.files import CARD_FILE, MINILM_NAME
from engine.encoders.loading import DEFAULT_ENCODER
from engine.errors import TrainingError
from engine.machine import describe_origin
from engine.report.lines import duration
from engine.settings import COUNT, Checked, Range, parse, setting, shown_value
from engine.store.durable import write_durably
from engine.training.contrastive_pretraining import ViewsSettings
from engine.training.corpus import TrainingCorpus
from engine.training.fine_tuning import FineTuningSettings
from engine.training.history import HISTORY_FILE, MEAN, History
from engine.training.masked_words import SmithSettings
from engine.training.pair_tasks import BACKBONE_RATE, HEAD_RATE, ContrastSettings, TextPairsSettings
from engine.training.trainer import CHECKPOINT_FOLDER, Outcome, TrainerSettings, latest_checkpoint, step_of
from engine.training.views import Sampling
from indexer.training.start import NewEncoder, NewKind, Start, StartingEncoder, configuration

Setting: TypeAlias = str | int | float | bool | None
_SIZE = "size."  # before the name of a size of a new encoder


class Negatives(StrEnum):
    """Where hard negatives come from."""

    MODEL = "model"  # search of an index made by the encoder that training starts from
    BM25 = "bm25"
    NONE = "none"  # no hard negatives


@dataclass(frozen=True)
class Mining(Checked):
    """Settings of objectives that read hard negatives."""

    miner: Negatives = setting(
        Negatives.MODEL, "source of hard negatives: search by the encoder that training starts from, bm25, or none"
    )


@dataclass(frozen=True)
class PairsObjective(Mining, FineTuningSettings):
    """Ranks the targets of each query above the other documents of a batch."""

    name: ClassVar[str] = "pairs"
    query_chunks: int = setting(6, "most chunks of a query that a step encodes", COUNT)
    target_chunks: int = setting(4, "most chunks of a target that a step encodes", COUNT)


@dataclass(frozen=True)
class SectionsObjective(ContrastSettings):
    """Draws together the sections of each document and of the documents that belong with it, as CoLDE does."""

    name: ClassVar[str] = "sections"
    label: str | None = setting(
        None, "metadata field; documents that share a value are a class, if the corpus has no pairs"
    )


@dataclass(frozen=True)
class TextPairsObjective(Mining, TextPairsSettings):
    """Distinguishes texts that match from texts that do not, sentence by sentence and by topics, as TDE does."""

    name: ClassVar[str] = "text-pairs"
    positives_per_query: int = setting(10, "most positives of a query, drawn from a large class", COUNT)
    negatives_per_positive: int = setting(
        1, "negatives of each positive: hard ones while the miner has any, then random ones", COUNT
    )


@dataclass(frozen=True)
class ViewsObjective(ViewsSettings):
    """Draws the two views of each document together, and views of different documents apart."""

    name: ClassVar[str] = "views"
    sampling: Sampling = Sampling.DOCSPLIT
    batch_size: int = setting(36, "documents of a batch", Range(least=2))
    view_tokens: int = setting(512, "most tokens of a view", COUNT)
    joined_views: bool = setting(False, "read a view as one chunk, across headings, as published")


@dataclass(frozen=True)
class TensionObjective(Checked):
    """Trains two encoders to agree on the same text and on no other (Contrastive Tension)."""

    name: ClassVar[str] = "ct"
    batch_size: int = setting(16, "pairs of a batch; one in negatives + 1 is the same text twice", Range(least=2))
    view_tokens: int = setting(512, "most tokens of a text", COUNT)
    negatives: int = setting(7, "other texts for each text", COUNT)


@dataclass(frozen=True)
class SmithObjective(SmithSettings):
    """Predicts masked words and masked sentence blocks, as SMITH does."""

    name: ClassVar[str] = "smith"


Objective: TypeAlias = (
    PairsObjective | SectionsObjective | TextPairsObjective | ViewsObjective | TensionObjective | SmithObjective
)


@dataclass(frozen=True, kw_only=True)
class Recipe(Checked):
    """The settings of a run."""

    start: Start = field(default_factory=Start)
    objective: Objective = field(default_factory=PairsObjective)
    trainer: TrainerSettings = field(default_factory=TrainerSettings)
    valid_chunks: int | None = setting(None, "most chunks of a document in validation", COUNT)
    valid_queries: int | None = setting(None, "most queries of a corpus in validation", COUNT)
    valid_documents: int | None = setting(None, "most documents of a corpus in validation", COUNT)
    half: bool = setting(False, "save the parameters in float16")
    licence: str = setting("", "licence of the trained parameters, for the model card: apache-2.0")

    @property
    def needs_pairs(self) -> bool:
        """Whether documents alone are not enough for the objective."""
        return isinstance(self.objective, PairsObjective | SectionsObjective | TextPairsObjective)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.objective, TextPairsObjective) and self.trainer.head_learning_rate is None:
            # Topics and pair head of a TDE begin at random.
            object.__setattr__(self, "trainer", replace(self.trainer, head_learning_rate=HEAD_RATE))
        if isinstance(self.objective, TensionObjective) and self.trainer.head_learning_rate is not None:
            raise TrainingError("Contrastive Tension trains nothing beside its encoders; leave out head_learning_rate")


_ALONE = TrainerSettings(steps=1000, learning_rate=5e-5)
_VIEWS_OF = (Sampling.DOCSPLIT, Sampling.CROP_HALF, Sampling.ICT, Sampling.SIMCSE)
OBJECTIVES: Mapping[str, Recipe] = {
    "pairs": Recipe(),
    "sections": Recipe(objective=SectionsObjective()),
    "text-pairs": Recipe(objective=TextPairsObjective(), trainer=TrainerSettings(learning_rate=BACKBONE_RATE)),
    **{kind.value: Recipe(objective=ViewsObjective(sampling=kind), trainer=_ALONE) for kind in _VIEWS_OF},
    "contriever": Recipe(objective=ViewsObjective(sampling=Sampling.CONTRIEVER, queue=131_072), trainer=_ALONE),
    # As published: the first token of a view that is one chunk, a dense layer over it, and masked words.
    "docsplit-paper": Recipe(
        start=Start(pooling=Pooling.CLS, window_tokens=512),
        objective=ViewsObjective(joined_views=True, mlp_head=True, mlm_weight=0.1),
        trainer=_ALONE,
    ),
    "ct": Recipe(objective=TensionObjective(), trainer=_ALONE),
    "smith": Recipe(objective=SmithObjective(), trainer=_ALONE),
}


def recipe_of(
    objective: str, settings: Mapping[str, str], *, encoder: str = DEFAULT_ENCODER, new: NewKind | None = None
) -> Recipe:
    """The recipe of an objective in `OBJECTIVES`, with some settings as text.

    Args:
        settings: by the names of fields; sizes of a new encoder as "size.width".
    """
    texts = {name.strip().replace("-", "_").replace(" ", "_"): text for name, text in settings.items()}
    base = OBJECTIVES[objective]
    start = replace(base.start, encoder=encoder)
    if new is not None:
        sizes = {name.removeprefix(_SIZE): text for name, text in texts.items() if name.startswith(_SIZE)}
        start = Start(encoder, NewEncoder(new, sizes=sizes))
        texts = {name: text for name, text in texts.items() if not name.startswith(_SIZE)}
    elif base.start.window_tokens is not None and "view_tokens" in texts:
        texts = {"window_tokens": texts["view_tokens"], **texts}
    recipe = replace(base, start=start)
    known = {listed.name for listed in settings_in(recipe)}
    for name in texts:
        if name not in known:
            raise TrainingError(_unknown(name, known))
    changed: Recipe = _changed(recipe, texts)
    return changed


def _changed(value: Any, texts: Mapping[str, str]) -> Any:  # noqa: ANN401
    kinds, changes = get_type_hints(type(value)), {}
    for attribute in fields(value):
        inner = getattr(value, attribute.name)
        if is_dataclass(inner):
            changes[attribute.name] = _changed(inner, texts)
        elif attribute.name in texts and "meaning" in attribute.metadata:
            changes[attribute.name] = parse(attribute.name, texts[attribute.name], kinds[attribute.name])
    return replace(value, **changes)


def _unknown(name: str, known: set[str]) -> str:
    others = [key for key, recipe in OBJECTIVES.items() if name in {listed.name for listed in settings_in(recipe)}]
    if others:
        return f"{name} is a setting of the objective {' or '.join(others)}, and not of this run"
    if name.startswith(_SIZE) or name in {listed.name for listed in fields(NewEncoder)}:
        return f"{name} is a setting of a new encoder; name its kind with --new, or leave it out"
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    like_it = f"; near names: {', '.join(near)}" if near else ""
    return f"there is no setting {name!r}{like_it}; longmatch train --list-settings prints all"


@dataclass(frozen=True, slots=True)
class Listed:
    """A setting as it is listed for people."""

    name: str
    default: str
    meaning: str


def settings_in(value: object) -> Iterator[Listed]:
    """The settings of a dataclass and of those inside it, with their current values."""
    assert is_dataclass(value)
    for attribute in fields(value):
        inner = getattr(value, attribute.name)
        if is_dataclass(inner):
            yield from settings_in(inner)
        elif "meaning" in attribute.metadata:
            within = attribute.metadata["range"]
            meaning = attribute.metadata["meaning"] + (f" ({within})" if within else "")
            yield Listed(attribute.name, shown_value(inner), meaning)


def groups_of_settings() -> dict[str, list[Listed]]:
    """All settings by the heading under which they are listed: of every run, of objectives, of new encoders."""
    groups: dict[type, dict[str, list[Listed]]] = {}
    for name, recipe in OBJECTIVES.items():
        settings = list(settings_in(recipe.objective))
        groups.setdefault(Recipe, {})[name] = [item for item in settings_in(recipe) if item not in settings]
        groups.setdefault(type(recipe.objective), {})[name] = settings
    for kind in NewKind:
        new = NewEncoder(kind)
        listed = [replace(size, name=_SIZE + size.name) for size in settings_in(configuration(new))]
        groups.setdefault(type(configuration(new)), {})[kind.value] = [*settings_in(new), *listed]
    return {_heading(key, list(by_owner)): _joined(by_owner) for key, by_owner in groups.items()}


def _heading(key: type, owners: Sequence[str]) -> str:
    if key is Recipe:
        return "Every run"
    return f"{'--objective' if key.__name__.endswith('Objective') else '--new'} {', '.join(owners)}"


def _joined(by_owner: Mapping[str, Sequence[Listed]]) -> list[Listed]:
    """Each setting once, with the default of its first owner; the other defaults are in its meaning."""
    defaults: dict[str, dict[str, list[str]]] = {}
    meanings = {item.name: item.meaning for value in by_owner.values() for item in value}
    for owner, settings in by_owner.items():
        for entry in settings:
            defaults.setdefault(entry.name, {}).setdefault(entry.default, []).append(owner)
    listed = []
    for name, owners in defaults.items():
        first, *others = owners.items()
        differing = [f"{default} for {', '.join(names)}" for default, names in others]
        listed.append(Listed(name, first[0], "; ".join(filter(None, [meanings[name], *differing]))))
    return listed


def settings_of(recipe: Recipe) -> dict[str, Setting]:
    """All settings by name, flat: {"objective": "pairs", "learning rate": 3e-05, "losses": "maxsim=1", ...}.

    Folders are reduced to their names. The only seed is that of the trainer.
    """
    settings: dict[str, Setting] = {"objective": recipe.objective.name}
    _flatten(recipe, settings)
    return settings


def _flatten(value: object, settings: dict[str, Setting]) -> None:
    assert is_dataclass(value)
    for attribute in fields(value):
        inner = getattr(value, attribute.name)
        name = "new" if attribute.name == "kind" else attribute.name.replace("_", " ")
        if is_dataclass(inner):
            _flatten(inner, settings)
        elif attribute.name != "seed" or isinstance(value, TrainerSettings):
            assert name not in settings, f"two settings have the name {name!r}"
            is_plain = inner is None or isinstance(inner, bool | int | float)
            settings[name] = inner if is_plain else shown(inner) if attribute.name == "encoder" else shown_value(inner)


def shown(encoder: str) -> str:
    """An encoder's name without the folders of this machine: a folder by its own name, others as they are."""
    return Path(encoder).resolve().name if encoder and Path(encoder).is_dir() else encoder


_ON_THE_HUB = {MINILM_NAME: "sentence-transformers/all-MiniLM-L6-v2"}


@dataclass(frozen=True, slots=True)
class ValidationChange:
    """nDCG@10 on one corpus before training, and with the saved parameters."""

    corpus: str
    before: float
    after: float


def compare_validations(history: History, best_step: int) -> tuple[ValidationChange, ...]:
    """Compare the validation of a run before training with that at its best step.

    A corpus that was not measured at both is left out, and so is the mean over one corpus.
    """
    by_corpus, compared = history.validation, []
    for corpus, at in by_corpus.items():
        if 0 in at and best_step in at and (corpus != MEAN or len(by_corpus) > 2):
            compared.append(ValidationChange(corpus, at[0], at[best_step]))
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
) -> None:
    """Write the model card of a run, README.md with the front matter of Hugging Face, into the encoder's folder.

    The history is linked if it is in the folder.

    Args:
        trained: the saved encoder.
        command: the one that repeats the run.
    """
    environment = Environment(trim_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
    # A JSON value is a YAML value, whatever characters it has.
    environment.filters |= {"row": _table_row, "json": partial(json.dumps, ensure_ascii=False), "duration": duration}
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
        history=folder / HISTORY_FILE,
    )
    write_durably(folder / CARD_FILE, lambda unfinished: unfinished.write_text(text, "utf-8"))


def _answer(value: Setting) -> Setting:
    return value if not isinstance(value, bool) else "yes" if value else "no"


def _table_row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(" ".join(str(cell).split()).replace("|", r"\|") for cell in cells) + " |"


RECIPE_FILE = "recipe.json"
# Neither the gradients nor the choice of parameters depend on these, except for rounding.
_FREE = frozenset({"group tokens", "checkpoint gradients", "checkpoint every", "half", "licence"})


@dataclass(frozen=True)
class Record:
    """The corpora and settings of a run."""

    corpora: Mapping[str, str]  # checksum by name, in their order
    settings: Mapping[str, Setting]


def reached_step(folder: Path) -> int | None:
    """The step of the last checkpoint of a run; None where there is none."""
    checkpoint = latest_checkpoint(folder / CHECKPOINT_FOLDER)
    return None if checkpoint is None else step_of(checkpoint)


def check_record(folder: Path, requested: Record) -> None:
    """Compare a record with that of the run in a folder, if the run has a checkpoint to resume from."""
    file = folder / RECIPE_FILE
    if reached_step(folder) is not None and file.exists() and (differing := _differences(_read(file), requested)):
        raise TrainingError(
            f"the run in {folder} began with {'; '.join(differing)}; "
            "give again what it began with, or name another folder for a new run"
        )


def write_record(folder: Path, record: Record) -> None:
    """Write the record of a run into its folder, which is created if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps(asdict(record), indent=1, ensure_ascii=False) + "\n"
    write_durably(folder / RECIPE_FILE, lambda unfinished: unfinished.write_text(content, "utf-8"))


def _read(file: Path) -> Record:
    try:
        content: dict[str, Any] = json.loads(file.read_text("utf-8"))
        return Record(content["corpora"], content["settings"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(
            f"{file} is damaged ({error!r}); delete it, and the run goes on with what it is given now"
        ) from error


def _differences(begun: Record, requested: Record) -> list[str]:
    """The names of what differs, with both values."""
    values: list[tuple[str, Setting, Setting]] = [("corpora", ", ".join(begun.corpora), ", ".join(requested.corpora))]
    if [*begun.corpora] == [*requested.corpora]:
        values = [(f"checksum of {name}", old, requested.corpora[name]) for name, old in begun.corpora.items()]
    settings = requested.settings.items()
    values += [(name, begun.settings.get(name), value) for name, value in settings if name not in _FREE]
    return [f"{name} {_shown(old)}, not {_shown(new)}" for name, old, new in values if old != new]


def _shown(value: Setting) -> str:
    return "none" if value in (None, "") else str(value)
