"""Measures if the source document of a planted passage finds its host, and if the passage is named; runs by system."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import click
import numpy as np

from benchmarks.datasets import Dataset, checksum, open_dataset, read_documents
from benchmarks.prepare import index_documents, label_of
from benchmarks.program import Measurement, log, measurement, task
from benchmarks.quick import sample_documents
from benchmarks.runs import Case, Run
from benchmarks.sections.planting import (
    Adoption,
    Asker,
    Damage,
    Named,
    Planted,
    Position,
    Ranks,
    choose_adoptions,
    damaged,
    host_words,
    plant,
)
from benchmarks.tables.sections import BEFORE, DOCUMENT, EVIDENCE, MODEL, NAMED, RANK, PlantedDetails, planted_table
from engine.encoders.encoder import Encoder
from engine.encoders.files import BUNDLED_NAME
from engine.encoders.loading import load_encoder
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.text.document import Document


@dataclass(frozen=True)
class PlantingPlan:
    """The number of plantings."""

    documents: int = 500  # drawn from the corpus
    hosts: int = 15  # of each class of length


def measure(
    documents: Sequence[Document], adoptions: Sequence[Adoption], encoder: Encoder, seed: int
) -> dict[str, list[Case]]:
    """Index the documents, then plant, index and search once for every damage and position.

    All hosts of a damage and position are in the index at once and replace their originals; every other document stays.
    A damaged text is the same in all positions.

    Returns: by system, a case for each planting: for both rankings, and for the encoder if it explains matches itself.
    """
    by_id = {document.doc_id: document for document in documents}
    cases: dict[str, list[Case]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hosts.lm"
        index_documents(path, documents, encoder, log)
        with Index.open(path, encoder=encoder) as index:
            asker = Asker(index)
            before = [asker.ranks(adoption) for adoption in adoptions]
        for (at, damage), position in product(enumerate(Damage), Position):
            log(f"{damage}, {position}")
            passages = [
                damaged(adoption.passage, damage, np.random.default_rng([seed, number, at]))
                for number, adoption in enumerate(adoptions)
            ]
            planted = [
                plant(by_id[adoption.host], passage, position)
                for adoption, passage in zip(adoptions, passages, strict=True)
            ]
            index_documents(path, [one.document for one in planted], encoder)
            with Index.open(path, encoder=encoder) as index:
                asker = Asker(index, encoder)
                for adoption, one, unplanted in zip(adoptions, planted, before, strict=True):
                    for system, values in _values(asker, adoption, one, unplanted).items():
                        cases[system].append(
                            Case(
                                id=f"{adoption.query} {adoption.section}, {adoption.host}, {damage}, {position}",
                                values=values,
                                labels={"damage": damage.value, "position": position.value, "length": adoption.length},
                                group=adoption.query,
                            )
                        )
    return dict(cases)


def _values(asker: Asker, adoption: Adoption, planted: Planted, before: Ranks) -> dict[str, dict[str, float]]:
    """The values of one planting, by system."""
    ranks, (by_evidence, by_model) = asker.ranks(adoption), asker.named(adoption, planted)
    values: dict[str, dict[str, float]] = {
        EVIDENCE: {RANK: ranks.evidence, BEFORE: before.evidence, **_of_named(by_evidence)},
        DOCUMENT: {RANK: ranks.document, BEFORE: before.document},
    }
    if by_model is not None:
        values[MODEL] = _of_named(by_model)
    return values


def _of_named(named: Named) -> dict[str, float]:
    spans = named.spans
    values = (float(named.is_first), round(spans.iou, 4), round(spans.precision, 4), round(spans.recall, 4))
    return dict(zip(NAMED, values, strict=True))


def run(call: Measurement, dataset: Dataset, encoder: str, plan: PlantingPlan) -> list[Run]:
    """Draw documents, plant in them, and measure: a run of the evidence, of document vectors, and of the encoder."""
    started = time.perf_counter()
    drawn = sample_documents(read_documents(dataset), plan.documents, call.seed)
    adoptions = choose_adoptions(drawn, plan.hosts, call.seed)
    loaded = load_encoder(encoder)
    cases = measure(drawn, adoptions, loaded, call.seed)
    details = PlantedDetails(
        n_documents=len(drawn),
        n_pairs=len(adoptions),
        mean_shared_words=round(float(np.mean([adoption.n_shared for adoption in adoptions])), 2),
        host_words=host_words({document.doc_id: document for document in drawn}, adoptions),
    )
    seconds = round(time.perf_counter() - started, 1)
    return [
        Run(
            task="planted",
            dataset=f"{dataset.name}@{checksum(dataset)}",
            system=system,
            encoder=label_of(loaded.name, loaded.fingerprint),
            settings={**asdict(plan), **asdict(Scoring())},
            variant=f"section-{len(drawn)}documents",
            split="",
            seconds=seconds,
            details=asdict(details),
            origin=call.origin,
            cases=of_system,
        )
        for system, of_system in cases.items()
    ]


@task
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, help="Name or folder of an encoder.")
@click.option("--documents", default=PlantingPlan.documents, type=click.IntRange(1), help="Documents to index.")
@click.option("--hosts", default=PlantingPlan.hosts, type=click.IntRange(1), help="Hosts of each length.")
@measurement(seed="Seed of the draw, the damages, the tests and the intervals.", data=True)
def main(call: Measurement, name: str, encoder: str, documents: int, hosts: int) -> None:
    """Plant sections of documents of DATASET in others, search with their source documents, and read the breakdowns.

    DATASET is a task by name or a folder. The documents drawn are indexed in a temporary folder.

    \b
    Example:
        python -m benchmarks run planted proposals --documents 500 --hosts 15
    """
    dataset = open_dataset(name, call.data)
    call.publish(run(call, dataset, encoder, PlantingPlan(documents, hosts)), planted_table)
