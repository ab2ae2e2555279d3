"""CL-SciSumm, read from a folder: which papers and which citances belong to a human summary. Nothing is ranked here.

A folder holds, each as `benchmarks.datasets` has it,

    corpus.jsonl.gz      papers; meta.roles holds "citing" where one cites a reference paper
    queries.jsonl.gz     human summaries of reference papers
    citances.jsonl.gz    the sentences in which they are cited
    qrels.tsv            summary -> its paper
    qrels_citing.tsv     summary -> the papers that cite it
    qrels_citances.tsv   summary -> its citances
    splits.json          summaries by split

It is made from github.com/WING-NUS/scisumm-corpus (CC BY 4.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import numpy as np

from benchmarks.checksums import files_checksum
from benchmarks.datasets import DATA, DatasetError, Qrels
from benchmarks.quick import first_words
from engine.document import Document
from engine.errors import TrainingError
from engine.readers import Unreadable, read_file
from engine.training.judgments import read_judgments, read_splits

NAME = "clscisumm"
_SUMMARIES, _SPLITS = "queries.jsonl.gz", "splits.json"
_QRELS = {"reference": "qrels.tsv", "citing": "qrels_citing.tsv", "citances": "qrels_citances.tsv"}


class Collection(StrEnum):
    """What is found."""

    PAPERS = "papers"
    CITANCES = "citances"


_FILES = {Collection.PAPERS: "corpus.jsonl.gz", Collection.CITANCES: "citances.jsonl.gz"}


@dataclass(frozen=True)
class Part:
    """The little that a quick run reads."""

    doc_ids: frozenset[str]  # papers and citances
    max_words: int  # of a document
    name: str  # of the part, for what is cached


@dataclass(frozen=True)
class Scisumm:
    """The summaries of one split and what belongs to them; papers and citances stay in their files."""

    folder: Path
    checksum: str  # of all files above
    split: str
    summaries: Mapping[str, Document]
    reference: Qrels  # summary -> its paper; each of these -> 1
    citing: Qrels  # summary -> papers; empty where none is known
    citances: Qrels
    part: Part | None = None  # None for all

    @property
    def name(self) -> str:
        """Name, checksum and part: what vectors of its documents may be kept under."""
        return f"{NAME}@{self.checksum}" + (f"-{self.part.name}" if self.part else "")


def open_scisumm(split: str, data: Path = DATA) -> Scisumm:
    """Read summaries and judgments of one split of the dataset in `data`.

    Raises:
        DatasetError: a file is missing or cannot be read, there is no such split, or a summary is not there.
    """
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
    found = {summary.doc_id: summary for summary in _read(folder / _SUMMARIES) if summary.doc_id in wanted}
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
    """Stream all papers, reference and citing ones, or all citances.

    Raises:
        DatasetError: one cannot be read.
    """
    for document in _read(data.folder / _FILES[collection]):
        if data.part is None:
            yield document
        elif document.doc_id in data.part.doc_ids:
            yield first_words(document, data.part.max_words)


def citing_ids(data: Scisumm) -> list[str]:
    """The papers that cite some reference paper, in the order of the file."""
    return [paper.doc_id for paper in read_collection(data, Collection.PAPERS) if "citing" in _roles(paper)]


def quick_part(data: Scisumm, n_topics: int, max_words: int, seed: int) -> Scisumm:
    """A few reference papers with all that belongs to them, the first words of each paper; one summary a topic.

    Topics are drawn by `seed` among those that five papers cite, or among all where these are fewer than `n_topics`.
    """
    by_topic: dict[str, str] = {}
    for query_id, papers in data.reference.items():
        by_topic.setdefault(next(iter(papers)), query_id)
    cited = [query_id for query_id in by_topic.values() if len(data.citing[query_id]) >= 5]
    pool = cited if len(cited) >= n_topics else list(by_topic.values())
    rows = np.random.default_rng(seed).choice(len(pool), min(n_topics, len(pool)), replace=False)
    chosen = [pool[row] for row in sorted(rows.tolist())]

    def kept(qrels: Qrels) -> Qrels:
        return {query_id: qrels[query_id] for query_id in chosen}

    def targets(*several: Qrels) -> frozenset[str]:
        return frozenset(doc_id for qrels in several for papers in kept(qrels).values() for doc_id in papers)

    part = Part(
        targets(data.reference, data.citing, data.citances),
        max_words,
        f"{data.split}-quick{n_topics}x{max_words}-{seed}",
    )
    return replace(
        data,
        summaries={query_id: data.summaries[query_id] for query_id in chosen},
        reference=kept(data.reference),
        citing=kept(data.citing),
        citances=kept(data.citances),
        part=part,
    )


def _roles(paper: Document) -> list[object]:
    roles = paper.metadata.get("roles", [])
    return list(roles) if isinstance(roles, list) else [roles]


def _qrels(path: Path, query_ids: list[str]) -> Qrels:
    """Relevant targets of every query, of a query without any none."""
    judged = read_judgments(path, query_ids)
    return {
        query_id: {doc_id: 1 for doc_id, relevance in judged.get(query_id, {}).items() if relevance > 0}
        for query_id in query_ids
    }


def _read(path: Path) -> Iterator[Document]:
    for document in read_file(path):
        if isinstance(document, Unreadable):
            raise DatasetError(
                f"dataset {NAME}, {document.source}: {document.reason}; mend that line, or fetch the dataset again"
            )
        yield document
