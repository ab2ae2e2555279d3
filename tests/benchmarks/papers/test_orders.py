from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers.comparison import Numbers, Order, Unit
from benchmarks.papers.orders import chunks_moved, reordered_vector, sections_with_text
from engine.document import Document, Section
from engine.encoders.colde.encoder import ColdeEncoder
from engine.encoders.colde.sections import place
from engine.encoders.trainable import inference
from engine.encoders.variant import Variant
from engine.errors import TrainingError
from tests.encoders.tiny import COLDE, tiny_colde
from tests.fakes import make_document

BODIES = [
    "The quick brown fox jumps over the lazy dog. A dark house stands by the river bank, and a dog runs.",
    "A model finds the vector of every chunk. The search shows every score of a query and its document.",
    "One two three four five six seven eight nine ten. The young dog was brown and the fox red.",
]


def written() -> Document:
    stops = np.cumsum([len(body) + 1 for body in BODIES]).tolist()
    sections = [Section("", (), start, stop) for start, stop in zip([0, *stops], stops, strict=False)]
    return Document("d", "", "".join(f"{body} " for body in BODIES), sections=tuple(sections))


@pytest.fixture(params=[Variant.FIXED, Variant.PAPER])
def encoder(request: pytest.FixtureRequest, bert_folder: Path) -> ColdeEncoder:
    return tiny_colde(bert_folder, replace(COLDE, variant=request.param))


def rng() -> np.random.Generator:
    return np.random.default_rng(2)


def of(unit: Unit, numbers: Numbers) -> Order:
    return Order(unit, numbers)


def section_order() -> list[int]:
    """The order of three sections that `rng()` draws."""
    return [int(number) for number in rng().permutation(3)]


def test_the_drawn_order_differs_from_the_original() -> None:
    assert section_order() != [0, 1, 2]


def test_numbering_anew_equals_a_document_with_its_sections_moved(encoder: ColdeEncoder) -> None:
    document, order = written(), section_order()
    bodies = [document.text[document.sections[number].start : document.sections[number].stop] for number in order]
    stops = np.cumsum([len(body) for body in bodies]).tolist()
    placed = [Section("", (), start, stop) for start, stop in zip([0, *stops], stops, strict=False)]
    expected = encoder.encode([Document("d", "", "".join(bodies), sections=tuple(placed))])[0].document
    found = reordered_vector(encoder, encoder.segment(document), of(Unit.SECTIONS, Numbers.ANEW), rng())
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_numbers_that_follow_equal_shuffling_after_numbering(encoder: ColdeEncoder) -> None:
    document = encoder.segment(written())
    numbered = place([document.token_ids])[0]
    moved = [
        numbered[at] for number in section_order() for at, one in enumerate(document.chunks) if one.section == number
    ]
    with inference(encoder.module):
        expected = encoder.embed_sections([[tuple(moved)]])[0].numpy()
    follow = reordered_vector(encoder, document, of(Unit.SECTIONS, Numbers.FOLLOW), rng())
    np.testing.assert_allclose(follow, expected, atol=1e-6)
    anew = reordered_vector(encoder, document, of(Unit.SECTIONS, Numbers.ANEW), rng())
    assert np.abs(follow - anew).max() > 1e-3


def test_chunks_move_by_themselves(encoder: ColdeEncoder) -> None:
    document = encoder.segment(written())
    order = [int(at) for at in rng().permutation(len(document.chunks))]
    assert order != sorted(order)
    found = reordered_vector(encoder, document, of(Unit.CHUNKS, Numbers.ANEW), rng())
    np.testing.assert_allclose(found, chunks_moved(encoder, document, order, Numbers.ANEW), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("numbers", Numbers)
def test_the_order_as_written_is_never_drawn(encoder: ColdeEncoder, unit: Unit, numbers: Numbers) -> None:
    document = encoder.segment(written())
    whole = encoder.encode_segmented([document])[0].document
    for seed in range(12):  # one in six orders of three sections is the original one
        found = reordered_vector(encoder, document, of(unit, numbers), np.random.default_rng(seed))
        assert np.abs(found - whole).max() > 1e-4


@pytest.mark.parametrize(("unit", "n"), [(Unit.SECTIONS, "1 sections"), (Unit.CHUNKS, "1 chunks")])
def test_a_document_of_one_section_or_chunk_is_refused(encoder: ColdeEncoder, unit: Unit, n: str) -> None:
    document = encoder.segment(make_document("short", "The old fox."))
    with pytest.raises(TrainingError, match=f"short has {n}, which cannot change places; read more of each document"):
        reordered_vector(encoder, document, of(unit, Numbers.ANEW), rng())


def test_sections_without_text_do_not_move() -> None:
    assert sections_with_text(make_document("d", [("One", "a"), ("", " "), ("Two", "b")])) == [0, 2]


def test_a_mean_of_chunks_that_keep_their_numbers_does_not_depend_on_the_order(bert_folder: Path) -> None:
    encoder = tiny_colde(bert_folder, replace(COLDE, without_lstm=True))
    document = encoder.segment(written())
    whole = encoder.encode_segmented([document])[0].document
    follow, anew = (reordered_vector(encoder, document, of(Unit.CHUNKS, numbers), rng()) for numbers in Numbers)
    np.testing.assert_allclose(follow, whole, atol=1e-6)
    assert np.abs(anew - whole).max() > 1e-3


@pytest.mark.parametrize("numbers", Numbers)
def test_the_order_as_written_changes_nothing(numbers: Numbers, encoder: ColdeEncoder) -> None:
    document = encoder.segment(written())
    order = list(range(len(document.chunks)))
    whole = encoder.encode_segmented([document])[0].document
    np.testing.assert_allclose(chunks_moved(encoder, document, order, numbers), whole, atol=1e-6)
