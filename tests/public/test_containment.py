"""Containment, comparisons of two documents, and the least score of a pair."""

from collections import Counter
from dataclasses import replace
from math import log
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import longmatch
from engine.errors import QueryError
from engine.index import Index
from engine.result import Status
from engine.search.request import Request
from engine.text.document import Document
from engine.text.segmentation import Span
from engine.words.apart import title_span
from engine.words.segmenter import segmenter_of
from indexer.building.builder import build
from tests.fakes import FakeEncoder, few_first_vectors, make_corpus, make_document
from tests.strict_schema import check

FOX = "The old fox hunts at night in the dark."
DOG = "The old fox sleeps at night by the house."


def test_texts_files_dicts_and_documents_are_compared(tmp_path: Path) -> None:
    file = tmp_path / "dog.txt"
    file.write_text(DOG)
    scores = {
        longmatch.compare(FOX, other, encoder=FakeEncoder())[0].score
        for other in (DOG, file, str(file), {"text": DOG}, longmatch.Document.from_text(DOG))
    }
    assert len(scores) == 1 and 0 < scores.pop() < 1


def test_weights_and_skipped_kinds_apply_to_a_comparison() -> None:
    query = {"sections": [{"heading": "Claims", "text": 40 * FOX}, {"heading": "Appendix", "text": 40 * DOG}]}
    found = longmatch.compare(query, DOG, encoder=FakeEncoder(), skip="appendix", weights={"claims": 3})
    assert {pair.query_section for pair in found[0].pairs} == {0}
    with pytest.raises(QueryError, match="the weights are list; pass a dict"):
        longmatch.compare(query, DOG, encoder=FakeEncoder(), weights=["claims"])  # type: ignore[arg-type]


def test_an_index_gives_the_score_of_its_search(tmp_path: Path) -> None:
    records = [{"id": "dog", "text": DOG}, {"id": "sea", "text": "The sea is deep and wide."}]
    with longmatch.build(tmp_path / "x.lm", records, encoder=FakeEncoder()) as index:
        expected = next(hit for hit in index.search(FOX) if hit.doc_id == "dog")
        found = longmatch.compare(FOX, index.document("dog"), index=index)
        assert found[0].score == expected.score and found[0].pairs == expected.pairs
        assert [str(one) for one in found[0].snippets(1)] == [str(one) for one in expected.snippets(1)]
        with pytest.raises(QueryError, match="exclude each other"):
            longmatch.compare(FOX, DOG, index=index, encoder=FakeEncoder())


CORPUS = make_corpus(40)
QUERY = CORPUS[7]
BODIES = [QUERY.text[one.start : one.stop].partition("\n")[2].strip() for one in QUERY.sections]


def inside(doc_id: str, n_sections: int) -> Document:
    """A long document of other topics that contains the first sections of the query word by word."""
    others = [(f"other {n}", CORPUS[n].text.replace("\n", " ")) for n in (11, 12, 13, 14, 15)]
    kept = [(one.heading, body) for one, body in zip(QUERY.sections, BODIES[:n_sections], strict=False)]
    return make_document(doc_id, [*others[:3], *kept, *others[3:]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("containment") / "x.lm"
    documents = [one for one in CORPUS if one != QUERY] + [inside("has all", 3), inside("has two", 2)]
    longmatch.build(made, documents, encode="none", progress=False).close()
    return made


@pytest.fixture
def words(folder: Path) -> longmatch.Index:
    return longmatch.open(folder)


def test_a_copy_inside_a_longer_document_scores_one_and_a_part_less(words: longmatch.Index) -> None:
    first, second, third = words.search(QUERY, k=3, mode="containment")
    assert first.doc_id == "has all" and first.score == pytest.approx(1, abs=1e-6)
    assert second.doc_id == "has two" and 0.6 < second.score < 0.9
    assert third.score < second.score - 0.2
    part = make_document(
        "draft", [("all", f"{QUERY.text} {CORPUS[21].text}"), ("new", "wind sails keel harbour mast " * 30)]
    )
    assert 0.1 < words.search(part, k=1, mode="containment")[0].score < 0.7


def test_a_title_is_contained_where_it_stands_among_other_text(words: longmatch.Index) -> None:
    titled = replace(QUERY, doc_id="titled", title="Part one")
    assert title_span(titled) == Span(0, 8) and title_span(QUERY) is None
    (hit,) = words.search(titled, k=1, mode="containment")
    assert (hit.doc_id, hit.score) == ("has all", pytest.approx(1, abs=1e-6))


def test_contained_sections_carry_the_score(words: longmatch.Index) -> None:
    hit = next(one for one in words.search(QUERY, mode="containment") if one.doc_id == "has two")
    of_sections = dict.fromkeys(range(len(QUERY.sections)), 0.0)
    for pair in hit.pairs:
        of_sections[pair.query_section] += pair.contribution
    assert min(of_sections[0], of_sections[1]) > 2 * of_sections[2]
    assert sum(of_sections.values()) == pytest.approx(hit.score, abs=1e-5)


def cover_by_hand(query: Document, target: Document, corpus: list[Document]) -> float:
    """The word component of containment, by a loop over terms."""
    segmenter = segmenter_of("none")
    counts = [Counter(segmenter.segment(one.text).words.tolist()) for one in corpus]
    total: Counter[int] = sum(counts, Counter())
    mine, theirs = (Counter(segmenter.segment(one.text).words.tolist()) for one in (query, target))
    information = {term: log(1 + total.total() / max(1, total[term])) for term in mine}
    covered = sum(min(count, theirs[term]) * information[term] for term, count in mine.items())
    return covered / sum(count * information[term] for term, count in mine.items())


def test_words_follow_the_equation(tmp_path: Path) -> None:
    scoring = longmatch.Scoring(0, 1, 0, power=1, root=1, cover=True)
    with longmatch.build(tmp_path / "x.lm", CORPUS, encode="none", progress=False) as index:
        result = index.search_id(QUERY.doc_id, k=40, mode="containment", scoring=scoring)
        expected = {one.doc_id: cover_by_hand(QUERY, one, CORPUS) for one in CORPUS if one != QUERY}
        assert {hit.doc_id: hit.score for hit in result} == pytest.approx(
            {name: score for name, score in expected.items() if score}, abs=1e-6
        )


def test_containment_is_exact_under_an_approximate_index(tmp_path: Path) -> None:
    build(tmp_path / "x.lm", CORPUS, encoder=FakeEncoder(), factory="IVF4,Flat", recall_floor=0.0)
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        assert index.search(QUERY, Request(k=5)).status is Status.ESTIMATED
        result = index.search(QUERY, Request(k=5, mode="containment"))
        exact = index.search(QUERY, Request(k=5, mode="containment", exact=True))
    assert result.status is Status.CERTIFIED and result.n_found == exact.n_found
    assert [(hit.doc_id, hit.score) for hit in result] == [(hit.doc_id, hit.score) for hit in exact]
    for hit in result:
        assert sum(hit.breakdown.components.values()) == pytest.approx(hit.score, abs=1e-6)


def test_candidates_by_containment_are_encoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few_first_vectors(monkeypatch)
    documents = [one for one in CORPUS if one != QUERY] + [inside("has all", 3)]
    longmatch.build(tmp_path / "x.lm", documents, encoder=FakeEncoder(), encode="later", progress=False).close()
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        assert not index.snapshot.has_vectors[index.position("has all")]
        result = index.search(QUERY, Request(k=1, mode="containment", candidates=1))
        assert result.encoding is not None and result.encoding.n_encoded_now == 1
        assert (result[0].doc_id, result[0].has_vectors) == ("has all", True)


@pytest.mark.slow
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(0, 59), least=st.sampled_from([0.001, 0.02, 0.05, 1.0]))
def test_small_pairs_are_one_part_of_the_sum(index: Index, corpus: list[Document], number: int, least: float) -> None:
    plain = index.search(corpus[number], Request(k=6, with_itself=True))
    found = index.search(corpus[number], Request(k=6, min_pair=least, with_itself=True))
    assert [(hit.doc_id, hit.score) for hit in found] == [(hit.doc_id, hit.score) for hit in plain]
    check(found.to_dict())
    check(found.to_dict(n_pairs=1))
    for hit, whole in zip(found, plain, strict=True):
        assert list(hit.pairs) == [pair for pair in whole.pairs if pair.contribution >= least]
        small = [pair for pair in whole.pairs if pair.contribution < least]
        assert hit.breakdown.n_pairs == len(whole.pairs)
        assert (hit.breakdown.small is None) == (not small)
        if hit.breakdown.small is not None:
            assert hit.breakdown.small.contribution == pytest.approx(sum(pair.contribution for pair in small))
            assert hit.breakdown.small.words == pytest.approx(sum(pair.words for pair in small))
        assert hit.breakdown.score == pytest.approx(hit.score, abs=1e-5)


@pytest.mark.parametrize("least", [0.05, 1.0])
def test_views_show_the_share_of_small_pairs(index: Index, corpus: list[Document], least: float) -> None:
    result = index.search(corpus[3], Request(k=1, min_pair=least, without="doc003", with_itself=True))
    (small,) = [one for one in result.to_dict()["hits"][0]["by_section"]["rest"] if one["kind"] == "small"]
    for view in (str(result), result.to_html(), result._repr_html_()):
        text = view.replace("\N{NO-BREAK SPACE}", " ")
        assert "small section pairs" in text and f"{100 * small['share']:.1f} %" in text
