"""Shared by `longmatch train` and `longmatch pretrain`: options, settings from options, last lines, interrupts."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from indexer.cli.option_groups import DecoratedT, heading, together

if TYPE_CHECKING:
    import torch

    from engine.training.run.trainer import TrainerSettings
    from indexer.training import NewEncoder, Start, Trained

KINDS = ("smith", "smith-short", "matchbert", "colde", "tde", "longformer", "bigbird")
VARIANTS = ("fixed", "paper", "released")
_FOLDER = click.Path(file_okay=False, path_type=Path)


def _sizes(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """`width=128` becomes {"width": "128"}."""
    pairs = [text.partition("=") for text in given]
    if wrong := [text for text, (name, _, value) in zip(given, pairs, strict=True) if not (name and value)]:
        raise click.BadParameter(f"{wrong[0]!r} is not KEY=VALUE, for example width=128")
    return {name: value for name, _, value in pairs}


out_argument = click.argument("out", type=_FOLDER)
corpora_argument = click.argument("corpora", nargs=-1, required=True, metavar="CORPUS...")

_encoder = heading("Encoder")
encoder_options = together(
    _encoder(
        "--encoder",
        metavar="NAME",
        help="Start from this encoder: a folder, a hub name, or longmatch-minilm (bundled, the default).",
    ),
    _encoder(
        "--new",
        type=click.Choice(KINDS),
        help="Train a new encoder of this kind: random layers on top of --encoder, or long attention in its layers "
        "(longformer, bigbird).",
    ),
    _encoder(
        "--variant",
        type=click.Choice(VARIANTS),
        help="Version of the architecture: paper, the released code, or fixed (the default).",
    ),
    _encoder(
        "--size",
        "sizes",
        multiple=True,
        callback=_sizes,
        metavar="KEY=VALUE",
        help="Size of the new encoder, for example width=128; may be repeated.",
    ),
    _encoder(
        "--topic-epochs",
        default=200,
        show_default=True,
        type=click.IntRange(0),
        help="Epochs to fit the topics of a new tde.",
    ),
    _encoder(
        "--freeze-layers",
        default=0,
        type=click.IntRange(0),
        help="Number of backbone layers that are not trained, from the bottom.",
    ),
)


def speed_options(
    *, steps: int, learning_rate: float, rate: str = "", head_rate: str = ""
) -> Callable[[DecoratedT], DecoratedT]:
    """Options of the trainer, with the defaults of a command; `rate` and `head_rate` add other defaults to the help."""
    speed = heading("Steps, memory, speed")
    above_zero = click.FloatRange(0, min_open=True)
    return together(
        speed("--steps", default=steps, show_default=True, type=click.IntRange(1), help="Training steps."),
        speed(
            "--learning-rate",
            default=learning_rate,
            show_default=True,
            type=above_zero,
            help=f"Highest learning rate{rate}.",
        ),
        speed(
            "--head-learning-rate",
            type=above_zero,
            help=f"Learning rate outside the backbone (SMITH: the sentence encoder); the same by default{head_rate}.",
        ),
        speed(
            "--dropout",
            type=click.FloatRange(0, 1, max_open=True),
            help="Dropout; by default that of the loaded encoder.",
        ),
        speed(
            "--group-tokens",
            type=click.IntRange(1),
            help="Limit of tokens per backward pass; a lower limit needs less memory.",
        ),
        speed(
            "--checkpoint-gradients",
            is_flag=True,
            help="Recompute layers in the backward pass; needs less memory and more time.",
        ),
        speed("--no-mixed-precision", is_flag=True, help="Compute in float32 everywhere, as a BigBird always does."),
        speed("--seed", default=0, show_default=True, help="Seed of batches, dropout and new parameters."),
        speed("--device", metavar="NAME", help="cpu, cuda or cuda:N; by default a GPU if torch sees one."),
    )


_valid = heading("Validation")
valid_options = together(
    _valid("--valid-every", default=50, show_default=True, type=click.IntRange(1), help="Steps between validations."),
    _valid("--valid-chunks", type=click.IntRange(1), help="Limit of chunks per document."),
    _valid("--valid-queries", type=click.IntRange(1), help="Limit of queries per corpus."),
    _valid("--valid-documents", type=click.IntRange(1), help="Limit of documents per corpus."),
    _valid("--patience", type=click.IntRange(1), help="Stop after this many validations without improvement."),
)

_saved = heading("Files")
saved_options = together(
    _saved("--half", is_flag=True, help="Save parameters in float16."),
    _saved(
        "--licence",
        default="",
        metavar="NAME",
        help="Licence of the trained parameters, for the model card, for example apache-2.0.",
    ),
)
indexes_option = _saved(
    "--indexes",
    type=_FOLDER,
    metavar="FOLDER",
    help="Folder for indexes of the corpora, to mine negatives from; OUT/indexes by default.",
)


def refuse_unfit(context: click.Context, fits: Mapping[str, Collection[str]], choice: str, chosen: str) -> None:
    """Refuse options that were given but do not apply to a choice.

    Args:
        context: context of the command.
        fits: choices that a parameter goes with, by its name; other parameters go with all choices.
        choice: option that makes the choice, for example --objective.
        chosen: value of that option.

    Raises:
        click.UsageError: an option does not apply; the message names it and the choices that it goes with.
    """
    for parameter in context.command.params:
        name = parameter.name or ""
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and chosen not in fits.get(name, (chosen,)):
            choices = f"{choice} {' or '.join(fits[name])}"
            raise click.UsageError(f"{parameter.opts[0]} goes with {choices}, not with {chosen}", context)


def read_start(context: click.Context, given: Mapping[str, Any], **more: Any) -> Start:  # noqa: ANN401
    """The encoder that training starts from, and its settings."""
    from engine.encoders.loading import DEFAULT_ENCODER
    from indexer.training import Start

    refuse_unfit(context, {"sizes": KINDS, "topic_epochs": ("tde",)}, "--new", given["new"] or "a loaded encoder")
    return Start(
        encoder=given["encoder"] or DEFAULT_ENCODER,
        new=_read_new(given),
        frozen_layers=given["freeze_layers"],
        checkpoint_gradients=given["checkpoint_gradients"],
        dropout=given["dropout"],
        **more,
    )


def _read_new(given: Mapping[str, Any]) -> NewEncoder | None:
    from engine.encoders.encoder import Variant
    from indexer.training import Kind, NewEncoder

    if given["new"] is None:
        return None
    variant = Variant(given["variant"] or Variant.FIXED)
    return NewEncoder(Kind(given["new"]), variant, given["sizes"], given["topic_epochs"])


def read_trainer(given: Mapping[str, Any]) -> TrainerSettings:
    """The settings of the trainer: steps, learning rates, validations, precision, seed."""
    from engine.training.run.trainer import TrainerSettings

    return TrainerSettings(
        steps=given["steps"],
        learning_rate=given["learning_rate"],
        head_learning_rate=given["head_learning_rate"],
        validate_every=given["valid_every"],
        checkpoint_every=min(given["valid_every"], 25),
        patience=given["patience"],
        mixed_precision=not given["no_mixed_precision"],
        seed=given["seed"],
    )


def read_valid(given: Mapping[str, Any]) -> dict[str, int | None]:
    """The limits of validation, as fields of a recipe."""
    return {name: given[name] for name in ("valid_chunks", "valid_queries", "valid_documents")}


def saved_dtype(given: Mapping[str, Any]) -> torch.dtype:
    """The precision of the parameters on disk."""
    import torch

    return torch.float16 if given["half"] else torch.float32


def command_text(words: Sequence[str]) -> str:
    """The command as it was given, with absolute paths shortened to their last part."""
    return shlex.join(["longmatch", *map(_without_folders, words[1:])])


def _without_folders(word: str) -> str:
    name, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return name + equals + (Path(value).name if value.startswith(("/", "~")) else value)


@contextmanager
def resumable(out: Path) -> Iterator[None]:
    """Turn an interrupt inside the context into an error that reports where the same command continues."""
    try:
        yield
    except KeyboardInterrupt:
        from indexer.training.record import reached_step
        from indexer.training.run import RUN_FOLDER

        step = reached_step(out / RUN_FOLDER)
        restart = "starts from the beginning, because no checkpoint was saved yet"
        next_step = restart if step is None else f"continues after step {step:,}"
        raise click.ClickException(f"interrupted; the same command {next_step}") from None


def print_trained(trained: Trained) -> None:
    """Print the folder of the encoder, its gain, files that can be deleted, and the next command."""
    outcome, out = trained.outcome, trained.folder
    click.echo(
        f"{out} holds the encoder of step {outcome.best_step:,} of {outcome.steps:,} "
        f"({outcome.n_tokens:,} tokens read){_gain(trained)}"
    )
    for name in ("run", "indexes"):
        size = sum(file.stat().st_size for file in (out / name).rglob("*") if file.is_file())
        if size:
            click.echo(f"{out / name}, {size / 1e6:,.1f} MB, is not needed any more and may be deleted")
    click.echo(f"next: longmatch index papers.lm DOCUMENTS --encoder {shlex.quote(str(out))}")


def _gain(trained: Trained) -> str:
    if not trained.validations:
        return ""
    last = trained.validations[-1]  # with several corpora, their mean
    if trained.outcome.best_step == 0:
        return f": training did not help, {last.metric} on valid was best before it, {last.before:.4f}"
    return f": {last.metric} on valid {last.after:.4f}, before {last.before:.4f} ({last.after - last.before:+.4f})"
