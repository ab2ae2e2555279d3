from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import DATA, DatasetError
from benchmarks.metrics import evaluate
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
from benchmarks.sections.subcorpus import index_documents
from engine.document import Document
from engine.encoders.explanation import ModelExplanation
from engine.index import Index
from engine.result import Result
from tests.fakes import FakeEncoder


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
    return index.search_id("q", k=5, exact=True)


def test_the_facets_part_finds_what_is_alike_in_that_facet_alone(index: Index, result: Result) -> None:
    for facet, expected in {"method": "same method", "background": "same background", "result": "no method"}.items():
        scores = candidate_scores(index, result, facet, CANDIDATES)
        for ranking in (Ranking.FACET_TO_FACET, Ranking.FACET_TO_ANY, Ranking.FACET_COSINE):
            assert max(CANDIDATES, key=scores[ranking].__getitem__) == expected


def test_parts_sum_to_the_score_and_cosines_are_those_of_the_vectors(index: Index, result: Result) -> None:
    scores = candidate_scores(index, result, "method", CANDIDATES)
    for hit in result.hits:
        parts = scores[Ranking.FACET_TO_ANY][hit.doc_id] + scores[Ranking.OTHERS][hit.doc_id]
        assert parts + hit.breakdown.document.contribution == pytest.approx(hit.score, abs=1e-6)
        assert 0 <= scores[Ranking.FACET_TO_FACET][hit.doc_id] <= scores[Ranking.FACET_TO_ANY][hit.doc_id]
    matrix = index.section_matrix("q", "far").cosines
    assert scores[Ranking.FACET_COSINE]["far"] == pytest.approx(matrix[2, 2], abs=1e-6)
    assert scores[Ranking.FACET_COSINE]["no method"] == -1
    own, far = (index.stored_query(name).vectors.document for name in ("q", "far"))
    assert scores[Ranking.DOCUMENT]["far"] == pytest.approx(own @ far, abs=1e-6)


def test_the_largest_pair_of_the_relevant_hit_starts_in_the_facet(index: Index, result: Result) -> None:
    shares = largest_pair_shares(index, result, "method", {"same method": 2, "same background": 0, "absent": 1})
    assert (shares["relevant"], shares["irrelevant"]) == (1.0, 0.0)
    # Title, background, method and result have 2, 4, 5 and 2 words; a chunk weighs the root of its tokens.
    assert shares["by chance"] == pytest.approx(5**0.5 / (2**0.5 + 4**0.5 + 5**0.5 + 2**0.5))
    assert largest_pair_shares(index, result, "method", {"same method": 2})["irrelevant"] is None


class Explaining(FakeEncoder):
    """An encoder that explains sections i and j by the number 10 i + j + 1."""

    cannot_explain = None

    def explain(self, query: Document, targets: Sequence[Document]) -> list[ModelExplanation]:
        nothing = np.zeros(0, np.float32)
        found = []
        for target in targets:
            rows, columns = np.arange(len(query.sections)), np.arange(len(target.sections))
            pairs = (10 * rows[:, None] + columns + 1).astype(np.float32)
            found.append(ModelExplanation("made", "", (), (), nothing, nothing, nothing, nothing, nothing, pairs))
        return found


def test_a_model_ranks_by_its_pairs_of_sections_of_the_facet(index: Index, result: Result, tmp_path: Path) -> None:
    assert model_explanations(index, result, CANDIDATES) == {}
    assert Ranking.MODEL not in candidate_scores(index, result, "method", CANDIDATES, {})
    with Index.open(tmp_path / "facets.lm", encoder=Explaining()) as explained:
        models = model_explanations(explained, result, CANDIDATES)
        scores = candidate_scores(explained, result, "method", CANDIDATES, models)[Ranking.MODEL]
        # The title is section 0, the method section 2, where there is one.
        assert scores == {"same method": 23.0, "same background": 23.0, "no method": 0.0, "far": 23.0}
        relevance = {"same method": 2, "far": 0}
        # The largest of these made numbers is always in the last section, which is the result.
        assert largest_pair_shares(explained, result, "result", relevance, models)["relevant"] == 1.0
        assert largest_pair_shares(explained, result, "method", relevance, models)["irrelevant"] == 0.0


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


pytest.importorskip("sklearn")


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
