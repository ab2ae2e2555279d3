"""The configuration of CoLDE: properties of its variants, and values that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from engine.encoders.colde.config import ColdeConfig, Freeze
from engine.encoders.encoder import Pooling, Variant
from engine.errors import EncoderError

RELEASED = ColdeConfig(variant=Variant.RELEASED, pooling=Pooling.MEAN, freeze=Freeze.ALL_BUT_LAST, dropout=0.0)


def test_ablations_leave_out_attention_and_tables() -> None:
    assert (ColdeConfig().has_attention, ColdeConfig().has_tables, ColdeConfig().shifts_ids) == (True, True, False)
    without = ColdeConfig(without_lstm=True, without_positions=True)
    assert (without.has_attention, without.has_tables, without.shifts_ids) == (False, False, False)
    assert (RELEASED.has_attention, RELEASED.has_tables, RELEASED.shifts_ids) == (False, False, True)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"variant": "best"}, "variant 'best' is none of paper, released, fixed"),
        ({"freeze": "all"}, "freeze 'all' is none of none, all_but_last"),
        ({"pooling": "max"}, "pooling 'max' is none of mean, cls"),
        ({"n_sections": 9}, "n_sections is 9; it must be from 1 to 8"),
        ({"max_chunks": 65}, "max_chunks is 65; it must be from 1 to 64"),
        ({"chunk_tokens": 0}, "chunk_tokens is 0; it must be at least 1"),
        ({"temperature": 0.0}, "temperature is 0.0; it must be above 0"),
        ({"dropout": 1.0}, r"dropout is 1.0; it must lie in \[0, 1\)"),
    ],
)
def test_a_value_out_of_its_range_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(EncoderError, match=f"^{message}$"):
        ColdeConfig(**values)
