"""Options of commands that use a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from indexer.cli.options import DecoratedT, option

if TYPE_CHECKING:
    from engine.search.partition import Placement

_PLACES = "local starts one on this machine, auto is the one that this machine belongs to, HOST:PORT names its head."


def ray_option(purpose: str) -> Callable[[DecoratedT], DecoratedT]:
    """`--ray`."""
    return option("--ray", "ray_address", metavar="ADDRESS", help=f"{purpose} a Ray cluster: {_PLACES}")


workers_option = option(
    "--workers",
    "n_workers",
    type=click.IntRange(1),
    metavar="N",
    help="With --ray, encoders that run at the same time; by default one for each GPU, or else for each core.",
)


def check_ray_options(ray_address: str | None, n_workers: int | None, **others: object) -> None:
    """Check that the options of `index` go together.

    Raises:
        click.UsageError: the options do not go together.
        MissingExtra: Ray is not installed.
    """
    if ray_address is None:
        if n_workers is not None:
            raise click.UsageError("--workers is for a Ray cluster; name one: --ray local")
        return
    given = [f"--{name.replace('_', '-')}" for name, value in others.items() if value]
    if given:
        raise click.UsageError(f"{given[0]} does not go with --ray; leave one of them out")
    check_ray("longmatch index --ray")


def check_ray(feature: str) -> None:
    """Refuse a feature where Ray is not installed.

    Raises:
        MissingExtra: Ray is not installed; the message has the command that installs it.
    """
    from engine.environment import check_extra

    check_extra("ray", feature, "Ray", "ray")


@contextmanager
def placed_partitions(index: Path, ray_address: str | None) -> Iterator[Placement | None]:
    """Run the partitions of an index as actors of a Ray cluster inside the context; None without an address.

    Raises:
        MissingExtra: Ray is not installed.
        EngineError: there is no such cluster, or the index is not partitioned.
    """
    if ray_address is None:
        yield None
        return
    check_ray("--ray")
    from engine.store.manifest import partition_folders, read_manifest
    from indexer.cluster.session import connected

    parts = list(partition_folders(index, read_manifest(index)))  # before Ray is started, which takes seconds
    with connected(ray_address):
        from indexer.cluster.partitions import placed  # imports Ray, which was set up by `connected`

        with placed(parts) as actors:
            yield actors
