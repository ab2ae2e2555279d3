"""Plants sections and whole documents in a corpus, and searches for them by words alone; writes two runs.

Drafts and inner documents are taken out of the corpus. Half of the long sections of a draft are planted, each in a
document of its own; novelty search must find which sections are there. Half of the inner documents are planted whole;
containment search must find the document around each. Words of planted texts are replaced, with shares in turn.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.datasets import Dataset, DatasetError, checksum, read_documents
from benchmarks.markdown import markdown, origins
from benchmarks.measuring.measurement import Measurement
from benchmarks.options import log
from benchmarks.quick import SUFFIX
from benchmarks.runs import Case, Run
from benchmarks.sections.planting import Form, Passage, Position, plant, replace_words
from engine.index import Index
from engine.search.request import Mode, Request
from engine.text.document import Document
from indexer import build

REPLACED = (0.0, 0.1, 0.3)  # shares of words, in turn
CONTAINED = 0.5  # score from which on a text counts as contained; chosen on the demo corpus
LEAST_WORDS = 80  # of a section that is judged
_FEWEST_LONG = 4  # long sections of a draft
_NOTE = (
    "Searches are by words alone. Novelty: drafts are taken out of the corpus, and half of their sections of 80 words "
    "or more are each planted in another document. All long sections of the drafts are searched. Containment: inner "
    "documents are taken out of the corpus, and half of them are planted as a whole. The best hit is judged. In turn, "
    "none, a tenth or three tenths of the words are replaced by words of the corpus. A section or document counts as "
    "found if the score of its best document is at least {contained:g}. This limit was chosen on the demo corpus; the "
    "weights of containment were chosen on proposals. Planted, missing: sections or documents that were planted, and "
    "that were not. Precision: share of the found ones whose best document is the one that they were planted in. "
    "Recall: share of the planted ones that are found there. A section that another document of the corpus has anyway "
    "counts against precision."
)
SECTION, WHOLE = "novelty", "containment"  # the systems: of long sections of drafts, and of whole documents
_KINDS = {SECTION: "section", WHOLE: "document"}


@dataclass(frozen=True)
class ContainedPlan:
    """How much is planted."""

    drafts: int = 30
    inner: int = 60  # documents, of which half are planted whole


QUICK = ContainedPlan(2, 4)


@dataclass(frozen=True, slots=True)
class _Case:
    """A section of a draft, or a whole document, and where it was planted."""

    query: Document
    section: int  # -1 for a whole document
    home: str  # "" where it was not planted
    replaced: float


def run_contained(call: Measurement, dataset: Dataset) -> list[Run]:
    """Plant, index by words, and search; a run of novelty, and one of containment.

    Raises:
        EngineError: the corpus cannot be read, or is too small for the plan.
    """
    started = time.perf_counter()
    plan = QUICK if call.is_quick else ContainedPlan()
    corpus, planted = planted_corpus(list(read_documents(dataset)), plan, call.seed)
    log(f"{len(planted)} cases, {len(corpus):,} documents")
    cases = _asked(corpus, planted)
    seconds = round(time.perf_counter() - started, 1)
    return [
        Run(
            task="contained",
            dataset=f"{dataset.name}{SUFFIX * call.is_quick}@{checksum(dataset)}",
            system=system,
            settings=asdict(plan),
            split="",
            seconds=seconds,
            details={"n_documents": len(corpus)},  # that are searched
            origin=call.origin,
            cases=of_system,
        )
        for system, of_system in cases.items()
    ]


def planted_corpus(documents: Sequence[Document], plan: ContainedPlan, seed: int) -> tuple[list[Document], list[_Case]]:
    """Take drafts and inner documents out of a corpus, and plant sections of drafts and half of the inner documents.

    Raises:
        DatasetError: the corpus is too small.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(documents)).tolist()
    drafts = [number for number in order if len(long_sections(documents[number])) >= _FEWEST_LONG][: plan.drafts]
    inner = [number for number in order if number not in drafts and long_sections(documents[number])][: plan.inner]
    others = {number: documents[number] for number in sorted(set(order) - set(drafts) - set(inner))}
    if len(drafts) < plan.drafts or len(inner) < plan.inner or len(others) < len(drafts) + len(inner):
        raise DatasetError(f"{len(documents):,} documents are too few for {plan}; plant less")
    words = sorted({word for one in others.values() for word in one.text.split()})
    homes = rng.permutation(list(others)).tolist()
    cases: list[_Case] = []

    def put(query: Document, section: int, text: str) -> None:
        n_put = sum(bool(case.home) for case in cases)
        share, home = REPLACED[n_put % len(REPLACED)], homes[n_put % len(homes)]
        passage = Passage("", replace_words(text, share, words, rng))
        others[home] = plant(others[home], passage, Position.MIDDLE, Form.SECTION).document
        cases.append(_Case(query, section, others[home].doc_id, share))

    for draft in (documents[number] for number in drafts):
        numbers = long_sections(draft)
        chosen = set(rng.permutation(numbers)[: len(numbers) // 2].tolist())
        for number in numbers:
            if number in chosen:
                put(draft, number, draft.text[draft.sections[number].start : draft.sections[number].stop])
            else:
                cases.append(_Case(draft, number, "", 0.0))
    for place, document in enumerate(documents[number] for number in inner):
        if place % 2:
            cases.append(_Case(document, -1, "", 0.0))
        else:
            put(document, -1, document.text)
    return list(others.values()), cases


def long_sections(document: Document) -> list[int]:
    """Numbers of the sections with at least `LEAST_WORDS` words; novelty is judged on these."""
    n_words = [len(document.text[one.start : one.stop].split()) for one in document.sections]
    return [at for at, n in enumerate(n_words) if n >= LEAST_WORDS]


def _asked(corpus: Sequence[Document], planted: Sequence[_Case]) -> dict[str, list[Case]]:
    """The cases of each system, with the documents found."""
    cases: dict[str, list[Case]] = {SECTION: [], WHOLE: []}
    by_query: dict[str, dict[int, tuple[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="longmatch-") as folder:
        path = Path(folder) / "planted.lm"
        build(path, corpus, encode="none")
        with Index.open(path) as index:
            for one in planted:
                query = one.query.doc_id
                if query not in by_query:
                    by_query[query] = _answers(index, one)
                    log(f"{len(by_query)} queries")
                found, score = by_query[query].get(one.section, ("", 0.0))
                case = contained_case(query, one.section, one.home, one.replaced, found, score)
                cases[WHOLE if one.section < 0 else SECTION].append(case)
    return cases


def contained_case(query: str, section: int, home: str, replaced: float, found: str, score: float) -> Case:
    """A case of a section (-1: a whole document), the document it was planted in, and the one found; "" for none."""
    return Case(
        id=query if section < 0 else f"{query} {section}",
        values={"score": round(score, 6)},
        facts={"replaced": replaced},
        labels={"home": home, "found": found},
        group=query,
    )


def _answers(index: Index, case: _Case) -> dict[int, tuple[str, float]]:
    """By section (-1: the whole document), the document that contains most of it, and its score."""
    query = replace(case.query, source="")
    if case.section >= 0:
        novelty = index.novelty(query, Request(mode=Mode.NOVELTY, with_itself=True))
        return {one.section: (one.hit.doc_id, one.hit.score) for one in novelty if one.hit is not None}
    hits = index.search(query, Request(k=1, mode=Mode.CONTAINMENT, with_itself=True))
    return {-1: (hits[0].doc_id, hits[0].score)} if len(hits) else {}


def judged(cases: Sequence[Case], least: float = CONTAINED) -> tuple[float, float]:
    """Precision and recall; a case counts as found from the score `least` on."""
    found = [case for case in cases if case.values["score"] >= least]
    right = sum(bool(case.labels["home"]) and case.labels["found"] == case.labels["home"] for case in found)
    return right / max(1, len(found)), right / max(1, len(_planted(cases)))


def recall_by_share(cases: Sequence[Case]) -> list[float | None]:
    """Recall for each share of replaced words; None where nothing of that share was planted."""
    by_share = [[case for case in _planted(cases) if case.facts["replaced"] == share] for share in REPLACED]
    return [judged(planted)[1] if planted else None for planted in by_share]


def _planted(cases: Sequence[Case]) -> list[Case]:
    return [case for case in cases if case.labels["home"]]


def contained_table(runs: Sequence[Run]) -> str:
    """Two rows for each corpus: sections by novelty, documents by containment."""
    rows = []
    for run in sorted(runs, key=lambda run: (run.corpus, run.system == WHOLE)):
        place = [run.corpus, f"{run.details['n_documents']:,}", run.system, _KINDS[run.system]]
        n_planted = len(_planted(run.cases))
        values = (*judged(run.cases), *recall_by_share(run.cases))
        shown = ["" if value is None else f"{value:.3f}" for value in values]
        rows.append([*place, str(n_planted), str(len(run.cases) - n_planted), *shown])
    shares = [f"Recall, {share:.0%} replaced" for share in REPLACED]
    head = ["Corpus", "Documents", "Mode", "Unit", "Planted", "Missing", "Precision", "Recall", *shares]
    return "\n".join([*markdown(head, rows), "", _NOTE.format(contained=CONTAINED), "", *origins(runs)])
