"""A training corpus: documents, their pairs, and documents that must not be drawn."""

import csv
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from engine.encoders.encoder import Encoder, SegmentedDocument, segmented
from engine.errors import TrainingError
from engine.readers import Unreadable, read_file
from engine.text.document import Document

Judgments: TypeAlias = Mapping[str, Mapping[str, int]]  # query id -> target id -> relevance; 0 or less is not relevant

_COLUMNS = ("query_id", "doc_id")
_FORM = "query_id <tab> doc_id [<tab> relevance]"


def read_judgments(path: Path, queries: Collection[str] | None = None) -> Judgments:
    """Read pairs of a query and a target, with their relevance.

    The file has a header line and the columns `query_id`, `doc_id` and, optionally,
    `relevance`; without that column every pair has relevance 1.

    Args:
        queries: keep only these, in their order; the result has each of them, some perhaps without targets.
    """
    judged: dict[str, dict[str, int]] = {query_id: {} for query_id in queries or ()}
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
            _check_columns(path, rows.fieldnames or ())
            for row in rows:
                query_id, doc_id, relevance = _parsed(f"line {rows.line_num} of {path}", row)
                if queries is None:
                    judged.setdefault(query_id, {})
                if query_id in judged:
                    judged[query_id][doc_id] = relevance
    except FileNotFoundError:
        raise TrainingError(f"there is no file {path}; it should name pairs as {_FORM}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TrainingError(f"{path} cannot be read as judgments ({error}); write it in UTF-8 as {_FORM}") from error
    return judged


def _check_columns(path: Path, header: Collection[str]) -> None:
    missing = [column for column in _COLUMNS if column not in header]
    if missing:
        raise TrainingError(
            f"{path} has the columns {', '.join(header) or 'none'}, not {' and '.join(missing)}; "
            f"its first line must be: {_FORM}"
        )


def _parsed(place: str, row: Mapping[str, str | None]) -> tuple[str, str, int]:
    query_id, doc_id, relevance = row["query_id"], row["doc_id"], row.get("relevance") or "1"
    if not query_id or not doc_id:
        raise TrainingError(f"{place} names the query {query_id!r} and the target {doc_id!r}; it must be: {_FORM}")
    try:
        return query_id, doc_id, int(relevance)
    except ValueError:
        raise TrainingError(f"{place} has relevance {relevance!r}; it must be a whole number") from None


def read_splits(path: Path) -> Mapping[str, list[str]]:
    """Read the query ids of each split, as {"train": [...], "valid": [...], "test": [...]}."""
    try:
        splits = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise TrainingError(f"there is no file {path}; it should name the query ids of each split") from None
    except ValueError as error:
        raise TrainingError(f"{path} is not JSON: {error}") from error
    if not isinstance(splits, dict) or not all(_are_ids(ids) for ids in splits.values()):
        raise TrainingError(f'{path} must be an object of lists of query ids, as {{"train": ["a"], "valid": ["b"]}}')
    return splits


def _are_ids(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


CORPUS_FILES = ("corpus.jsonl", "corpus.jsonl.gz")
_LICENCE = re.compile(r"^#+ Licen[cs]e\s*\n+(.+?)(?:\n\n|\n#|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class TrainingCorpus:
    """Documents of one collection, and their known relations.

    Queries and targets are documents of the same collection, so the other
    documents of a batch are valid negatives.
    """

    name: str
    documents: Mapping[str, Document] = field(repr=False)
    pairs: Judgments = field(default_factory=dict, repr=False)  # training query -> targets to learn from
    related: Judgments = field(default_factory=dict, repr=False)  # all targets of training queries: never negatives
    held_out: frozenset[str] = field(default=frozenset(), repr=False)  # queries of valid and test: in no batch
    valid: Judgments = field(default_factory=dict, repr=False)
    n_unreadable: int = 0
    checksum: str = ""
    licence: str = ""  # as its README gives it

    @cached_property
    def n_pairs(self) -> int:
        """Pairs of a query and a target to learn from."""
        return sum(len(targets) for targets in self.pairs.values())

    @property
    def trainable(self) -> list[str]:
        """Ids of the documents that can be in a batch, in the order of the corpus."""
        return [doc_id for doc_id in self.documents if doc_id not in self.held_out]


def read_training_corpus(folder: Path, *, suffix: str = "") -> TrainingCorpus:
    """Read a folder in the layout of the benchmarks.

        corpus.jsonl[.gz]       documents, one a line; see `engine.readers.jsonl`
        train_pairs[S].tsv      query_id, doc_id[, relevance]: pairs to learn from
        qrels[S].tsv            all judgments, including those of valid
        splits[S].json          {"train": [query ids], "valid": [...], "test": [...]}

    where S is `suffix`. All files but the corpus are optional: without pairs only
    pretraining is possible, without splits there is no validation. A judgment of
    relevance 0 makes no pair, and its target can be a negative. A document that cannot
    be read is counted and left out, with its pairs.

    Args:
        suffix: of the file names of one task, such as "_citation".
    """
    path = _corpus_file(folder)
    documents, n_unreadable = collect(read_file(path), path)
    splits_file = folder / f"splits{suffix}.json"
    splits = read_splits(splits_file) if splits_file.exists() else {}
    held_out = frozenset(query_id for name in splits if name != "train" for query_id in splits[name])
    pairs_file = folder / f"train_pairs{suffix}.tsv"
    pairs = _pairs(pairs_file, documents, held_out)
    qrels = folder / f"qrels{suffix}.tsv"
    judged = _relevant(read_judgments(qrels)) if qrels.exists() else {}
    readme = folder / "README.md"
    match = _LICENCE.search(readme.read_text("utf-8", errors="replace")) if readme.is_file() else None
    return TrainingCorpus(
        name=folder.resolve().name,
        documents=documents,
        pairs=pairs,
        related={query_id: {**judged.get(query_id, {}), **targets} for query_id, targets in pairs.items()},
        held_out=held_out,
        valid={name: judged[name] for name in splits.get("valid", ()) if name in documents and name in judged},
        n_unreadable=n_unreadable,
        checksum=_checksum([path, *filter(Path.exists, (pairs_file, qrels, splits_file))]),
        licence=" ".join(match[1].split()) if match else "",
    )


def _corpus_file(folder: Path) -> Path:
    for name in CORPUS_FILES:
        if (folder / name).is_file():
            return folder / name
    raise TrainingError(f"{folder} holds none of {', '.join(CORPUS_FILES)}; put the documents there, one a line")


def collect(results: Iterable[Document | Unreadable], path: Path) -> tuple[dict[str, Document], int]:
    """Documents by doc_id, and the number of unreadable ones; raises TrainingError if there are only such."""
    documents: dict[str, Document] = {}
    n_unreadable = 0
    for result in results:
        if isinstance(result, Unreadable):
            n_unreadable += 1
        else:
            documents[result.doc_id] = result
    if not documents:
        raise TrainingError(f"{path} holds no readable document ({n_unreadable} not read)")
    return documents, n_unreadable


def _relevant(judged: Judgments) -> Judgments:
    """Targets judged relevant to each query, except itself; queries without such a target are left out."""
    relevant = {
        query_id: {target: grade for target, grade in targets.items() if grade > 0 and target != query_id}
        for query_id, targets in judged.items()
    }
    return {query_id: targets for query_id, targets in relevant.items() if targets}


def _pairs(path: Path, documents: Mapping[str, Document], held_out: frozenset[str]) -> Judgments:
    """Pairs of two documents of the corpus, none of them a query of valid or test."""
    if not path.exists():
        return {}
    drawable = documents.keys() - held_out
    relevant = _relevant(read_judgments(path))
    pairs = {
        query_id: {target: grade for target, grade in targets.items() if target in drawable}
        for query_id, targets in relevant.items()
        if query_id in drawable
    }
    pairs = {query_id: targets for query_id, targets in pairs.items() if targets}
    if not pairs:
        raise TrainingError(
            f"none of the {len(relevant)} queries of {path.name} makes a pair with a document of the corpus "
            f"({len(documents)} documents, {len(held_out)} held out); name documents by their ids in the corpus"
        )
    return pairs


def _checksum(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(path.name.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]


def readable(encoder: Encoder, documents: Iterable[Document]) -> list[SegmentedDocument]:
    """The documents that have a token, as an encoder cuts them."""
    return [cut for document in documents if (cut := segmented(encoder, document))]
