"""Checks on a real index what a score promises: its parts sum to it, and a certified ranking is the true one.

The truth is the equation of `engine.scoring.evidence`, document by document and
chunk by chunk, from the vectors alone; it shares no code with the search.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.origin import command_line
from benchmarks.recall import sampled_queries
from benchmarks.records import RESULTS, ExactnessRecord, write_record
from engine import Index, Scoring
from engine.encoders.encoder import EncodedDocument
from engine.errors import EngineError
from engine.origin import describe_origin
from engine.result import Status
from engine.store.writer import Writer
from indexer.generation import publish_generation

EXACT, APPROXIMATE = "Flat", "auto"
TIE = 1e-6  # scores nearer than this may change places: float32 sums differ by their order


@dataclass
class Tally:
    """What was seen over all queries of one generation."""

    n_queries: int = 0
    n_hits: int = 0
    largest_sum_error: float = 0.0  # |sum of parts - score|
    n_certified: int = 0
    n_ranked_otherwise: int = 0  # certified rankings that differ from the truth, ties aside
    largest_score_error: float = 0.0  # of certified hits, against the truth


def read_vectors(index: Index) -> dict[str, EncodedDocument]:
    """The stored vectors of every document."""
    return {name: index.stored_query(name).vectors for name in index.snapshot.doc_ids()}


def true_scores(vectors: Mapping[str, EncodedDocument], doc_id: str, scoring: Scoring) -> dict[str, float]:
    """The score of every other document, by a loop over documents and one over chunks."""
    query = vectors[doc_id]
    targets = [name for name in vectors if name != doc_id]
    best = np.empty((len(query.chunks), len(targets)))
    for column, name in enumerate(targets):
        cosines = query.chunks @ vectors[name].chunks.T
        for i in range(len(query.chunks)):
            best[i, column] = min(1.0, float(cosines[i].max()))
    total = np.zeros(len(targets))
    room = 0.0
    for i, chunk in enumerate(query.chunk_spans):
        theta = _crowd(best[i], scoring.crowd)
        weight = chunk.n_tokens**0.5
        room += weight * (1 - theta) ** scoring.power
        total += weight * np.maximum(0, best[i] - theta) ** scoring.power
    cosine = np.array([min(1.0, float(vectors[name].document @ query.document)) for name in targets])
    theta = _crowd(cosine, scoring.document_crowd)
    b = scoring.document_weight
    total = (1 - b) * total / room + b * (np.maximum(0, cosine - theta) / (1 - theta)) ** scoring.power
    return dict(zip(targets, total.tolist(), strict=True))


def _crowd(similarities: NDArray[np.float64], crowd: int) -> float:
    return max(0.0, float(np.sort(similarities)[-crowd - 1])) if len(similarities) > crowd else 0.0


def examine(index: Index, queries: list[str], k: int, *, against_truth: bool) -> Tally:
    """Ask every query and hold its hits against their parts, and certified ones against the truth."""
    tally = Tally()
    scoring = Scoring()
    vectors = read_vectors(index) if against_truth else {}
    for doc_id in queries:
        result = index.search_id(doc_id, k=k, scoring=scoring)
        tally.n_queries += 1
        for hit in result.hits:
            parts = [part.contribution for pair in hit.breakdown.pairs for part in pair.parts]
            error = abs(sum(parts) + hit.breakdown.document.contribution - hit.score)
            tally.n_hits += 1
            tally.largest_sum_error = max(tally.largest_sum_error, error)
        if result.status is Status.CERTIFIED and against_truth:
            found = [(hit.doc_id, hit.score) for hit in result.hits]
            _compare(tally, found, true_scores(vectors, doc_id, scoring), k)
    return tally


def _compare(tally: Tally, found: list[tuple[str, float]], truth: dict[str, float], k: int) -> None:
    expected = sorted((score for score in truth.values() if score > 0), reverse=True)[:k]
    errors = [abs(score - truth[doc_id]) for doc_id, score in found]
    tally.n_certified += 1
    tally.largest_score_error = max(tally.largest_score_error, *errors, 0.0)
    is_same = len(found) == len(expected) and all(
        abs(truth[doc_id] - score) < TIE for (doc_id, _), score in zip(found, expected, strict=True)
    )
    tally.n_ranked_otherwise += not is_same


@click.command()
@click.argument("path", metavar="INDEX", type=click.Path(path_type=Path))
@click.option("--queries", "n_queries", default=500, show_default=True, type=click.IntRange(1), help="Documents asked.")
@click.option("--truth", "n_truth", default=500, show_default=True, help="Of them, held against the double loop.")
@click.option("-k", "--top", "k", default=10, show_default=True, type=click.IntRange(1), help="Targets to return.")
@click.option("--seed", default=0, show_default=True, help="Of the sample of queries.")
@click.option("--out", default=RESULTS, type=click.Path(path_type=Path), help="Folder for the record.")
@click.pass_context
def main(context: click.Context, path: Path, n_queries: int, n_truth: int, k: int, seed: int, out: Path) -> None:
    """Check INDEX under an exact and an approximate generation; it is copied, not changed.

    \b
    Example:
        python -m benchmarks.exactness papers.lm --queries 500
    """
    origin = describe_origin(command_line("benchmarks.exactness", context, leave_out=("out",)), seed)
    name = path.stem.partition("@")[0]
    try:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "copy.lm"
            shutil.copytree(path, copy)
            for factory in (EXACT, APPROXIMATE):
                with Writer(copy) as writer:
                    published = publish_generation(writer, factory)
                started = time.perf_counter()
                with Index.open(copy) as index:
                    queries = sampled_queries(index.snapshot.doc_ids(), n_queries, seed)
                    tally = examine(index, queries[:n_truth], k, against_truth=published.is_exact)
                    n_documents = index.n_documents
                    rest = examine(index, queries[n_truth:], k, against_truth=False)
                record = ExactnessRecord(
                    index=name,
                    factory=published.factory,
                    n_documents=n_documents,
                    k=k,
                    n_queries=tally.n_queries + rest.n_queries,
                    n_hits=tally.n_hits + rest.n_hits,
                    largest_sum_error=max(tally.largest_sum_error, rest.largest_sum_error),
                    n_certified=tally.n_certified,
                    n_ranked_otherwise=tally.n_ranked_otherwise,
                    largest_score_error=tally.largest_score_error,
                    seconds=round(time.perf_counter() - started, 1),
                    origin=origin,
                )
                write_record(record, out)
                click.echo(_line(record))
    except EngineError as error:
        raise click.ClickException(str(error)) from error


def _line(record: ExactnessRecord) -> str:
    told = (
        f"{record.index} {record.factory}: {record.n_queries} queries, {record.n_hits} hits, "
        f"|sum of parts - score| at most {record.largest_sum_error:.1e}"
    )
    if record.n_certified:
        told += (
            f"; {record.n_certified} certified, {record.n_ranked_otherwise} ranked otherwise than the double loop, "
            f"scores within {record.largest_score_error:.1e}"
        )
    return told


if __name__ == "__main__":
    main()
