"""Measures index types over vectors alone against exact search: recall, time, memory and size; writes a record.

The record is kept type by type: what fails costs no other, and the same command goes on.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click

from benchmarks.measuring.isolation import warm_up
from benchmarks.options import log, names_of, out_option, plot_option
from benchmarks.prepare import label_of
from benchmarks.program import origin_of, program
from benchmarks.record_file import RESULTS, refuse_smaller
from benchmarks.resuming import complete, earlier, failure_text, keep, measure_parts
from benchmarks.vectors.candidate import Candidate, Library
from benchmarks.vectors.collection import SYNTHETIC, Collection, Law, of_index, synthetic
from benchmarks.vectors.measuring import Conditions, measure_in_process, version_of
from benchmarks.vectors.pictures import save_pareto
from benchmarks.vectors.record import AnnBuild, AnnRecord
from benchmarks.vectors.sweep import candidates, check_packages, of_factories
from benchmarks.vectors.table import ann_table
from benchmarks.vectors.timing import DOCUMENT_CHUNKS
from benchmarks.vectors.truth import Truth, exact
from engine.index import Index
from engine.search.candidates import FIRST_DEPTH
from indexer.training.origin import Origin

QUICK_DOCUMENTS = 150
QUICK_QUERIES = 5


@dataclass(frozen=True)
class Vectors:
    """Which vectors are searched."""

    name: str  # of the corpus, or "synthetic"
    source: str  # the index's name, or the law
    encoder: str  # name@fingerprint; "" of synthetic ones
    draw: Callable[[], Collection]


@dataclass(frozen=True)
class Sweep:
    """How every index type is asked."""

    libraries: Sequence[Library]
    factories: Sequence[str]  # of their types, only these; all where there is none
    conditions: Conditions
    is_quick: bool
    origin: Origin


def measure(vectors: Vectors, sweep: Sweep, out: Path | None) -> AnnRecord:
    """Find the truth, then build and search one type after the other, each in a process of its own.

    Args:
        vectors: drawn here, so that nothing else holds them.
        sweep: which types, and how they are asked.
        out: folder of records; None to keep nothing.

    Raises:
        EngineError: the vectors cannot be read, or the record of this name holds more.
    """
    warm_up()
    k = sweep.conditions.k
    with tempfile.TemporaryDirectory(prefix="longmatch-ann-") as folder:
        collection, truth = _prepared(vectors, k, Path(folder))
        n_vectors, width = collection.rows.shape
        known = candidates(n_vectors, width, sweep.libraries, k=k, is_quick=sweep.is_quick)
        tried = of_factories(known, sweep.factories)
        begun = _begun(vectors, collection, sweep)
        if out:
            refuse_smaller(begun, {**begun.extent, "types": len(tried)}, out)

        def on_part(builds: Mapping[str, AnnBuild], failed: Mapping[str, str]) -> None:
            log(f"{len(builds) + len(failed)} of {len(tried)} types")
            if out:
                keep(replace(begun, builds=list(builds.values()), failed=dict(failed)), out)

        by_name = {candidate.name: candidate for candidate in tried}
        builds, failed = measure_parts(
            list(by_name),
            _kept(begun, by_name, out) if out else {},
            lambda name: measure_in_process(by_name[name], Path(folder), collection, truth, sweep.conditions),
            on_part,
        )
    return replace(begun, builds=list(builds.values()), failed=failed)


def encoder_of(path: Path) -> str:
    """The encoder of an index as name@fingerprint.

    Raises:
        IndexMismatch: there is no index.
    """
    with Index.open(path) as index:
        built = index.snapshot.meta["encoder"]
        return label_of(built["name"], built["fingerprint"])


def _prepared(vectors: Vectors, k: int, folder: Path) -> tuple[Collection, Truth]:
    """The collection in a file, and the truth; the vectors in memory go when this ends."""
    collection = vectors.draw()
    log(f"{vectors.name}: exact search for {len(collection.queries):,} chunks in {len(collection.rows):,}")
    truth = exact(collection, k)
    collection.save(folder)
    return Collection.load(folder), truth


def _begun(vectors: Vectors, collection: Collection, sweep: Sweep) -> AnnRecord:
    """The record without a type."""
    return AnnRecord(
        collection=vectors.name,
        source=vectors.source,
        encoder=vectors.encoder,
        is_quick=sweep.is_quick,
        n_vectors=len(collection.rows),
        n_documents=collection.n_documents,
        width=collection.rows.shape[1],
        n_query_documents=len(collection.query_starts),
        n_query_chunks=len(collection.queries),
        document_chunks=DOCUMENT_CHUNKS,
        depth=FIRST_DEPTH,
        k=sweep.conditions.k,
        threads=sweep.conditions.threads,
        build_threads=sweep.conditions.build_threads,
        builds=[],
        origin=sweep.origin,
    )


def _kept(begun: AnnRecord, tried: Mapping[str, Candidate], out: Path) -> dict[str, AnnBuild]:
    """What an earlier run measured of types that are asked for as they were, in the same versions."""
    before = earlier(begun, out, ["builds"])
    if before is None:
        return {}
    commit = before.origin.commit if before.origin.commit != begun.origin.commit else ""
    kept = {}
    for build in before.builds:
        candidate = tried.get(build.name)
        is_same = candidate is not None and candidate.settings == tuple(point.setting for point in build.points)
        if is_same and build.version == version_of(Library(build.library)):
            kept[build.name] = replace(build, commit=build.commit or commit)
    log(f"{len(kept)} types are kept from a run before")
    return kept


@program
@click.argument("source", metavar="INDEX_OR_SYNTHETIC", type=click.Path(path_type=Path))
@click.option(
    "--documents",
    "n_documents",
    type=click.IntRange(2),
    help="To find: as many are drawn of the index, or made; by default all, or 5,000.",
)
@click.option(
    "--chunks",
    "n_chunks",
    default=DOCUMENT_CHUNKS,
    show_default=True,
    type=click.IntRange(1),
    help="Of a synthetic document.",
)
@click.option("--width", default=384, show_default=True, type=click.IntRange(8), help="Of synthetic vectors.")
@click.option("--queries", "n_queries", type=click.IntRange(1), help="Documents to ask with; by default 50.")
@click.option("-k", "--top", "k", default=10, show_default=True, type=click.IntRange(1), help="Of both recalls.")
@click.option(
    "--libraries",
    default=",".join(Library),
    show_default=True,
    callback=names_of(list(Library)),
    help="Separated by commas.",
)
@click.option("--factory", "factories", multiple=True, help="Only this type; may be repeated.  [default: all]")
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1), help="To search with.")
@click.option("--build-threads", default=os.cpu_count() or 1, show_default="all cores", type=click.IntRange(1))
@click.option("--quick", is_flag=True, help="A few thousand vectors, few settings; no record without --out.")
@click.option("--seed", default=0, show_default=True, help="Of vectors, queries, training samples and graphs.")
@out_option
@plot_option
@click.pass_context
def main(
    context: click.Context,
    source: Path,
    n_documents: int | None,
    n_chunks: int,
    width: int,
    n_queries: int | None,
    k: int,
    libraries: tuple[str, ...],
    factories: tuple[str, ...],
    threads: int,
    build_threads: int,
    quick: bool,
    seed: int,
    out: Path | None,
    plot_out: Path | None,
) -> None:
    """Measure index types over the chunk vectors of an index, or over synthetic ones, and write a record.

    \b
    Example:
        python -m benchmarks study ann synthetic --quick
        python -m benchmarks study ann papers.lm --queries 100 --plot-out plots/
    """
    chosen = [Library(name) for name in libraries]
    conditions = Conditions(k, threads, build_threads, seed)
    sweep = Sweep(chosen, factories, conditions, quick, origin_of(context, seed))
    n_asked = n_queries or (QUICK_QUERIES if quick else 50)
    n_found = n_documents or (QUICK_DOCUMENTS if quick else None)
    out = out or (None if quick else RESULTS)
    check_packages(chosen)
    if source == Path(SYNTHETIC):
        law = Law(n_found or 5000, n_chunks, width)
        vectors = Vectors(SYNTHETIC, str(law), "", lambda: synthetic(law, n_asked, seed))
    else:
        corpus = source.stem.partition("@")[0]
        draw = partial(of_index, source, n_asked, seed, n_found)
        vectors = Vectors(corpus, source.stem, encoder_of(source), draw)
    record = measure(vectors, sweep, out)
    if out and record.builds:
        complete(record, out)
    if plot_out is not None:
        save_pareto(record, plot_out)
    click.echo(ann_table([record]))
    if record.failed:
        raise click.ClickException(failure_text(record.failed, len(record.failed) + len(record.builds)))
