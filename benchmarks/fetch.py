"""Rebuilds a corpus of the benchmarks from its public sources, and compares the copy with the recorded corpus."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.fetching import clscisumm, proposals, rfc, wikipedia_seealso
from benchmarks.fetching.rebuilding import Rebuilt, by_hand, rebuild
from benchmarks.options import WORK, log
from benchmarks.program import program
from engine.errors import EngineError

RECIPES = {module.RECIPE.name: module.RECIPE for module in (proposals, clscisumm, wikipedia_seealso, rfc)}
_SHOWN = 5  # ids of documents that differ


def summary(rebuilt: Rebuilt) -> str:
    """Describe a rebuilt corpus: how it compares with the recorded one, and which figures can be compared."""
    n_equal = rebuilt.n_recorded - len(rebuilt.different) - len(rebuilt.missing)
    lines = [
        f"{rebuilt.folder}: {rebuilt.n_recorded - len(rebuilt.missing):,} documents",
        f"Equal to the recorded corpus: {n_equal:,} of {rebuilt.n_recorded:,} ({n_equal / rebuilt.n_recorded:.1%})",
        *_named("Different text", rebuilt.different),
        *_named("Not in the sources", rebuilt.missing),
        f"Source files: {'as recorded' if rebuilt.has_recorded_sources else 'not the recorded ones'}",
        *(f"Checksum of {task}: {here}, recorded {there}" for task, (here, there) in rebuilt.checksums.items()),
        *([f"Not rebuilt: {rebuilt.left_out}"] if rebuilt.left_out else []),
        (
            "This copy is the recorded corpus: all published figures can be compared with figures on this copy."
            if rebuilt.is_identical
            else "Figures on this copy (retrieval, rerank, pairs, peers) differ from the published ones in the third "
            "digit; state the checksum of the copy beside them."
        ),
    ]
    return "\n".join(lines)


def _named(label: str, ids: object) -> list[str]:
    assert isinstance(ids, list)
    rest = ", ..." if len(ids) > _SHOWN else ""
    return [f"{label}: {len(ids):,} ({', '.join(ids[:_SHOWN])}{rest})"] if ids else []


@program
@click.argument("name", metavar="CORPUS", type=click.Choice(list(RECIPES)))
@click.option(
    "--to", required=True, type=click.Path(path_type=Path), help="Folder of datasets; CORPUS becomes a folder in it."
)
@click.option(
    "--from",
    "downloaded",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with the downloaded sources; nothing is downloaded then.",
)
@click.option(
    "--downloads",
    default=WORK / "downloads",
    type=click.Path(path_type=Path),
    help="Folder for downloads; an interrupted download is resumed.",
)
def main(name: str, to: Path, downloaded: Path | None, downloads: Path) -> None:
    """Rebuild CORPUS from its public sources, in the layout that --data expects.

    CORPUS is proposals, clscisumm, wikipedia_seealso or rfc. The texts are
    converted and masked as in the recorded corpus; the list of documents, the
    judgments and the splits are the recorded ones. The summary counts the
    documents whose text differs.

    \b
    Example:
        python -m benchmarks fetch proposals --to data
        python -m benchmarks run retrieval proposals --systems bm25 --data data --out my_results
    """
    recipe = RECIPES[name]
    try:
        rebuilt = rebuild(recipe, to, downloaded or downloads, is_offline=downloaded is not None, log=log)
    except EngineError as error:
        raise click.ClickException(f"{error}\n{by_hand(recipe, to, downloaded or downloads)}") from error
    click.echo(summary(rebuilt))
