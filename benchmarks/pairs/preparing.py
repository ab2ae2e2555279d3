"""From a task's name to documents and pairs: drawn by a protocol, or read from files of a user's own or published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bm25 import BM25
from benchmarks.checksums import files_checksum
from benchmarks.datasets import TASKS, Dataset, DatasetError, checksum, open_dataset, read_documents
from benchmarks.pairs.building import PROTOCOLS, build_pairs
from benchmarks.pairs.given_pairs import split_given
from benchmarks.pairs.negatives import Negatives, Ranked
from benchmarks.pairs.pair_file import read_pair_file
from benchmarks.pairs.published import read_published
from benchmarks.pairs.relations import read_relations
from benchmarks.pairs.splitting import PairSplits, Split, SplitRule, documents_of
from engine.document import Document


@dataclass(frozen=True)
class Asked:
    """Which pairs are asked for."""

    protocol: str
    rule: SplitRule
    pairs: Path | None  # a file of one's own, or the folder of a published set
    seed: int
    most: int | None  # of either kind in a split


@dataclass(frozen=True)
class PreparedPairs:
    """Pairs and their documents."""

    task: str
    dataset: str  # name@checksum, of all files that were read
    documents: Mapping[str, Document]  # that pairs name, in the order of the corpus
    splits: PairSplits
    n_lost: Mapping[Split, int]  # pairs that went: matches without a mismatch, or pairs without a text


def prepared_pairs(name: str, data: Path, asked: Asked) -> PreparedPairs:
    """Read a corpus and draw its pairs, or read them from files.

    Args:
        name: of a task, or a folder of the same layout; with pairs of one's own any file of documents, with those
            of GWikiMatch the file of its articles, with those of AAN nothing but a name, for they hold their texts.
        data: folder that holds the tasks.
        asked: which pairs.

    Raises:
        DatasetError: files are missing or do not fit together, or too few pairs are left.
        FormatError: a file of pairs cannot be read.
    """
    if asked.pairs is None:
        return _drawn(name, data, asked)
    return _published(name, asked, asked.pairs) if asked.pairs.is_dir() else _own(name, data, asked, asked.pairs)


def _drawn(name: str, data: Path, asked: Asked) -> PreparedPairs:
    dataset = open_dataset(name, data)
    documents = {document.doc_id: document for document in read_documents(dataset)}
    protocol = PROTOCOLS[asked.protocol]
    ranked = _lexical(documents) if protocol.negatives is Negatives.LEXICAL else None
    relations = read_relations(dataset, documents.keys())
    built = build_pairs(relations, protocol, asked.rule, seed=asked.seed, most=asked.most, ranked=ranked)
    return _prepared(dataset.name, checksum(dataset), documents, built.splits, built.n_lost)


def _own(name: str, data: Path, asked: Asked, pairs: Path) -> PreparedPairs:
    folder = data / TASKS[name].folder if name in TASKS else Path(name)
    corpus = folder / "corpus.jsonl.gz" if folder.is_dir() else folder
    if not corpus.is_file():
        raise DatasetError(f"{name!r} is no task, no folder with corpus.jsonl.gz and no file of documents; pass one")
    task = folder.resolve().name.partition(".")[0]
    documents = {document.doc_id: document for document in read_documents(Dataset(task, corpus, pairs, pairs))}
    splits = split_given(read_pair_file(pairs, documents.keys()), asked.rule, seed=asked.seed, most=asked.most)
    return _prepared(task, files_checksum([corpus, pairs]), documents, splits, dict.fromkeys(Split, 0))


def _published(name: str, asked: Asked, folder: Path) -> PreparedPairs:
    read = read_published(folder, Path(name))
    splits = split_given(read.given, asked.rule, seed=asked.seed, most=asked.most)
    task = Path(name).name.partition(".")[0]
    return _prepared(task, files_checksum(read.files), read.documents, splits, read.n_lost)


def _prepared(
    task: str, digest: str, documents: Mapping[str, Document], splits: PairSplits, n_lost: Mapping[Split, int]
) -> PreparedPairs:
    named = {doc_id for pairs in splits.values() for doc_id in documents_of(pairs)}
    kept = {doc_id: document for doc_id, document in documents.items() if doc_id in named}
    return PreparedPairs(task, f"{task}@{digest}", kept, splits, n_lost)


def _lexical(documents: Mapping[str, Document]) -> Ranked:
    """The nearest by BM25 of each document."""
    bm25 = BM25().fit(documents.values())
    return lambda doc_id, depth: [found for found, _ in bm25.search(documents[doc_id], depth)]
