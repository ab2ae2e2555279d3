"""Corpora with one class a document, and linear classifiers trained on frozen vectors of documents.

A folder holds

    corpus.jsonl.gz   one document a line: {"id", "title", "sections": [{"heading", "text"}], "meta"}
    labels.tsv        doc_id, label, below a header line
    splits.json       {"train": [doc ids], "valid": [doc ids], "test": [doc ids]}

Letters in shapes: N documents, D width.
"""

from __future__ import annotations

import csv
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import DATA, DatasetError, files_checksum
from benchmarks.systems import BuildCost
from engine.errors import MissingExtra, TrainingError
from engine.readers import Unreadable, read_file
from engine.text.document import Document
from engine.training.corpus import read_splits

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression

    from benchmarks.prepare import Prepared


LABELLED = ("bbc_news", "news20")
SPLITS = ("train", "valid", "test")
_FILES = ("corpus.jsonl.gz", "labels.tsv", "splits.json")
_COLUMNS = ("doc_id", "label")


@dataclass(frozen=True)
class LabelledCorpus:
    """The documents of train, valid and test, with their classes; texts stay in the file."""

    name: str
    folder: Path
    checksum: str  # of the three files
    labels: Mapping[str, str]  # by doc_id
    splits: Mapping[str, Sequence[str]]  # doc_ids of train, valid and test

    @property
    def classes(self) -> list[str]:
        """All classes, sorted."""
        return sorted(set(self.labels.values()))

    @property
    def doc_ids(self) -> list[str]:
        """The doc_ids of all splits, in their order."""
        return [doc_id for split in SPLITS for doc_id in self.splits[split]]

    def labels_of(self, split: str) -> list[str]:
        """The labels of a split, in its order."""
        return [self.labels[doc_id] for doc_id in self.splits[split]]


def open_labelled(name: str, data: Path = DATA) -> LabelledCorpus:
    """Find one of `LABELLED` in the folder `data`, or take `name` as the path of a folder in the same layout."""
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
    """Stream the documents of the splits, in the order of the file."""
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


@dataclass(frozen=True)
class FrozenVectors:
    """One unit row a document, from an encoder or from TF-IDF."""

    system: str  # names the record
    encoder: str  # name@fingerprint; "" where there is none
    rows: Mapping[str, int]  # by doc_id
    vectors: AnyVectors  # (N, D)
    cost: BuildCost

    def of(self, doc_ids: Sequence[str]) -> AnyVectors:
        """The rows of documents, in the order given; doc_ids can repeat."""
        return self.vectors[np.array([self.rows[doc_id] for doc_id in doc_ids], dtype=np.int64)]


def encoder_vectors(ready: Prepared) -> FrozenVectors:
    """The document vectors of an open index, copied, so that the index can be closed."""
    doc_ids, vectors = ready.index.document_vectors()
    rows = {doc_id: row for row, doc_id in enumerate(doc_ids)}
    return FrozenVectors("document", ready.encoder, rows, np.array(vectors), ready.cost)


def tfidf_vectors(texts: Mapping[str, str], train: Iterable[str]) -> FrozenVectors:
    """TF-IDF of words, with 1 + log tf and without English stop words, of texts by doc_id.

    Words and idf come from the texts of `train`; a word of one text alone is left out.
    """
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ModuleNotFoundError as error:
        raise MissingExtra("TF-IDF", "scikit-learn", "benchmarks") from error
    started = time.perf_counter()
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=2, dtype=np.float32)
    vectorizer.fit(texts[doc_id] for doc_id in train)
    vectors: csr_matrix = vectorizer.transform(texts.values())
    rows = {doc_id: row for row, doc_id in enumerate(texts)}
    return FrozenVectors("tfidf", "", rows, vectors, BuildCost(round(time.perf_counter() - started, 1)))


INVERSE_PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)  # C; vectors of length 1 need large values
FEW_SHOT_C = 1.0  # scikit-learn's default: so few labels leave none to choose C on
MAX_ITERATIONS = 5000

AnyVectors: TypeAlias = "NDArray[np.float32] | csr_matrix"  # (N, D)


@dataclass(frozen=True)
class Examples:
    """Documents with their classes."""

    vectors: AnyVectors  # (N, D), unit rows
    labels: Sequence[str]  # N


@dataclass(frozen=True)
class Draws:
    """The quality with a few labels, one value a draw."""

    accuracy: list[float]
    macro_f1: list[float]


def fit_probe(train: Examples, valid: Examples) -> tuple[LogisticRegression, float]:
    """The classifier trained on `train` with the C of best accuracy on `valid`, in ties the smallest; and that C."""
    fitted = {c: _fit(train, c) for c in INVERSE_PENALTIES}
    right = {c: np.mean(probe.predict(valid.vectors) == np.array(valid.labels)) for c, probe in fitted.items()}
    best = max(INVERSE_PENALTIES, key=lambda c: right[c])
    return fitted[best], best


def few_shot(train: Examples, test: Examples, n_per_class: int, n_draws: int, seed: int) -> Draws:
    """Learn from `n_per_class` documents of each class, `n_draws` times, and test on all of `test`."""
    draws = Draws([], [])
    for rows in few_shot_rows(train.labels, n_per_class, n_draws, seed):
        few = Examples(train.vectors[rows], [train.labels[row] for row in rows])
        metrics = judge(test.labels, _fit(few, FEW_SHOT_C).predict(test.vectors))
        draws.accuracy.append(metrics["accuracy"])
        draws.macro_f1.append(metrics["macro_f1"])
    return draws


def few_shot_rows(labels: Sequence[str], n_per_class: int, n_draws: int, seed: int) -> list[NDArray[np.int64]]:
    """For each draw, rows of `n_per_class` documents of each class, none twice; draw i does not depend on `n_draws`."""
    of_label = {label: np.flatnonzero(np.array(labels) == label) for label in sorted(set(labels))}
    smallest = min(of_label, key=lambda label: len(of_label[label]))
    if len(of_label[smallest]) < n_per_class:
        raise DatasetError(
            f"{n_per_class} documents of each class were asked for, {smallest!r} has {len(of_label[smallest])} to "
            "learn from; ask for fewer: --shots"
        )
    seeds = np.random.SeedSequence(seed).spawn(n_draws)
    return [
        np.concatenate([draw.choice(rows, n_per_class, replace=False) for rows in of_label.values()])
        for draw in map(np.random.default_rng, seeds)
    ]


def judge(labels: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
    """Accuracy, and the mean over classes of F1, without classes that are neither present nor predicted; in [0, 1]."""
    try:
        from sklearn.metrics import accuracy_score, f1_score
    except ModuleNotFoundError as error:
        raise _missing() from error
    macro_f1 = f1_score(labels, predicted, average="macro", zero_division=0)
    return {"accuracy": float(accuracy_score(labels, predicted)), "macro_f1": float(macro_f1)}


def _fit(examples: Examples, c: float) -> LogisticRegression:
    try:
        from sklearn.linear_model import LogisticRegression
    except ModuleNotFoundError as error:
        raise _missing() from error
    return LogisticRegression(C=c, max_iter=MAX_ITERATIONS).fit(examples.vectors, list(examples.labels))


def _missing() -> MissingExtra:
    return MissingExtra("a probe", "scikit-learn", "benchmarks")
