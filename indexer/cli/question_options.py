"""Options of commands that search: the sections that count, and the order and explanation of hits."""

from __future__ import annotations

from collections.abc import Sequence

import click

from engine.errors import QueryError


def _weights(_context: click.Context, _parameter: click.Parameter, given: Sequence[str]) -> dict[str, float]:
    # Loads the classes of documents, which a command without weights does not need.
    from engine.search.section_weights import parse_weights

    try:
        return parse_weights(",".join(given)) if given else {}
    except QueryError as error:
        raise click.BadParameter(str(error)) from error


skip_option = click.option(
    "--skip",
    multiple=True,
    type=click.Choice(["references", "acknowledgements", "appendix", "boilerplate"]),
    help="Leave sections of this kind out of the query and of all documents; may be repeated.",
)
weight_option = click.option(
    "--weight",
    "weights",
    multiple=True,
    callback=_weights,
    metavar="NAME=X,...",
    help="Weights of sections of the query, by heading, kind or number, as claims=3,abstract=0; by default 1.",
)
min_pair_option = click.option(
    "--min-pair",
    "min_pair",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0, 1),
    metavar="X",
    help="List section pairs that contribute at least X to the score, and the sum of the others.",
)
explain_option = click.option(
    "--explain",
    type=click.Choice(["evidence", "model"]),
    default="evidence",
    show_default=True,
    help="evidence: the parts of the score; model: also the section pairs that a CoLDE or SMITH encoder computes.",
)
diversify_option = click.option(
    "--diversify", is_flag=True, help="Order the first 50 hits so that each adds other sections of the query."
)
