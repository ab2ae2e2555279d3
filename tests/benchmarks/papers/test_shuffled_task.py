from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers.comparison import Conditions
from benchmarks.papers.pairs_task import EncoderArm, MatchingBench, MatchingTask
from benchmarks.papers.shuffled_task import (
    Numbers,
    ReadingArm,
    ShuffledBench,
    ShuffledTask,
    Unit,
    document_vector,
    shuffled_order,
)
from engine.document import Document, Section
from engine.encoders.colde.encoder import ColdeEncoder
from engine.encoders.colde.sections import place
from engine.encoders.trainable import inference
from indexer.training.origin import Origin
from tests.benchmarks.papers.cases import COLDE_SIZES, conditions, write_citations
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


ARM = EncoderArm("colde", COLDE_SIZES)
TASK = ShuffledTask(MatchingTask("clscisumm"), ARM)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def given(tmp_path: Path, bert_folder: Path, origin: Origin, told: list[str]) -> Conditions:
    write_citations(tmp_path / "data")
    return replace(conditions(tmp_path, bert_folder, origin), log=told.append)


def test_as_written_is_pair_matching_as_ever(given: Conditions) -> None:
    measured = ShuffledBench(TASK, given).measure(ReadingArm())
    plain = MatchingBench(TASK.matching, given).measure(ARM)
    assert list(measured.values) == list(plain.values)
    assert (measured.groups, measured.size, measured.n_steps) == (plain.groups, plain.size, plain.n_steps)
    assert (measured.encoder, measured.begins_with) == (plain.encoder, plain.begins_with)


def test_all_orders_are_read_by_one_training(given: Conditions, told: list[str]) -> None:
    arms = [ReadingArm(), ReadingArm(Unit.CHUNKS, Numbers.ANEW), ReadingArm(Unit.SECTIONS, Numbers.FOLLOW)]
    for arm in arms:
        ShuffledBench(TASK, given).measure(arm)
    assert told == ["colde: trained once for all orders"]
    ShuffledBench(TASK, replace(given, scale=replace(given.scale, steps=2))).measure(ReadingArm())
    assert len(told) == 2


def test_values_are_means_over_orders(given: Conditions) -> None:
    bench = ShuffledBench(TASK, given)
    several = bench.measure(ReadingArm(Unit.CHUNKS, Numbers.ANEW, n_orders=4))
    assert np.array_equal(np.round(np.array(several.values) * 4), np.array(several.values) * 4)
    assert several.remark == "4 orders a document"
    assert list(bench.measure(ReadingArm(Unit.CHUNKS, Numbers.ANEW, n_orders=4)).values) == list(several.values)


def test_settings_tell_the_training_and_the_reading() -> None:
    arm = ReadingArm(Unit.SECTIONS, Numbers.ANEW)
    assert arm.settings == {"unit": "sections", "numbers": "anew", "n_orders": 5}
    assert ReadingArm().settings == {"unit": "none"}


def test_the_bench_names_its_training(given: Conditions) -> None:
    settings = ShuffledBench(TASK, given).settings
    assert (settings["trained_recipe"], settings["trained_sizes_lstm_width"]) == ("colde", "16")
