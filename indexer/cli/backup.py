"""`longmatch backup` and `restore`: write an index to one file, and unpack such a file."""

from __future__ import annotations

from pathlib import Path

import click

from indexer.cli.options import folder_argument

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@folder_argument
@click.argument("file", type=_FILE)
def backup(index: Path, file: Path) -> None:
    """Write INDEX, at its newest commit, into one FILE.

    Another run can write the index meanwhile. Every file is checked as it is copied.

    \b
    Example:
        longmatch backup papers.lm papers.lmbackup
    """
    from indexer.upkeep.backup import backup as write

    report = write(index, file)
    click.echo(f"{report.n_documents} documents in {report.n_files} files, {report.size_bytes / 1e6:,.1f} MB: {file}")


@click.command()
@click.argument("file", type=_FILE)
@folder_argument
def restore(file: Path, index: Path) -> None:
    """Unpack the backup FILE into a new folder INDEX.

    Every file is compared with its checksum. INDEX appears complete, or not at all.

    \b
    Example:
        longmatch restore papers.lmbackup restored.lm
    """
    from indexer.upkeep.backup import restore as unpack

    report = unpack(file, index)
    click.echo(f"{report.n_documents} documents in {report.n_files} files, {report.size_bytes / 1e6:,.1f} MB: {index}")
