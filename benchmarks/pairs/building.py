"""Balanced pairs by the protocols of the papers: each match comes with a mismatch of the same first document."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.baselines.lexical import BM25
from benchmarks.datasets import DatasetError, checksum, open_dataset, read_documents
from benchmarks.pair_scorer import Pair, documents_of
from benchmarks.pairs.splitting import (
    Edge,
    PairSplits,
    Relations,
    Split,
    SplitRule,
    assign_documents,
    cut_tenths,
    read_relations,
    similar_by_links,
    split_of,
    undirected,
)
from engine.text.document import Document
from engine.training.corpus import Judgments

# Maps a document and a number n to the n most similar documents, best first; fewer if there are no more.
Ranked: TypeAlias = Callable[[str, int], Sequence[str]]

LEXICAL_DEPTH = 50  # nearest free documents, among which a hard negative is drawn


class Negatives(StrEnum):
    """The source of the mismatched document."""

    RANDOM = "random"  # any document of the split's positives
    LINKED = "linked"  # a document that the query links to
    LEXICAL = "lexical"  # one of the nearest documents by words


class Pool:
    """The candidates for negatives in one split."""

    def __init__(
        self,
        kind: Negatives,
        edges: Sequence[Edge],
        *,
        links: Judgments,
        at_home: Collection[str] | None,
        ranked: Ranked | None,
    ) -> None:
        """Take the matches of a split.

        Args:
            at_home: the documents of the split; None if splits share documents.
        """
        self._kind = kind
        self._links = links
        self._at_home = at_home
        self._ranked = ranked
        self._members = list(dict.fromkeys(doc_id for edge in edges for doc_id in edge))
        self._is_member = frozenset(self._members)
        self._nearest: dict[str, tuple[float, list[str]]] = {}  # by query: depth of its ranking, and members found

    def targets(self, query: str, taken: Set[Edge]) -> Sequence[str]:
        """The candidates for a query; except for lexical ones, they can include the query and `taken` documents."""
        match self._kind:
            case Negatives.RANDOM:
                return self._members
            case Negatives.LINKED:
                linked = self._links.get(query, ())
                return [doc_id for doc_id in linked if self._at_home is None or doc_id in self._at_home]
            case Negatives.LEXICAL:
                return self._free_and_near(query, taken)

    def _free_and_near(self, query: str, taken: Set[Edge]) -> list[str]:
        """The nearest members that are not taken: `LEXICAL_DEPTH`, or fewer if the ranking has no more."""
        assert self._ranked is not None
        depth, near = self._nearest.get(query, (0.0, []))
        while True:
            free = [doc_id for doc_id in near if doc_id != query and undirected(query, doc_id) not in taken]
            if len(free) >= LEXICAL_DEPTH or depth == math.inf:
                return free[:LEXICAL_DEPTH]
            asked = 4 * max(int(depth), LEXICAL_DEPTH)
            found = self._ranked(query, asked)
            depth = asked if len(found) == asked else math.inf
            near = [doc_id for doc_id in found if doc_id in self._is_member]
            self._nearest[query] = depth, near


class Positives(StrEnum):
    """Which pairs match."""

    LINKED = "linked"  # one links to the other
    ALIKE = "alike"  # both link to nearly the same documents


@dataclass(frozen=True)
class Protocol:
    """How pairs are drawn."""

    positives: Positives
    negatives: Negatives
    relevance: int = 1  # least relevance of a link that matches
    above: float = 0.5  # for ALIKE: the Jaccard similarity of links must exceed this value
    fewest_links: int = 3  # for ALIKE: least number of links of a document


PROTOCOLS: Mapping[str, Protocol] = {
    "aan": Protocol(Positives.LINKED, Negatives.RANDOM),
    "aan-hard": Protocol(Positives.LINKED, Negatives.LEXICAL),
    "wikipedia": Protocol(Positives.ALIKE, Negatives.LINKED),
    "graded": Protocol(Positives.LINKED, Negatives.LINKED, relevance=2),
}


@dataclass(frozen=True)
class BuiltPairs:
    """Pairs, and the number of matches of the corpus that were dropped."""

    splits: PairSplits
    n_lost: Mapping[Split, int]  # dropped matching pairs, for which no mismatch was left


def build_pairs(
    relations: Relations,
    protocol: Protocol,
    rule: SplitRule,
    *,
    seed: int,
    most: int | None = None,
    ranked: Ranked | None = None,
) -> BuiltPairs:
    """Draw equally many matches and mismatches in each split.

    "aan" is the protocol of AAN104K (SMITH, section 5.1.2) and of CoLDE's AAN: a paper is paired
    with each paper that it cites, and with one random irrelevant paper for each of these. "wikipedia" is the protocol
    of Wiki65K: matches are from `similar_by_links`, the first document of a pair is the lexicographically smaller one,
    and a mismatch is drawn from its outgoing links. "aan-hard" draws negatives among the `LEXICAL_DEPTH` nearest
    documents by BM25; "graded" has the links of relevance 2 as matches and the links of relevance 1 as mismatches. The
    last two are not published.

    Random negatives are drawn among the documents of the positives of the split, while the papers draw from all
    documents. Thus no document can be recognised as a negative by its identity, and no further documents have to be
    encoded. Hard negatives are drawn in the same way, among documents that are neither linked nor drawn before. A
    positive for which no negative is left is dropped and counted.

    With the rule DOCUMENT, train has only `Relations.trainable` pairs if links are matches, and documents are assigned
    to splits by `assign_documents`. Matches and mismatches alternate, so that any prefix of even length is balanced.

    Args:
        most: the largest number of matching pairs in a split; all by default.
    """
    assert (ranked is not None) == (protocol.negatives is Negatives.LEXICAL)
    edges = _matching(relations, protocol)
    claims = _claims(relations, protocol, rule, edges, seed)
    homes = _homes(relations, protocol, claims) if rule is SplitRule.DOCUMENT else None
    taken = {undirected(*edge) for edge in edges}
    if protocol.negatives is not Negatives.LINKED:
        taken |= {undirected(query, target) for query, targets in relations.links.items() for target in targets}
    rng = np.random.default_rng(seed)
    built: dict[Split, tuple[Pair, ...]] = {}
    n_lost: dict[Split, int] = {}
    for split in Split:
        kept = [edge for edge in claims[split] if homes is None or {homes[doc_id] for doc_id in edge} == {split}]
        at_home = None if homes is None else frozenset(doc_id for doc_id, home in homes.items() if home is split)
        pool = Pool(protocol.negatives, kept, links=relations.links, at_home=at_home, ranked=ranked)
        pairs, n_lost[split] = _draw(kept, pool, taken, most, rng)
        built[split] = tuple(pairs)
    _check(built, claims, protocol)
    return BuiltPairs(built, n_lost)


def _matching(relations: Relations, protocol: Protocol) -> list[Edge]:
    """Every matching pair of the corpus once, with its query first."""
    if protocol.positives is Positives.ALIKE:
        return similar_by_links(relations.links, above=protocol.above, fewest=protocol.fewest_links)
    found: dict[Edge, Edge] = {}
    for query, targets in relations.links.items():
        for target, relevance in targets.items():
            if relevance >= protocol.relevance:
                found.setdefault(undirected(query, target), (query, target))
    return list(found.values())


def _claims(
    relations: Relations, protocol: Protocol, rule: SplitRule, edges: Sequence[Edge], seed: int
) -> dict[Split, list[Edge]]:
    """The matching pairs of each split, as if documents could be shared."""
    by_pair = rule is SplitRule.PAIR
    splits = cut_tenths(len(edges), seed) if by_pair else [split_of(edge, relations.held) for edge in edges]
    claims: dict[Split, list[Edge]] = {split: [] for split in Split}
    for edge, split in zip(edges, splits, strict=True):
        is_judged = protocol.positives is Positives.LINKED and not by_pair
        if split is not Split.TRAIN or not is_judged or undirected(*edge) in relations.trainable:
            claims[split].append(edge)
    return claims


def _homes(relations: Relations, protocol: Protocol, claims: Mapping[Split, Sequence[Edge]]) -> dict[str, Split]:
    """The split of each document; for linked negatives, candidate negatives also count as edges."""
    if protocol.negatives is not Negatives.LINKED:
        return assign_documents(claims, relations.held)
    queries = {split: dict.fromkeys(query for query, _ in claims[split]) for split in Split}
    wanted = {
        split: [(query, target) for query in queries[split] for target in relations.links.get(query, ())]
        for split in Split
    }
    return assign_documents({split: [*claims[split], *wanted[split]] for split in Split}, relations.held)


def _draw(
    edges: Sequence[Edge], pool: Pool, taken: set[Edge], most: int | None, rng: np.random.Generator
) -> tuple[list[Pair], int]:
    """Draw a match and a mismatch for each edge, in random order; drawn mismatches are added to `taken`.

    Returns:
        The pairs, and the number of visited edges without a mismatch.
    """
    pairs: list[Pair] = []
    n_lost = 0
    for at in rng.permutation(len(edges)):
        query, target = edges[int(at)]
        other = _first_free(query, pool.targets(query, taken), taken, rng)
        if other is None:
            n_lost += 1
            continue
        taken.add(undirected(query, other))
        pairs += [Pair(query, target, True), Pair(query, other, False)]
        if most is not None and len(pairs) == 2 * most:
            break
    return pairs, n_lost


def _first_free(query: str, targets: Sequence[str], taken: Set[Edge], rng: np.random.Generator) -> str | None:
    shuffled = (targets[int(at)] for at in rng.permutation(len(targets)))
    return next((one for one in shuffled if one != query and undirected(query, one) not in taken), None)


def _check(built: PairSplits, claims: Mapping[Split, Sequence[Edge]], protocol: Protocol) -> None:
    empty = [split for split in Split if not built[split]]
    if empty:
        counts = ", ".join(f"{split} {len(claims[split])}" for split in Split)
        raise DatasetError(
            f"no pair of {' and '.join(empty)} is left by the protocol of positives {protocol.positives}, negatives "
            f"{protocol.negatives} (matching pairs before documents were shared out: {counts}); take --protocol aan, "
            f"or --split pair"
        )


@dataclass(frozen=True)
class Asked:
    """The requested pairs."""

    protocol: str
    rule: SplitRule
    seed: int
    most: int | None  # largest number of either kind in a split


@dataclass(frozen=True)
class PreparedPairs:
    """Pairs and their documents."""

    task: str
    dataset: str  # name@checksum
    documents: Mapping[str, Document]  # documents of the pairs, in the order of the corpus
    splits: PairSplits
    n_lost: Mapping[Split, int]  # dropped matches, without a mismatch


def prepared_pairs(name: str, data: Path, request: Asked) -> PreparedPairs:
    """Read a corpus, a task or a folder of the same layout, and draw its pairs."""
    dataset = open_dataset(name, data)
    documents = {document.doc_id: document for document in read_documents(dataset)}
    protocol = PROTOCOLS[request.protocol]
    ranked = _lexical(documents) if protocol.negatives is Negatives.LEXICAL else None
    relations = read_relations(dataset, documents.keys())
    built = build_pairs(relations, protocol, request.rule, seed=request.seed, most=request.most, ranked=ranked)
    named = {doc_id for pairs in built.splits.values() for doc_id in documents_of(pairs)}
    kept = {doc_id: document for doc_id, document in documents.items() if doc_id in named}
    return PreparedPairs(dataset.name, f"{dataset.name}@{checksum(dataset)}", kept, built.splits, built.n_lost)


def _lexical(documents: Mapping[str, Document]) -> Ranked:
    """The nearest documents of each document by BM25."""
    bm25 = BM25().fit(documents.values())
    return lambda doc_id, depth: [found for found, _ in bm25.search(documents[doc_id], depth)]
