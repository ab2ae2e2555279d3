"""Options of commands that can search served partitions: timeout, and whether to leave out those that do not answer."""

from __future__ import annotations

import click

from indexer.cli.option_groups import together

timeout_option = click.option(
    "--timeout",
    default=30.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Seconds in which a served partition must answer each round.",
)
partial_option = click.option(
    "--partial",
    "is_partial",
    is_flag=True,
    help="Search without served partitions that do not answer; the result is then partial, and names them.",
)
access_options = together(partial_option, timeout_option)
