"""Batches of views: which documents, and how much of them."""

from __future__ import annotations

import numpy as np
import pytest

from engine.document import Document
from engine.encoders.mean import MeanEncoder
from engine.errors import TrainingError
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


def test_views_are_drawn_anew_every_epoch() -> None:
    few = CORPUS[:4]
    texts = [
        {query.document.doc_id: query.document.text for query in pairs(few).batch(step).queries} for step in (0, 1)
    ]
    assert texts[0].keys() == texts[1].keys()
    assert texts[0] != texts[1]


def test_a_long_view_is_a_run_of_chunks_as_long_as_may_be() -> None:
    document = make_document("d", " ".join(f"w{number}" for number in range(100)))  # 12 chunks of 8 words, one of 4
    source = pairs([document, document], max_tokens=20)
    firsts = set()
    for seed in range(200):
        read = source.read(document, np.random.default_rng(seed))
        words = [int(word[1:]) for word in read.document.text.split()]
        assert words == list(range(words[0], words[0] + len(words)))
        firsts.add((words[0], len(words)))
    assert firsts == {(8 * chunk, 16) for chunk in range(10)} | {(80, 20)}


def test_a_view_that_fits_is_read_whole() -> None:
    document = CORPUS[0]
    segmented = FakeEncoder().segment(document)
    source = pairs(CORPUS, max_tokens=segmented.coverage.tokens_total)
    assert source.read(document, np.random.default_rng(0)) == segmented


def test_a_real_encoder_reads_no_more_than_it_may(mean_encoder: MeanEncoder) -> None:
    text = "The quick brown fox jumps over the lazy dog. We search long documents, section by section. " * 20
    source = ViewPairs(
        mean_encoder, [make_document("d", text)] * 2, SAMPLERS[Sampling.DOCSPLIT], batch_size=2, max_tokens=40
    )
    for step in range(20):
        batch = source.batch(step)
        for view in (*batch.queries, *batch.targets):
            assert 25 <= sum(map(len, view.token_ids)) <= 40


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


def test_views_without_room_are_refused() -> None:
    with pytest.raises(TrainingError, match=r"^views of at most 0 tokens hold nothing; allow 512"):
        pairs(CORPUS, max_tokens=0)
