"""Corpora with relevance judgments, read from a folder; nothing is measured or downloaded here.

A folder holds

    corpus.jsonl.gz   one document a line: {"id", "title", "sections": [{"heading", "text"}], "meta"}
    qrels.tsv         query_id, doc_id, relevance, below a header line
    splits.json       {"valid": [query ids], "test": [query ids], ...}
    queries.jsonl.gz  where queries have texts of their own: as the corpus, one query a line

or it is a folder of BEIR, see `benchmarks.formats.beir`, or an id of ir_datasets, see `open_irds` there.
A query is read from the file of queries, or else from the corpus. Every document is a target, except the one with
the query's own id. `python -m benchmarks fetch` makes the folders of `TASKS` from public sources.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from benchmarks.formats import beir, trec
from engine.errors import EngineError, TrainingError
from engine.readers import Unreadable, read_file
from engine.text.document import Document
from engine.training.corpus import read_judgments, read_splits

Qrels: TypeAlias = trec.Qrels
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
IRDS = Path(__file__).resolve().parent / ".work" / "irds"  # folders of datasets from ir_datasets


class DatasetError(EngineError):
    """Raised when a dataset is not there, or its files do not fit together."""


@dataclass(frozen=True)
class Task:
    """Which files of which folder make a retrieval task."""

    folder: str
    qrels: str = "qrels.tsv"
    splits: str = "splits.json"
    queries: str = ""  # "" where every query is a document of the corpus


QUERIES = "queries.jsonl.gz"
TASKS: Mapping[str, Task] = {
    "proposals": Task("proposals"),
    "clscisumm": Task("clscisumm", "qrels_citation.tsv", "splits_citation.json"),
    "clscisumm_summaries": Task("clscisumm", queries=QUERIES),
    "wikipedia_seealso": Task("wikipedia_seealso"),
    "rfc": Task("rfc"),
    "aila_casedocs": Task("aila_casedocs", queries=QUERIES),
}


@dataclass(frozen=True)
class Dataset:
    """The files of a task, all of which exist."""

    name: str
    corpus: Path
    qrels: Path  # BEIR's is a folder of one file a split
    splits: Path  # BEIR's is the same folder
    queries: Path | None = None  # None where every query is a document of the corpus


def open_dataset(name: str, data: Path = DATA) -> Dataset:
    """Find a task of `TASKS` in the folder `data`, or take `name` as the path of a folder in one of the layouts.

    A folder with the name and the layout of a task gets the task's name, any other one its folder's name.
    `irds:ID` names a dataset of ir_datasets, which is written into a folder first.
    """
    if name.startswith(beir.PREFIX):
        name = str(beir.open_irds(name.removeprefix(beir.PREFIX), IRDS))
    folder = data / TASKS[name].folder if name in TASKS else Path(name)
    if name not in TASKS and not folder.is_dir():
        raise DatasetError(f"{name!r} is neither a folder nor one of {', '.join(TASKS)}; pass one of these, or irds:ID")
    if name not in TASKS and beir.is_beir(folder):
        corpus, queries = beir.open_beir(folder)
        return Dataset(folder.resolve().name, corpus, folder / "qrels", folder / "qrels", queries)
    task = TASKS.get(name) or Task(folder.resolve().name, queries=QUERIES if (folder / QUERIES).is_file() else "")
    name_of = {known: task_name for task_name, known in TASKS.items()}
    dataset = Dataset(
        name_of.get(task, task.folder),
        folder / "corpus.jsonl.gz",
        folder / task.qrels,
        folder / task.splits,
        folder / task.queries if task.queries else None,
    )
    missing = [path.name for path in _files(dataset) if not path.is_file()]
    if missing:
        raise DatasetError(
            f"dataset {dataset.name}: {folder} holds no {', '.join(missing)}; "
            f"pass --data FOLDER, where FOLDER/{task.folder} holds it, or the path of a folder that does"
            + (f"; to make it: python -m benchmarks fetch {task.folder} --to FOLDER" if name in TASKS else "")
        )
    return dataset


def read_documents(dataset: Dataset) -> Iterator[Document]:
    """Stream the corpus in the order of its file; an unreadable document is an error, as it makes another corpus."""
    yield from _read(dataset, dataset.corpus)


def read_queries(dataset: Dataset, query_ids: Collection[str]) -> dict[str, Document]:
    """Read the queries of these ids, from the file of queries, then from the corpus; the order of the ids is kept."""
    found: dict[str, Document] = {}
    files = [path for path in (dataset.queries, dataset.corpus) if path]
    for path in files:
        wanted = set(query_ids) - found.keys()
        if wanted:
            found |= {document.doc_id: document for document in _read(dataset, path) if document.doc_id in wanted}
    absent = set(query_ids) - found.keys()
    if absent:
        raise DatasetError(
            f"dataset {dataset.name}: query {min(absent)!r} is not in {' or '.join(path.name for path in files)} "
            f"({len(found)} of {len(set(query_ids))} are); a query must be a document of the corpus, "
            f"or stand in a file {QUERIES}"
        )
    return {query_id: found[query_id] for query_id in query_ids}


def read_qrels(dataset: Dataset, split: str) -> Qrels:
    """Judgments of the queries of one split, in the split's order: query id, then target, to relevance."""
    judged = _beir_qrels(dataset, split) if _is_beir(dataset) else _own_qrels(dataset, split)
    for query_id, targets in judged.items():
        if not any(relevance > 0 for relevance in targets.values()):
            raise DatasetError(
                f"dataset {dataset.name}: query {query_id!r} of split {split!r} has no relevant target in "
                f"{dataset.qrels.name}; leave it out of {dataset.splits.name}"
            )
    return judged


def checksum(dataset: Dataset) -> str:
    """First 12 hex digits of the SHA-256 over the dataset's files, each one hashed with its name."""
    return files_checksum(_files(dataset))


def _is_beir(dataset: Dataset) -> bool:
    return dataset.qrels.is_dir()


def _read(dataset: Dataset, path: Path) -> Iterator[Document]:
    if _is_beir(dataset):
        yield from beir.read_texts(path)
        return
    yield from readable(dataset.name, path)


def readable(name: str, path: Path) -> Iterator[Document]:
    """The documents of a file of a dataset; an unreadable one is an error."""
    for document in read_file(path):
        if isinstance(document, Unreadable):
            raise DatasetError(f"dataset {name}, {document.source}: {document.reason}; mend it, or fetch it again")
        yield document


def _own_qrels(dataset: Dataset, split: str) -> Qrels:
    try:
        splits = read_splits(dataset.splits)
        _check_split(dataset, split, splits)
        judged = read_judgments(dataset.qrels, splits[split])
    except TrainingError as error:
        raise DatasetError(f"dataset {dataset.name}: {error}") from error
    return {query_id: dict(targets) for query_id, targets in judged.items()}


def _beir_qrels(dataset: Dataset, split: str) -> Qrels:
    files = {path.stem: path for path in _files(dataset) if path.parent == dataset.qrels}
    _check_split(dataset, split, files)
    return beir.read_qrels(files[split])


def _check_split(dataset: Dataset, split: str, splits: Collection[str]) -> None:
    if split not in splits:
        raise DatasetError(f"dataset {dataset.name} has no split {split!r}; it has {', '.join(splits)}")


def _files(dataset: Dataset) -> tuple[Path, ...]:
    judgments = sorted(dataset.qrels.glob("*.tsv")) if _is_beir(dataset) else [dataset.qrels, dataset.splits]
    return dataset.corpus, *judgments, *([dataset.queries] if dataset.queries else [])


def files_checksum(paths: Iterable[Path]) -> str:
    """First 12 hex digits of the SHA-256 over the files in their order, each one hashed with its name."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(path.name.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]
