"""Measures if the source document of a planted passage finds its host, and if the passage is named; runs by system."""

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
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.prepare import label_of
from benchmarks.program import task
from benchmarks.quick import SUFFIX
from benchmarks.runs import Case, Run
from benchmarks.sections.contained import QUICK as QUICK_CONTAINED
from benchmarks.sections.contained import ContainedPlan, contained_table, run_contained
from benchmarks.sections.planting import (
    LENGTHS,
    Adoption,
    Asker,
    Damage,
    Form,
    Named,
    Passage,
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
from engine.encoders.backbone.weights import BUNDLED_NAME
from engine.encoders.encoder import Encoder
from engine.index import Index
from indexer.origin import Origin

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
    rows = [row for own in both for row in _rows(own[EVIDENCE], own[DOCUMENT], own.get(MODEL), has_model=has_model)]
    named = ["Named first [95 %]", "IoU", "Precision", "Recall"]
    of_model = [f"{cell}, model" for cell in named] + ["p, named"] if has_model else []
    note = _NOTE + _MODEL_NOTE * has_model
    return "\n".join([*markdown([*head, *named, *of_model], rows), "", note, "", *origins(runs)])


def _rows(run: Run, rival: Run, model: Run | None, *, has_model: bool) -> list[list[str]]:
    cases = [(name, value, _is(run, name, value)) for name, values in _GROUPS.items() for value in values]
    before = np.ones(len(run.cases), bool)
    tested = [_p(run, rival, BEFORE, before), *(_p(run, rival, RANK, chosen) for _, _, chosen in cases)]
    p_values = p_cells(tested)
    details = run.details_as(PlantedDetails)
    corpus = f"{run.corpus.removesuffix(SUFFIX)} ({details.n_pairs})" + (
        ", quick" if run.corpus.endswith(SUFFIX) else ""
    )
    place = [corpus, run.encoder_name]
    ranks = [*_found(run, BEFORE, before), *_found(rival, BEFORE, before, with_ends=False)]
    n_model = 5 * has_model  # columns
    rows = [[*place, "before planting", *ranks, p_values[0], "", "", "", "", *[""] * n_model]]
    p_named = p_cells([None if model is None else _p_named(run, model, chosen) for _, _, chosen in cases])
    for (name, value, chosen), p, of_named in zip(cases, p_values[1:], p_named, strict=True):
        ranks = [*_found(run, RANK, chosen), *_found(rival, RANK, chosen, with_ends=False)]
        label = f"{name}: {_label(details, value)}"
        of_model = [""] * n_model if model is None else [*_named(model, chosen), of_named]
        rows.append([*place, label, *ranks, p, *_named(run, chosen), *of_model])
    return rows


def _p_named(run: Run, model: Run, chosen: NDArray[np.bool_]) -> float:
    own, other = (_by_pair(one, np.array(one.values("is_first")), chosen) for one in (run, model))
    return randomization_p(own, other, seed=run.origin.seed)


def _label(details: PlantedDetails, value: str) -> str:
    if value not in details.host_words:
        return value
    low, high = details.host_words[value]
    return f"{value}, {low:,} to {high:,} words"


def _is(run: Run, label: str, value: str) -> NDArray[np.bool_]:
    return np.array([case.labels[label] == value for case in run.cases])


def _by_pair(run: Run, values: NDArray[np.float64], chosen: NDArray[np.bool_]) -> list[float]:
    """Means over the chosen plantings of each query, since plantings of one query are not independent."""
    by_query: dict[str, list[float]] = defaultdict(list)
    for number in np.flatnonzero(chosen).tolist():
        by_query[run.cases[number].group].append(float(values[number]))
    return [float(np.mean(own)) for own in by_query.values()]


def _share(run: Run, values: NDArray[np.float64], chosen: NDArray[np.bool_]) -> str:
    by_pair = _by_pair(run, values, chosen)
    low, high = bootstrap_interval(by_pair, seed=run.origin.seed)
    return f"{np.mean(by_pair):.3f} [{low:.3f}, {high:.3f}]"


def _found(run: Run, measure: str, chosen: NDArray[np.bool_], *, with_ends: bool = True) -> list[str]:
    ranks = np.array(run.values(measure))
    among_ten = (ranks <= 10).astype(np.float64)
    shown = _share(run, among_ten, chosen) if with_ends else f"{among_ten[chosen].mean():.3f}"
    return [f"{np.mean(ranks[chosen] == 1):.3f}", shown, f"{np.median(ranks[chosen]):g}"]


def _named(run: Run, chosen: NDArray[np.bool_]) -> list[str]:
    spans = [f"{np.array(run.values(name))[chosen].mean():.3f}" for name in _NAMED[1:]]
    return [_share(run, np.array(run.values("is_first")), chosen), *spans]


def _p(run: Run, rival: Run, measure: str, chosen: NDArray[np.bool_]) -> float:
    own, other = (_by_pair(one, 1 / np.array(one.values(measure)), chosen) for one in (run, rival))
    return randomization_p(own, other, seed=run.origin.seed)


Log: TypeAlias = Callable[[str], None]


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
    documents: Sequence[Document], adoptions: Sequence[Adoption], encoder: Encoder, form: Form, seed: int, log: Log
) -> dict[str, list[Case]]:
    """Index the documents, then plant, index and search once for every damage and position.

    All hosts of a damage and position are in the index at once and replace their
    originals; every other document stays. A damaged text is the same in all positions.

    Args:
        documents: all targets.
        adoptions: passages, queries and hosts among these documents.
        encoder: of the temporary index.
        form: the form in which passages are planted.
        seed: of the damages.
        log: called with lines of progress.

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
        for damage in Damage:
            for position in Position:
                log(f"{damage}, {position}")
                planted = [
                    plant(by_id[adoption.host], _damaged(adoption, damage, number, seed), position, form)
                    for number, adoption in enumerate(adoptions)
                ]
                index_documents(path, [one.document for one in planted], encoder)
                with Index.open(path, encoder=encoder) as index:
                    asker = Asker(index, encoder)
                    for of_systems in _planted_cases(asker, adoptions, planted, before, damage, position):
                        for system, case in of_systems.items():
                            cases[system].append(case)
    return dict(cases)


def _damaged(adoption: Adoption, damage: Damage, number: int, seed: int) -> Passage:
    return damaged(adoption.passage, damage, np.random.default_rng([seed, number, list(Damage).index(damage)]))


def _planted_cases(
    asker: Asker,
    adoptions: Sequence[Adoption],
    planted: Sequence[Planted],
    before: Sequence[Ranks],
    damage: Damage,
    position: Position,
) -> Iterator[dict[str, Case]]:
    for adoption, one, unplanted in zip(adoptions, planted, before, strict=True):
        ranks, (by_evidence, by_model) = asker.ranks(adoption), asker.named(adoption, one)
        case = Case(
            id=f"{adoption.query} {adoption.section}, {adoption.host}, {damage}, {position}",
            labels={"damage": damage.value, "position": position.value, "length": adoption.length},
            group=adoption.query,
        )
        found = {RANK: ranks.evidence, BEFORE: unplanted.evidence, **_values(by_evidence)}
        of_systems = {
            EVIDENCE: replace(case, values=found),
            DOCUMENT: replace(case, values={RANK: ranks.document, BEFORE: unplanted.document}),
        }
        if by_model is not None:
            of_systems[MODEL] = replace(case, values=_values(by_model))
        yield of_systems


def _values(named: Named) -> dict[str, float]:
    spans = named.spans
    values = (float(named.is_first), round(spans.iou, 4), round(spans.precision, 4), round(spans.recall, 4))
    return dict(zip(_NAMED, values, strict=True))


def run(dataset: Dataset, encoder: str, plan: PlantingPlan, origin: Origin, log: Log, *, is_quick: bool) -> list[Run]:
    """Draw documents, plant in them, and measure: a run of the evidence, one of document vectors, one of the encoder.

    Raises:
        EngineError: the corpus or the encoder cannot be read, or the corpus is too small for the plan.
    """
    started = time.perf_counter()
    drawn = sample_documents(read_documents(dataset), plan.documents, origin.seed, max_chars=plan.max_chars)
    adoptions = choose_adoptions(drawn, plan.hosts, origin.seed)
    loaded = load_encoder(encoder)
    cases = measure(drawn, adoptions, loaded, plan.form, origin.seed, log)
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
            dataset=f"{dataset.name}{SUFFIX * is_quick}@{checksum(dataset)}",
            system=system,
            encoder=label_of(loaded.name, loaded.fingerprint),
            settings={
                **{name: value for name, value in asdict(plan).items() if value is not None},
                **asdict(Scoring()),
            },
            variant=f"{plan.form}-{len(drawn)}documents",
            split="",
            seconds=seconds,
            details=asdict(details),
            origin=origin,
            cases=of_system,
        )
        for system, of_system in cases.items()
    ]


@task
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, help="Name or folder of an encoder.")
@click.option(
    "--documents", default=PlantingPlan.documents, type=click.IntRange(1), help="Documents to draw and index."
)
@click.option("--hosts", default=PlantingPlan.hosts, type=click.IntRange(1), help="Hosts of each length.")
@click.option("--form", default=PlantingPlan.form.value, type=click.Choice(_FORMS), help="Form of a planted section.")
@click.option("--max-chars", type=click.IntRange(1), help="Leave out longer documents.")
@click.option(
    "--contained",
    is_flag=True,
    help="Search for planted sections and documents by novelty and containment instead, by words alone.",
)
@measurement(
    seed="Seed of the draw, the damages, the tests and the intervals.",
    quick="Three hosts among 40 documents",
    data=True,
)
def main(
    call: Measurement,
    name: str,
    encoder: str,
    documents: int,
    hosts: int,
    form: str,
    max_chars: int | None,
    contained: bool,
) -> None:
    """Plant sections of documents of DATASET in others, search with their source documents, and read the breakdowns.

    DATASET is a task by name or a folder. The documents drawn are indexed in a temporary folder.

    \b
    Example:
        python -m benchmarks run planted proposals --documents 500 --hosts 15
        python -m benchmarks run planted clscisumm --contained
    """
    dataset = open_dataset(name, call.data)
    if contained:
        chosen = QUICK_CONTAINED if call.is_quick else ContainedPlan()
        runs = run_contained(dataset, chosen, call.origin, log, is_quick=call.is_quick)
    else:
        planned = PlantingPlan(documents, hosts, Form(form), max_chars)
        plan = replace(QUICK, form=Form(form)) if call.is_quick else planned
        runs = run(dataset, encoder, plan, call.origin, log, is_quick=call.is_quick)
    call.publish(runs, (contained_table if contained else planted_table))
