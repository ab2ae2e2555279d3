"""Pairs of documents are built, and their scores are judged."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

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
from benchmarks.pairs.scoring import Pair, accuracy_threshold, documents_of, f1_threshold, is_correct, judge
from tests.benchmarks.corpora import DOC_IDS, linked, write_linked

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


LABELS = np.array([True, False, True, True, False, False])
SIX_SCORES = np.array([0.9, 0.8, 0.7, 0.4, 0.3, 0.1])


def random_case(seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    labels = rng.random(30) < 0.5
    return np.round(rng.random(30) + 0.3 * labels, 1), labels  # rounded, so that many are equal


def counts(scores: NDArray[np.float64], labels: NDArray[np.bool_], threshold: float) -> tuple[int, int, int, int]:
    """Hits, false alarms, misses and the rest, one pair at a time."""
    called = [score > threshold for score in scores]
    kinds = list(zip(called, labels.tolist(), strict=True))
    return (
        kinds.count((True, True)),
        kinds.count((True, False)),
        kinds.count((False, True)),
        kinds.count((False, False)),
    )


@pytest.mark.parametrize("seed", range(5))
def test_metrics_are_counted_over_all_pairs(seed: int) -> None:
    scores, labels = random_case(seed)
    tp, fp, fn, tn = counts(scores, labels, 0.6)
    judgment = judge(scores, labels, 0.6)
    assert judgment.accuracy == pytest.approx((tp + tn) / 30)
    assert (judgment.precision, judgment.recall) == pytest.approx((tp / (tp + fp), tp / (tp + fn)))
    assert judgment.f1 == pytest.approx(2 * tp / (2 * tp + fp + fn))
    wins = [(m > o) + (m == o) / 2 for m in scores[labels] for o in scores[~labels]]
    assert judgment.auc == pytest.approx(np.mean(wins))
    assert is_correct(scores, labels, 0.6).sum() == tp + tn


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_no_threshold_is_better_than_the_chosen_ones(seed: int) -> None:
    scores, labels = random_case(seed)
    tried = [judge(scores, labels, threshold) for threshold in np.arange(-0.05, 1.5, 0.1)]
    assert judge(scores, labels, accuracy_threshold(scores, labels)).accuracy == max(one.accuracy for one in tried)
    assert judge(scores, labels, f1_threshold(scores, labels)).f1 == max(one.f1 for one in tried)


def test_a_threshold_lies_in_the_middle_of_the_widest_gap() -> None:
    assert accuracy_threshold(SIX_SCORES, LABELS) == pytest.approx(0.35)  # 5 of 6 are right
    assert accuracy_threshold([4.0, 1.0, 0.0], [True, False, False]) == 2.5
    # Three of four are right between 0 and 1 and between 4 and 9; the latter gap is wider.
    assert accuracy_threshold([0.0, 1.0, 4.0, 9.0], [False, True, False, True]) == 6.5
    assert accuracy_threshold([0.0, 1.0, 2.0, 3.0], [False, True, False, True]) == 0.5  # the lowest of equal gaps


def test_a_threshold_outside_of_all_scores_is_taken_only_where_it_is_better() -> None:
    assert judge([1.0, 2.0], [True, False], accuracy_threshold([1.0, 2.0], [True, False])).accuracy == 0.5
    below = f1_threshold([1.0, 2.0], [True, False])
    assert below == np.nextafter(1.0, -np.inf)
    assert accuracy_threshold([1.0, 2.0, 3.0], [False, False, True]) == 2.5
    assert accuracy_threshold([1.0, 1.0, 1.0], [False, False, True]) == 1.0


@pytest.mark.parametrize(
    ("scores", "labels", "told"),
    [
        ([1.0, 2.0], [True], r"of one shape \(N,\), not \(2,\) and \(1,\)"),
        ([1.0, float("nan")], [True, False], "1 of 2 scores are no finite numbers"),
        ([1.0, 2.0], [True, True], "2 of 2 labels are matches; both kinds are needed"),
    ],
)
def test_scores_that_cannot_be_judged_are_refused(scores: list[float], labels: list[bool], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        judge(scores, labels, 0.5)
