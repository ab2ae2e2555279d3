"""Views of documents: spans, samplers and batches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.encoders.encoder import SegmentedDocument
from engine.encoders.trainable import MeanEncoder
from engine.errors import TrainingError
from engine.text.document import Document
from engine.text.segmentation import Section, Span
from engine.training.views import (
    SAMPLERS,
    Sampling,
    ViewPairs,
    crop_half,
    independent_crops,
    inverse_cloze,
    keep,
    n_words,
    one_section,
    sentences,
    words,
)
from tests.fakes import FakeEncoder, make_corpus, make_document

DOCUMENT = make_document(
    "d", [("Start", "One fox runs. Two dogs sleep."), ("Middle", "The house is old."), ("End", "A river. It is long.")]
)


def shown(document: Document, spans: list[Span]) -> list[str]:
    return [document.text[span.start : span.stop] for span in spans]


def test_sentences_and_words_cover_the_text_within_sections() -> None:
    assert shown(DOCUMENT, sentences(DOCUMENT)) == [
        "Start\nOne fox runs. ",
        "Two dogs sleep.\n\n",
        "Middle\nThe house is old.\n\n",
        "End\nA river. ",
        "It is long.\n\n",
    ]
    document = make_document("d", [("", "One fox. "), ("", " \n "), ("", "Two dogs.")])
    assert shown(document, sentences(document)) == ["One fox. ", "Two dogs."]
    document = make_document("d", "  one two\n\nthree ")
    assert shown(document, words(document)) == ["  one ", "two\n\n", "three "]
    assert words(make_document("d", " \n ")) == []
    assert n_words(document, Span(0, 7)) == 2


def test_kept_text_stays_under_its_heading() -> None:
    first, _, third, _, last = sentences(DOCUMENT)
    view = keep(DOCUMENT, [first, third, last])
    assert view.text == "Start\nOne fox runs. Middle\nThe house is old.\n\nIt is long.\n\n"
    assert [(section.heading, section.path) for section in view.sections] == [
        ("Start", ("Start",)),
        ("Middle", ("Middle",)),
        ("End", ("End",)),
    ]
    assert [view.text[section.start : section.stop] for section in view.sections] == [
        "Start\nOne fox runs. ",
        "Middle\nThe house is old.\n\n",
        "It is long.\n\n",
    ]
    assert (view.doc_id, view.title, view.pages) == ("d", "d", ())


def test_a_view_keeps_sections_with_text_cut_at_their_borders_or_the_whole_document() -> None:
    view = keep(DOCUMENT, [sentences(DOCUMENT)[2]])
    assert [section.heading for section in view.sections] == ["Middle"]
    assert view.sections[0].start == 0
    assert keep(DOCUMENT, []).text == ""
    document = Document(
        "d", "", "abcdef", (Section("", (), 0, 2), Section("", (), 2, 4), Section("", (), 4, 6)), pages=(3,)
    )
    view = keep(document, [Span(1, 5)])
    assert view.text == "bcde"
    assert [(section.start, section.stop) for section in view.sections] == [(0, 1), (1, 3), (3, 4)]
    assert keep(DOCUMENT, [Span(0, len(DOCUMENT.text))]) == DOCUMENT
    assert keep(DOCUMENT, sentences(DOCUMENT)) == DOCUMENT
    joined = one_section(DOCUMENT)
    assert joined.text == DOCUMENT.text
    assert joined.sections == (Section("", (), 0, len(DOCUMENT.text)),)


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
    return SAMPLERS[sampling](document, np.random.default_rng(seed))


def texts(document: Document) -> list[str]:
    return [document.text[sentence.start : sentence.stop] for sentence in sentences(document)]


def count_words(document: Document) -> int:
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


FOUR = "One fox. Two dogs. Three cats. Four birds."


@pytest.mark.parametrize(
    ("sampling", "text"),
    [
        *((sampling, " \n ") for sampling in Sampling),
        (Sampling.DOCSPLIT, "one two " * 50 + "ends. Fox. Dog. Cat."),
        *((sampling, FOUR) for sampling in (Sampling.SIMCSE, Sampling.CT)),
    ],
)
def test_a_document_without_words_or_with_one_dominant_sentence_or_by_simcse_and_ct_comes_back_twice(
    sampling: Sampling, text: str
) -> None:
    document = make_document("d", text)
    assert drawn(document, sampling, 0) == (document, document)


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


def test_docsplit_tosses_a_fair_coin_and_draws_lopsided_views_again() -> None:
    document = make_document("d", " ".join(f"Word{number} is here." for number in range(50)))
    shares = [len(texts(drawn(document, Sampling.DOCSPLIT, seed)[0])) / 50 for seed in range(200)]
    assert np.mean(shares) == pytest.approx(0.5, abs=0.02)
    assert np.std(shares) == pytest.approx(0.5 / 50**0.5, abs=0.015)
    document = make_document("d", "A b c d e f g h i. J. K. L.")
    for seed in range(50):
        one, other = drawn(document, Sampling.DOCSPLIT, seed)
        assert min(count_words(one), count_words(other)) >= 2 or one == other


@given(document=documents(), seed=SEEDS)
def test_halves_join_to_the_whole(document: Document, seed: int) -> None:
    one, other = drawn(document, Sampling.CROP_HALF, seed)
    if count_words(document) > 1:
        assert one.text + other.text == document.text
        assert set(texts(one)) <= set(texts(document)) or len(texts(document)) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [("One two three. Four five. ", "Six seven eight nine. Ten."), ("one two ", "three four")],
    ids=["the sentence end nearest to the middle", "between the words of one sentence"],
)
def test_a_document_is_cut_in_its_middle(first: str, second: str) -> None:
    one, other = crop_half(make_document("d", first + second), np.random.default_rng(0))
    assert (one.text, other.text) == (first, second)


@given(n=st.integers(1, 700), seed=SEEDS)
def test_crops_are_stretches_of_one_chunk(n: int, seed: int) -> None:
    document = make_document("d", " ".join(map(str, range(n))))
    views = independent_crops(document, np.random.default_rng(seed), deletion=0.0)
    chunk = min(n, 256)
    crops = [[int(word) for word in view.text.split()] for view in views]
    for crop in crops:
        assert crop == list(range(crop[0], crop[0] + len(crop)))
        assert max(1, int(0.1 * chunk)) <= len(crop) <= max(1, 0.5 * chunk)
    assert max(crops[0][-1], crops[1][-1]) - min(crops[0][0], crops[1][0]) < chunk


def test_crops_come_from_anywhere_lose_a_tenth_of_their_words_and_keep_one() -> None:
    document = make_document("d", " ".join(map(str, range(1000))))
    words = [int(drawn(document, Sampling.CONTRIEVER, seed)[0].text.split()[0]) for seed in range(200)]
    assert min(words) < 100 < 800 < max(words)
    assert np.mean(words) == pytest.approx(500 - 0.15 * 256, abs=60)
    document = make_document("d", " ".join(map(str, range(256))))
    views = [view for seed in range(100) for view in drawn(document, Sampling.CONTRIEVER, seed)]
    kept = [len(words) / (words[-1] - words[0] + 1) for view in views if (words := [int(w) for w in view.text.split()])]
    assert np.mean(kept) == pytest.approx(0.9, abs=0.01)
    views = independent_crops(make_document("d", "one two three"), np.random.default_rng(0), deletion=1.0)
    assert [count_words(view) for view in views] == [1, 1]


@given(document=documents(), seed=SEEDS)
def test_the_span_and_the_rest_are_the_document(document: Document, seed: int) -> None:
    whole = texts(document)
    span, rest = (texts(view) for view in inverse_cloze(document, np.random.default_rng(seed), keep_probability=0.0))
    if len(whole) < 2:
        assert span == rest == whole
        return
    at = whole.index(span[0])
    assert whole[at : at + len(span)] == span
    assert whole[:at] + whole[at + len(span) :] == rest
    words = [sum(len(sentence.split()) for sentence in part) for part in (span, whole)]
    assert len(span) == 1 or words[0] <= 0.2 * words[1]


def test_spans_are_of_one_to_five_sentences_and_stay_in_the_rest_one_time_in_ten() -> None:
    document = make_document("d", " ".join(f"Word{number} is here." for number in range(30)))
    stayed = [drawn(document, Sampling.ICT, seed)[1] == document for seed in range(1000)]
    assert np.mean(stayed) == pytest.approx(0.1, abs=0.03)
    assert {len(texts(drawn(document, Sampling.ICT, seed)[0])) for seed in range(300)} == {1, 2, 3, 4, 5}


CORPUS = make_corpus(10)


def pairs(documents: list[Document], max_tokens: int = 512, sampling: Sampling = Sampling.CONTRIEVER) -> ViewPairs:
    return ViewPairs(FakeEncoder(), documents, sampling, batch_size=4, max_tokens=max_tokens)


def test_views_are_redrawn_every_epoch() -> None:
    few = CORPUS[:4]
    texts = [
        {query.document.doc_id: query.document.text for query in pairs(few).batch(step).queries} for step in (0, 1)
    ]
    assert texts[0].keys() == texts[1].keys()
    assert texts[0] != texts[1]
    batches = [pairs(CORPUS).batch(step) for step in (0, 1)]
    for batch in batches:
        ids = [CORPUS[position].doc_id for position in batch.positions]
        assert [query.document.doc_id for query in batch.queries] == ids
        assert [target.document.doc_id for target in batch.targets] == ids
    assert len({position for batch in batches for position in batch.positions}) == 8


def numbered(n_sentences: int, words: int = 4) -> Document:
    """A document of sentences of this many words, each word with its number in the document."""
    sentences = [
        " ".join(f"W{sentence * words + word}" for word in range(words)) + "." for sentence in range(n_sentences)
    ]
    return make_document("d", " ".join(sentences))


def numbers(view: SegmentedDocument) -> list[int]:
    """The numbers of the words of a view."""
    return [int(word.strip("W.")) for word in view.document.text.split()]


def views_of(document: Document, sampling: Sampling, *, max_tokens: int = 64) -> list[tuple[list[int], list[int]]]:
    source = pairs([document, document], max_tokens=max_tokens, sampling=sampling)
    batches = [source.batch(step) for step in range(40)]
    return [
        (numbers(query), numbers(target))
        for batch in batches
        for query, target in zip(batch.queries, batch.targets, strict=True)
    ]


def words_between(one: list[int], other: list[int]) -> int:
    """Words from the end of the earlier view to the start of the later; 0 where they touch or overlap."""
    return max(0, max(one[0], other[0]) - min(one[-1], other[-1]) - 1)


@pytest.mark.slow
@pytest.mark.parametrize("sampling", Sampling)
def test_the_views_of_a_long_document_lie_in_the_same_place(sampling: Sampling) -> None:
    found = views_of(numbered(500), sampling)
    # Views that are cut independently of each other lie some hundred words apart.
    assert np.median([words_between(*views) for views in found]) == 0
    assert max(words_between(*views) for views in found) <= 128
    assert max(len(view) for views in found for view in views) <= 64
    firsts = [min(one[0], other[0]) for one, other in found]
    assert min(firsts) < 400 < 1600 < max(firsts)  # windows come from anywhere


@pytest.mark.slow
def test_docsplit_deals_out_a_window_as_long_as_both_views() -> None:
    for one, other in views_of(numbered(500), Sampling.DOCSPLIT):
        assert not set(one) & set(other)
        joined = sorted(one + other)
        window = joined[-1] - joined[0] + 1
        assert 64 < window <= 128
        # Interleaved: the end of the longer view is cut, and nothing else is missing.
        shared = [number for number in joined if number <= min(one[-1], other[-1])]
        assert shared == list(range(shared[0], shared[-1] + 1))


def test_a_document_is_read_whole_or_in_the_longest_window_that_fits() -> None:
    document = numbered(25)  # 12 chunks of 8 words, one of 4
    source = pairs([document, document], max_tokens=20)
    firsts = set()
    for seed in range(200):
        words = numbers(source.stretch(document, np.random.default_rng(seed)))
        assert words == list(range(words[0], words[0] + len(words)))
        firsts.add((words[0], len(words)))
    assert firsts == {(8 * chunk, 16) for chunk in range(10)} | {(80, 20)}
    document = CORPUS[0]
    segmented = FakeEncoder().segment(document)
    source = pairs(CORPUS, max_tokens=segmented.coverage.tokens_total)
    assert source.stretch(document, np.random.default_rng(0)) == segmented


@pytest.mark.parametrize("joined", [False, True])
def test_a_joined_view_is_one_chunk_across_headings(mean_encoder: MeanEncoder, joined: bool) -> None:
    sections = [(f"Part {number}", "The quick brown fox. The lazy dog. We search. ") for number in range(3)]
    source = ViewPairs(
        mean_encoder, [make_document("d", sections)] * 2, Sampling.DOCSPLIT, batch_size=2, max_tokens=40, joined=joined
    )
    n_chunks = {len(view.chunks) for step in range(10) for view in source.batch(step).queries}
    assert (n_chunks == {1}) == joined


def test_documents_without_text_are_left_out_or_refused() -> None:
    batch = pairs([*CORPUS[:3], make_document("blank", " ")]).batch(0)
    assert sorted(batch.positions) == [0, 1, 2]
    with pytest.raises(TrainingError, match=r"^the 4 documents of step 0 have no text that can be read$"):
        pairs([make_document("blank", " ")] * 4).batch(0)
    with pytest.raises(TrainingError) as raised:
        pairs(CORPUS, max_tokens=5, sampling=Sampling.SIMCSE).batch(0)
    assert "has 8 tokens, a view at most 5; give the encoder a smaller window, or allow longer" in str(raised.value)
    with pytest.raises(
        TrainingError, match=r"^1 documents in batches of 4 have no negatives; give at least two of both"
    ):
        pairs(CORPUS[:1])
