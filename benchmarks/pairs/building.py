"""Balanced pairs by the protocol of AAN: each match comes with a mismatch of the same first document.

A document is in the pairs of one split alone. An edge is a pair of documents without a label.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.datasets import Dataset, DatasetError, checksum, open_dataset, read_documents
from benchmarks.pairs.scoring import Pair, documents_of
from engine.text.document import Document
from engine.training.corpus import Judgments, read_judgments, read_splits

PROTOCOL, RULE = "aan", "document"  # in the name of a run
Edge: TypeAlias = tuple[str, str]  # doc_ids


class Split(StrEnum):
    """The use of the pairs of a split; a pair that several splits name belongs to the first in this order."""

    TEST = "test"
    VALID = "valid"
    TRAIN = "train"


PairSplits: TypeAlias = Mapping[Split, tuple[Pair, ...]]


@dataclass(frozen=True)
class Relations:
    """Links from documents to documents: citations, "See also", or whatever the judgments of a dataset mean."""

    links: Judgments  # document -> the documents that it links to, each with a relevance of at least 1
    trainable: frozenset[Edge]  # undirected edges for training, the same as for `longmatch train`
    held: Mapping[str, Split]  # held-out queries of test and valid


@dataclass(frozen=True)
class PreparedPairs:
    """Pairs and their documents."""

    dataset: str  # name@checksum
    documents: Mapping[str, Document]  # documents of the pairs, in the order of the corpus
    splits: PairSplits
    n_lost: Mapping[Split, int]  # matches that were dropped, for which no mismatch was left


def prepared_pairs(name: str, data: Path, *, seed: int = 0, most: int | None = None) -> PreparedPairs:
    """Read a corpus, a task or a folder of the same layout, and draw at most `most` matches of each split."""
    dataset = open_dataset(name, data)
    documents = {document.doc_id: document for document in read_documents(dataset)}
    splits, n_lost = build_pairs(read_relations(dataset, documents.keys()), seed=seed, most=most)
    named = {doc_id for pairs in splits.values() for doc_id in documents_of(pairs)}
    kept = {doc_id: document for doc_id, document in documents.items() if doc_id in named}
    return PreparedPairs(f"{dataset.name}@{checksum(dataset)}", kept, splits, n_lost)


def read_relations(dataset: Dataset, doc_ids: Collection[str]) -> Relations:
    """Read judgments, splits and training pairs of a dataset.

    The training pairs are in the folder of the judgments, for example train_pairs.tsv next to qrels.tsv.
    Without such a file, every link between documents that are not held out is trainable.
    """
    if dataset.queries is not None:
        raise DatasetError(
            f"dataset {dataset.name}: its queries, in {dataset.queries.name}, are no documents of the corpus; "
            "a pair is of two documents: name a task of documents"
        )
    links = _links(dataset.qrels, doc_ids)
    splits = read_splits(dataset.splits)
    missing = [split for split in (Split.TEST, Split.VALID) if not splits.get(split)]
    if missing:
        raise DatasetError(
            f"dataset {dataset.name}: {dataset.splits.name} names no queries of {' and '.join(missing)}, only of "
            f"{', '.join(splits) or 'nothing'}; pairs are chosen by valid and judged by test: add them"
        )
    held = {doc_id: split for split in (Split.VALID, Split.TEST) for doc_id in splits[split]}
    train_pairs = dataset.qrels.with_name(dataset.qrels.name.replace("qrels", "train_pairs", 1))
    learnable = _links(train_pairs, doc_ids) if train_pairs.exists() else links
    trainable = frozenset(
        undirected(query, target)
        for query, targets in learnable.items()
        for target in targets
        if query not in held and target not in held
    )
    return Relations(links, trainable, held)


def _links(path: Path, doc_ids: Collection[str]) -> Judgments:
    known = set(doc_ids)
    return {
        query: {target: grade for target, grade in targets.items() if grade > 0 and target != query and target in known}
        for query, targets in read_judgments(path).items()
        if query in known
    }


def undirected(one: str, other: str) -> Edge:
    """The same edge for both orders of two documents."""
    return (one, other) if one < other else (other, one)


def build_pairs(relations: Relations, *, seed: int, most: int | None = None) -> tuple[PairSplits, Mapping[Split, int]]:
    """Draw equally many matches and mismatches in each split; returns them, and the dropped matches.

    The protocol of AAN104K (SMITH, section 5.1.2) and of CoLDE's AAN: a paper is paired with each paper that it cites,
    and with one random irrelevant paper for each of these. Mismatches are drawn among the documents of the matches of
    the split, while the papers draw from all documents: so no document can be recognised as a mismatch by its identity.
    A match for which no mismatch is left is dropped and counted. Train has only `Relations.trainable` pairs.
    Matches and mismatches alternate, so that any prefix of even length is balanced.
    """
    edges: dict[Edge, Edge] = {}
    for query, targets in relations.links.items():
        for target in targets:
            edges.setdefault(undirected(query, target), (query, target))
    claims: dict[Split, list[Edge]] = {split: [] for split in Split}
    for key, edge in edges.items():
        split = _split_of(edge, relations.held)
        if split is not Split.TRAIN or key in relations.trainable:
            claims[split].append(edge)
    homes = assign_documents(claims, relations.held)
    taken, rng = set(edges), np.random.default_rng(seed)
    built: dict[Split, tuple[Pair, ...]] = {}
    n_lost: dict[Split, int] = {}
    for split in Split:
        kept = [edge for edge in claims[split] if {homes[doc_id] for doc_id in edge} == {split}]
        built[split], n_lost[split] = _draw(kept, taken, most, rng)
    if empty := [split for split in Split if not built[split]]:
        counts = ", ".join(f"{split} {len(claims[split])}" for split in Split)
        raise DatasetError(
            f"no pair of {' and '.join(empty)} is left (matching pairs before documents were shared out: {counts}); "
            "name a dataset with more links"
        )
    return built, n_lost


def _split_of(edge: Edge, held: Mapping[str, Split]) -> Split:
    """The split that holds out one of the documents, test before valid; train if none does."""
    holders = {held.get(doc_id) for doc_id in edge}
    return next((split for split in (Split.TEST, Split.VALID) if split in holders), Split.TRAIN)


def assign_documents(claims: Mapping[Split, Sequence[Edge]], held: Mapping[str, Split]) -> dict[str, Split]:
    """Assign each document to one split, so that all splits keep pairs.

    A held-out document goes to its split. Most targets are named by queries of all splits, so any other document goes
    to the split that would lose the largest share of its edges without it: with n_s(d) the number of edges of split s
    at document d, and n_s the number of all its edges,

        split(d) = argmax_s n_s(d) / n_s

    and test before valid before train where shares are equal.

    Returns: the split of every document of `claims`; an edge between two splits belongs to none.
    """
    counts = {split: Counter(doc_id for edge in claims[split] for doc_id in edge) for split in Split}
    every = dict.fromkeys(doc_id for split in Split for edge in claims[split] for doc_id in edge)
    return {
        doc_id: held.get(doc_id) or max(Split, key=lambda split: counts[split][doc_id] / max(len(claims[split]), 1))
        for doc_id in every
    }


def _draw(
    edges: Sequence[Edge], taken: set[Edge], most: int | None, rng: np.random.Generator
) -> tuple[tuple[Pair, ...], int]:
    """A match and a mismatch for each edge, in random order, and the edges without one; `taken` gets the mismatches."""
    members = list(dict.fromkeys(doc_id for edge in edges for doc_id in edge))
    pairs: list[Pair] = []
    n_lost = 0
    for at in rng.permutation(len(edges)):
        query, target = edges[int(at)]
        other = _first_free(query, members, taken, rng)
        if other is None:
            n_lost += 1
            continue
        taken.add(undirected(query, other))
        pairs += [Pair(query, target, True), Pair(query, other, False)]
        if most is not None and len(pairs) == 2 * most:
            break
    return tuple(pairs), n_lost


def _first_free(query: str, targets: Sequence[str], taken: Set[Edge], rng: np.random.Generator) -> str | None:
    shuffled = (targets[int(at)] for at in rng.permutation(len(targets)))
    return next((one for one in shuffled if one != query and undirected(query, one) not in taken), None)


def pairs_checksum(splits: PairSplits) -> str:
    """First 12 hex digits of the SHA-256 over all pairs in order; records with equal checksums can be compared."""
    digest = hashlib.sha256()
    for split in Split:
        for pair in splits[split]:
            digest.update(f"{split}\t{pair.first}\t{pair.second}\t{pair.is_match:d}\n".encode())
    return digest.hexdigest()[:12]
