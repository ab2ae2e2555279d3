"""Corpora with one class a document, read from a folder; nothing is learned here.

A folder holds

    corpus.jsonl.gz   one document a line: {"id", "title", "sections": [{"heading", "text"}], "meta"}
    labels.tsv        doc_id, label, below a header line
    splits.json       {"train": [doc ids], "valid": [doc ids], "test": [doc ids]}
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.checksums import files_checksum
from benchmarks.datasets import DATA, DatasetError
from engine.document import Document
from engine.errors import TrainingError
from engine.readers import Unreadable, read_file
from engine.training.judgments import read_splits

LABELLED = ("bbc_news", "news20")
SPLITS = ("train", "valid", "test")
_FILES = ("corpus.jsonl.gz", "labels.tsv", "splits.json")
_COLUMNS = ("doc_id", "label")


@dataclass(frozen=True)
class LabelledCorpus:
    """Which documents are learned from, tuned on and tested on, and what they are; texts stay in the file."""

    name: str
    folder: Path
    checksum: str  # of the three files
    labels: Mapping[str, str]  # by doc_id
    splits: Mapping[str, Sequence[str]]  # doc_ids of train, valid and test

    @property
    def classes(self) -> list[str]:
        """Sorted."""
        return sorted(set(self.labels.values()))

    @property
    def doc_ids(self) -> list[str]:
        """Of all splits, in their order."""
        return [doc_id for split in SPLITS for doc_id in self.splits[split]]

    def labels_of(self, split: str) -> list[str]:
        """In the order of the split."""
        return [self.labels[doc_id] for doc_id in self.splits[split]]


def open_labelled(name: str, data: Path = DATA) -> LabelledCorpus:
    """Find one of `LABELLED` in the folder `data`, or take `name` as the path of a folder in the same layout.

    Raises:
        DatasetError: a file is missing, or the files do not fit together.
    """
    folder = data / name if name in LABELLED else Path(name)
    if not folder.is_dir() and name not in LABELLED:
        raise DatasetError(f"{name!r} is neither a folder nor one of {', '.join(LABELLED)}; pass one of these")
    if missing := [file for file in _FILES if not (folder / file).is_file()]:
        raise DatasetError(
            f"dataset {folder.name}: {folder} holds no {', '.join(missing)}; "
            "pass --data FOLDER, where FOLDER/NAME holds it, or the path of a folder that does"
        )
    labels = _read_labels(folder / "labels.tsv")
    splits = _read_splits(folder / "splits.json")
    _check(folder.name, labels, splits)
    checksum = files_checksum(folder / file for file in _FILES)
    split_ids = {split: splits[split] for split in SPLITS}
    kept = {doc_id: labels[doc_id] for ids in split_ids.values() for doc_id in ids}
    return LabelledCorpus(folder.resolve().name, folder, checksum, kept, split_ids)


def read_labelled(corpus: LabelledCorpus) -> Iterator[Document]:
    """Stream the documents of the splits, in the order of the file.

    Raises:
        DatasetError: a document cannot be read, or one of a split is not there.
    """
    awaited = set(corpus.labels)
    for document in read_file(corpus.folder / "corpus.jsonl.gz"):
        if isinstance(document, Unreadable):
            raise DatasetError(
                f"dataset {corpus.name}, {document.source}: {document.reason}; mend it, or leave that document out"
            )
        if document.doc_id in awaited:
            awaited.remove(document.doc_id)
            yield document
    if awaited:
        raise DatasetError(
            f"dataset {corpus.name}: {len(awaited)} documents of splits.json are not in corpus.jsonl.gz, "
            f"the first is {min(awaited)!r}; leave them out of splits.json"
        )


def part_of(corpus: LabelledCorpus, n_per_class: Mapping[str, int], seed: int) -> LabelledCorpus:
    """At most so many documents of each class in each split, drawn by `seed`; the order of the splits is kept."""
    draw = np.random.default_rng(seed)
    splits = {}
    for split, ids in corpus.splits.items():
        chosen: set[str] = set()
        for of_class in by_class(ids, corpus.labels).values():
            n = min(n_per_class[split], len(of_class))
            chosen.update(of_class[place] for place in draw.choice(len(of_class), n, replace=False))
        splits[split] = [doc_id for doc_id in ids if doc_id in chosen]
    labels = {doc_id: corpus.labels[doc_id] for ids in splits.values() for doc_id in ids}
    return replace(corpus, labels=labels, splits=splits)


def by_class(doc_ids: Sequence[str], labels: Mapping[str, str]) -> dict[str, list[str]]:
    """The doc_ids of each class, classes sorted by name."""
    grouped: dict[str, list[str]] = defaultdict(list)
    for doc_id in doc_ids:
        grouped[labels[doc_id]].append(doc_id)
    return dict(sorted(grouped.items()))


def _read_labels(path: Path) -> dict[str, str]:
    labels: dict[str, str] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
            columns = rows.fieldnames or ()
            if not set(_COLUMNS) <= set(columns):
                raise DatasetError(
                    f"{path}, line 1: the header has {', '.join(columns) or 'no columns'}; "
                    f"it must have {' <tab> '.join(_COLUMNS)}"
                )
            for row in rows:
                doc_id, label = (row[column] for column in _COLUMNS)
                if not doc_id or not label:
                    raise DatasetError(
                        f"{path}, line {rows.line_num}: doc_id {doc_id!r} and label {label!r}; both must be there, "
                        "with a tab between them"
                    )
                labels[doc_id] = label
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(
            f"{path} cannot be read ({error}); write it in UTF-8, as {' <tab> '.join(_COLUMNS)}"
        ) from error
    return labels


def _read_splits(path: Path) -> Mapping[str, Sequence[str]]:
    try:
        return read_splits(path)
    except TrainingError as error:
        raise DatasetError(str(error)) from error


def _check(name: str, labels: Mapping[str, str], splits: Mapping[str, Sequence[str]]) -> None:
    if absent := [split for split in SPLITS if not splits.get(split)]:
        raise DatasetError(
            f"dataset {name}: splits.json has no documents for {', '.join(absent)}, it has {', '.join(splits)}; "
            "it needs train, valid and test"
        )
    seen: dict[str, str] = {}
    for split in SPLITS:
        for doc_id in splits[split]:
            if doc_id not in labels:
                raise DatasetError(f"dataset {name}: {doc_id!r} of split {split!r} has no line in labels.tsv; add one")
            if doc_id in seen:
                raise DatasetError(
                    f"dataset {name}: {doc_id!r} is in the splits {seen[doc_id]!r} and {split!r}; leave it in one"
                )
            seen[doc_id] = split
    if strangers := {labels[doc_id] for doc_id in seen} - {labels[doc_id] for doc_id in splits["train"]}:
        raise DatasetError(
            f"dataset {name}: class {min(strangers)!r} has no training document, so nothing can learn it; "
            "leave it out of splits.json"
        )
