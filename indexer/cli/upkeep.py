"""`longmatch remove`, the group `longmatch upkeep`, which maintains an index, and `longmatch doctor`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.errors import command_line
from engine.report.lines import counted, megabytes
from indexer.cli.options import (
    FAILED,
    FOLDER,
    PARTLY,
    OrderedGroup,
    device_option,
    existing_index_argument,
    index_argument,
    json_option,
)
from indexer.cli.terminal import echo, log

if TYPE_CHECKING:
    from indexer.upkeep.backup import BackupReport

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@existing_index_argument
@click.argument("doc_ids", nargs=-1, required=True, metavar="DOC_ID...")
def remove(index: Path, doc_ids: tuple[str, ...]) -> None:
    """Remove documents from INDEX; `longmatch upkeep compact` frees their disk space.

    \b
    Example:
        longmatch remove papers.lm peps/pep-0484.md
    """
    from indexer.upkeep.repair import remove as take_out

    echo(f"{take_out(index, doc_ids)} removed")


@click.group(cls=OrderedGroup)
def upkeep() -> None:
    """Check and repair INDEX, free disk space, copy it, or draw its reference again.

    \b
    Example:
        longmatch upkeep verify papers.lm
        longmatch upkeep backup papers.lm papers.lmbackup
    """


@upkeep.command()
@index_argument
@json_option
def verify(index: Path, as_json: bool) -> None:
    """Check every file, checksum and text of INDEX. Exit status 1 on damage.

    \b
    Example:
        longmatch upkeep verify papers.lm
    """
    from indexer.upkeep.verify import Damage
    from indexer.upkeep.verify import verify as check

    findings = check(index)
    harmful = [finding for finding in findings if not finding.is_harmless]
    if as_json:
        echo(json.dumps([asdict(finding) for finding in findings]))
    else:
        for finding in findings:
            echo(f"{finding.damage.value}: {finding.where}: {finding.what}")
        if any(finding.damage is Damage.CATALOG for finding in harmful):
            advice = "restore a backup (longmatch upkeep restore), or delete the folder and index the corpus again"
        else:
            advice = f"repair it: {command_line('upkeep', 'repair', index)}"
        echo(f"{len(harmful)} damaged; {advice}" if harmful else "no damage found")
    if harmful:
        sys.exit(FAILED)


@upkeep.command()
@index_argument
@click.option("--encode", is_flag=True, help="Encode documents whose vectors were lost, from their stored text.")
@device_option
def repair(index: Path, encode: bool, device: str | None) -> None:
    """Rebuild damaged derived files of INDEX; list lost documents. Exit status 3 if documents were lost.

    \b
    Example:
        longmatch upkeep repair papers.lm --encode
    """
    from indexer.upkeep.repair import repair as mend

    report = mend(index, encode=encode, device=device, log=log)
    for line in report.mended:
        echo(line)
    if report.reencoded:
        echo(f"{counted(len(report.reencoded), 'document')} encoded again from their stored text")
    for doc_id in report.lost:
        echo(f"lost: {doc_id}")
    if report.lost:
        echo("index the lost documents again: longmatch index INDEX PATH...")
        sys.exit(PARTLY)
    if not (report.mended or report.reencoded):
        echo("no damage found")


@upkeep.command()
@existing_index_argument
def compact(index: Path) -> None:
    """Free the disk space of removed documents of INDEX, and join small shards.

    \b
    Example:
        longmatch upkeep compact papers.lm
    """
    from indexer.generation.generations import compact as shrink

    report = shrink(index, log=log)
    echo(
        f"{counted(report.n_shards_before, 'shard')} of {megabytes(report.bytes_before)} became "
        f"{report.n_shards_after} of {megabytes(report.bytes_after)}"
    )


@upkeep.command()
@existing_index_argument
def rebase(index: Path) -> None:
    """Draw a new reference sample from the current documents of INDEX.

    Thresholds and word statistics come from the reference sample, so all scores
    change. Nothing is encoded.

    \b
    Example:
        longmatch upkeep rebase papers.lm
    """
    from indexer.generation.reference import rebase as draw

    draw(index, log=echo)


@upkeep.command()
@index_argument
@click.argument("file", type=_FILE)
def backup(index: Path, file: Path) -> None:
    """Write INDEX, at its newest commit, into one FILE.

    Another run can write the index meanwhile. Every file is checked as it is copied.

    \b
    Example:
        longmatch upkeep backup papers.lm papers.lmbackup
    """
    from indexer.upkeep.backup import backup as write

    _print_backup(write(index, file), file)


@upkeep.command()
@click.argument("file", type=_FILE)
@index_argument
def restore(file: Path, index: Path) -> None:
    """Unpack the backup FILE into a new folder INDEX.

    Every file is compared with its checksum. INDEX appears complete, or not at all.

    \b
    Example:
        longmatch upkeep restore papers.lmbackup restored.lm
    """
    from indexer.upkeep.backup import restore as unpack

    _print_backup(unpack(file, index), index)


@upkeep.command()
@existing_index_argument
@click.argument("out", type=FOLDER)
@click.option(
    "-p",
    "--partitions",
    "n_partitions",
    required=True,
    type=click.IntRange(1),
    metavar="N",
    help="Number of partitions of OUT; 1 makes an index without partitions.",
)
@click.option(
    "--words",
    "words_alone",
    is_flag=True,
    help="Copy no vectors; `longmatch index OUT --encoder NAME` then makes those of another encoder.",
)
def partition(index: Path, out: Path, n_partitions: int, words_alone: bool) -> None:
    """Copy INDEX into a new index OUT of N partitions; nothing is encoded.

    Each partition is an index with a share of the documents. One query searches all
    partitions at the same time and returns the hits, scores and parts of one index.
    All commands take OUT like any other INDEX. INDEX may be partitioned itself.

    \b
    Example:
        longmatch upkeep partition papers.lm papers.parts -p 4
        longmatch query papers.parts draft.pdf
    """
    from indexer.building.rewriting import partition as copy_into

    report = copy_into(index, out, n_partitions, words_alone=words_alone, log=log)
    for number, (n_documents, n_chunks) in enumerate(zip(report.n_documents, report.n_chunks, strict=True)):
        echo(f"partition {number}: {counted(n_documents, 'document')}, {counted(n_chunks, 'chunk')}")


@click.command()
@click.option("--deep", is_flag=True, help="Also load and try FAISS, torch, GPUs and the encoder, in some ten seconds.")
@json_option
def doctor(deep: bool, as_json: bool) -> None:
    """Report what is installed, and check the files of the bundled encoder.

    \b
    Example:
        longmatch doctor
        longmatch doctor --deep
    """
    from engine.machine import examine

    checks = []
    for check in examine(deep=deep):
        checks.append(check)
        if not as_json:
            echo(f"{'ok  ' if check.is_well else 'FAIL'}  {check.name:<10} {check.detail}")
    if as_json:
        echo(json.dumps([asdict(check) for check in checks]))
    elif not deep:
        log("found, not tried; load and try all of it: longmatch doctor --deep")
    if not all(check.is_well for check in checks):
        sys.exit(FAILED)


def _print_backup(report: BackupReport, target: Path) -> None:
    files = f"{counted(report.n_files, 'file')}, {megabytes(report.size_bytes)}"
    echo(f"{counted(report.n_documents, 'document')} in {files}: {target}")
