"""CL-SciSumm: its papers, citances and human summaries, the questions that a summary is used for, and their candidates.

A folder holds, each in the format of `benchmarks.datasets`,

    corpus.jsonl.gz      papers; meta.roles holds "citing" where one cites a reference paper
    queries.jsonl.gz     human summaries of reference papers
    citances.jsonl.gz    the sentences in which they are cited
    qrels.tsv            summary -> its paper
    qrels_citing.tsv     summary -> the papers that cite it
    qrels_citances.tsv   summary -> its citances
    splits.json          summaries by split

It is made from github.com/WING-NUS/scisumm-corpus (CC BY 4.0).

TDE (2024, section 3; after Zhang et al. 2021) ranks few candidates a summary:

    reference-topic   2017: the summary's own paper, among the papers that cite it
    citing-drawn      2018: 5 papers that cite it, among 15 that cite papers of other topics; drawn 20 times

The other questions rank whole collections: the paper (`reference`), the papers that cite it (`citing`), the sentences
that cite it (`citances`; `citances-split`: among those of the split's topics alone).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from benchmarks.datasets import DATA, DatasetError, Qrels, files_checksum, readable
from benchmarks.systems import System
from engine.errors import TrainingError
from engine.text.document import Document
from engine.training.corpus import read_judgments, read_splits

NAME = "clscisumm"
_SUMMARIES, _SPLITS = "queries.jsonl.gz", "splits.json"
_QRELS = {"reference": "qrels.tsv", "citing": "qrels_citing.tsv", "citances": "qrels_citances.tsv"}


class Collection(StrEnum):
    """The collection that is searched."""

    PAPERS = "papers"
    CITANCES = "citances"


_FILES = {Collection.PAPERS: "corpus.jsonl.gz", Collection.CITANCES: "citances.jsonl.gz"}


@dataclass(frozen=True)
class Scisumm:
    """The summaries of one split and what belongs to them; papers and citances stay in their files."""

    folder: Path
    checksum: str  # of all files above
    split: str
    summaries: Mapping[str, Document]
    reference: Qrels  # summary -> its paper -> 1
    citing: Qrels  # summary -> papers; empty where none is known
    citances: Qrels

    @property
    def name(self) -> str:
        """Name and checksum: the key under which vectors of its documents are kept."""
        return f"{NAME}@{self.checksum}"


def open_scisumm(split: str, data: Path = DATA) -> Scisumm:
    """Read summaries and judgments of one split of the dataset in `data`."""
    folder = data / NAME
    files = [folder / name for name in (*_FILES.values(), _SUMMARIES, *_QRELS.values(), _SPLITS)]
    if missing := [path.name for path in files if not path.is_file()]:
        raise DatasetError(
            f"dataset {NAME}: {folder} holds no {', '.join(missing)}; pass --data FOLDER, where FOLDER/{NAME} does"
        )
    try:
        splits = read_splits(folder / _SPLITS)
        if split not in splits:
            raise DatasetError(f"dataset {NAME} has no split {split!r}; it has {', '.join(splits)}")
        judged = {kind: _qrels(folder / name, splits[split]) for kind, name in _QRELS.items()}
    except TrainingError as error:
        raise DatasetError(f"dataset {NAME}: {error}") from error
    wanted = set(splits[split])
    found = {summary.doc_id: summary for summary in readable(NAME, folder / _SUMMARIES) if summary.doc_id in wanted}
    if absent := [query_id for query_id in splits[split] if query_id not in found or not judged["reference"][query_id]]:
        raise DatasetError(
            f"dataset {NAME}: summary {absent[0]!r} of split {split!r} is not in {_SUMMARIES}, or has no paper in "
            f"{_QRELS['reference']}; leave it out of {_SPLITS}"
        )
    return Scisumm(
        folder,
        files_checksum(files),
        split,
        {query_id: found[query_id] for query_id in splits[split]},
        judged["reference"],
        judged["citing"],
        judged["citances"],
    )


def read_collection(data: Scisumm, collection: Collection) -> Iterator[Document]:
    """Stream all papers, reference and citing ones, or all citances."""
    yield from readable(NAME, data.folder / _FILES[collection])


def citing_ids(data: Scisumm) -> list[str]:
    """The papers that cite some reference paper, in the order of the file."""
    return [paper.doc_id for paper in read_collection(data, Collection.PAPERS) if "citing" in _roles(paper)]


def _roles(paper: Document) -> list[object]:
    roles = paper.metadata.get("roles", [])
    return list(roles) if isinstance(roles, list) else [roles]


def _qrels(path: Path, query_ids: list[str]) -> Qrels:
    """The relevant targets of every query; {} for a query without any."""
    judged = read_judgments(path, query_ids)
    return {
        query_id: {doc_id: 1 for doc_id, relevance in judged.get(query_id, {}).items() if relevance > 0}
        for query_id in query_ids
    }


N_POSITIVES = 5
N_NEGATIVES = 15


@dataclass(frozen=True)
class Question:
    """Which candidates are to be ranked for a summary."""

    query_id: str
    candidates: tuple[str, ...]  # in random order where they are few
    relevant: frozenset[str]  # some of the candidates


Pool = Callable[[Scisumm], list[str]]
Ask = Callable[[Scisumm, Sequence[str], np.random.Generator], list[Question]]


@dataclass(frozen=True)
class SummaryTask:
    """A way to rank for summaries: the collection, the candidates and the measures."""

    collection: Collection
    pool: Pool  # the documents that are searched; lexical systems are fitted on these alone
    ask: Ask
    split: str  # by default
    measures: tuple[str, ...]  # significance tests compare the first
    n_draws: int = 1


def of_topic(data: Scisumm, _pool: Sequence[str], draw: np.random.Generator) -> list[Question]:
    """The summary's own paper among the papers that cite it; summaries whose paper nobody cites are left out."""
    return [
        Question(query_id, _shuffled([*paper, *data.citing[query_id]], draw), frozenset(paper))
        for query_id, paper in data.reference.items()
        if data.citing[query_id]
    ]


def drawn(data: Scisumm, _pool: Sequence[str], draw: np.random.Generator) -> list[Question]:
    """Some papers that cite the summary's own paper, among papers that cite those of other summaries of the split.

    Summaries with fewer than `N_POSITIVES` such papers are left out.
    """
    everyone = sorted({doc_id for papers in data.citing.values() for doc_id in papers})
    questions = []
    for query_id, own in data.citing.items():
        if len(own) < N_POSITIVES:
            continue
        others = [doc_id for doc_id in everyone if doc_id not in own and doc_id not in data.reference[query_id]]
        if len(others) < N_NEGATIVES:
            raise DatasetError(
                f"split {data.split!r} has {len(others)} papers that cite other topics than that of {query_id!r}, "
                f"{N_NEGATIVES} are drawn; take a split with more summaries: --split"
            )
        positives = draw.choice(sorted(own), N_POSITIVES, replace=False).tolist()
        negatives = draw.choice(others, N_NEGATIVES, replace=False).tolist()
        questions.append(Question(query_id, _shuffled([*positives, *negatives], draw), frozenset(positives)))
    return questions


def of_pool(kind: str, data: Scisumm, pool: Sequence[str], _draw: np.random.Generator) -> list[Question]:
    """The targets of a summary among the whole pool; its own paper is a candidate only where it is the target.

    Summaries without a target in the pool are left out.
    """
    judged: Mapping[str, Mapping[str, int]] = getattr(data, kind)
    known = frozenset(pool)
    questions = []
    for query_id, relevant in judged.items():
        left_out = () if kind == "reference" else data.reference[query_id]
        candidates = tuple(doc_id for doc_id in pool if doc_id not in left_out)
        if found := known.intersection(relevant).difference(left_out):
            questions.append(Question(query_id, candidates, found))
    return questions


def _papers(data: Scisumm) -> list[str]:
    return [paper.doc_id for paper in read_collection(data, Collection.PAPERS)]


def _citances(data: Scisumm) -> list[str]:
    return [citance.doc_id for citance in read_collection(data, Collection.CITANCES)]


def _citances_of_split(data: Scisumm) -> list[str]:
    wanted = {doc_id for citances in data.citances.values() for doc_id in citances}
    return [doc_id for doc_id in _citances(data) if doc_id in wanted]


def _shuffled(doc_ids: Sequence[str], draw: np.random.Generator) -> tuple[str, ...]:
    return tuple(doc_ids[place] for place in draw.permutation(len(doc_ids)))


_WHOLE = ("nDCG@10", "Recall@10", "Recall@100", "MRR@10", "P@1", "P@5")
TASKS: Mapping[str, SummaryTask] = {
    "reference-topic": SummaryTask(Collection.PAPERS, _papers, of_topic, "cl2017train", ("MRR", "P@1", "nDCG")),
    "citing-drawn": SummaryTask(
        Collection.PAPERS, citing_ids, drawn, "cl2018train", ("P@5", "P@1", "P@2", "P@3", "P@4"), n_draws=20
    ),
    "reference": SummaryTask(Collection.PAPERS, _papers, partial(of_pool, "reference"), "test", _WHOLE),
    "citing": SummaryTask(Collection.PAPERS, citing_ids, partial(of_pool, "citing"), "cl2018test", _WHOLE),
    "citances": SummaryTask(Collection.CITANCES, _citances, partial(of_pool, "citances"), "cl2018test", _WHOLE),
    "citances-split": SummaryTask(
        Collection.CITANCES, _citances_of_split, partial(of_pool, "citances"), "cl2018test", _WHOLE
    ),
}
FEW = 100  # up to this number, candidates are scored one by one by a system that has `score`


@runtime_checkable
class Scorer(Protocol):
    """A system that can score any two documents that it was fitted on."""

    def score(self, first: str, second: str) -> float:
        """The similarity of two documents; higher is closer."""


class CandidateRanker:
    """Ranks candidates by a system; searches once for each summary, and scores each pair of documents once."""

    def __init__(self, system: System, summaries: Mapping[str, Document], depth: int) -> None:
        """Take a system and its queries; `depth` is the depth of a search, the number of documents."""
        self._score = cache(system.score) if isinstance(system, Scorer) else None
        self._search = cache(lambda query_id: [doc_id for doc_id, _ in system.search(summaries[query_id], depth)])

    def rank(self, question: Question) -> list[str]:
        """The candidates, best first, without those that the system does not find.

        Up to `FEW` candidates are scored pair by pair if the system has `score`; ties keep
        the order of the question. Otherwise they are in the order of the system's ranking
        of all documents.
        """
        if self._score and len(question.candidates) <= FEW:
            scores = {doc_id: self._score(question.query_id, doc_id) for doc_id in question.candidates}
            return sorted(scores, key=lambda doc_id: -scores[doc_id])
        wanted = frozenset(question.candidates)
        return [doc_id for doc_id in self._search(question.query_id) if doc_id in wanted]
