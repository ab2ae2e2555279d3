import gzip
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import DATA, DatasetError
from benchmarks.metrics import evaluate
from benchmarks.prepare import index_documents
from benchmarks.runs import Case, Run, read_runs
from benchmarks.sections.faceted import (
    Ranking,
    average_precision,
    candidate_scores,
    facet_sections,
    largest_pair_shares,
    model_explanations,
    open_facets,
    pool_ndcg,
    read_labelled,
    tied_ndcg,
)
from benchmarks.tables.sections import FacetsDetails, facets_table
from benchmarks.tasks.facets import METRICS, main
from engine.index import Index
from engine.machine import Origin
from engine.search.request import Request
from engine.views import Result
from tests.benchmarks.corpora import Explaining
from tests.benchmarks.made_runs import error_of, run_program
from tests.encoders.tiny import ENCODERS
from tests.fakes import FakeEncoder

pytest.importorskip("sklearn")


def test_labels_are_headings_and_not_in_the_text(faceted_folder: Path) -> None:
    documents = {document.doc_id: document for document in read_labelled(faceted_folder / "corpus.jsonl.gz")}
    document = documents["q"]
    texts = [document.text[section.start : section.stop].strip() for section in document.sections]
    assert texts == ["On q", "cats sleep all day", "we count cats with care", "ten cats"]
    assert [section.heading for section in document.sections] == ["", "background", "method", "result"]
    assert document.sections[-1].stop == len(document.text)
    assert facet_sections(documents["same background"], "background") == {1}  # an objective is background
    assert facet_sections(documents["no method"], "method") == frozenset()


def test_candidates_judged_irrelevant_are_there_and_the_query_is_not(faceted_folder: Path) -> None:
    background, method, _ = open_facets(faceted_folder)
    assert background.qrels["q"] == {"same background": 3, "same method": 0, "no method": 0, "far": 1}
    assert "far" not in method.qrels["far"]
    assert (method.folds, method.dataset[:7]) == ({"q": 1, "far": 2}, "facets@")
    assert background.dataset != method.dataset


def test_files_that_do_not_fit_are_refused(faceted_folder: Path) -> None:
    splits = json.loads((faceted_folder / "splits.json").read_text())
    (faceted_folder / "splits.json").write_text(json.dumps({**splits, "method_fold2_test": ["q"]}))
    with pytest.raises(DatasetError, match=r"2 queries of 'method' must be in exactly one .* 2 entries for 1 queries"):
        open_facets(faceted_folder)
    (faceted_folder / "qrels_method.tsv").unlink()
    with pytest.raises(DatasetError, match=r"facets holds no qrels_method.tsv; pass the folder of a faceted corpus"):
        open_facets(faceted_folder)
    with gzip.open(faceted_folder / "corpus.jsonl.gz", "wt") as file:
        file.write('{"id": 1, "title": "a"}\n')
    with pytest.raises(DatasetError, match=r"line 1: KeyError.'sections'.; a line must be an object with id"):
        list(read_labelled(faceted_folder / "corpus.jsonl.gz"))


@pytest.mark.needs_data
@pytest.mark.skipif(not (DATA / "csfcube").is_dir(), reason="csfcube is absent")
def test_csfcube_has_fifty_queries_whose_candidates_are_all_in_the_corpus() -> None:
    tasks = open_facets(DATA / "csfcube")
    assert [len(task.qrels) for task in tasks] == [16, 17, 17]
    names = {document.doc_id for document in read_labelled(tasks[0].corpus)}
    assert len(names) == 4205
    assert all(candidate in names for task in tasks for judged in task.qrels.values() for candidate in judged)


CANDIDATES = ["same method", "same background", "no method", "far"]


@pytest.fixture
def index(faceted_folder: Path, tmp_path: Path) -> Iterator[Index]:
    documents = list(read_labelled(faceted_folder / "corpus.jsonl.gz"))
    index_documents(tmp_path / "facets.lm", documents, FakeEncoder())
    with Index.open(tmp_path / "facets.lm", encoder=FakeEncoder()) as opened:
        yield opened


@pytest.fixture
def result(index: Index) -> Result:
    return index.search("q", Request(k=5, exact=True))


def test_the_facets_part_finds_what_is_alike_in_that_facet_alone(index: Index, result: Result) -> None:
    for facet, expected in {"method": "same method", "background": "same background", "result": "no method"}.items():
        scores = candidate_scores(index, result, facet, CANDIDATES)
        for ranking in (Ranking.FACET_TO_FACET, Ranking.FACET_TO_ANY, Ranking.FACET_COSINE):
            assert max(CANDIDATES, key=scores[ranking].__getitem__) == expected


def test_parts_sum_to_the_score_and_cosines_are_those_of_the_vectors(index: Index, result: Result) -> None:
    scores = candidate_scores(index, result, "method", CANDIDATES)
    for hit in result.hits:
        parts = scores[Ranking.FACET_TO_ANY][hit.doc_id] + scores[Ranking.OTHERS][hit.doc_id]
        assert parts == pytest.approx(hit.score, abs=1e-6)
        assert 0 <= scores[Ranking.FACET_TO_FACET][hit.doc_id] <= scores[Ranking.FACET_TO_ANY][hit.doc_id]
    query, far = (index.stored_query(name).vectors for name in ("q", "far"))
    assert scores[Ranking.FACET_COSINE]["far"] == pytest.approx(query.sections[2] @ far.sections[2], abs=1e-6)
    assert scores[Ranking.FACET_COSINE]["no method"] == -1
    assert scores[Ranking.DOCUMENT]["far"] == pytest.approx(query.document @ far.document, abs=1e-6)


def test_the_largest_pair_of_the_relevant_hit_starts_in_the_facet(index: Index, result: Result) -> None:
    shares = largest_pair_shares(index, result, "method", {"same method": 2, "same background": 0, "absent": 1})
    assert (shares["relevant"], shares["irrelevant"]) == (1.0, 0.0)
    # Title, background, method and result have 2, 4, 5 and 2 words; a chunk weighs the root of its tokens.
    assert shares["by chance"] == pytest.approx(5**0.5 / (2**0.5 + 4**0.5 + 5**0.5 + 2**0.5))
    assert largest_pair_shares(index, result, "method", {"same method": 2})["irrelevant"] is None


def test_a_model_ranks_by_its_pairs_of_sections_of_the_facet(index: Index, result: Result, tmp_path: Path) -> None:
    assert model_explanations(index, result, CANDIDATES) == {}
    assert Ranking.MODEL not in candidate_scores(index, result, "method", CANDIDATES, {})
    with Index.open(tmp_path / "facets.lm", encoder=Explaining()) as explained:
        models = model_explanations(explained, result, CANDIDATES)
        scores = candidate_scores(explained, result, "method", CANDIDATES, models)[Ranking.MODEL]
        # The title is section 0, the method section 2, where there is one.
        assert scores == {name: 0 if name == "no method" else models[name].pairs[2, 2] for name in CANDIDATES}
        relevance = {"same method": 2, "far": 0}
        assert largest_pair_shares(explained, result, "method", relevance, models)["relevant"] == 1.0
        assert largest_pair_shares(explained, result, "result", relevance, models)["relevant"] == 0.0


RELEVANCE = {"a": 3, "b": 0, "c": 2, "d": 1, "e": 0, "f": 2, "g": 3}


def dcg(relevance: list[int]) -> float:
    """The authors' script, one rank at a time."""
    return sum(value / (1 if rank == 1 else math.log2(rank)) for rank, value in enumerate(relevance, start=1))


def over_orders(scores: dict[str, float], share: float) -> tuple[float, float]:
    """nDCG and average precision, the mean over every order of the candidates that the scores allow."""
    k = int(share * len(scores))
    best = dcg(sorted(RELEVANCE.values(), reverse=True)[:k])
    ndcg, precision = [], []
    for order in permutations(scores):
        ranked = [scores[name] for name in order]
        if ranked == sorted(ranked, reverse=True):
            values = [RELEVANCE[name] for name in order]
            hits = [value >= 2 for value in values]
            ndcg.append(dcg(values[:k]) / best)
            precision.append(np.mean([sum(hits[: at + 1]) / (at + 1) for at, hit in enumerate(hits) if hit]))
    return float(np.mean(ndcg)), float(np.mean(precision))


@pytest.mark.parametrize("n_levels", [2, 3, 7])
@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
def test_ndcg_and_average_precision_are_means_over_all_orders_of_ties(n_levels: int, share: float) -> None:
    levels = np.random.default_rng(n_levels).integers(0, n_levels, len(RELEVANCE)).tolist()
    scores = dict(zip(RELEVANCE, map(float, levels), strict=True))
    expected = over_orders(scores, share)
    assert pool_ndcg(RELEVANCE, scores, share) == pytest.approx(expected[0])
    assert average_precision(RELEVANCE, scores) == pytest.approx(expected[1])


def test_a_fifth_of_the_pool_counts_and_without_a_relevant_candidate_nothing() -> None:
    relevance = {f"c{number}": number % 4 for number in range(24)}  # int(.2 * 24) is 4
    scores = {name: -float(name[1:]) for name in relevance}
    expected = (0 + 1 + 2 / math.log2(3) + 3 / 2) / (3 + 3 + 3 / math.log2(3) + 3 / 2)
    assert pool_ndcg(relevance, scores) == pytest.approx(expected)
    nothing = dict.fromkeys(relevance, 0)
    assert (pool_ndcg(nothing, scores), average_precision(nothing, scores)) == (0, 0)


@pytest.mark.parametrize("seed", range(3))
def test_without_ties_tied_ndcg_is_the_ndcg_of_the_other_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    relevance = {f"d{number}": int(value) for number, value in enumerate(rng.integers(0, 4, 40))}
    scores = dict(zip(relevance, rng.permutation(40).tolist(), strict=True))
    ranking = sorted(scores, key=lambda name: -scores[name])
    expected = evaluate({"q": relevance}, {"q": ranking})["nDCG@10"]["q"]
    assert tied_ndcg(relevance, scores, 10) == pytest.approx(expected, abs=1e-9)


def test_ties_are_the_mean_over_all_their_orders() -> None:
    relevance = {"a": 3, "b": 0, "c": 1, "d": 0, "e": 2}
    scores = {"a": 0.0, "b": 0.9, "c": 0.0, "d": 0.0, "e": 0.0}
    # The first rank has no gain; the gains of the others share the discounts of ranks 2 and 3.
    found = np.mean([7, 1, 0, 3]) * (1 / np.log2(3) + 1 / np.log2(4))
    assert tied_ndcg(relevance, scores, 3) == pytest.approx(found / (7 + 3 / np.log2(3) + 1 / np.log2(4)))
    assert tied_ndcg(dict.fromkeys("ab", 0), {"a": 1.0, "b": 0.5}, 3) == 0


QUERIES = list(zip("abcde", [0.5, 0.4, 0.3, 0.2, 0.1], [1, 1, 2, 2, 2], strict=True))  # name, value, fold
LARGEST = {"relevant": [1.0, 0.5, None, 1.0, 0.5], "irrelevant": [0.5, None, 0.5, 0.0, 0.0], "by chance": [0.25] * 5}
OF_INDEX = tuple(ranking for ranking in Ranking if ranking is not Ranking.MODEL)  # rankings that every encoder has


def facets_runs(origin: Origin, *facets: str, rankings: Sequence[Ranking] = OF_INDEX) -> list[Run]:
    """Five queries of each facet; `facet to any` is 0.1 better than the other rankings for each of them."""
    runs = []
    for ranking in rankings:
        better = 0.1 * (ranking is Ranking.FACET_TO_ANY)
        cases = [
            Case(
                id=f"{facet} {query}",
                values=dict.fromkeys(METRICS, value + better),
                facts={"fold": fold, **{kind: share for kind, of in LARGEST.items() if (share := of[at]) is not None}},
                labels={"facet": facet},
                group=query,
            )
            for facet in facets
            for at, (query, value, fold) in enumerate(QUERIES)
        ]
        details = FacetsDetails(dict.fromkeys(facets, "csfcube@0"), 9, dict.fromkeys(facets, 0.25))
        given = {"task": "facets", "dataset": "csfcube@0", "encoder": "mean@0f", "details": asdict(details)}
        runs.append(Run(**given, system=ranking.value, origin=origin, cases=cases))
    return runs


def row_of(runs: list[Run], start: str) -> str:
    return next(line for line in facets_table(runs).splitlines() if start in line)


def test_a_row_has_the_mean_of_the_folds_and_adjusted_tests(origin: Origin) -> None:
    lines = facets_table(facets_runs(origin, "method")).splitlines()
    row = next(line for line in lines if "| facet to any |" in line)
    # Two of 32 sign patterns are as extreme; Holm's correction multiplies the smallest of five p-values by five.
    expected = "| mean (5) | facet to any | 0.425 | 0.425 | 0.425 | 0.425 ["
    assert row.startswith(expected) and row.endswith("] | 0.550 / 0.300 | 25% | 0.312 | 0.312 |")
    assert sum("| mean (5) |" in line for line in lines) == 6
    # Largest pairs are compared over the queries that have both values.
    assert "| mean | method | 0.750 (4) | 0.250 (4) | 0.250 (5) | 0.250 | 0.125 |" in lines


def test_an_abstract_that_is_the_query_of_two_facets_counts_as_one_case(origin: Origin) -> None:
    once = row_of(facets_runs(origin, "method"), "| mean (5) | facet to any |")
    twice = row_of(facets_runs(origin, "method", "result"), "| mean (10) | facet to any |")
    assert twice == once.replace("mean (5)", "mean (10)")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["colde fixed", "smith fixed normal"])
def test_the_command_runs_each_ranking(kind: str, faceted_folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    ENCODERS[kind](bert_folder).save_pretrained(tmp_path / "encoder")
    done = run_program(main, faceted_folder, "--encoder", tmp_path / "encoder", "--out", tmp_path / "out")
    runs = {run.system: run for run in read_runs(tmp_path / "out")}
    assert runs.keys() == {ranking.value for ranking in Ranking}
    run = runs["facet to facet"]
    assert (run.name, run.details["n_documents"]) == ("facets-facet-to-facet-encoder-test", 5)
    assert run.case_ids[1:4] == ["background far", "method q", "method far"]
    for one in runs.values():
        # A fifth of four candidates is less than one, so no rank counts.
        assert one.case_ids == run.case_ids and set(one.values("nDCG%20")) == {0.0}
    assert all({"relevant", "by chance"} & case.facts.keys() for case in runs["model"].cases)
    assert "| encoder (6) | facet to facet | " in done.output
    assert "| encoder (6) | model | " in done.output and "| encoder, model | method |" in done.output


def test_a_judged_document_must_be_in_the_corpus(faceted_folder: Path) -> None:
    with (faceted_folder / "qrels_method.tsv").open("a") as file:
        file.write("q\tunknown\t1\n")
    error = error_of(main, faceted_folder)
    assert "Error: 'unknown' is judged but not in" in error and "like 1 of 6 queries and candidates" in error
