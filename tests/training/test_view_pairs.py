"""Batches of views: which documents are drawn, and which stretch of them is read."""

from __future__ import annotations

import numpy as np
import pytest

from engine.encoders.encoder import SegmentedDocument
from engine.encoders.mean import MeanEncoder
from engine.errors import TrainingError
from engine.text.document import Document
from engine.training.tasks.samplers import SAMPLERS, Sampling
from engine.training.tasks.view_pairs import ViewPairs
from tests.fakes import FakeEncoder, make_corpus, make_document

CORPUS = make_corpus(10)


def pairs(documents: list[Document], max_tokens: int = 512, sampling: Sampling = Sampling.CONTRIEVER) -> ViewPairs:
    return ViewPairs(FakeEncoder(), documents, SAMPLERS[sampling], batch_size=4, max_tokens=max_tokens)


def test_a_batch_depends_on_seed_and_step_alone() -> None:
    one, other = pairs(CORPUS), pairs(CORPUS)
    one.batch(0)
    assert one.batch(5) == other.batch(5) != one.batch(6)


def test_both_views_are_of_the_same_document_each_once_an_epoch() -> None:
    batches = [pairs(CORPUS).batch(step) for step in (0, 1)]
    for batch in batches:
        ids = [CORPUS[position].doc_id for position in batch.positions]
        assert [query.document.doc_id for query in batch.queries] == ids
        assert [target.document.doc_id for target in batch.targets] == ids
    assert len({position for batch in batches for position in batch.positions}) == 8


def test_views_are_redrawn_every_epoch() -> None:
    few = CORPUS[:4]
    texts = [
        {query.document.doc_id: query.document.text for query in pairs(few).batch(step).queries} for step in (0, 1)
    ]
    assert texts[0].keys() == texts[1].keys()
    assert texts[0] != texts[1]


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


@pytest.mark.slow
def test_halves_of_a_window_touch() -> None:
    for one, other in views_of(numbered(500), Sampling.CROP_HALF):
        assert other[0] == one[-1] + 1


@pytest.mark.slow
def test_the_rest_of_an_inverse_cloze_is_the_text_around_the_span() -> None:
    for span, rest in views_of(numbered(500), Sampling.ICT):
        assert rest[0] - 4 <= span[0] + len(span) and span[-1] - len(span) <= rest[-1]


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [Sampling.SIMCSE, Sampling.CT])
def test_the_same_stretch_of_a_long_document_is_read_twice(sampling: Sampling) -> None:
    assert all(one == other for one, other in views_of(numbered(500), sampling))


def test_a_long_document_is_read_in_the_longest_window_that_fits() -> None:
    document = numbered(25)  # 12 chunks of 8 words, one of 4
    source = pairs([document, document], max_tokens=20)
    firsts = set()
    for seed in range(200):
        words = numbers(source.stretch(document, np.random.default_rng(seed)))
        assert words == list(range(words[0], words[0] + len(words)))
        firsts.add((words[0], len(words)))
    assert firsts == {(8 * chunk, 16) for chunk in range(10)} | {(80, 20)}


def test_a_document_that_fits_is_read_whole() -> None:
    document = CORPUS[0]
    segmented = FakeEncoder().segment(document)
    source = pairs(CORPUS, max_tokens=segmented.coverage.tokens_total)
    assert source.stretch(document, np.random.default_rng(0)) == segmented


@pytest.mark.parametrize("joined", [False, True])
def test_a_joined_view_is_one_chunk_across_headings(mean_encoder: MeanEncoder, joined: bool) -> None:
    sections = [(f"Part {number}", "The quick brown fox. The lazy dog. We search. ") for number in range(3)]
    source = ViewPairs(
        mean_encoder,
        [make_document("d", sections)] * 2,
        SAMPLERS[Sampling.DOCSPLIT],
        batch_size=2,
        max_tokens=40,
        joined=joined,
    )
    n_chunks = {len(view.chunks) for step in range(10) for view in source.batch(step).queries}
    assert (n_chunks == {1}) == joined


def test_views_for_a_real_encoder_stay_within_the_limit_of_tokens(mean_encoder: MeanEncoder) -> None:
    text = "The quick brown fox jumps over the lazy dog. We search long documents, section by section. " * 20
    source = ViewPairs(
        mean_encoder, [make_document("d", text)] * 2, SAMPLERS[Sampling.DOCSPLIT], batch_size=2, max_tokens=40
    )
    batches = [source.batch(step) for step in range(20)]
    sizes = [sum(map(len, view.token_ids)) for batch in batches for view in (*batch.queries, *batch.targets)]
    assert 25 <= np.mean(sizes) <= max(sizes) <= 40


def test_a_document_without_text_is_left_out() -> None:
    batch = pairs([*CORPUS[:3], make_document("blank", " ")]).batch(0)
    assert sorted(batch.positions) == [0, 1, 2]
    with pytest.raises(TrainingError, match=r"^the 4 documents of step 0 have no text that can be read$"):
        pairs([make_document("blank", " ")] * 4).batch(0)


def test_a_chunk_that_is_too_long_is_refused() -> None:
    with pytest.raises(TrainingError) as raised:
        pairs(CORPUS, max_tokens=5, sampling=Sampling.SIMCSE).batch(0)
    assert "has 8 tokens, a view at most 5; give the encoder a smaller window, or allow longer" in str(raised.value)


def test_documents_without_negatives_are_refused() -> None:
    with pytest.raises(
        TrainingError, match=r"^1 documents in batches of 4 have no negatives; give at least two of both"
    ):
        pairs(CORPUS[:1])


def test_views_of_0_tokens_are_refused() -> None:
    with pytest.raises(TrainingError, match=r"^views of at most 0 tokens hold nothing; allow 512"):
        pairs(CORPUS, max_tokens=0)
