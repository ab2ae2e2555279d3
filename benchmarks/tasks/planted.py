"""Measures if the source document of a planted passage finds its host, and if the passage is named; runs by system."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

import click
import numpy as np

from benchmarks.datasets import Dataset, checksum, open_dataset, read_documents
from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.prepare import label_of
from benchmarks.program import log, task
from benchmarks.quick import SUFFIX
from benchmarks.runs import Case, Run
from benchmarks.sections.planting import (
    LENGTHS,
    Adoption,
    Asker,
    Damage,
    Form,
    Named,
    Planted,
    Position,
    Ranks,
    choose_adoptions,
    damaged,
    host_words,
    plant,
)
from benchmarks.sections.subcorpus import index_documents, sample_documents
from benchmarks.significance import bootstrap_interval, randomization_p
from engine import Document, Scoring, load_encoder
from engine.encoders.encoder import Encoder
from engine.encoders.files import BUNDLED_NAME
from engine.index import Index

_GROUPS = {"damage": tuple(Damage), "position": tuple(Position), "length": LENGTHS}
_NOTE = (
    "The query is the document that a section was taken from. The host is the document that the section was planted "
    "in, as a copy or damaged; damaged sections lose words, or have their sentences shuffled, and have no heading. A "
    "host shares as few rare words with its query as possible. Rank of the host among all documents: share of "
    "plantings with rank 1, share with rank 10 or better, and median. The first row of each corpus is the host before "
    "planting. Named first: the largest pair is the planted section and its source. IoU, precision and recall: "
    "characters of the spans of that pair, compared with the characters of the passage. Hosts below rank 100 count as "
    "not named. In brackets: bootstrap interval over pairs of query and host. p: two-sided paired randomisation test "
    "of 1/rank over these pairs, evidence against the document vector, adjusted by Holm's method over the rows of a "
    "corpus."
)
_MODEL_NOTE = (
    " Model: the strongest pair in the encoder's own explanation, and for each chunk of its query section the best "
    "chunk of its target section; hosts below rank 100 by evidence count as not named. p, named: evidence against "
    "model, on the share named first, over pairs of query and host, adjusted by Holm's method over the rows of a "
    "corpus."
)
EVIDENCE, DOCUMENT, MODEL = "evidence", "document", "model"  # the systems; the model names passages but does not rank
_NAMED = ("is_first", "iou", "span_precision", "span_recall")
RANK, BEFORE = "rank", "rank_before"  # of the host among all documents, from 1


@dataclass(frozen=True)
class PlantedDetails:
    """The details of a run, besides its cases: plantings, labelled by damage, position and length of the host."""

    n_documents: int
    n_pairs: int
    mean_shared_words: float  # rare words that host and query share
    host_words: dict[str, list[int]]  # words of the shortest and of the longest host of a class


def planted_table(runs: Sequence[Run]) -> str:
    """Rows for each corpus: before planting, then by damage, by position and by length of the host."""
    evidence = ["Rank 1", "Rank <= 10 [95 %]", "Median"]
    document = [f"{cell}, document" for cell in ("Rank 1", "Rank <= 10", "Median")]
    head = ["Corpus (pairs)", "Encoder", "Plantings", *evidence, *document, "p"]
    of_corpus: dict[tuple[object, ...], dict[str, Run]] = defaultdict(dict)
    for run in runs:
        of_corpus[run.dataset, run.encoder, run.variant, run.origin.seed][run.system] = run
    both = [own for own in of_corpus.values() if own.keys() >= {EVIDENCE, DOCUMENT}]
    has_model = any(MODEL in own for own in both)
    rows = [row for own in both for row in _rows(own, has_model=has_model)]
    named = ["Named first [95 %]", "IoU", "Precision", "Recall"]
    of_model = [f"{cell}, model" for cell in named] + ["p, named"] if has_model else []
    note = _NOTE + _MODEL_NOTE * has_model
    return "\n".join([*markdown([*head, *named, *of_model], rows), "", note, "", *origins(runs)])


def _rows(runs: Mapping[str, Run], *, has_model: bool) -> list[list[str]]:
    run = runs[EVIDENCE]
    seed, details = run.origin.seed, run.details_as(PlantedDetails)
    quick = ", quick" if run.corpus.endswith(SUFFIX) else ""
    place = [f"{run.corpus.removesuffix(SUFFIX)} ({details.n_pairs}){quick}", run.encoder_name]
    every = {system: one.cases for system, one in runs.items()}
    labels = [(name, value) for name, values in _GROUPS.items() for value in values]
    parts = [{system: _of_label(cases, *label) for system, cases in every.items()} for label in labels]
    p_before = _p(every, DOCUMENT, _reciprocal(BEFORE), seed)
    p_ranks = p_cells([p_before, *(_p(part, DOCUMENT, _reciprocal(RANK), seed) for part in parts)])
    p_named = p_cells([_p(part, MODEL, _is_first, seed) if MODEL in runs else None for part in parts])
    rows = [[*place, "before planting", *_found(every, BEFORE, seed), p_ranks[0], *[""] * (4 + 5 * has_model)]]
    for (name, value), part, p_rank, p_name in zip(labels, parts, p_ranks[1:], p_named, strict=True):
        words = details.host_words.get(value)
        label = f"{name}: {value}" + (f", {words[0]:,} to {words[1]:,} words" if words else "")
        of_model = [*_named(part[MODEL], seed), p_name] if MODEL in runs else [""] * (5 * has_model)
        rows.append([*place, label, *_found(part, RANK, seed), p_rank, *_named(part[EVIDENCE], seed), *of_model])
    return rows


def _of_label(cases: Sequence[Case], label: str, value: str) -> list[Case]:
    return [case for case in cases if case.labels[label] == value]


def _reciprocal(rank: str) -> Callable[[Case], float]:
    return lambda case: 1 / case.values[rank]


def _is_first(case: Case) -> float:
    return case.values["is_first"]


def _by_pair(cases: Sequence[Case], value: Callable[[Case], float]) -> list[float]:
    """Means over the plantings of each query, since plantings of one query are not independent."""
    by_query: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        by_query[case.group].append(value(case))
    return [float(np.mean(own)) for own in by_query.values()]


def _p(cases: Mapping[str, Sequence[Case]], rival: str, value: Callable[[Case], float], seed: int) -> float:
    return randomization_p(_by_pair(cases[EVIDENCE], value), _by_pair(cases[rival], value), seed=seed)


def _share(cases: Sequence[Case], value: Callable[[Case], float], seed: int) -> str:
    by_pair = _by_pair(cases, value)
    low, high = bootstrap_interval(by_pair, seed=seed)
    return f"{np.mean(by_pair):.3f} [{low:.3f}, {high:.3f}]"


def _found(cases: Mapping[str, Sequence[Case]], measure: str, seed: int) -> list[str]:
    """Cells of the ranks by evidence, then by document vectors, of which no interval is shown."""
    cells: list[str] = []
    for system in (EVIDENCE, DOCUMENT):
        ranks = np.array([case.values[measure] for case in cases[system]])
        among_ten = f"{np.mean(ranks <= 10):.3f}"
        if system == EVIDENCE:
            among_ten = _share(cases[system], lambda case: float(case.values[measure] <= 10), seed)
        cells += [f"{np.mean(ranks == 1):.3f}", among_ten, f"{np.median(ranks):g}"]
    return cells


def _named(cases: Sequence[Case], seed: int) -> list[str]:
    spans = [f"{np.mean([case.values[name] for case in cases]):.3f}" for name in _NAMED[1:]]
    return [_share(cases, _is_first, seed), *spans]


@dataclass(frozen=True)
class PlantingPlan:
    """The number and the form of plantings."""

    documents: int = 500  # drawn from the corpus
    hosts: int = 15  # of each class of length
    form: Form = Form.SECTION
    max_chars: int | None = None  # longer documents are left out


QUICK = PlantingPlan(documents=40, hosts=1, max_chars=12_000)
_FORMS = [form.value for form in Form]


def measure(
    documents: Sequence[Document], adoptions: Sequence[Adoption], encoder: Encoder, form: Form, seed: int
) -> dict[str, list[Case]]:
    """Index the documents, then plant, index and search once for every damage and position.

    All hosts of a damage and position are in the index at once and replace their originals; every other document stays.
    A damaged text is the same in all positions.

    Returns:
        By system, a case for each planting: for both rankings, and for the encoder if it explains matches itself.
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
                plant(by_id[adoption.host], passage, position, form)
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
    return dict(zip(_NAMED, values, strict=True))


def run(call: Measurement, dataset: Dataset, encoder: str, plan: PlantingPlan) -> list[Run]:
    """Draw documents, plant in them, and measure: a run of the evidence, of document vectors, and of the encoder."""
    started = time.perf_counter()
    drawn = sample_documents(read_documents(dataset), plan.documents, call.seed, max_chars=plan.max_chars)
    adoptions = choose_adoptions(drawn, plan.hosts, call.seed)
    loaded = load_encoder(encoder)
    cases = measure(drawn, adoptions, loaded, plan.form, call.seed)
    details = PlantedDetails(
        n_documents=len(drawn),
        n_pairs=len(adoptions),
        mean_shared_words=round(float(np.mean([adoption.n_shared for adoption in adoptions])), 2),
        host_words=host_words({document.doc_id: document for document in drawn}, adoptions),
    )
    planned = {name: value for name, value in asdict(plan).items() if value is not None}
    seconds = round(time.perf_counter() - started, 1)
    return [
        Run(
            task="planted",
            dataset=f"{dataset.name}{SUFFIX * call.is_quick}@{checksum(dataset)}",
            system=system,
            encoder=label_of(loaded.name, loaded.fingerprint),
            settings={**planned, **asdict(Scoring())},
            variant=f"{plan.form}-{len(drawn)}documents",
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
@click.option("--form", default=PlantingPlan.form.value, type=click.Choice(_FORMS), help="Form of a planted section.")
@measurement(
    seed="Seed of the draw, the damages, the tests and the intervals.",
    quick="Three hosts among 40 documents",
    data=True,
)
def main(call: Measurement, name: str, encoder: str, documents: int, hosts: int, form: str) -> None:
    """Plant sections of documents of DATASET in others, search with their source documents, and read the breakdowns.

    DATASET is a task by name or a folder. The documents drawn are indexed in a temporary folder.

    \b
    Example:
        python -m benchmarks run planted proposals --documents 500 --hosts 15
    """
    dataset = open_dataset(name, call.data)
    plan = PlantingPlan(documents, hosts, Form(form))
    if call.is_quick:
        plan = replace(QUICK, form=plan.form)
    call.publish(run(call, dataset, encoder, plan), planted_table)
