"""What a dataset tells of which of its documents belong together. Nothing is drawn here."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets import Dataset, DatasetError
from benchmarks.pairs.splitting import Edge, Split, undirected
from engine.training.judgments import Judgments, read_judgments, read_splits


@dataclass(frozen=True)
class Relations:
    """Links from documents to documents: citations, "See also", or whatever the judgments of a dataset stand for."""

    links: Judgments  # document -> the documents that it links to, each with a relevance of at least 1
    trainable: frozenset[Edge]  # undirected: what a model may learn from, as `longmatch train` does
    held: Mapping[str, Split]  # queries of test and valid


def read_relations(dataset: Dataset, doc_ids: Collection[str]) -> Relations:
    """Read judgments, splits and training pairs of a dataset.

    The training pairs lie beside the judgments, as train_pairs.tsv beside qrels.tsv.
    Where there are none, every link between documents that are not held out may be learned from.

    Args:
        dataset: its files.
        doc_ids: of its corpus; links of others are left out, as is one of a document to itself.

    Raises:
        DatasetError: it has no queries of test or of valid, or its queries are no documents of the corpus.
        TrainingError: a file has another form.
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
        links: see `Relations`.
        above: in [0, 1); .5 in the papers.
        fewest: links of a document at least, lest two that share the only link they have be alike;
            the papers' articles have many.

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
