"""Measures index types over vectors alone against exact search: recall, time, memory and size; writes a record.

The record is kept type by type: a type that fails does not stop the others, and the same command resumes.
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
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log, names_of
from benchmarks.prepare import check_vectors, label_of
from benchmarks.program import program
from benchmarks.record_file import complete, earlier, failure_text, keep, measure_parts, refuse_smaller
from benchmarks.speed.records import AnnBuild, AnnRecord
from benchmarks.speed.vectors.collection import SYNTHETIC, Collection, Law, Truth, exact, of_index, synthetic
from benchmarks.speed.vectors.index_types import (
    Candidate,
    Conditions,
    Library,
    candidates,
    check_packages,
    of_factories,
)
from benchmarks.speed.vectors.measuring import DOCUMENT_CHUNKS, measure_in_process, version_of
from benchmarks.speed.vectors.tables import ann_table
from engine.index import Index
from engine.search.candidates import FIRST_DEPTH

QUICK_DOCUMENTS = 150
QUICK_QUERIES = 5


@dataclass(frozen=True)
class Subject:
    """The vectors that are searched."""

    name: str  # of the corpus, or "synthetic"
    source: str  # the index's name, or the law
    encoder: str  # name@fingerprint; "" for synthetic vectors
    draw: Callable[[], Collection]


def measure(
    subject: Subject, libraries: Sequence[Library], factories: Sequence[str], conditions: Conditions, run: Measurement
) -> AnnRecord:
    """Find the truth, then build and search one type after the other, each in a process of its own.

    Vectors are drawn here, so that nothing else holds them. Without factories all types are measured.
    """
    warm_up()
    with tempfile.TemporaryDirectory(prefix="longmatch-vectors-") as folder:
        collection, truth = _prepared(subject, conditions.k, Path(folder))
        n_vectors, width = collection.rows.shape
        known = candidates(n_vectors, width, libraries, k=conditions.k, is_quick=run.is_quick)
        tried = {candidate.name: candidate for candidate in of_factories(known, factories)}
        begun = _begun(subject, collection, conditions, run)
        out = run.out or Path(folder)
        refuse_smaller(begun, {**begun.extent, "types": len(tried)}, out)

        def on_part(builds: Mapping[str, AnnBuild], failed: Mapping[str, str]) -> None:
            log(f"{len(builds) + len(failed)} of {len(tried)} types")
            keep(replace(begun, builds=list(builds.values()), failed=dict(failed)), out)

        builds, failed = measure_parts(
            list(tried),
            _kept(begun, tried, out),
            lambda name: measure_in_process(tried[name], Path(folder), collection, truth, conditions),
            on_part,
        )
    return replace(begun, builds=list(builds.values()), failed=failed)


def _prepared(subject: Subject, k: int, folder: Path) -> tuple[Collection, Truth]:
    """The collection in a file, and the truth; the vectors in memory are freed on return."""
    collection = subject.draw()
    log(f"{subject.name}: exact search for {len(collection.queries):,} chunks in {len(collection.rows):,}")
    truth = exact(collection, k)
    collection.save(folder)
    return Collection.load(folder), truth


def _begun(subject: Subject, collection: Collection, conditions: Conditions, run: Measurement) -> AnnRecord:
    """The record before a type is measured."""
    return AnnRecord(
        collection=subject.name,
        source=subject.source,
        encoder=subject.encoder,
        is_quick=run.is_quick,
        n_vectors=len(collection.rows),
        n_documents=collection.n_documents,
        width=collection.rows.shape[1],
        n_query_documents=len(collection.query_starts),
        n_query_chunks=len(collection.queries),
        document_chunks=DOCUMENT_CHUNKS,
        depth=FIRST_DEPTH,
        k=conditions.k,
        threads=conditions.threads,
        build_threads=conditions.build_threads,
        builds=[],
        origin=run.origin,
    )


def _kept(begun: AnnRecord, tried: Mapping[str, Candidate], out: Path) -> dict[str, AnnBuild]:
    """The results of an earlier run for the same types with the same settings, in the same versions."""
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
@click.option("--documents", "n_documents", type=click.IntRange(2), help="To find; by default all, or 5,000 synthetic.")
@click.option("--chunks", "n_chunks", default=DOCUMENT_CHUNKS, type=click.IntRange(1), help="Of a synthetic document.")
@click.option("--width", default=384, type=click.IntRange(8), help="Of synthetic vectors.")
@click.option("--queries", "n_queries", type=click.IntRange(1), help="Documents to search with; by default 50.")
@click.option("-k", "--top", "k", default=10, type=click.IntRange(1), help="Of both recalls.")
@click.option("--libraries", default=",".join(Library), callback=names_of(list(Library)), help="Separated by commas.")
@click.option("--factory", "factories", multiple=True, help="Only this type; may be repeated.  [default: all]")
@click.option("--threads", default=1, type=click.IntRange(1), help="To search with.")
@click.option("--build-threads", default=os.cpu_count() or 1, show_default="all cores", type=click.IntRange(1))
@measurement(seed="Of vectors, queries, training samples and graphs.", quick="A few thousand vectors, few settings")
def main(
    run: Measurement,
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
) -> None:
    """Measure index types over the chunk vectors of an index, or over synthetic ones, and write a record.

    \b
    Example:
        python -m benchmarks study vectors synthetic --quick
        python -m benchmarks study vectors papers.lm --queries 100
    """
    chosen = [Library(name) for name in libraries]
    n_queries = n_queries or (QUICK_QUERIES if run.is_quick else 50)
    n_found = n_documents or (QUICK_DOCUMENTS if run.is_quick else None)
    check_packages(chosen)
    if source == Path(SYNTHETIC):
        law = Law(n_found or 5000, n_chunks, width)
        subject = Subject(SYNTHETIC, str(law), "", partial(synthetic, law, n_queries, run.seed))
    else:
        check_vectors(source)
        draw = partial(of_index, source, n_queries, run.seed, n_found)
        with Index.open(source) as index:
            built = index.snapshot.meta["encoder"]
        encoder = label_of(built["name"], built["fingerprint"])
        subject = Subject(source.stem.partition("@")[0], source.stem, encoder, draw)
    record = measure(subject, chosen, factories, Conditions(k, threads, build_threads, run.seed), run)
    if run.out and record.builds:
        complete(record, run.out)
    click.echo(ann_table([record]))
    if record.failed:
        raise click.ClickException(failure_text(record.failed, len(record.failed) + len(record.builds)))
