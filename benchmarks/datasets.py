"""Corpora with relevance judgments, read from a folder; nothing is measured or downloaded here.

A folder holds

    corpus.jsonl.gz   one document a line: {"id", "title", "sections": [{"heading", "text"}], "meta"}
    qrels.tsv         query_id, doc_id, relevance, below a header line
    splits.json       {"valid": [query ids], "test": [query ids], ...}

A query is a document of the corpus, and every other document is a target.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from engine.document import Document
from engine.errors import EngineError
from engine.readers import Unreadable, read_file

Qrels: TypeAlias = dict[str, dict[str, int]]

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


class DatasetError(EngineError):
    """Raised when a dataset is not there, or its files do not fit together."""


@dataclass(frozen=True)
class Task:
    """Which files of which folder make a retrieval task."""

    folder: str
    qrels: str = "qrels.tsv"
    splits: str = "splits.json"


TASKS: Mapping[str, Task] = {
    "proposals": Task("proposals"),
    "clscisumm": Task("clscisumm", "qrels_citation.tsv", "splits_citation.json"),
    "wikipedia_seealso": Task("wikipedia_seealso"),
    "rfc": Task("rfc"),
}


@dataclass(frozen=True)
class Dataset:
    """The files of a task, all of them there."""

    name: str
    corpus: Path
    qrels: Path
    splits: Path


def open_dataset(name: str, data: Path = DATA) -> Dataset:
    """Find a task of `TASKS` in the folder `data`, or take `name` as the path of a folder in the same layout.

    Raises:
        DatasetError: a file is missing; the message says what to pass.
    """
    task = TASKS.get(name)
    folder = Path(name) if task is None else data / task.folder
    if task is None and not folder.is_dir():
        raise DatasetError(f"{name!r} is neither a folder nor one of {', '.join(TASKS)}; pass one of these")
    task = task or Task(name)
    dataset = Dataset(
        folder.resolve().name if name not in TASKS else name,
        folder / "corpus.jsonl.gz",
        folder / task.qrels,
        folder / task.splits,
    )
    missing = [path.name for path in _files(dataset) if not path.is_file()]
    if missing:
        raise DatasetError(
            f"dataset {dataset.name}: {folder} holds no {', '.join(missing)}; "
            f"pass --data FOLDER, where FOLDER/{task.folder} holds it, or the path of a folder that does"
        )
    return dataset


def read_documents(dataset: Dataset) -> Iterator[Document]:
    """Stream the corpus in the order of its file.

    Raises:
        DatasetError: a document cannot be read; a corpus with holes would be another corpus.
    """
    for document in read_file(dataset.corpus):
        if isinstance(document, Unreadable):
            raise DatasetError(f"dataset {dataset.name}, {document.source}: {document.reason}")
        yield document


def read_queries(dataset: Dataset, query_ids: Collection[str]) -> dict[str, Document]:
    """Read the documents of these ids, in one pass over the corpus; the order of the ids is kept.

    Raises:
        DatasetError: an id is not in the corpus.
    """
    wanted = set(query_ids)
    found = {document.doc_id: document for document in read_documents(dataset) if document.doc_id in wanted}
    if len(found) < len(wanted):
        absent = min(wanted - found.keys())
        raise DatasetError(
            f"dataset {dataset.name}: query {absent!r} is not in {dataset.corpus.name} "
            f"({len(found)} of {len(wanted)} are); a query must be a document of the corpus"
        )
    return {query_id: found[query_id] for query_id in query_ids}


def read_qrels(dataset: Dataset, split: str) -> Qrels:
    """Judgments of the queries of one split, in the split's order: query id, then target, to relevance.

    Raises:
        DatasetError: there is no such split, or one of its queries has no relevant target.
    """
    splits: dict[str, list[str]] = json.loads(dataset.splits.read_text("utf-8"))
    if split not in splits:
        raise DatasetError(f"dataset {dataset.name} has no split {split!r}; it has {', '.join(splits)}")
    judged: Qrels = {query_id: {} for query_id in splits[split]}
    with dataset.qrels.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["query_id"] in judged:
                judged[row["query_id"]][row["doc_id"]] = int(row["relevance"])
    for query_id, targets in judged.items():
        if not any(relevance > 0 for relevance in targets.values()):
            raise DatasetError(
                f"dataset {dataset.name}: query {query_id!r} of split {split!r} has no relevant target in "
                f"{dataset.qrels.name}; leave it out of {dataset.splits.name}"
            )
    return judged


def checksum(dataset: Dataset) -> str:
    """First 12 hex digits of the SHA-256 over the dataset's files, each one hashed with its name."""
    digest = hashlib.sha256()
    for path in _files(dataset):
        with path.open("rb") as file:
            digest.update(path.name.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]


def _files(dataset: Dataset) -> tuple[Path, ...]:
    return dataset.corpus, dataset.qrels, dataset.splits
