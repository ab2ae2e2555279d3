"""`longmatch train`: an encoder learns from pairs of documents."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from indexer.cli.shared import device_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from indexer.training import Recipe

LOSSES = ("evidence", "maxsim", "document", "supcon", "bce", "distillation")


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


@click.command()
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.argument("corpora", nargs=-1, required=True, metavar="CORPUS...")
@click.option("--encoder", help="What training starts from: a folder, a hub name, or the offline all-MiniLM-L6-v2.")
@click.option("--loss", "losses", multiple=True, callback=_weighed, metavar="NAME=WEIGHT", help="May be repeated.")
@click.option("--negatives", type=click.Choice(["model", "bm25", "none"]), default="model", show_default=True)
@click.option("--teacher", default="", help="A stronger encoder, for the loss distillation.")
@click.option("--label", help="Metadata field; documents that share its value are pairs, where no pairs are given.")
@click.option("--steps", default=300, show_default=True, type=click.IntRange(1))
@click.option("--learning-rate", default=3e-5, show_default=True, type=click.FloatRange(0, min_open=True))
@click.option("--queries", default=20, show_default=True, type=click.IntRange(2), help="Of a batch.")
@click.option("--hard", default=3, show_default=True, type=click.IntRange(0), help="Hard negatives of a query.")
@click.option("--query-chunks", default=6, show_default=True, type=click.IntRange(1), help="Read of a query in a step.")
@click.option("--target-chunks", default=4, show_default=True, type=click.IntRange(1), help="Read of a target.")
@click.option("--group-tokens", type=click.IntRange(1), help="Most tokens with a graph at a time: less memory.")
@click.option("--freeze-layers", default=0, show_default=True, type=click.IntRange(0), help="From the bottom.")
@click.option("--freeze-first-stage", is_flag=True, help="Encode chunks once, train what is above them.")
@click.option("--valid-every", default=50, show_default=True, type=click.IntRange(1), help="Steps.")
@click.option("--valid-chunks", type=click.IntRange(1), help="Most chunks of a document that validation reads.")
@click.option("--valid-queries", type=click.IntRange(1), help="Most valid queries of a corpus.")
@click.option("--valid-documents", type=click.IntRange(1), help="Most documents of a corpus that are ranked.")
@click.option("--patience", type=click.IntRange(1), help="Validations without a gain before it stops.")
@click.option("--seed", default=0, show_default=True)
@click.option("--half", is_flag=True, help="Save weights in float16.")
@click.option("--licence", default="", help="Of the trained weights, for the card, as apache-2.0.")
@click.option("--indexes", type=click.Path(file_okay=False, path_type=Path), help="Where indexes of the corpora lie.")
@device_option
def train(out: Path, corpora: tuple[str, ...], indexes: Path | None, device: str | None, **given: Any) -> None:  # noqa: ANN401
    """Fine-tune an encoder on pairs of long documents, and write it to the folder OUT.

    A CORPUS is a folder with corpus.jsonl[.gz], train_pairs.tsv and, to choose the
    best weights by, qrels.tsv and splits.json; FOLDER:_citation reads
    train_pairs_citation.tsv and its like. A run that was stopped goes on: run the
    same command again.

    \b
    Example:
        longmatch train my-encoder data/papers data/patents --steps 500
        longmatch index papers.lm ./papers --encoder my-encoder
    """
    from indexer.training import CorpusPath
    from indexer.training import train as train_encoder

    outcome = train_encoder(
        out,
        [CorpusPath.parse(corpus) for corpus in corpora],
        _recipe(given),
        indexes=indexes,
        device=device,
        command=_command(sys.argv),
        tell=lambda line: click.echo(line, err=True),
    )
    click.echo(
        f"{outcome.steps:,} steps, {outcome.n_tokens:,} tokens; {out} holds the weights of step {outcome.best_step:,}"
    )


def _command(words: Sequence[str]) -> str:
    """The command as it was given, with folders of this machine cut down to their names."""
    return shlex.join(["longmatch", *(Path(word).name if word.startswith("/") else word for word in words[1:])])


def _recipe(given: Mapping[str, Any]) -> Recipe:
    import torch

    from engine.encoders.loading import DEFAULT_ENCODER
    from engine.training.fine_tuning import DEFAULT_LOSSES, FineTuningSettings, Loss
    from engine.training.trainer import TrainerSettings
    from indexer.training import Negatives, Recipe

    return Recipe(
        encoder=given["encoder"] or DEFAULT_ENCODER,
        fine_tuning=FineTuningSettings(
            losses={Loss(name): weight for name, weight in given["losses"].items()} or DEFAULT_LOSSES,
            queries=given["queries"],
            negatives=given["hard"],
            group_tokens=given["group_tokens"],
        ),
        trainer=TrainerSettings(
            steps=given["steps"],
            learning_rate=given["learning_rate"],
            validate_every=given["valid_every"],
            checkpoint_every=min(given["valid_every"], 25),
            patience=given["patience"],
            seed=given["seed"],
        ),
        negatives=Negatives(given["negatives"]),
        teacher=given["teacher"],
        query_chunks=given["query_chunks"],
        target_chunks=given["target_chunks"],
        frozen_layers=given["freeze_layers"],
        frozen_first_stage=given["freeze_first_stage"],
        label=given["label"],
        valid_chunks=given["valid_chunks"],
        valid_queries=given["valid_queries"],
        valid_documents=given["valid_documents"],
        saved_dtype=torch.float16 if given["half"] else torch.float32,
        licence=given["licence"],
    )
