from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import DATA, DatasetError, checksum
from benchmarks.pairs.building import (
    Edge,
    PairSplits,
    Relations,
    Split,
    assign_documents,
    build_pairs,
    pairs_checksum,
    prepared_pairs,
    read_relations,
    undirected,
)
from benchmarks.pairs.scoring import Pair, documents_of
from tests.benchmarks.pairs.linked_corpus import DOC_IDS, linked, write_linked

RELATIONS = linked()
LINKED = {undirected(query, target) for query, targets in RELATIONS.links.items() for target in targets}
TRAIN, VALID, TEST = Split.TRAIN, Split.VALID, Split.TEST


def built(*, seed: int = 0, most: int | None = None, relations: Relations = RELATIONS) -> PairSplits:
    return build_pairs(relations, seed=seed, most=most)[0]


def test_pairs_are_balanced_none_stands_twice_and_splits_share_no_document() -> None:
    splits = built()
    for pairs in splits.values():
        assert [pair.is_match for pair in pairs] == [True, False] * (len(pairs) // 2)
        assert [pair.first for pair in pairs[::2]] == [pair.first for pair in pairs[1::2]]
    edges = Counter(undirected(pair.first, pair.second) for split in Split for pair in splits[split])
    assert set(edges.values()) == {1} and all(one != other for one, other in edges)
    named = [documents_of(splits[split]) for split in Split]
    assert all(named) and len(set.union(*named)) == sum(map(len, named))
    assert all(RELATIONS.held.get(doc_id, split) is split for split in Split for doc_id in documents_of(splits[split]))


def test_training_pairs_are_those_that_may_be_learned_from() -> None:
    relations = replace(RELATIONS, trainable=frozenset(sorted(RELATIONS.trainable)[::2]))
    splits = built(relations=relations)
    matches = {undirected(pair.first, pair.second) for pair in splits[TRAIN] if pair.is_match}
    assert matches < relations.trainable and len(matches) > 5


def test_mismatches_are_not_linked_and_are_documents_of_matches() -> None:
    splits = built()
    for split in Split:
        matches, others = splits[split][::2], splits[split][1::2]
        assert {undirected(pair.first, pair.second) for pair in matches} <= LINKED
        assert not LINKED & {undirected(pair.first, pair.second) for pair in others}
        assert documents_of(others) <= documents_of(matches)


def test_the_seed_decides_what_is_drawn() -> None:
    assert built(seed=1) == built(seed=1) != built(seed=2)
    assert [len(built(most=5)[split]) for split in Split] == [10, 10, 10]


def test_a_split_without_a_pair_is_refused() -> None:
    with pytest.raises(DatasetError, match="no pair of test and valid and train is left"):
        built(relations=replace(RELATIONS, links={}))


def home_by_hand(doc_id: str, claims: dict[Split, list[Edge]]) -> Split:
    """The share of each split's edges that stand at the document, one edge at a time."""
    best, largest = TEST, -1.0
    for split in (TEST, VALID, TRAIN):
        share = sum((one == doc_id) + (other == doc_id) for one, other in claims[split]) / len(claims[split])
        if share > largest:
            best, largest = split, share
    return best


def test_documents_go_where_the_largest_share_of_edges_would_be_lost() -> None:
    rng = np.random.default_rng(0)
    names = [f"d{number}" for number in range(12)]
    sizes = {TRAIN: 40, VALID: 9, TEST: 7}
    drawn = {split: [rng.choice(names, 2, replace=False) for _ in range(n)] for split, n in sizes.items()}
    claims = {split: [(str(one), str(other)) for one, other in edges] for split, edges in drawn.items()}
    homes = assign_documents(claims, {"d3": VALID})
    assert homes == {name: VALID if name == "d3" else home_by_hand(name, claims) for name in homes}
    assert set(homes.values()) == set(Split)


def test_a_checksum_depends_on_splits_labels_and_directions_of_pairs() -> None:
    pair = Pair("a", "b", True)
    made: list[PairSplits] = [
        {TRAIN: (pair,), VALID: (), TEST: ()},
        {TRAIN: (), VALID: (pair,), TEST: ()},
        {TRAIN: (Pair("a", "b", False),), VALID: (), TEST: ()},
        {TRAIN: (Pair("b", "a", True),), VALID: (), TEST: ()},
    ]
    assert len({pairs_checksum(splits) for splits in made}) == 4


def test_relations_are_read_from_the_files_of_a_dataset(tmp_path: Path) -> None:
    dataset = write_linked(tmp_path / "linked")
    assert read_relations(dataset, DOC_IDS) == linked()
    (dataset.qrels.parent / "train_pairs.tsv").write_text(
        "query_id\tdoc_id\trelevance\nd40\td41\t1\nd40\td42\t0\nd40\td01\t1\nd40\telsewhere\t1\n"
    )
    assert read_relations(dataset, DOC_IDS).trainable == {("d40", "d41")}
    dataset.qrels.write_text("query_id\tdoc_id\trelevance\nd20\td20\t1\nd20\td21\t1\nd20\tx\t1\ny\td21\t1\n")
    assert read_relations(dataset, DOC_IDS).links == {"d20": {"d21": 1}}


def test_a_dataset_without_valid_queries_or_with_texts_as_queries_is_refused(tmp_path: Path) -> None:
    dataset = write_linked(tmp_path / "linked")
    dataset.splits.write_text(json.dumps({"test": ["d00"], "dev": ["d01"]}))
    with pytest.raises(DatasetError, match=r"splits.json names no queries of valid, only of test, dev; .*add them"):
        read_relations(dataset, DOC_IDS)
    with pytest.raises(DatasetError, match=r"its queries, in queries\.jsonl\.gz, are no documents of the corpus"):
        read_relations(replace(dataset, queries=tmp_path / "queries.jsonl.gz"), DOC_IDS)


def test_only_documents_of_pairs_are_kept(tmp_path: Path) -> None:
    dataset = write_linked(tmp_path / "linked")
    prepared = prepared_pairs(str(dataset.corpus.parent), DATA)
    named = {doc_id for pairs in prepared.splits.values() for doc_id in documents_of(pairs)}
    assert list(prepared.documents) == [doc_id for doc_id in DOC_IDS if doc_id in named]
    assert prepared.dataset == f"linked@{checksum(dataset)}"
    assert prepared.n_lost == dict.fromkeys(Split, 0)


@pytest.mark.slow
@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("name", "n_pairs", "digest"),
    [
        ("proposals", (644, 752, 4098), "2481216bc78c"),
        ("clscisumm", (478, 516, 2056), "ef4399639724"),
        ("wikipedia_seealso", (902, 972, 2492), "4e48c51bb360"),
        ("rfc", (1968, 2150, 31428), "14768eff493c"),
    ],
)
def test_pairs_of_the_shared_corpora_are_the_measured_ones(name: str, n_pairs: tuple[int, ...], digest: str) -> None:
    splits = prepared_pairs(name, DATA).splits
    assert tuple(len(splits[split]) for split in Split) == n_pairs
    assert pairs_checksum(splits) == digest
