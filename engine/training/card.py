"""The model card of a trained encoder: settings, data and results of its training. Measures nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.store.durable import write_durably
from engine.training.history import CURVES_FILE, HISTORY_FILE, MEAN, History

CARD_FILE = "README.md"
CHANGES = "changed on the way"  # the setting that lists the settings changed when a run was resumed


@dataclass(frozen=True, slots=True)
class CorpusSummary:
    """A corpus that was trained on."""

    name: str
    n_documents: int
    n_pairs: int  # of query and target; 0 where the objective needs none
    checksum: str  # of the dataset's files
    licence: str  # as its publisher states it; "" where none is stated


@dataclass(frozen=True, slots=True)
class ValidationChange:
    """One metric on one corpus before training, and with the saved parameters."""

    corpus: str
    metric: str  # nDCG@10
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A finished training run."""

    name: str  # of the model
    encoder: str  # its kind: smith
    command: str  # the last one given; it repeats the run unless settings were changed during the run
    base: str  # source of the first parameters; "" where they began at random
    base_model: str  # the base's name on the Hugging Face hub; "" where it has none
    licence: str  # of the parameters, as the hub abbreviates it: apache-2.0, mit, other; "" where none was chosen
    corpora: Sequence[CorpusSummary]
    objective: str
    settings: Mapping[str, object]  # of objective, sampler and optimizer
    seed: int
    steps: int  # updates of the parameters
    best_step: int  # whose parameters were saved
    n_tokens: int  # read in training, repeated ones counted again
    chunk_tokens: int  # the longest chunk that the encoder reads at once
    longest_words: int  # the longest document of the corpora
    seconds: float
    machine: str
    commit: str  # "" outside a git checkout
    validations: Sequence[ValidationChange]


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


def write_card(folder: Path, run: RunSummary) -> None:
    """Write the model card of a run, README.md with the front matter of Hugging Face, into the encoder's folder.

    Curves and history are linked if they are in the folder; an existing card is
    replaced.
    """
    parts = (
        _front_matter(run),
        _what_it_is(run),
        _validation(folder, run),
        _data(run),
        _objective(run),
        _run(run),
        _limits(run),
    )
    text = "\n\n".join(parts) + "\n"

    def write(unfinished: Path) -> None:
        unfinished.write_text(text, "utf-8")

    write_durably(folder / CARD_FILE, write)


def _front_matter(run: RunSummary) -> str:
    fields = {
        "library_name": "longmatch",
        "license": run.licence,
        "language": "en",
        "base_model": run.base_model,
        "tags": ["feature-extraction", "long-documents", run.encoder],
    }
    # A JSON value is a YAML value, whatever characters it has.
    lines = (f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items() if value)
    return "\n".join(["---", *lines, "---"])


def _what_it_is(run: RunSummary) -> str:
    origin = f"Training began with the weights of {run.base}." if run.base else "Training began with random weights."
    return (
        f"# {run.name}\n\n"
        f"An encoder of type `{run.encoder}` for longmatch: it turns a document into vectors of its chunks, its "
        "sections and its whole, and queries and targets go through the same weights. "
        f"{origin} The saved weights are those of step {run.best_step:,} of {run.steps:,}"
        f"{', before any training' if run.best_step == 0 else ''}."
    )


def _validation(folder: Path, run: RunSummary) -> str:
    rows = [
        (one.corpus, one.metric, f"{one.before:.4f}", f"{one.after:.4f}", f"{one.after - one.before:+.4f}")
        for one in run.validations
    ]
    table = _table(("corpus", "metric", "before", "after", "difference"), rows) if rows else "Nothing was validated."
    means = (
        f' "{MEAN}" gives each corpus the same weight.' if any(one.corpus == MEAN for one in run.validations) else ""
    )
    chosen = "The saved step was chosen on these queries, so a test on others may come out lower."
    curves = f"\n\n![Losses, validation and learning rate over steps]({CURVES_FILE})"
    history = f"\n\nAll numbers of the run: [{HISTORY_FILE}]({HISTORY_FILE})."
    return (
        "## Validation\n\n"
        + table
        + (f"\n\n{chosen}{means}" if rows else "")
        + (curves if (folder / CURVES_FILE).exists() else "")
        + (history if (folder / HISTORY_FILE).exists() else "")
    )


def _data(run: RunSummary) -> str:
    rows = [
        (one.name, f"{one.n_documents:,}", f"{one.n_pairs:,}", one.checksum, one.licence or "not stated")
        for one in run.corpora
    ]
    return "## Training data\n\n" + _table(("corpus", "documents", "pairs", "checksum", "licence"), rows)


def _objective(run: RunSummary) -> str:
    rows = [(name, str(value)) for name, value in run.settings.items()]
    return f"## Objective\n\n{run.objective}\n\n" + _table(("setting", "value"), rows)


def _run(run: RunSummary) -> str:
    rows = [
        ("seed", str(run.seed)),
        ("steps", f"{run.steps:,}"),
        ("best step", f"{run.best_step:,}"),
        ("tokens read", f"{run.n_tokens:,}"),
        ("wall time", _duration(run.seconds)),
        ("machine", run.machine),
        ("commit", run.commit or "none: not run from a git checkout"),
    ]
    parts = ["## How it was trained", f"```sh\n{run.command}\n```"]
    if changes := run.settings.get(CHANGES):
        parts.append(
            f"This command does not give the same weights: the run was stopped and resumed with other settings "
            f"({changes}). A run of the command from beginning to end follows the same recipe, with other learning "
            "rates."
        )
    return "\n\n".join([*parts, _table(("", ""), rows)])


def _limits(run: RunSummary) -> str:
    licence = (
        f"The weights are under the licence {run.licence}." if run.licence else "No licence was chosen for the weights."
    )
    return (
        "## Intended use and limits\n\n"
        "- It finds documents that match a long document, and shows which sections match: "
        "`longmatch index papers.lm DOCUMENTS --encoder THIS_FOLDER`.\n"
        "- It was trained and validated on English text; nothing is known about other languages.\n"
        f"- It reads chunks of at most {run.chunk_tokens:,} tokens. The longest document of its corpora had "
        f"{run.longest_words:,} words; longer ones were not tried. longmatch says of each document how many of its "
        "tokens were read.\n"
        "- Vectors of this encoder cannot be compared with those of another, the one before training included: "
        "index again.\n"
        f"- {licence} The corpora have licences of their own, named above; see that both allow your use."
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"
