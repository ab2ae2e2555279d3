"""Measures whether a planted passage is found by the document it was taken from, and named; writes a record."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeAlias

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Dataset, checksum, open_dataset, read_documents
from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.options import data_option, log, out_option, plot_option
from benchmarks.plots import Mean, draw_groups, new_figure, save_plot
from benchmarks.prepare import label_of
from benchmarks.program import origin_of, task
from benchmarks.record_file import RESULTS, write_record
from benchmarks.sections.planting import (
    LENGTHS,
    Adoption,
    Asker,
    Damage,
    Form,
    Passage,
    Planted,
    Position,
    Ranks,
    choose_adoptions,
    damaged,
    host_words,
    plant,
)
from benchmarks.sections.records import PlantedRecord
from benchmarks.sections.subcorpus import index_documents, sample_documents
from benchmarks.significance import bootstrap_interval, randomization_p
from engine import Document, Scoring, load_encoder
from engine.encoders.backbone.weights import BUNDLED_NAME
from engine.encoders.encoder import Encoder
from engine.index import Index
from indexer.training.origin import Origin

_GROUPS = {"damage": tuple(Damage), "position": tuple(Position), "length": LENGTHS}
_NOTE = (
    "The query is the document that a section was taken from; the host holds that section, damaged by leaving out "
    "words or by shuffling sentences, and then without its heading, and shares as few rare words with the query as "
    "could be found. Rank of the host among all documents: share of plantings where it is 1, or at most 10, and the "
    "median; the first row of each corpus is the host before planting. Named first: the largest pair is the planted "
    "section and the one that it was taken from. IoU, precision and recall: characters of that pair's spans against "
    "those of the passage; hosts below rank 100 count as not named. With a bootstrap interval over pairs of query and "
    "host. p: two-sided paired randomisation test of 1/rank over these pairs, evidence against the document vector, "
    "adjusted after Holm over the rows of a corpus."
)


def planted_table(records: Sequence[PlantedRecord]) -> str:
    """Rows for each corpus: before planting, then by damage, by position and by length of the host."""
    evidence = ["Rank 1", "Rank <= 10 [95 %]", "Median"]
    document = [f"{cell}, document" for cell in ("Rank 1", "Rank <= 10", "Median")]
    head = ["Corpus (pairs)", "Encoder", "Plantings", *evidence, *document, "p"]
    rows = [row for record in records for row in _rows(record)]
    named = ["Named first [95 %]", "IoU", "Precision", "Recall"]
    return "\n".join([*markdown([*head, *named], rows), "", _NOTE, "", *origins(records)])


def _rows(record: PlantedRecord) -> list[list[str]]:
    cases = [(name, value, _is(record, name, value)) for name, values in _GROUPS.items() for value in values]
    before = np.ones(len(record.plantings["rank"]), bool)
    tested = [_p(record, "rank_before", "document_rank_before", before)]
    tested += [_p(record, "rank", "document_rank", chosen) for _, _, chosen in cases]
    p_values = p_cells(tested)
    corpus = f"{record.task} ({record.n_pairs})" + (", quick" if record.is_quick else "")
    place = [corpus, record.encoder.partition("@")[0]]
    ranks = [*_found(record, "rank_before", before), *_found(record, "document_rank_before", before, with_ends=False)]
    rows = [[*place, "before planting", *ranks, p_values[0], "", "", "", ""]]
    for (name, value, chosen), p in zip(cases, p_values[1:], strict=True):
        ranks = [*_found(record, "rank", chosen), *_found(record, "document_rank", chosen, with_ends=False)]
        rows.append([*place, f"{name}: {_label(record, value)}", *ranks, p, *_named(record, chosen)])
    return rows


def _label(record: PlantedRecord, value: str) -> str:
    if value not in record.host_words:
        return value
    low, high = record.host_words[value]
    return f"{value}, {low:,} to {high:,} words"


def _is(record: PlantedRecord, column: str, value: str) -> NDArray[np.bool_]:
    return np.array([own == value for own in record.plantings[column]])


def _column(record: PlantedRecord, name: str) -> NDArray[np.float64]:
    return np.array(record.plantings[name], np.float64)


def _by_pair(record: PlantedRecord, values: NDArray[np.float64], chosen: NDArray[np.bool_]) -> list[float]:
    """Means over the chosen plantings of each query: those of one query are no independent cases."""
    by_query: dict[str | int | float, list[float]] = defaultdict(list)
    for number in np.flatnonzero(chosen).tolist():
        by_query[record.plantings["query"][number]].append(float(values[number]))
    return [float(np.mean(own)) for own in by_query.values()]


def _share(record: PlantedRecord, values: NDArray[np.float64], chosen: NDArray[np.bool_]) -> str:
    by_pair = _by_pair(record, values, chosen)
    low, high = bootstrap_interval(by_pair, seed=record.origin.seed)
    return f"{np.mean(by_pair):.3f} [{low:.3f}, {high:.3f}]"


def _found(record: PlantedRecord, column: str, chosen: NDArray[np.bool_], *, with_ends: bool = True) -> list[str]:
    ranks = _column(record, column)
    among_ten = (ranks <= 10).astype(np.float64)
    shown = _share(record, among_ten, chosen) if with_ends else f"{among_ten[chosen].mean():.3f}"
    return [f"{np.mean(ranks[chosen] == 1):.3f}", shown, f"{np.median(ranks[chosen]):g}"]


def _named(record: PlantedRecord, chosen: NDArray[np.bool_]) -> list[str]:
    spans = [f"{_column(record, name)[chosen].mean():.3f}" for name in ("iou", "span_precision", "span_recall")]
    return [_share(record, _column(record, "is_first"), chosen), *spans]


def _p(record: PlantedRecord, column: str, rival: str, chosen: NDArray[np.bool_]) -> float:
    own, other = (_by_pair(record, 1 / _column(record, name), chosen) for name in (column, rival))
    return randomization_p(own, other, seed=record.origin.seed)


def draw_planted(record: PlantedRecord, folder: Path) -> list[Path]:
    """Draw how often hosts are found and passages named: by damage, position and length; returns PNG and SVG files.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    lines = {
        "found in the first 10, evidence": (_column(record, "rank") <= 10).astype(np.float64),
        "found in the first 10, document vector": (_column(record, "document_rank") <= 10).astype(np.float64),
        "named first": _column(record, "is_first"),
        "IoU of the spans": _column(record, "iou"),
    }
    paths: list[Path] = []
    for group, values in _GROUPS.items():
        figure, axes = new_figure(f"{record.task}: planted passages", group, "mean over plantings")
        by_line = {
            name: [_mean(_by_pair(record, column, _is(record, group, value)), record.origin.seed) for value in values]
            for name, column in lines.items()
        }
        draw_groups(axes, [str(value) for value in values], by_line)
        paths += save_plot(figure, folder / f"{record.name}-{group}")
    return paths


def _mean(by_pair: list[float], seed: int) -> Mean:
    return Mean(float(np.mean(by_pair)), bootstrap_interval(by_pair, seed=seed))


Log: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class PlantingPlan:
    """How much is planted, and as what."""

    documents: int = 500  # of the corpus, drawn
    hosts: int = 15  # of each length
    form: Form = Form.SECTION
    max_chars: int | None = None  # longer documents are left out


QUICK = PlantingPlan(documents=40, hosts=1, max_chars=12_000)
_FORMS = [form.value for form in Form]


def measure(
    documents: Sequence[Document], adoptions: Sequence[Adoption], encoder: Encoder, form: Form, seed: int, log: Log
) -> dict[str, list[str | int | float]]:
    """Index the documents, then plant, index and ask once for every damage and position.

    All hosts of a damage and position are in the index at once, in the place of
    what they were; every other document stays. A damaged text is the same in all positions.

    Args:
        documents: all that can be found.
        adoptions: of these documents.
        encoder: of the index, which is thrown away.
        form: as what passages are planted.
        seed: of the damages.
        log: gets lines of progress.

    Returns:
        The columns of `PlantedRecord.plantings`.
    """
    by_id = {document.doc_id: document for document in documents}
    rows: list[dict[str, str | int | float]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hosts.lm"
        index_documents(path, documents, encoder, log)
        with Index.open(path, encoder=encoder) as index:
            asker = Asker(index)
            before = [asker.ranks(adoption) for adoption in adoptions]
        for damage in Damage:
            for position in Position:
                log(f"{damage}, {position}")
                planted = [
                    plant(by_id[adoption.host], _damaged(adoption, damage, number, seed), position, form)
                    for number, adoption in enumerate(adoptions)
                ]
                index_documents(path, [one.document for one in planted], encoder)
                with Index.open(path, encoder=encoder) as index:
                    rows += _planted_rows(index, adoptions, planted, before, damage, position)
    return {name: [row[name] for row in rows] for name in rows[0]}


def _damaged(adoption: Adoption, damage: Damage, number: int, seed: int) -> Passage:
    return damaged(adoption.passage, damage, np.random.default_rng([seed, number, list(Damage).index(damage)]))


def _planted_rows(
    index: Index,
    adoptions: Sequence[Adoption],
    planted: Sequence[Planted],
    before: Sequence[Ranks],
    damage: Damage,
    position: Position,
) -> Iterator[dict[str, str | int | float]]:
    asker = Asker(index)
    for adoption, one, unplanted in zip(adoptions, planted, before, strict=True):
        ranks, named = asker.ranks(adoption), asker.named(adoption, one)
        yield {
            "query": adoption.query,
            "section": adoption.section,
            "host": adoption.host,
            "length": adoption.length,
            "damage": damage.value,
            "position": position.value,
            "rank": ranks.evidence,
            "document_rank": ranks.document,
            "rank_before": unplanted.evidence,
            "document_rank_before": unplanted.document,
            "is_first": int(named.is_first),
            "iou": round(named.spans.iou, 4),
            "span_precision": round(named.spans.precision, 4),
            "span_recall": round(named.spans.recall, 4),
        }


def run(
    dataset: Dataset, encoder: str, plan: PlantingPlan, origin: Origin, log: Log, *, is_quick: bool
) -> PlantedRecord:
    """Draw documents, plant in them, and measure.

    Raises:
        EngineError: the corpus or the encoder cannot be read, or the corpus is too small for the plan.
    """
    started = time.perf_counter()
    drawn = sample_documents(read_documents(dataset), plan.documents, origin.seed, max_chars=plan.max_chars)
    adoptions = choose_adoptions(drawn, plan.hosts, origin.seed)
    loaded = load_encoder(encoder)
    plantings = measure(drawn, adoptions, loaded, plan.form, origin.seed, log)
    return PlantedRecord(
        task=dataset.name,
        dataset=f"{dataset.name}@{checksum(dataset)}",
        encoder=label_of(loaded.name, loaded.fingerprint),
        settings={**{name: value for name, value in asdict(plan).items() if value is not None}, **asdict(Scoring())},
        is_quick=is_quick,
        n_documents=len(drawn),
        n_pairs=len(adoptions),
        mean_shared_words=round(float(np.mean([adoption.n_shared for adoption in adoptions])), 2),
        host_words=host_words({document.doc_id: document for document in drawn}, adoptions),
        plantings=plantings,
        seconds=round(time.perf_counter() - started, 1),
        origin=origin,
    )


@task
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, show_default=True, help="Name or folder of an encoder.")
@click.option(
    "--documents", default=PlantingPlan.documents, show_default=True, type=click.IntRange(1), help="Drawn, indexed."
)
@click.option("--hosts", default=PlantingPlan.hosts, show_default=True, type=click.IntRange(1), help="Of each length.")
@click.option(
    "--form", default=PlantingPlan.form.value, show_default=True, type=click.Choice(_FORMS), help="Planted as what."
)
@click.option("--max-chars", type=click.IntRange(1), help="Leave out longer documents.")
@click.option("--seed", default=0, show_default=True, help="Of the draw, the damages, tests and intervals.")
@click.option("--quick", is_flag=True, help="Three hosts among 40 documents; no record unless --out is given.")
@data_option
@out_option
@plot_option
@click.pass_context
def main(
    context: click.Context,
    name: str,
    encoder: str,
    documents: int,
    hosts: int,
    form: str,
    max_chars: int | None,
    seed: int,
    quick: bool,
    data: Path,
    out: Path | None,
    plot_out: Path | None,
) -> None:
    """Plant sections of documents of DATASET in others, ask with the documents they are of, and read the breakdowns.

    DATASET is a task by name or a folder. The documents drawn are indexed in a temporary folder.

    \b
    Example:
        python -m benchmarks run planted proposals --documents 500 --hosts 15
    """
    plan = replace(QUICK, form=Form(form)) if quick else PlantingPlan(documents, hosts, Form(form), max_chars)
    origin = origin_of(context, seed)
    dataset = open_dataset(name, data)
    record = run(dataset, encoder, plan, origin, log, is_quick=quick)
    if folder := out or (None if quick else RESULTS):
        write_record(record, folder)
    click.echo(planted_table([record]))
    if plot_out:
        draw_planted(record, plot_out)
