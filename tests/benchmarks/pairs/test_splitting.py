from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import DatasetError
from benchmarks.pair_scorer import Pair, documents_of
from benchmarks.pairs.splitting import (
    Edge,
    Split,
    assign_documents,
    pairs_checksum,
    read_relations,
    similar_by_links,
    split_of,
    undirected,
)
from engine.training.corpus import Judgments
from tests.benchmarks.pairs.linked_corpus import DOC_IDS, linked, write_linked

TRAIN, VALID, TEST = Split.TRAIN, Split.VALID, Split.TEST


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


def test_test_gets_documents_that_other_splits_need_as_much() -> None:
    claims: dict[Split, list[Edge]] = {TRAIN: [("a", "b")], VALID: [("a", "c")], TEST: [("a", "d")]}
    assert assign_documents(claims, {}) == {"a": TEST, "d": TEST, "c": VALID, "b": TRAIN}
    assert [split_of(edge, {"v": VALID, "t": TEST}) for edge in (("v", "t"), ("x", "v"), ("x", "y"))] == [
        TEST,
        VALID,
        TRAIN,
    ]


def test_a_checksum_depends_on_splits_labels_and_directions_of_pairs() -> None:
    pair = Pair("a", "b", True)
    made = [
        {TRAIN: (pair,), VALID: (), TEST: ()},
        {TRAIN: (), VALID: (pair,), TEST: ()},
        {TRAIN: (Pair("a", "b", False),), VALID: (), TEST: ()},
        {TRAIN: (Pair("b", "a", True),), VALID: (), TEST: ()},
    ]
    assert len({pairs_checksum(splits) for splits in made}) == 4
    assert pairs_checksum(made[0]) == pairs_checksum({TEST: (), VALID: (), TRAIN: (pair,)})


def test_edges_have_no_direction() -> None:
    assert undirected("b", "a") == undirected("a", "b") == ("a", "b")
    assert documents_of([Pair("a", "b", True), Pair("b", "c", False)]) == {"a", "b", "c"}


def similar_by_hand(links: Judgments, above: float, fewest: int) -> list[Edge]:
    """Every pair of documents, one at a time."""
    found = []
    for one, other in combinations(sorted(links), 2):
        own, its = set(links[one]), set(links[other])
        if min(len(own), len(its)) >= fewest and len(own & its) / len(own | its) > above:
            found.append((one, other))
    return found


@pytest.mark.parametrize(("above", "fewest"), [(0.5, 3), (0.5, 1), (0.3, 2), (0.0, 1)])
def test_similar_documents_have_enough_links_in_common(above: float, fewest: int) -> None:
    rng = np.random.default_rng(4)
    links = {f"d{n}": {f"t{int(t)}": 1 for t in rng.integers(0, 8, int(rng.integers(0, 7)))} for n in range(40)}
    expected = similar_by_hand(links, above, fewest)
    assert similar_by_links(links, above=above, fewest=fewest) == expected
    assert len(expected) > 5


def test_half_of_the_links_in_common_is_not_enough() -> None:
    links = {"a": {"x": 1, "y": 1, "z": 1}, "b": {"x": 1, "y": 1, "w": 1}, "c": {"x": 1, "y": 1, "z": 1, "w": 1}}
    assert similar_by_links(links, above=0.5, fewest=3) == [("a", "c"), ("b", "c")]


def test_relations_are_read_from_the_files_of_a_dataset(tmp_path: Path) -> None:
    assert read_relations(write_linked(tmp_path / "linked"), DOC_IDS) == linked()


def test_training_pairs_have_a_file_of_their_own(tmp_path: Path) -> None:
    dataset = write_linked(tmp_path / "linked")
    (dataset.qrels.parent / "train_pairs.tsv").write_text(
        "query_id\tdoc_id\trelevance\nd40\td41\t1\nd40\td42\t0\nd40\td01\t1\nd40\telsewhere\t1\n"
    )
    assert read_relations(dataset, DOC_IDS).trainable == {("d40", "d41")}


def test_links_out_of_the_corpus_are_left_out(tmp_path: Path) -> None:
    dataset = write_linked(tmp_path / "linked")
    dataset.qrels.write_text("query_id\tdoc_id\trelevance\nd20\td20\t1\nd20\td21\t1\nd20\tx\t1\ny\td21\t1\n")
    assert read_relations(dataset, DOC_IDS).links == {"d20": {"d21": 1}}


def test_a_dataset_without_valid_queries_is_refused(tmp_path: Path) -> None:
    dataset = write_linked(tmp_path / "linked")
    dataset.splits.write_text(json.dumps({"test": ["d00"], "dev": ["d01"]}))
    with pytest.raises(DatasetError, match=r"splits.json names no queries of valid, only of test, dev; .*add them"):
        read_relations(dataset, DOC_IDS)


def test_queries_outside_of_the_corpus_are_refused(tmp_path: Path) -> None:
    dataset = replace(write_linked(tmp_path / "linked"), queries=tmp_path / "queries.jsonl.gz")
    with pytest.raises(DatasetError, match=r"its queries, in queries\.jsonl\.gz, are no documents of the corpus"):
        read_relations(dataset, DOC_IDS)
