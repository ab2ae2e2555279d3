"""Shows nDCG@10 by length of queries and of their relevant targets, from retrieval records and their dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import click

from benchmarks.datasets import Dataset, DatasetError, checksum, open_dataset, read_qrels, read_queries
from benchmarks.options import data_option, out_option, plot_option, work_option
from benchmarks.program import origin_of, program
from benchmarks.quality_tables import is_without
from benchmarks.quick import quick_part
from benchmarks.record_file import RESULTS, write_record
from benchmarks.records import RetrievalRecord, read_records
from benchmarks.retrieval import Trial, measure, prepared_systems
from benchmarks.slices.lengths import BY, length_record, read_lengths
from benchmarks.slices.views import length_table, plot_lengths
from engine.document import Document
from indexer.training.origin import Origin

DEPTH = 100  # of the rankings of --quick


def _matching_records(folder: Path, dataset: Dataset, split: str) -> list[RetrievalRecord]:
    asked = f"{dataset.name}@{checksum(dataset)}"
    found = [record for record in read_records(folder) if isinstance(record, RetrievalRecord)]
    fitting = [record for record in found if (record.dataset, record.split) == (asked, split)]
    if not fitting:
        others = sorted({f"{record.dataset} {record.split}" for record in found})
        raise DatasetError(
            f"{folder} holds no retrieval record of {asked} {split}, only of {', '.join(others) or 'nothing'}; "
            f"measure it first: python -m benchmarks.retrieval {dataset.name} --split {split} --out {folder}"
        )
    # A run of fewer queries cannot stand beside the others; an encoder trained without a corpus is no system of ours.
    return [one for one in fitting if one.query_ids == fitting[0].query_ids and not is_without(one)]


def _measured_by_bm25(dataset: Dataset, split: str, work: Path, origin: Origin) -> Iterator[RetrievalRecord]:
    qrels = read_qrels(dataset, split)
    trial = Trial(dataset, split, qrels, read_queries(dataset, qrels), DEPTH, origin)
    for system, cost in prepared_systems(("bm25",), dataset, "", work, exact=False):
        yield measure(system, cost, trial)[0]


def _words(document: Document) -> int:
    return len(document.text.split())


def _counting(encoder_name: str) -> tuple[str, Callable[[Document], int]]:
    """The unit of lengths, and what counts it."""
    if not encoder_name:
        return "words", _words
    from benchmarks.prepare import encoder_label
    from engine import load_encoder

    encoder = load_encoder(encoder_name)
    unit = f"tokens of {encoder_label(encoder_name)}@{encoder.fingerprint[:12]}"
    return unit, lambda document: encoder.segment(document).coverage.tokens_total


@program
@click.argument("name", metavar="DATASET")
@click.option("--split", default="test", show_default=True, help="Of the records.")
@click.option("--buckets", "n_buckets", default=4, show_default=True, type=click.IntRange(1), help="At most.")
@click.option("--tokens-of", "encoder", default="", help="Count the tokens of this encoder, not words.")
@click.option("--quick", is_flag=True, help="A small part of DATASET, by BM25 unless --records is given.")
@click.option("--seed", default=0, show_default=True, help="Of intervals, and of --quick.")
@click.option(
    "--records", type=click.Path(path_type=Path), help="Folder of the retrieval records; the project's own by default."
)
@data_option
@work_option
@out_option
@plot_option
@click.pass_context
def main(
    context: click.Context,
    name: str,
    split: str,
    n_buckets: int,
    encoder: str,
    quick: bool,
    seed: int,
    records: Path | None,
    data: Path,
    work: Path,
    out: Path | None,
    plot_out: Path | None,
) -> None:
    """Show nDCG@10 by length of queries and of their relevant targets, from the retrieval records of DATASET.

    \b
    Example:
        python -m benchmarks.buckets rfc --plot-out plots/
    """
    folder = out or (None if quick else RESULTS)
    origin = origin_of(context, seed)
    dataset = open_dataset(name, data)
    dataset = quick_part(dataset, split, work / "quick", seed=seed) if quick else dataset
    if quick and records is None:
        measured = list(_measured_by_bm25(dataset, split, work, origin))
    else:
        measured = _matching_records(records or RESULTS, dataset, split)
    unit, length = _counting(encoder)
    qrels = read_qrels(dataset, split)
    lengths = read_lengths(dataset, {query_id: qrels[query_id] for query_id in measured[0].query_ids}, length)
    sliced = [length_record(measured, lengths[by], by=by, unit=unit, n_buckets=n_buckets, origin=origin) for by in BY]
    for record in sliced:
        if folder:
            write_record(record, folder)
        if plot_out:
            plot_lengths(record, plot_out)
    click.echo(length_table(sliced))


if __name__ == "__main__":
    main()
