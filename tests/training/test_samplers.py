"""Samplers of two views of a document: properties that hold for every seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.document import Document
from engine.training.tasks.samplers import SAMPLERS, CropHalf, DocSplit, IndependentCrops, InverseCloze, Sampling
from engine.training.tasks.views import sentences
from tests.fakes import make_document

SEEDS = st.integers(0, 10_000)


@st.composite
def documents(draw: st.DrawFn, most_sentences: int = 12) -> Document:
    """Sections of sentences, in which every word occurs once."""
    sections, number = [], 0
    for heading in range(draw(st.integers(1, 3))):
        body = []
        for length in draw(st.lists(st.integers(1, 9), min_size=1, max_size=most_sentences // 3)):
            body.append("W" + " w".join(str(number + word) for word in range(length)) + ".")
            number += length
        sections.append((f"Part{heading}" if draw(st.booleans()) else "", " ".join(body) + "\n\n"))
    return make_document("d", sections)


def drawn(document: Document, sampling: Sampling, seed: int) -> tuple[Document, Document]:
    return SAMPLERS[sampling].views(document, np.random.default_rng(seed))


def texts(document: Document) -> list[str]:
    return [document.text[sentence.start : sentence.stop] for sentence in sentences(document)]


def n_words(document: Document) -> int:
    return len(document.text.split())


@pytest.mark.slow
@pytest.mark.parametrize("sampling", Sampling)
@given(document=documents(), seed=SEEDS)
def test_a_view_is_a_valid_document_with_headings_of_the_original(
    sampling: Sampling, document: Document, seed: int
) -> None:
    for view in drawn(document, sampling, seed):
        assert view.text.strip()
        borders = [0, *(section.stop for section in view.sections)]
        assert [section.start for section in view.sections] == borders[:-1]
        assert borders[-1] == len(view.text)
        assert {section.heading for section in view.sections} <= {section.heading for section in document.sections}


@pytest.mark.parametrize("sampling", Sampling)
def test_the_same_seed_draws_the_same_views(sampling: Sampling) -> None:
    document = make_document("d", " ".join(f"Word{number} is here." for number in range(40)))
    assert drawn(document, sampling, 3) == drawn(document, sampling, 3)


@pytest.mark.parametrize("sampling", Sampling)
def test_a_document_without_words_comes_back_twice(sampling: Sampling) -> None:
    blank = make_document("d", " \n ")
    assert drawn(blank, sampling, 0) == (blank, blank)


@given(document=documents(), seed=SEEDS)
def test_docsplit_deals_out_the_sentences_in_order(document: Document, seed: int) -> None:
    whole = texts(document)
    one, other = (texts(view) for view in drawn(document, Sampling.DOCSPLIT, seed))
    if len(whole) < 4:
        assert one == other == whole
    elif one != other:
        assert sorted(one + other) == sorted(whole)
        assert one == [sentence for sentence in whole if sentence in one]
        assert other == [sentence for sentence in whole if sentence in other]
        words = sum(len(sentence.split()) for sentence in whole)
        assert all(sum(len(sentence.split()) for sentence in side) >= 0.1 * words for side in (one, other))


def test_docsplit_tosses_a_fair_coin() -> None:
    document = make_document("d", " ".join(f"Word{number} is here." for number in range(50)))
    shares = [len(texts(drawn(document, Sampling.DOCSPLIT, seed)[0])) / 50 for seed in range(200)]
    assert np.mean(shares) == pytest.approx(0.5, abs=0.02)
    assert np.std(shares) == pytest.approx(0.5 / 50**0.5, abs=0.015)


def test_docsplit_draws_lopsided_views_again() -> None:
    document = make_document("d", "A b c d e f g h i. J. K. L.")
    for seed in range(50):
        one, other = drawn(document, Sampling.DOCSPLIT, seed)
        assert min(n_words(one), n_words(other)) >= 2 or one == other


def test_docsplit_returns_the_document_twice_if_one_sentence_dominates() -> None:
    document = make_document("d", "one two " * 50 + "ends. Fox. Dog. Cat.")
    assert drawn(document, Sampling.DOCSPLIT, 0) == (document, document)


def test_docsplit_splits_from_a_given_minimum_number_of_sentences() -> None:
    document = make_document("d", "One fox. Two dogs.")
    one, other = DocSplit(min_sentences=2).views(document, np.random.default_rng(0))
    assert {one.text, other.text} == {"One fox. ", "Two dogs."}


@given(document=documents(), seed=SEEDS)
def test_halves_join_to_the_whole(document: Document, seed: int) -> None:
    one, other = drawn(document, Sampling.CROP_HALF, seed)
    if n_words(document) > 1:
        assert one.text + other.text == document.text
        assert set(texts(one)) <= set(texts(document)) or len(texts(document)) == 1


def test_the_cut_is_the_sentence_end_nearest_to_the_middle() -> None:
    document = make_document("d", "One two three. Four five. Six seven eight nine. Ten.")
    one, other = CropHalf().views(document, np.random.default_rng(0))
    assert (one.text, other.text) == ("One two three. Four five. ", "Six seven eight nine. Ten.")


def test_one_sentence_is_cut_between_words() -> None:
    one, other = CropHalf().views(make_document("d", "one two three four"), np.random.default_rng(0))
    assert (one.text, other.text) == ("one two ", "three four")


@given(n=st.integers(1, 700), seed=SEEDS)
def test_crops_are_stretches_of_one_chunk(n: int, seed: int) -> None:
    document = make_document("d", " ".join(map(str, range(n))))
    views = IndependentCrops(deletion=0.0).views(document, np.random.default_rng(seed))
    chunk = min(n, 256)
    crops = [[int(word) for word in view.text.split()] for view in views]
    for crop in crops:
        assert crop == list(range(crop[0], crop[0] + len(crop)))
        assert max(1, int(0.1 * chunk)) <= len(crop) <= max(1, 0.5 * chunk)
    assert max(crops[0][-1], crops[1][-1]) - min(crops[0][0], crops[1][0]) < chunk


def test_crops_come_from_anywhere() -> None:
    document = make_document("d", " ".join(map(str, range(1000))))
    words = [int(drawn(document, Sampling.CONTRIEVER, seed)[0].text.split()[0]) for seed in range(200)]
    assert min(words) < 100 < 800 < max(words)
    assert np.mean(words) == pytest.approx(500 - 0.15 * 256, abs=60)


def test_a_tenth_of_the_words_of_a_crop_is_deleted() -> None:
    document = make_document("d", " ".join(map(str, range(256))))
    views = [view for seed in range(100) for view in drawn(document, Sampling.CONTRIEVER, seed)]
    kept = [len(words) / (words[-1] - words[0] + 1) for view in views if (words := [int(w) for w in view.text.split()])]
    assert np.mean(kept) == pytest.approx(0.9, abs=0.01)


def test_a_crop_keeps_a_word_at_least() -> None:
    views = IndependentCrops(deletion=1.0).views(make_document("d", "one two three"), np.random.default_rng(0))
    assert [n_words(view) for view in views] == [1, 1]


@given(document=documents(), seed=SEEDS)
def test_the_span_and_the_rest_are_the_document(document: Document, seed: int) -> None:
    whole = texts(document)
    span, rest = (texts(view) for view in InverseCloze(kept=0.0).views(document, np.random.default_rng(seed)))
    if len(whole) < 2:
        assert span == rest == whole
        return
    at = whole.index(span[0])
    assert whole[at : at + len(span)] == span
    assert whole[:at] + whole[at + len(span) :] == rest
    words = [sum(len(sentence.split()) for sentence in part) for part in (span, whole)]
    assert len(span) == 1 or words[0] <= 0.2 * words[1]


def test_the_span_stays_in_the_rest_one_time_in_ten() -> None:
    document = make_document("d", " ".join(f"Word{number} is here." for number in range(30)))
    stayed = [drawn(document, Sampling.ICT, seed)[1] == document for seed in range(1000)]
    assert np.mean(stayed) == pytest.approx(0.1, abs=0.03)


def test_spans_are_of_one_to_five_sentences_in_thirty() -> None:
    document = make_document("d", " ".join(f"Word{number} is here." for number in range(30)))
    assert {len(texts(drawn(document, Sampling.ICT, seed)[0])) for seed in range(300)} == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("sampling", [Sampling.SIMCSE, Sampling.CT])
def test_simcse_and_contrastive_tension_return_the_same_text_twice(sampling: Sampling) -> None:
    document = make_document("d", "One fox. Two dogs. Three cats. Four birds.")
    assert drawn(document, sampling, 0) == (document, document)


def test_every_name_has_a_sampler() -> None:
    assert set(SAMPLERS) == set(Sampling)
    assert SAMPLERS[Sampling("docsplit")] == DocSplit()
