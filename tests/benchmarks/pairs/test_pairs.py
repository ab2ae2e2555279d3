"""Pairs of documents are built, and scorers are measured on them."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from numpy.typing import NDArray

from benchmarks.datasets import DATA, Dataset, DatasetError, checksum
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
from benchmarks.pairs.scorers import SCORERS, ScorerOptions, make_scorer
from benchmarks.pairs.scoring import (
    Budget,
    Course,
    Fit,
    Learned,
    Pair,
    PairScorer,
    accuracy_threshold,
    documents_of,
    f1_threshold,
    is_correct,
    judge,
)
from benchmarks.runs import Run, read_runs
from benchmarks.tables.pairs import PairsDetails
from benchmarks.tasks.architectures import encoder_facts
from benchmarks.tasks.pairs import Trial, main, measure
from engine.machine import Origin
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


@pytest.fixture
def links(tmp_path: Path) -> Dataset:
    return write_linked(tmp_path / "linked")


def run(dataset: Dataset, *options: str) -> Result:
    arguments = [str(dataset.corpus.parent), "--pairs-per-step", "8", "--steps", "4"]
    arguments += ["--work", str(dataset.corpus.parent.parent / "work"), *options]
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def records_of(dataset: Dataset, out: Path, *options: str) -> dict[str, Run]:
    done = run(dataset, "--out", str(out), *options)
    assert done.exit_code == 0, done.stderr
    return {run.system: run for run in read_runs(out)}


def details(run: Run) -> PairsDetails:
    return run.details_as(PairsDetails)


def auc(run: Run) -> float:
    return judge(run.values("score"), [bool(value) for value in run.values("match")], 0.0).auc


@pytest.mark.slow
def test_scorers_are_measured_on_the_same_pairs(links: Dataset, bert_folder: Path, tmp_path: Path) -> None:
    systems = ["--systems", "tfidf,bm25,maxsim,cosine-infonce"]
    options = [*systems, "--encoder", str(bert_folder), "--training-tokens", "96"]
    records = records_of(links, tmp_path / "out", *options)
    assert list(records) == ["bm25", "cosine-infonce", "maxsim", "tfidf"]
    assert len({(details(run).pairs, *run.case_ids) for run in records.values()}) == 1
    tfidf = records["tfidf"]
    assert tfidf.name == f"linked-tfidf-aan-document-{details(tfidf).pairs[:6]}-test"
    assert auc(tfidf) > 0.9  # words are of the topic, and so are links
    assert details(tfidf).n_pairs["test"] == len(tfidf.cases)
    trained, learned = records["cosine-infonce"], details(records["cosine-infonce"])
    assert learned.course is not None and learned.course.n_steps in (1, 2, 3, 4)
    assert (learned.budget, details(tfidf).budget, details(tfidf).course) == (Budget(4, 8), None, None)
    assert learned.chosen == {"training_tokens": 96}
    assert trained.encoder.startswith("bert@") and records["maxsim"].encoder.startswith("bert@")
    assert tfidf.origin.command.startswith("python -m benchmarks run pairs linked --systems tfidf,")
    assert "--work" not in tfidf.origin.command


@pytest.mark.slow
def test_the_same_command_gives_the_same_scores(links: Dataset, bert_folder: Path, tmp_path: Path) -> None:
    options = ["--systems", "cosine-infonce", "--encoder", str(bert_folder), "--training-tokens", "48", "--seed", "3"]
    first, again = (records_of(links, tmp_path / out, *options)["cosine-infonce"] for out in ("first", "again"))
    assert first.values("score") == again.values("score")
    assert first.name == again.name
    assert first.name.startswith(f"linked-cosine-infonce-bert-aan-document-{details(first).pairs[:6]}-")
    assert first.name.endswith("-test-seed3")


def test_a_trained_encoder_is_saved_with_its_facts(links: Dataset, bert_folder: Path, tmp_path: Path) -> None:
    options = ["--systems", "bm25,cosine-infonce", "--encoder", str(bert_folder)]
    options += ["--training-tokens", "48", "--words", "9"]
    places = ["--steps", "2", "--save", str(tmp_path / "encoders"), "--out", str(tmp_path / "out")]
    run(links, *options, *places, "--device", "cpu")
    assert {record.corpus for record in read_runs(tmp_path / "out")} == {"linked_9words"}
    assert [path.name for path in (tmp_path / "encoders").iterdir()] == ["cosine-infonce"]  # bm25 is no encoder
    facts = encoder_facts(str(tmp_path / "encoders" / "cosine-infonce"))
    assert facts.steps == 2
    assert facts.n_tokens > 0
    assert facts.begins_with.startswith(f"{bert_folder.name}@")


def test_a_scorer_that_fails_does_not_stop_the_others(links: Dataset, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = run(links, "--systems", "cosine,bm25", "--encoder", str(empty), "--out", str(tmp_path / "out"))
    assert [run.system for run in read_runs(tmp_path / "out")] == ["bm25"]
    assert (done.exit_code, done.stderr.splitlines()[-1].split("; ")[0]) == (1, "Error: 1 of 2 scorers failed")


def test_mistakes_are_reported_in_one_line(links: Dataset, tmp_path: Path) -> None:
    def error_of(*options: str) -> str:
        return run(links, *options).stderr.splitlines()[-1]

    assert "'bm24' is not one of bm25, tfidf, cosine" in error_of("--systems", "bm24")
    links.qrels.write_text("query_id\tdoc_id\trelevance\n")
    assert error_of("--systems", "bm25").startswith("Error: no pair of test and valid and train is left")


def fixed(scores: dict[str, float], fitted_on: list[object] | None = None) -> PairScorer:
    """A scorer with given scores, which records what it is fitted on."""

    def learn(given: Fit) -> Learned:
        if fitted_on is not None:
            fitted_on.extend([list(given.train), list(given.valid), given.budget, given.seed])
        score = lambda pairs: np.array([scores[pair.second] for pair in pairs])  # noqa: E731
        return Learned(score, "mine@0a", course=Course(3, 2, 0.75))

    return PairScorer("fixed", {"k": 1}, learn, is_trained=True)


def trial(origin: Origin) -> Trial:
    """The best threshold of valid is 0.5; that of test would be 0.15."""
    splits = {
        Split.TRAIN: (Pair("a", "a1", True), Pair("a", "a2", False)),
        Split.VALID: (Pair("b", "b1", True), Pair("b", "b2", False)),
        Split.TEST: (Pair("c", "c1", True), Pair("d", "c2", True), Pair("d", "c3", False), Pair("c", "c4", False)),
    }
    n_lost = {Split.TRAIN: 2, Split.VALID: 0, Split.TEST: 1}
    return Trial("pets@0a", {}, splits, n_lost, Budget(7, 8), origin)


SCORES = {"b1": 0.8, "b2": 0.2, "c1": 0.9, "c2": 0.2, "c3": 0.1, "c4": 0.0}


def test_thresholds_are_those_of_valid_and_cases_those_of_test(origin: Origin) -> None:
    fitted_on: list[object] = []
    run, _ = measure(fixed(SCORES, fitted_on), trial(origin), {"k": 1})
    own = details(run)
    assert (own.accuracy_threshold, own.f1_threshold) == (0.5, 0.5)
    assert (run.values("score"), run.values("match")) == ([0.9, 0.2, 0.1, 0.0], [1, 1, 0, 0])
    assert (run.case_ids[0], run.groups) == ("c c1", ["c", "d", "d", "c"])
    assert fitted_on == [*map(list, list(trial(origin).splits.values())[:2]), Budget(7, 8), 0]
    assert (run.encoder, own.budget, own.course) == ("mine@0a", Budget(7, 8), Course(3, 2, 0.75))
    assert (own.n_lost, own.n_documents["test"]) == ({"train": 2, "valid": 0, "test": 1}, 6)


def test_the_error_for_a_score_that_is_not_a_number_names_the_pair(origin: Origin) -> None:
    error = "fixed gives d and c2 the score nan, no finite number; leave this scorer out, or spend less on its training"
    with pytest.raises(DatasetError, match=error):
        measure(fixed({**SCORES, "c2": float("nan")}), trial(origin))


@pytest.mark.parametrize("name", SCORERS)
def test_a_scorer_has_the_name_that_it_is_made_by(bert_folder: Path, name: str) -> None:
    assert make_scorer(name, ScorerOptions(encoder=str(bert_folder))).name == name


def test_the_help_lists_all_scorers() -> None:
    text = "".join(CliRunner().invoke(main, ["--help"]).output.split())
    assert f"Systems,separatedbycommas,of{','.join(SCORERS)};or:all." in text
