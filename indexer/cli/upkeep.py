"""`longmatch remove`, `verify`, `repair`, `compact`, `rebase` and `doctor`: maintain an index, check the machine."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from engine.errors import QueryError
from indexer.cli.options import FAILED, PARTLY, device_option, folder_argument, index_argument, json_option


@click.command()
@index_argument
@click.argument("doc_ids", nargs=-1, required=True, metavar="DOC_ID...")
def remove(index: Path, doc_ids: tuple[str, ...]) -> None:
    """Remove documents from INDEX; `longmatch compact` frees their disk space.

    \b
    Example:
        longmatch remove papers.lm peps/pep-0484.md
    """
    from indexer.upkeep.removal import remove as take_out

    _must_exist(index)
    click.echo(f"{take_out(index, doc_ids)} removed")


@click.command()
@folder_argument
@click.option("--deep", is_flag=True, help="Also recompute vectors and term counts of some documents from their text.")
@click.option("--sample", type=click.IntRange(1), help="Documents of --deep; by default 32.")
@device_option
@json_option
def verify(index: Path, deep: bool, sample: int | None, device: str | None, as_json: bool) -> None:
    """Check every file, checksum and text of INDEX. Exit status 1 on damage.

    \b
    Example:
        longmatch verify papers.lm
        longmatch verify papers.lm --deep --sample 100
    """
    from indexer.upkeep.verify import verify as check

    if not deep and (sample, device) != (None, None):
        raise click.UsageError("--sample and --device belong to --deep")
    findings = check(index)
    if deep and all(finding.is_harmless for finding in findings):
        from indexer.upkeep.deep import SAMPLE, verify_deep

        findings += verify_deep(index, sample=sample or SAMPLE, device=device)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings]))
    for finding in findings if not as_json else []:
        click.echo(f"{finding.damage.value}: {finding.where}: {finding.what}")
    harmful = [finding for finding in findings if not finding.is_harmless]
    if not as_json:
        click.echo(f"{len(harmful)} damaged; repair it: longmatch repair {index}" if harmful else "no damage found")
    if harmful:
        sys.exit(FAILED)


@click.command()
@folder_argument
@click.option("--encode", is_flag=True, help="Encode documents whose vectors were lost, from their stored text.")
@device_option
def repair(index: Path, encode: bool, device: str | None) -> None:
    """Rebuild damaged derived files of INDEX; list lost documents. Exit status 3 if documents were lost.

    \b
    Example:
        longmatch repair papers.lm --encode
    """
    from indexer.upkeep.repair import repair as mend

    report = mend(index, encode=encode, device=device, log=_to_stderr)
    for line in report.mended:
        click.echo(line)
    if report.reencoded:
        click.echo(f"{len(report.reencoded)} documents encoded again from their stored text")
    for doc_id in report.lost:
        click.echo(f"lost: {doc_id}")
    again = "index the lost documents again: longmatch index INDEX PATH..."
    click.echo(again if report.lost else "no damage found")
    if report.lost:
        sys.exit(PARTLY)


@click.command()
@folder_argument
def compact(index: Path) -> None:
    """Free the disk space of removed documents of INDEX, and join small shards.

    \b
    Example:
        longmatch compact papers.lm
    """
    from indexer.generation.compaction import compact as shrink

    _must_exist(index)
    report = shrink(index, log=_to_stderr)
    click.echo(
        f"{report.n_shards_before} shards of {report.bytes_before / 1e6:,.1f} MB became "
        f"{report.n_shards_after} of {report.bytes_after / 1e6:,.1f} MB"
    )


@click.command()
@index_argument
def rebase(index: Path) -> None:
    """Draw a new reference sample from the current documents of INDEX.

    Thresholds and word statistics come from the reference sample, so all scores
    change. Nothing is encoded.

    \b
    Example:
        longmatch rebase papers.lm
    """
    from indexer.generation.reference import rebase as draw

    _must_exist(index)
    draw(index, log=click.echo)


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Check FAISS, torch, the device and the bundled encoder, and report versions.

    \b
    Example:
        longmatch doctor
    """
    from engine.doctor import examine

    checks = []
    for check in examine():
        checks.append(check)
        if not as_json:
            click.echo(f"{'ok  ' if check.is_well else 'FAIL'}  {check.name:<10} {check.detail}")
    if as_json:
        click.echo(json.dumps([asdict(check) for check in checks]))
    if not all(check.is_well for check in checks):
        sys.exit(FAILED)


def _must_exist(index: Path) -> None:
    from engine.store.manifest import holds_index

    if not holds_index(index):
        raise QueryError(f"{index} holds no index; make one: longmatch index {index} PATH...")


def _to_stderr(line: str) -> None:
    click.echo(line, err=True)
