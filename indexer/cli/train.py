"""`longmatch train`: train an encoder on pairs of documents, or on documents alone."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.report.lines import megabytes
from indexer.cli.options import FOLDER
from indexer.cli.terminal import Interrupted, TrainingProgress, echo, echo_text

if TYPE_CHECKING:
    from indexer.training.run import Trained

# As `indexer.training.OBJECTIVES` and `NewKind` have them: `--help` loads no torch.
PAIRS = ("pairs", "sections", "text-pairs")
ALONE = ("docsplit", "docsplit-paper", "crop_half", "contriever", "ict", "simcse", "ct", "smith")
KINDS = ("smith", "smith-short", "matchbert", "colde", "tde", "longformer", "bigbird")


def _named(_context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """`steps=500` becomes {"steps": "500"}."""
    parts = [text.partition("=") for text in texts]
    if wrong := [text for text, (name, _, value) in zip(texts, parts, strict=True) if not (name and value)]:
        raise click.BadParameter(f"{wrong[0]!r} is not NAME=VALUE, for example steps=500")
    return {name: value for name, _, value in parts}


def _list_settings(context: click.Context, _parameter: click.Parameter, is_wanted: bool) -> None:
    if not is_wanted or context.resilient_parsing:
        return
    from indexer.training.recipe import groups_of_settings

    for heading, settings in groups_of_settings().items():
        formatter = context.make_formatter()
        with formatter.section(heading):
            formatter.write_dl([(f"{setting.name}={setting.default}", setting.meaning) for setting in settings])
        echo_text(formatter.getvalue())
    context.exit()


@click.command()
@click.argument("out", type=FOLDER)
@click.argument("corpora", nargs=-1, required=True, metavar="CORPUS...")
@click.option(
    "--objective",
    type=click.Choice([*PAIRS, *ALONE]),
    default="pairs",
    show_default=True,
    help="On pairs: pairs (any encoder), sections (colde), text-pairs (tde). On documents alone: docsplit, crop_half, "
    "contriever, ict, simcse (two views of a document), ct (contrastive tension), smith.",
)
@click.option(
    "--encoder",
    metavar="NAME",
    help="Start from this encoder: a folder, a hub name, or longmatch-minilm (bundled, the default).",
)
@click.option(
    "--new",
    type=click.Choice(KINDS),
    help="Train a new encoder of this kind: random layers on top of --encoder, or long attention in its layers "
    "(longformer, bigbird).",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=_named,
    metavar="NAME=VALUE",
    help="Any other setting, for example steps=500 or size.width=128; may be repeated.",
)
@click.option(
    "--list-settings",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_settings,
    help="Print all settings with their defaults and meanings, and exit.",
)
@click.option(
    "--indexes",
    type=FOLDER,
    metavar="FOLDER",
    help="Folder for indexes of the corpora, to mine negatives from; OUT/indexes by default.",
)
@click.option("--device", metavar="NAME", help="cpu, cuda or cuda:N; by default a GPU if torch sees one.")
def train(
    out: Path,
    corpora: tuple[str, ...],
    objective: str,
    encoder: str | None,
    new: str | None,
    settings: dict[str, str],
    indexes: Path | None,
    device: str | None,
) -> None:
    """Train an encoder, and write it to the folder OUT.

    For an objective on pairs, a CORPUS is a folder with corpus.jsonl[.gz] and train_pairs.tsv. With qrels.tsv
    and splits.json, the best checkpoint is chosen on the valid queries. FOLDER:_citation
    reads train_pairs_citation.tsv, qrels_citation.tsv and splits_citation.json instead. For an objective on
    documents alone, it is also a file or a folder of any format that `longmatch index` reads.
    To continue a run that was interrupted, run the same command again.

    \b
    Example:
        longmatch train my-encoder data/papers data/patents --set steps=500
        longmatch train my-smith data/papers --new smith --set losses=document=1
        longmatch train my-colde data/papers --new colde --objective sections
        longmatch train my-other ./papers notes.jsonl.gz --objective docsplit
    """
    from engine.encoders.loading import DEFAULT_ENCODER
    from indexer.training.recipe import recipe_of
    from indexer.training.run import train as train_encoder
    from indexer.training.start import NewKind

    recipe = recipe_of(objective, settings, encoder=encoder or DEFAULT_ENCODER, new=NewKind(new) if new else None)
    with resumable(out), TrainingProgress() as progress:
        trained = train_encoder(
            out,
            corpora,
            recipe,
            indexes=indexes,
            device=device,
            command=command_text(sys.argv),
            log=progress.log,
            watch=progress,
        )
    if trained.is_first:
        print_trained(trained)


def command_text(words: Sequence[str]) -> str:
    """The command as it was given, with absolute paths shortened to their last part."""
    return shlex.join(["longmatch", *map(_without_folders, words[1:])])


def _without_folders(word: str) -> str:
    name, equals, value = word.rpartition("=")
    return name + equals + (Path(value).name if value.startswith(("/", "~")) else value)


@contextmanager
def resumable(out: Path) -> Iterator[None]:
    """Turn an interrupt inside the context into an error that reports where the same command continues."""
    try:
        yield
    except KeyboardInterrupt:
        from indexer.training.recipe import reached_step
        from indexer.training.run import RUN_FOLDER

        step = reached_step(out / RUN_FOLDER)
        restart = "starts from the beginning, because no checkpoint was saved yet"
        next_step = restart if step is None else f"continues after step {step:,}"
        raise Interrupted(f"the same command {next_step}") from None


def print_trained(trained: Trained) -> None:
    """Print the folder of the encoder, its gain, files that can be deleted, and the next command."""
    outcome, out = trained.outcome, trained.folder
    echo(
        f"{out} holds the encoder of step {outcome.best_step:,} of {outcome.steps:,} "
        f"({outcome.n_tokens:,} tokens read){_gain(trained)}"
    )
    for name in ("run", "indexes"):
        size = sum(file.stat().st_size for file in (out / name).rglob("*") if file.is_file())
        if size:
            echo(f"{out / name}, {megabytes(size)}, is not needed any more and may be deleted")
    echo(f"next: longmatch index papers.lm DOCUMENTS --encoder {shlex.quote(str(out))}")


def _gain(trained: Trained) -> str:
    if not trained.validations:
        return ""
    from engine.training.history import METRIC

    last = trained.validations[-1]  # with several corpora, their mean
    if trained.outcome.best_step == 0:
        return f": training did not help, {METRIC} on valid was best before it, {last.before:.4f}"
    return f": {METRIC} on valid {last.after:.4f}, before {last.before:.4f} ({last.after - last.before:+.4f})"
