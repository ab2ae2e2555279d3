"""`longmatch train`: train an encoder on pairs of documents."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from indexer.cli.option_groups import GroupedCommand, heading, together
from indexer.cli.training_options import (
    command_text,
    corpora_argument,
    encoder_options,
    indexes_option,
    out_argument,
    print_trained,
    read_start,
    read_trainer,
    read_valid,
    refuse_unfit,
    resumable,
    saved_dtype,
    saved_options,
    speed_options,
    valid_options,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from indexer.training import TrainingRecipe
    from indexer.training.objectives import FineTuningObjective

OBJECTIVES = ("pairs", "sections", "text-pairs")
LOSSES = ("evidence", "maxsim", "document", "supcon", "bce", "distillation")
_FITS = {
    "losses": ("pairs",),
    "teacher": ("pairs",),
    "hard": ("pairs",),
    "query_chunks": ("pairs",),
    "target_chunks": ("pairs",),
    "freeze_first_stage": ("pairs",),
    "negatives": ("pairs", "text-pairs"),
    "indexes": ("pairs", "text-pairs"),
    "group_tokens": ("pairs", "text-pairs"),
    "negatives_per_positive": ("text-pairs",),
}


def _weighed(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, float]:
    """`evidence=1` becomes {"evidence": 1.0}."""
    weights = {}
    for text in given:
        name, _, weight = text.partition("=")
        try:
            weights[name] = float(weight or 1)
        except ValueError:
            raise click.BadParameter(f"{text!r} is no NAME=WEIGHT") from None
        if name not in LOSSES:
            raise click.BadParameter(f"{name!r} is none of {', '.join(LOSSES)}")
    return weights


_learned = heading("Objective")
_objective_options = together(
    _learned(
        "--objective",
        type=click.Choice(OBJECTIVES),
        default="pairs",
        show_default=True,
        help="pairs: for any encoder; sections: for colde; text-pairs: for tde.",
    ),
    _learned(
        "--loss",
        "losses",
        multiple=True,
        callback=_weighed,
        metavar="NAME=WEIGHT",
        help=f"Loss of the objective pairs: {', '.join(LOSSES)}; may be repeated.",
    ),
    _learned(
        "--label",
        metavar="FIELD",
        help="Metadata field; documents that share a value are pairs, if the corpus has no pairs.",
    ),
    _learned(
        "--negatives",
        type=click.Choice(["model", "bm25", "none"]),
        default="model",
        show_default=True,
        help="Source of hard negatives.",
    ),
    _learned("--teacher", default="", metavar="NAME", help="Encoder to learn from, for the loss distillation."),
)

_read = heading("Batches")
_batch_options = together(
    _read(
        "--queries",
        type=click.IntRange(1),
        help="Queries per step; 20 by default, 25 for sections, 8 pairs for text-pairs.",
    ),
    _read("--hard", default=3, show_default=True, type=click.IntRange(0), help="Hard negatives per query."),
    _read(
        "--negatives-per-positive",
        default=1,
        show_default=True,
        type=click.IntRange(1),
        help="Negatives per positive pair (objective text-pairs).",
    ),
    _read("--query-chunks", default=6, show_default=True, type=click.IntRange(1), help="Chunks read per query."),
    _read("--target-chunks", default=4, show_default=True, type=click.IntRange(1), help="Chunks read per target."),
)


@click.command(cls=GroupedCommand)
@out_argument
@corpora_argument
@_objective_options
@encoder_options
@heading("Encoder")("--freeze-first-stage", is_flag=True, help="Encode chunks once, and train only the second stage.")
@_batch_options
@speed_options(
    steps=300, learning_rate=3e-5, rate="; 2e-05 by default for text-pairs", head_rate=", 0.001 for text-pairs"
)
@valid_options
@saved_options
@indexes_option
def train(
    out: Path,
    corpora: tuple[str, ...],
    indexes: Path | None,
    device: str | None,
    **given: Any,  # noqa: ANN401
) -> None:
    """Train an encoder on pairs of long documents, and write it to the folder OUT.

    A CORPUS is a folder with corpus.jsonl[.gz] and train_pairs.tsv. With qrels.tsv
    and splits.json, the best checkpoint is chosen on the valid queries. FOLDER:_citation
    reads train_pairs_citation.tsv, qrels_citation.tsv and splits_citation.json instead.
    To continue a run that was interrupted, run the same command again.

    \b
    Example:
        longmatch train my-encoder data/papers data/patents --steps 500
        longmatch train my-smith data/papers --new smith --loss document=1
        longmatch train my-colde data/papers --new colde --objective sections
    """
    recipe = _recipe(click.get_current_context(), given)
    from indexer.cli.progress import TrainingProgress
    from indexer.training import train as train_encoder

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


def _recipe(context: click.Context, given: Mapping[str, Any]) -> TrainingRecipe:
    from indexer.training import TrainingRecipe

    refuse_unfit(context, _FITS, "--objective", given["objective"])
    if given["variant"] and given["new"] is None:
        raise click.UsageError("--variant goes with --new", context)
    return TrainingRecipe(
        start=read_start(context, given, frozen_first_stage=given["freeze_first_stage"]),
        objective=_objective(given),
        label=given["label"],
        trainer=read_trainer({**given, "learning_rate": _learning_rate(context, given)}),
        saved_dtype=saved_dtype(given),
        licence=given["licence"],
        **read_valid(given),
    )


def _learning_rate(context: click.Context, given: Mapping[str, Any]) -> float:
    """The rate that was given, or the default of the objective."""
    from engine.training.tasks.text_pairs import BACKBONE_RATE

    is_default = context.get_parameter_source("learning_rate") is ParameterSource.DEFAULT
    chosen: float = BACKBONE_RATE if is_default and given["objective"] == "text-pairs" else given["learning_rate"]
    return chosen


def _objective(given: Mapping[str, Any]) -> FineTuningObjective:
    from engine.training.tasks.section_contrast import ContrastSettings
    from engine.training.tasks.text_pairs import TextPairsSettings
    from indexer.training import Negatives, SectionsObjective, TextPairsObjective

    match given["objective"]:
        case "sections":
            return SectionsObjective(ContrastSettings(n_classes=given["queries"] or 25))
        case "text-pairs":
            settings = TextPairsSettings(batch_pairs=given["queries"] or 8, group_tokens=given["group_tokens"])
            negatives = given["negatives_per_positive"]
            return TextPairsObjective(settings, Negatives(given["negatives"]), negatives_per_positive=negatives)
        case _:
            return _pairs_objective(given)


def _pairs_objective(given: Mapping[str, Any]) -> FineTuningObjective:
    from engine.training.tasks.fine_tuning import DEFAULT_LOSSES, FineTuningSettings, Loss
    from indexer.training import Negatives, PairsObjective

    return PairsObjective(
        FineTuningSettings(
            losses={Loss(name): weight for name, weight in given["losses"].items()} or DEFAULT_LOSSES,
            queries=given["queries"] or 20,
            negatives=given["hard"],
            group_tokens=given["group_tokens"],
        ),
        miner=Negatives(given["negatives"]),
        teacher=given["teacher"],
        query_chunks=given["query_chunks"],
        target_chunks=given["target_chunks"],
    )
