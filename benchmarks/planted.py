"""Measures whether a planted passage is found by the document it was taken from, and named; writes a record."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeAlias

import click
import numpy as np

from benchmarks.datasets import Dataset, checksum, open_dataset, read_documents
from benchmarks.options import data_option, log, out_option, plot_option
from benchmarks.prepare import label_of
from benchmarks.program import origin_of, program
from benchmarks.record_file import RESULTS, write_record
from benchmarks.sections.finding import Asker, Ranks
from benchmarks.sections.hosts import Adoption, choose_adoptions, host_words
from benchmarks.sections.planted_report import draw_planted, planted_table
from benchmarks.sections.planting import Damage, Form, Passage, Planted, Position, damaged, plant
from benchmarks.sections.records import PlantedRecord
from benchmarks.sections.subcorpus import index_documents, sample_documents
from engine import Document, Index, Scoring, load_encoder
from engine.encoders.backbone.weights import BUNDLED_NAME
from engine.encoders.encoder import Encoder
from indexer.training.origin import Origin

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
                    rows += _rows(index, adoptions, planted, before, damage, position)
    return {name: [row[name] for row in rows] for name in rows[0]}


def _damaged(adoption: Adoption, damage: Damage, number: int, seed: int) -> Passage:
    return damaged(adoption.passage, damage, np.random.default_rng([seed, number, list(Damage).index(damage)]))


def _rows(
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


@program
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
        python -m benchmarks study planted proposals --documents 500 --hosts 15
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
