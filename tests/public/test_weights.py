"""Weights of sections change shares of the query, kinds of sections are skipped, and every score still adds up."""

from collections import Counter
from collections.abc import Mapping
from math import log
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import longmatch
from engine.errors import QueryError
from engine.index import Index
from engine.search.request import Request
from engine.text.document import Document
from engine.views import Result
from engine.words.segmenter import segmenter_of
from tests.fakes import make_corpus, make_document
from tests.strict_schema import check
from tests.text.test_headings import BODY, CITED

NAMES = ("part one", "part two", "part three")


def shown(result: Result) -> list[tuple[str, float, list[tuple[int, int, float]]]]:
    """The hits of a result with all scores and contributions, to the last digit."""
    return [
        (hit.doc_id, hit.score, [(pair.query_section, pair.target_section, pair.contribution) for pair in hit.pairs])
        for hit in result
    ]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> longmatch.Index:
    papers = [{"id": f"p{n}", "sections": [{"heading": "1 Pumps", "text": f"{BODY} Number {n}."}]} for n in range(3)]
    papers += [
        {
            "id": f"o{n}",
            "sections": [
                {"heading": "1 Counties", "text": f"Report {n} on roads and bees of county {n}. " * 9},
                {"heading": "References", "text": CITED},
            ],
        }
        for n in range(4)
    ]
    return longmatch.build(tmp_path_factory.mktemp("weights") / "x.lm", papers, encode="none", progress=False)


QUERY = {
    "id": "draft",
    "sections": [
        {"heading": "1 Pumps", "text": BODY},
        {"heading": "2 Bees", "text": "Bees and roads of a county. " * 30},
        {"heading": "References", "text": CITED},
    ],
}


@pytest.mark.slow
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(0, 59), weights=st.tuples(*[st.sampled_from([0.0, 0.25, 1.0, 3.0, 50.0])] * 3))
def test_parts_of_weighted_sections_sum_to_the_score(
    index: Index, corpus: list[Document], number: int, weights: tuple[float, ...]
) -> None:
    if not any(weights):
        weights = (1.0, 0.0, 2.0)
    given = dict(zip(NAMES, weights, strict=True))
    for form in ("similar", "containment"):
        result = index.search(corpus[number], Request(k=8, weights=given, mode=form))
        check(result.to_dict())
        for hit in result:
            assert 0 < hit.score <= 1
            assert hit.breakdown.score == pytest.approx(hit.score, abs=1e-5)
            used = {pair.query_section for pair in hit.pairs}
            assert not used & {place for place, weight in enumerate(weights) if not weight}


def test_weights_of_one_change_no_digit(index: Index, corpus: list[Document]) -> None:
    assert shown(index.search(corpus[3], Request(weights=dict.fromkeys(NAMES, 1.0)))) == shown(index.search(corpus[3]))


def test_equal_weights_change_nothing_but_rounding(index: Index, corpus: list[Document]) -> None:
    plain, tripled = (
        index.search(corpus[3], Request(k=60)),
        index.search(corpus[3], Request(k=60, weights=dict.fromkeys(NAMES, 3))),
    )
    assert {hit.doc_id: hit.score for hit in tripled} == pytest.approx({hit.doc_id: hit.score for hit in plain})


def test_a_weight_of_2_counts_a_section_as_if_it_were_there_twice(index: Index, corpus: list[Document]) -> None:
    one, other = ((name, corpus[at].text[:400]) for name, at in (("part one", 3), ("part two", 7)))
    by_vectors = longmatch.Scoring(word_weight=0, pair_weight=0)
    weighted, twice = (
        index.search(make_document("draft", sections), Request(k=60, scoring=by_vectors, weights=weights))
        for sections, weights in (([one, other], {"part one": 2.0}), ([one, one, other], {}))
    )
    scores = {hit.doc_id: hit.score for hit in twice}
    assert len(scores) > 9
    assert {hit.doc_id: hit.score for hit in weighted} == pytest.approx(scores, abs=1e-6)


def test_a_large_weight_ranks_by_its_section(words: longmatch.Index) -> None:
    assert words.search(QUERY, skip="references")[0].doc_id.startswith("p")
    assert words.search(QUERY, skip="references", weights={"bees": 200})[0].doc_id.startswith("o")


def words_by_hand(query: Document, target: Document, corpus: list[Document], weights: Mapping[int, float]) -> float:
    """The word component with weights, by a loop over terms; `weights` by section."""
    segmenter = segmenter_of("none")
    counts = [Counter(segmenter.segment(one.text).words.tolist()) for one in corpus]
    total: Counter[int] = sum(counts, Counter())
    n = total.total()
    of_sections = [
        Counter(segmenter.segment(query.text[one.start : one.stop]).words.tolist()) for one in query.sections
    ]
    mine: Counter[int] = sum((one for place, one in enumerate(of_sections) if weights[place]), Counter())
    theirs = Counter(segmenter.segment(target.text).words.tolist())

    def b(frequency: int, length: int, term: int) -> float:
        return log(1 + 0.05 * frequency / length / (total[term] / n))

    found = norm = 0.0
    for term, count in mine.items():
        mean = sum(weights[place] * one[term] for place, one in enumerate(of_sections)) / count
        a = (1 + log(count)) * mean
        found += a * b(theirs[term], theirs.total(), term)
        norm += a * b(count, mine.total(), term)
    return min(1.0, found / norm)


def test_weighted_words_follow_the_equation(tmp_path: Path) -> None:
    corpus = make_corpus(12)
    weights = {0: 5.0, 1: 0.0, 2: 1.0}
    named = {name: weights[place] for place, name in enumerate(NAMES)}
    with longmatch.build(tmp_path / "x.lm", corpus, encode="none", progress=False) as index:
        assert index.opened.snapshot.language == "none"
        scoring = longmatch.Scoring(chunk_weight=0, word_weight=1, pair_weight=0, root=1)
        result = index.search_id("doc003", k=11, weights=named, scoring=scoring)
        expected = {one.doc_id: words_by_hand(corpus[3], one, corpus, weights) for one in corpus if one != corpus[3]}
        assert {hit.doc_id: hit.score for hit in result} == pytest.approx(
            {name: score for name, score in expected.items() if score}, abs=1e-6
        )


def test_a_query_whose_sections_all_have_weight_0_is_refused(words: longmatch.Index) -> None:
    with pytest.raises(QueryError, match=r"no section but those to be skipped \(those of weight 0\)"):
        words.search("Roads and bees of a county.", weights={"1": 0})
    with pytest.raises(QueryError, match="the weights are str; pass a dict"):
        words.search("Roads and bees.", weights="claims=3")  # type: ignore[call-overload]


OTHER = "Bees dance to show where flowers are. A colony counts on thousands of foragers. Honey keeps it alive. " * 4


def paper(name: str, body: str, references: str) -> dict[str, object]:
    sections = [{"heading": "1 Introduction", "text": body}, {"heading": "References", "text": references}]
    return {"id": name, "title": name, "sections": sections}


@pytest.fixture
def papers(tmp_path: Path) -> longmatch.Index:
    made = [paper("cites the same", OTHER, CITED), paper("says the same", BODY, "None. " * 9)]
    made += [
        paper(f"other {n}", f"Report {n} on roads of county {n}. Asphalt number {n} is new.", "") for n in range(8)
    ]
    return longmatch.build(tmp_path / "x.lm", made, encode="none", progress=False)


def test_pairs_with_references_come_after_those_of_the_body(papers: longmatch.Index) -> None:
    result = papers.search(paper("draft", BODY + " " + OTHER, CITED))
    (hit,) = [hit for hit in result if hit.doc_id == "cites the same"]
    sections = [(pair.query_section, pair.target_section) for pair in hit.pairs]
    assert sections[0] == (0, 0) and (1, 1) in sections
    by_strength = sorted(hit.pairs, key=lambda pair: -pair.contribution)
    assert by_strength[0].query_section == 1  # the references carry more
