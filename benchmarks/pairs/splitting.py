"""Relations of a corpus, and splits of pairs for training, validation and test that share no document or no pair.

An edge is a pair of documents without a label. Draws no negatives."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.datasets import Dataset, DatasetError
from benchmarks.pair_scorer import Pair
from engine.training.corpus import Judgments, read_judgments, read_splits

Edge: TypeAlias = tuple[str, str]  # doc_ids


class Split(StrEnum):
    """The use of the pairs of a split; a pair that several splits name belongs to the first in this order."""

    TEST = "test"
    VALID = "valid"
    TRAIN = "train"


class SplitRule(StrEnum):
    """What two splits can share."""

    DOCUMENT = "document"  # nothing: a document is in the pairs of only one split
    PAIR = "pair"  # documents: 8:1:1 over pairs, as published


PairSplits: TypeAlias = Mapping[Split, tuple[Pair, ...]]


def undirected(one: str, other: str) -> Edge:
    """The same edge for both orders of two documents."""
    return (one, other) if one < other else (other, one)


def split_of(edge: Edge, held: Mapping[str, Split]) -> Split:
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

    Returns:
        The split of every document of `claims`; an edge between two splits belongs to none.
    """
    counts = {split: Counter(doc_id for edge in claims[split] for doc_id in edge) for split in Split}
    every = dict.fromkeys(doc_id for split in Split for edge in claims[split] for doc_id in edge)
    return {
        doc_id: held.get(doc_id) or max(Split, key=lambda split: counts[split][doc_id] / max(len(claims[split]), 1))
        for doc_id in every
    }


def cut_tenths(n: int, seed: int) -> list[Split]:
    """A split for each of n items: a random tenth for test, another for valid, the rest for train."""
    order = np.random.default_rng(seed).permutation(n)
    tenth = max(1, n // 10)
    splits = [Split.TRAIN] * n
    for split, positions in ((Split.TEST, order[:tenth]), (Split.VALID, order[tenth : 2 * tenth])):
        for at in positions:
            splits[int(at)] = split
    return splits


def pairs_checksum(splits: PairSplits) -> str:
    """First 12 hex digits of the SHA-256 over all pairs in order; records with equal checksums can be compared."""
    digest = hashlib.sha256()
    for split in Split:
        for pair in splits[split]:
            digest.update(f"{split}\t{pair.first}\t{pair.second}\t{pair.is_match:d}\n".encode())
    return digest.hexdigest()[:12]


@dataclass(frozen=True)
class Relations:
    """Links from documents to documents: citations, "See also", or whatever the judgments of a dataset mean."""

    links: Judgments  # document -> the documents that it links to, each with a relevance of at least 1
    trainable: frozenset[Edge]  # undirected edges for training, the same as for `longmatch train`
    held: Mapping[str, Split]  # held-out queries of test and valid


def read_relations(dataset: Dataset, doc_ids: Collection[str]) -> Relations:
    """Read judgments, splits and training pairs of a dataset.

    The training pairs are in the folder of the judgments, for example train_pairs.tsv next to qrels.tsv.
    Without such a file, every link between documents that are not held out is trainable.
    """
    if dataset.queries is not None:
        raise DatasetError(
            f"dataset {dataset.name}: its queries, in {dataset.queries.name}, are no documents of the corpus; "
            "a pair is of two documents: name a task of documents, or pass pairs of your own: --pairs FILE"
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


def similar_by_links(links: Judgments, *, above: float, fewest: int) -> list[Edge]:
    """Pairs of documents that link to nearly the same documents.

    Jiang et al. (2019) and section 5.1.1 of SMITH (Yang et al. 2020, arXiv:2004.12297): with
    L(d) the outgoing links of a document,

        J(a, b) = |L(a) & L(b)| / |L(a) | L(b)| > above

    Args:
        above: in [0, 1); 0.5 in the papers.

    Returns:
        Edges, the lexicographically smaller document first, in rising order.
    """
    sets = {one: targets.keys() for one, targets in links.items() if len(targets) >= fewest}
    linked_by: dict[str, list[str]] = defaultdict(list)
    for one in sorted(sets):
        for target in sets[one]:
            linked_by[target].append(one)
    found: list[Edge] = []
    for one in sorted(sets):
        shared = Counter(other for target in sets[one] for other in linked_by[target] if other > one)
        found += [
            (one, other) for other, n in sorted(shared.items()) if n / (len(sets[one]) + len(sets[other]) - n) > above
        ]
    return found
