"""What the command lines of programs that fit scorers of pairs have in common: budget, weights, a quick part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.cut import first_words
from benchmarks.options import log, names_of
from benchmarks.pairs.preparing import PreparedPairs
from benchmarks.pairs.scorer import Budget
from benchmarks.pairs.scorers import TRAINING_TOKENS, ScorerOptions
from engine.document import Document
from engine.encoders.backbone.weights import MINILM_NAME
from indexer.cli.option_groups import DecoratedT, together

QUICK_PAIRS = 12  # matching ones of a split
_QUICK_WORDS = 300
_QUICK_BUDGET = Budget(steps=4, pairs_per_step=8, seconds=20)
_QUICK_TOKENS = 256
_BUDGET = Budget()

fitting_options = together(
    click.option("--steps", default=_BUDGET.steps, show_default=True, type=click.IntRange(1), help="Budget: updates."),
    click.option(
        "--pairs-per-step",
        default=_BUDGET.pairs_per_step,
        show_default=True,
        type=click.IntRange(8),
        help="Budget: of an update.",
    ),
    click.option(
        "--seconds", default=_BUDGET.seconds, show_default=True, type=click.FloatRange(1), help="Budget: of a scorer."
    ),
    click.option("--encoder", default=MINILM_NAME, show_default=True, help="Compared, trained, or a backbone."),
    click.option("--training-tokens", default=TRAINING_TOKENS, show_default=True, type=click.IntRange(16)),
    click.option(
        "--word-vectors",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Text file; else they are learned.",
    ),
    click.option("--longformer", default="", help="Weights of s-longformer; else random."),
    click.option("--bigbird", default="", help="Weights of s-bigbird; else random."),
    click.option("--small", is_flag=True, help="Neural baselines with narrow layers, for a first look."),
    click.option("--device", help="Of whatever has weights; a GPU where there is one by default."),
)


def scorers_option(default: str, known: Sequence[str]) -> Callable[[DecoratedT], DecoratedT]:
    """Some of the scorers that a command knows, or all of them."""

    def read(context: click.Context, parameter: click.Parameter, names: str) -> tuple[str, ...]:
        return tuple(known) if names == "all" else names_of(known)(context, parameter, names)

    return click.option("--scorers", default=default, show_default=True, callback=read, help="By commas; or: all.")


def budget_of(given: Mapping[str, Any], *, quick: bool) -> Budget:
    """What a scorer may spend, of what `fitting_options` read."""
    return _QUICK_BUDGET if quick else Budget(given["steps"], given["pairs_per_step"], given["seconds"])


def read_scorer_options(given: Mapping[str, Any], prepared: PreparedPairs, work: Path, *, quick: bool) -> ScorerOptions:
    """What a user chooses of scorers, of what `fitting_options` read."""
    return ScorerOptions(
        encoder=given["encoder"],
        device=given["device"],
        training_tokens=_QUICK_TOKENS if quick else given["training_tokens"],
        word_vectors=given["word_vectors"],
        longformer=given["longformer"],
        bigbird=given["bigbird"],
        is_small=given["small"] or quick,
        work=work,
        documents=f"{prepared.dataset}-first{_QUICK_WORDS}" if quick else prepared.dataset,
        log=log,
    )


def documents_to_fit(prepared: PreparedPairs, *, quick: bool) -> Mapping[str, Document]:
    """The documents of pairs; of a quick run their first words."""
    if not quick:
        return prepared.documents
    return {doc_id: first_words(document, _QUICK_WORDS) for doc_id, document in prepared.documents.items()}
