"""Explanations by chunks are compared with loops over their sections."""

from __future__ import annotations

import numpy as np
import pytest

from engine.encoders.explanation import ModelExplanation, ModelPair, strongest_pairs
from engine.text.spans import Chunk
from tests.fakes import FakeEncoder, make_document

QUERY = make_document("q", [("A", "a b"), ("", " "), ("C", "c")])
TARGET = make_document("t", [("X", "x"), ("Y", "y z")])
QUERY_CHUNKS = (Chunk(0, 0, 1, 1), Chunk(0, 1, 2, 1), Chunk(2, 6, 7, 1))
TARGET_CHUNKS = (Chunk(0, 0, 1, 1), Chunk(1, 3, 4, 1), Chunk(1, 5, 6, 1), Chunk(1, 6, 7, 1))
VALUES = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


@pytest.fixture
def explanation() -> ModelExplanation:
    mine, theirs = (VALUES.sum(axis=axis) for axis in (1, 0))
    return ModelExplanation.of_chunks(
        "made", "Drawn.", (QUERY, QUERY_CHUNKS, mine), (TARGET, TARGET_CHUNKS, theirs), VALUES
    )


def test_section_pairs_are_sums_of_their_chunk_pairs(explanation: ModelExplanation) -> None:
    for i in range(3):
        for j in range(2):
            expected = sum(
                float(VALUES[q, r])
                for q, mine in enumerate(QUERY_CHUNKS)
                for r, theirs in enumerate(TARGET_CHUNKS)
                if (mine.section, theirs.section) == (i, j)
            )
            assert explanation.pairs[i, j] == pytest.approx(expected, abs=1e-6)


def test_sections_are_sums_of_their_chunks(explanation: ModelExplanation) -> None:
    rows, columns = VALUES.sum(axis=1), VALUES.sum(axis=0)
    np.testing.assert_allclose(explanation.query_sections, [rows[0] + rows[1], 0, rows[2]], atol=1e-6)
    np.testing.assert_allclose(explanation.target_sections, [columns[0], columns[1:].sum()], atol=1e-6)
    assert explanation.total == pytest.approx(float(VALUES.sum()), abs=1e-5)
    assert repr(explanation) == f"ModelExplanation('made', 3 x 2 sections, total {VALUES.sum():.4f})"


def test_strongest_pairs_come_first_and_equal_ones_in_reading_order() -> None:
    values = np.array([[0.2, 0.5], [-0.3, 0.2], [0.0, 0.5]], np.float32)
    nothing = np.zeros(0, np.float32)
    made = ModelExplanation("made", "", (), (), nothing, nothing, values, nothing, nothing, values)
    expected = [(0, 1, 0.5), (2, 1, 0.5), (0, 0, 0.2), (1, 1, 0.2)]  # nothing at or below 0
    assert strongest_pairs(made) == [ModelPair(i, j, pytest.approx(value)) for i, j, value in expected]
    assert strongest_pairs(made, 1) == [ModelPair(0, 1, 0.5)]
    assert strongest_pairs(made, 0) == []


def test_the_error_of_an_encoder_that_cannot_explain_names_kinds_that_can() -> None:
    encoder = FakeEncoder(name="plain")
    with pytest.raises(Exception, match=r"^encoder 'plain' computes nothing .* kinds colde and smith do: train one"):
        encoder.explain(QUERY, [TARGET])
