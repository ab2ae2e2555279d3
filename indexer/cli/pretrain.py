"""`longmatch pretrain`: train an encoder on documents alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from indexer.cli.option_groups import GroupedCommand, heading, together
from indexer.cli.training_options import (
    command_text,
    corpora_argument,
    encoder_options,
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

    from indexer.training import PretrainingRecipe
    from indexer.training.objectives import PretrainingObjective

VIEWS = ("docsplit", "crop_half", "contriever", "ict", "simcse")
TASKS = (*VIEWS, "ct", "words", "smith")
_BATCH = {"ct": 16, "words": 32, "smith": 32}
_VIEWS_BATCH = 36
_QUEUE = 131_072
_FITS = {
    **dict.fromkeys(("temperature", "symmetric", "mlm_weight", "queue", "momentum"), VIEWS),
    "view_tokens": (*VIEWS, "ct", "words"),
    "group_tokens": (*VIEWS, "words"),
    "objectives": ("smith",),
}

_learned = heading("Objective")
_task_options = together(
    _learned(
        "--task",
        type=click.Choice(TASKS),
        default="docsplit",
        show_default=True,
        help=f"{', '.join(VIEWS)}: match two views of a document; ct: contrastive tension; words: masked "
        "words; smith: masked words and masked blocks.",
    ),
    _learned(
        "--batch",
        type=click.IntRange(2),
        help="Documents per batch; 36 by default, 32 for words and smith, 16 pairs for ct.",
    ),
    _learned("--view-tokens", default=512, show_default=True, type=click.IntRange(1), help="Limit of tokens per view."),
    _learned(
        "--temperature",
        default=0.05,
        show_default=True,
        type=click.FloatRange(0, min_open=True),
        help="Temperature of the contrastive loss.",
    ),
    _learned("--symmetric", is_flag=True, help="Use both views as queries."),
    _learned(
        "--mlm-weight",
        type=click.FloatRange(0),
        help="Weight of the masked-word loss; 0.1 with docsplit --variant paper.",
    ),
    _learned(
        "--queue",
        type=click.IntRange(0),
        help=f"Number of earlier views used as negatives; {_QUEUE} for contriever, else 0.",
    ),
    _learned(
        "--momentum",
        default=0.9995,
        show_default=True,
        type=click.FloatRange(0, 1, max_open=True),
        help="Momentum of the encoder that fills the queue.",
    ),
    _learned(
        "--objectives",
        type=click.Choice(["wp", "sp", "wp+sp"]),
        help="Tasks of smith: masked words (wp), masked blocks (sp), or both.",
    ),
)


@click.command(cls=GroupedCommand)
@out_argument
@corpora_argument
@_task_options
@encoder_options
@speed_options(steps=1000, learning_rate=5e-5)
@valid_options
@saved_options
def pretrain(
    out: Path,
    corpora: tuple[str, ...],
    device: str | None,
    **given: Any,  # noqa: ANN401
) -> None:
    """Train an encoder on documents alone, without pairs, and write it to the folder OUT.

    A CORPUS is a file or a folder of any format that `longmatch index` reads. If a
    folder has the layout of `longmatch train` with valid judgments, the best checkpoint
    is chosen on them; otherwise the last one is saved. To continue a run that was
    interrupted, run the same command again.

    \b
    Example:
        longmatch pretrain my-encoder ./papers notes.jsonl.gz
        longmatch pretrain my-smith ./papers --task smith --new smith
        longmatch train my-tuned data/papers --encoder my-encoder
    """
    recipe = _recipe(click.get_current_context(), given)
    from indexer.cli.progress import TrainingProgress
    from indexer.training import pretrain as pretrain_encoder

    with resumable(out), TrainingProgress() as progress:
        trained = pretrain_encoder(
            out,
            corpora,
            recipe,
            device=device,
            command=command_text(sys.argv),
            log=progress.log,
            watch=progress,
        )
    if trained.is_first:
        print_trained(trained)


def _recipe(context: click.Context, given: Mapping[str, Any]) -> PretrainingRecipe:
    from engine.encoders.backbone.backbone import Pooling
    from indexer.training import PretrainingRecipe

    refuse_unfit(context, _FITS, "--task", given["task"])
    if given["variant"] and given["new"] is None and (given["task"] != "docsplit" or given["variant"] == "released"):
        raise click.UsageError("--variant goes with --new, or with docsplit, which is fixed or paper", context)
    is_paper = _is_paper(given)
    paper = {"pooling": Pooling.CLS, "window_tokens": given["view_tokens"]} if is_paper else {}
    return PretrainingRecipe(
        start=read_start(context, given, **paper),
        objective=_objective(given),
        trainer=read_trainer(given),
        saved_dtype=saved_dtype(given),
        licence=given["licence"],
        **read_valid(given),
    )


def _is_paper(given: Mapping[str, Any]) -> bool:
    """Whether to train DocSplit as published: first token of a whole view, dense layer over it, masked words."""
    return given["task"] == "docsplit" and given["new"] is None and given["variant"] == "paper"


def _objective(given: Mapping[str, Any]) -> PretrainingObjective:
    from engine.training.tasks.smith_pretraining import Objective
    from indexer.training import SmithObjective, TensionObjective, WordsObjective

    task = given["task"]
    batch, tokens = given["batch"] or _BATCH.get(task, _VIEWS_BATCH), given["view_tokens"]
    match task:
        case "smith":
            losses = given["objectives"] and frozenset(map(Objective, given["objectives"].split("+")))
            return SmithObjective(losses, batch_size=batch)
        case "ct":
            return TensionObjective(batch_size=batch, view_tokens=tokens)
        case "words":
            return WordsObjective(batch_size=batch, view_tokens=tokens, group_tokens=given["group_tokens"])
        case _:
            return _views(given, batch)


def _views(given: Mapping[str, Any], batch: int) -> PretrainingObjective:
    from engine.training.tasks.samplers import Sampling
    from indexer.training import ViewsObjective

    is_paper = _is_paper(given)
    usual_queue = _QUEUE if given["task"] == "contriever" else 0
    return ViewsObjective(
        Sampling(given["task"]),
        batch_size=batch,
        view_tokens=given["view_tokens"],
        joined_views=is_paper,
        temperature=given["temperature"],
        symmetric=given["symmetric"],
        mlm_weight=(0.1 if is_paper else 0.0) if given["mlm_weight"] is None else given["mlm_weight"],
        mlp_head=is_paper,
        queue=usual_queue if given["queue"] is None else given["queue"],
        momentum=given["momentum"],
        group_tokens=given["group_tokens"],
    )
