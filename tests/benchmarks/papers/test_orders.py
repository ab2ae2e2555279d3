from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers.comparison import Numbers, Unit
from benchmarks.papers.orders import document_vector, shuffled_order
from engine.document import Document, Section
from engine.encoders.colde.encoder import ColdeEncoder
from engine.encoders.colde.sections import place
from engine.encoders.trainable import inference
from tests.encoders.tiny import COLDE, tiny_colde

BODIES = [
    "The quick brown fox jumps over the lazy dog. A dark house stands by the river bank, and a dog runs.",
    "A model finds the vector of every chunk. The search shows every score of a query and its document.",
    "One two three four five six seven eight nine ten. The young dog was brown and the fox red.",
]


def written() -> Document:
    stops = np.cumsum([len(body) + 1 for body in BODIES]).tolist()
    sections = [Section("", (), start, stop) for start, stop in zip([0, *stops], stops, strict=False)]
    return Document("d", "", "".join(f"{body} " for body in BODIES), sections=tuple(sections))


@pytest.fixture
def encoder(bert_folder: Path) -> ColdeEncoder:
    return tiny_colde(bert_folder)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(2)


def test_sections_move_with_their_chunks_in_order(encoder: ColdeEncoder, rng: np.random.Generator) -> None:
    document = encoder.segment(written())
    order = shuffled_order(document, Unit.SECTIONS, rng)
    assert sorted(order) == list(range(len(document.chunks)))
    moved = [list(own) for _, own in groupby(order, key=lambda at: document.chunks[at].section)]
    assert len(moved) == 3 and order != sorted(order)
    assert all(own == sorted(own) for own in moved)


def test_chunks_move_by_themselves(encoder: ColdeEncoder, rng: np.random.Generator) -> None:
    document = encoder.segment(written())
    order = shuffled_order(document, Unit.CHUNKS, rng)
    assert sorted(order) == list(range(len(document.chunks)))
    assert len(list(groupby(order, key=lambda at: document.chunks[at].section))) > 3


def test_anew_is_a_document_with_its_sections_moved(encoder: ColdeEncoder, rng: np.random.Generator) -> None:
    document = encoder.segment(written())
    order = shuffled_order(document, Unit.SECTIONS, rng)
    sections = [
        document.document.sections[number] for number in dict.fromkeys(document.chunks[at].section for at in order)
    ]
    bodies = [document.document.text[section.start : section.stop] for section in sections]
    stops = np.cumsum([len(body) for body in bodies]).tolist()
    placed = [replace(one, start=a, stop=b) for one, a, b in zip(sections, [0, *stops], stops, strict=False)]
    expected = encoder.encode([Document("d", "", "".join(bodies), sections=tuple(placed))])[0].document
    np.testing.assert_allclose(document_vector(encoder, document, order, Numbers.ANEW), expected, atol=1e-6)


def test_following_is_to_shuffle_after_numbering(encoder: ColdeEncoder, rng: np.random.Generator) -> None:
    document = encoder.segment(written())
    order = shuffled_order(document, Unit.CHUNKS, rng)
    numbered = place([document.token_ids])[0]
    with inference(encoder.module):
        expected = encoder.embed_sections([[tuple(numbered[at] for at in order)]])[0].numpy()
    follow = document_vector(encoder, document, order, Numbers.FOLLOW)
    np.testing.assert_allclose(follow, expected, atol=1e-6)
    assert np.abs(follow - document_vector(encoder, document, order, Numbers.ANEW)).max() > 1e-3


def test_a_mean_of_chunks_with_their_numbers_knows_no_order(bert_folder: Path, rng: np.random.Generator) -> None:
    encoder = tiny_colde(bert_folder, replace(COLDE, without_lstm=True))
    document = encoder.segment(written())
    order = shuffled_order(document, Unit.CHUNKS, rng)
    whole = encoder.encode_segmented([document])[0].document
    np.testing.assert_allclose(document_vector(encoder, document, order, Numbers.FOLLOW), whole, atol=1e-6)
    assert np.abs(document_vector(encoder, document, order, Numbers.ANEW) - whole).max() > 1e-3


@pytest.mark.parametrize("numbers", list(Numbers))
def test_the_order_as_written_changes_nothing(numbers: Numbers, encoder: ColdeEncoder) -> None:
    document = encoder.segment(written())
    order = list(range(len(document.chunks)))
    whole = encoder.encode_segmented([document])[0].document
    np.testing.assert_allclose(document_vector(encoder, document, order, numbers), whole, atol=1e-6)
