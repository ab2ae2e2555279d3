"""`longmatch pairs`: near-duplicates and overlaps inside an index."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.environment import check_extra
from engine.report.rows import as_cell
from engine.result import CLUSTER_COLUMNS, PAIR_COLUMNS, cluster_rows
from indexer.cli.options import device_option, existing_index_argument, opened_index
from indexer.cli.output import check_picture, checked_output, emit, output_option, write_output, write_picture
from indexer.cli.terminal import PairsProgress, log

if TYPE_CHECKING:
    from engine.index import Index
    from engine.views import Pairs

_PARQUET = ".parquet"


@click.command()
@existing_index_argument
@click.option(
    "--least",
    default=0.5,
    show_default=True,
    type=click.FloatRange(0, 1, min_open=True),
    metavar="X",
    help="List pairs with a score of at least X.",
)
@click.option(
    "--top",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Number of targets of each document that can make a pair.",
)
@click.option(
    "--mode",
    type=click.Choice(["similar", "containment"]),
    default="similar",
    show_default=True,
    help="What the score measures: similar, or containment (how much of one document the other contains).",
)
@click.option("--where", metavar="FILTER", help="Metadata filter for both documents, as in query.")
@click.option(
    "--clusters",
    type=click.Path(path_type=Path),
    callback=checked_output,
    metavar="FILE",
    help="Also write the clusters that the pairs form, as CSV.",
)
@click.option(
    "--map",
    "picture",
    type=click.Path(path_type=Path),
    callback=checked_output,
    metavar="FILE",
    help="Also draw the clusters on the map of the corpus, as .png or .svg.",
)
@click.option(
    "--cluster-least",
    type=click.FloatRange(0, 1),
    metavar="X",
    help="Score of a pair that connects a cluster; by default that of --least.",
)
@output_option
@device_option
def pairs(
    index: Path,
    clusters: Path | None,
    picture: Path | None,
    cluster_least: float | None,
    output: Path | None,
    device: str | None,
    **given: Any,  # noqa: ANN401
) -> None:
    """List pairs of documents of INDEX that overlap, best first.

    A pair is listed if one of the two is among the best targets of the other. Its
    score is the larger of two scores: forward, with the first document as the query,
    and backward, with the second. The output is CSV, or Parquet if the name of the
    file ends in .parquet. To continue a run with -o that was killed, run the same
    command again.

    \b
    Example:
        longmatch pairs papers.lm --least 0.6 -o pairs.csv --clusters clusters.csv
        longmatch pairs papers.lm --mode containment --least 0.8 -o inside.parquet
        longmatch pairs papers.lm -o pairs.csv --map clusters.svg
    """
    is_parquet = output is not None and output.suffix.lower() == _PARQUET
    if cluster_least is not None and ((clusters is None and picture is None) or cluster_least < given["least"]):
        raise click.UsageError("--cluster-least needs --clusters or --map, and a score of at least --least")
    if picture is not None:
        check_picture(picture, "longmatch pairs --map", "--map clusters.svg")
    if is_parquet:
        check_extra("pyarrow", "Parquet", "pyarrow", "arrow")
    from indexer.pairs import PairSettings, find_pairs

    settings = PairSettings(**given)
    journal = None if output is None else output.with_name(output.name + ".part")
    with opened_index(index, device) as opened:
        found = find_pairs(opened, settings, journal=journal, progress=PairsProgress(), log=log)
        if picture is not None:
            _draw(opened, found, settings.where, cluster_least, picture)
    _write(found, output, clusters, cluster_least, is_parquet=is_parquet)


def _write(
    found: Pairs, output: Path | None, clusters: Path | None, cluster_least: float | None, *, is_parquet: bool
) -> None:
    emit(_parquet(found) if is_parquet else _csv(PAIR_COLUMNS, found.rows()), output)
    status = "certified" if found.is_certified else "estimated"
    by = ", by words alone" if found.by_words else ""
    line = f"{len(found):,} pairs among {found.n_documents:,} documents, {status}{by}"
    if clusters is not None:
        made = found.clusters(cluster_least)
        write_output(clusters, _csv(CLUSTER_COLUMNS, cluster_rows(made)))
        line += f"; {len(made):,} clusters of {sum(len(one.members) for one in made):,} documents"
    log(f"{line}; {found.seconds:.1f} s")


def _csv(columns: Sequence[str], rows: Sequence[Sequence[str | float]]) -> str:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows([as_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _parquet(pairs: Pairs) -> bytes:
    """Pairs as Parquet; mode, least score, top and certification are in the metadata of the file."""
    import pyarrow
    from pyarrow import parquet

    types = {"score": pyarrow.float64(), "forward": pyarrow.float64(), "backward": pyarrow.float64()}
    columns = list(zip(*pairs.rows(), strict=True)) or [()] * len(PAIR_COLUMNS)
    arrays = [
        pyarrow.array(list(values), types.get(name, pyarrow.string()))
        for name, values in zip(PAIR_COLUMNS, columns, strict=True)
    ]
    described = {"mode": pairs.mode, "least": f"{pairs.least:g}", "top": str(pairs.top)}
    described["certified"] = str(pairs.is_certified).lower()
    table = pyarrow.table(arrays, names=list(PAIR_COLUMNS)).replace_schema_metadata(described)
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue()


def _draw(index: Index, found: Pairs, where: str | None, cluster_least: float | None, picture: Path) -> None:
    # Loads matplotlib, which a list of pairs does not need.
    from engine.plots.corpus_map import corpus_map, plot_clusters

    members = [name for cluster in found.clusters(cluster_least) for name, _ in cluster.members]
    figure = plot_clusters(index, corpus_map(index, where=where, keep=members), found, cluster_least)
    write_picture(picture, figure)
