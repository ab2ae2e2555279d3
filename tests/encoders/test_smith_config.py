"""The configuration of SMITH: the sizes of the paper, and sizes that are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.encoders.encoder import Variant
from engine.encoders.smith.config import Activation, Combination, Overflow, SmithConfig, match_bert, smith, smith_short
from engine.errors import EncoderError


def test_the_released_smith_has_its_oddities_and_the_fixed_one_has_none() -> None:
    released, fixed = smith(Variant.RELEASED), smith(Variant.FIXED)
    assert (released.sentence_layers, fixed.sentence_layers) == (4, 6)
    assert (released.overflow, fixed.overflow) == (Overflow.TRUNCATE, Overflow.WRAP)
    assert (released.final_activation, fixed.final_activation) == (Activation.RELU, Activation.NONE)
    assert fixed == SmithConfig()


@pytest.mark.parametrize(("variant", "capacity"), [(Variant.PAPER, 29), (Variant.RELEASED, 29), (Variant.FIXED, 30)])
def test_a_second_separator_takes_a_token_of_the_block(variant: Variant, capacity: int) -> None:
    assert smith(variant).capacity == capacity


@pytest.mark.parametrize(
    ("variant", "blocks"), [(Variant.PAPER, (4, 128)), (Variant.RELEASED, (8, 32)), (Variant.FIXED, (4, 128))]
)
def test_smith_short_reads_few_blocks_with_bert_base(variant: Variant, blocks: tuple[int, int]) -> None:
    short = smith_short(variant)
    assert (short.max_blocks, short.block_tokens) == blocks
    assert (short.width, short.sentence_layers, short.sentence_heads, short.sentence_ffn) == (768, 12, 12, 3072)
    assert (short.document_layers, short.document_heads, short.document_ffn) == (3, 4, 512)


@pytest.mark.parametrize("variant", Variant)
def test_matchbert_has_one_block_and_nothing_above_it(variant: Variant) -> None:
    config = match_bert(variant, block_tokens=512)
    assert (config.max_blocks, config.document_layers, config.capacity) == (1, 0, 510)


def test_a_combined_vector_is_twice_as_wide() -> None:
    assert [replace(smith(), combination=kind).vector_width for kind in Combination] == [256, 512, 512, 512]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 250}, "width 250 is no multiple of sentence_heads 4; choose one that divides it"),
        (
            {"max_blocks": 200},
            "max_blocks 200 is more than document_positions 128; lower max_blocks, or raise document_positions",
        ),
        (
            {"variant": Variant.PAPER, "block_tokens": 3},
            "block_tokens 3 leaves no room beside 3 special tokens; raise block_tokens",
        ),
        ({"document_layers": -1}, "document_layers is -1; it must be from 0 to 128"),
        ({"sentence_layers": 129}, "sentence_layers is 129; it must be from 1 to 128"),
        ({"sentence_heads": 0}, "sentence_heads is 0; it must be at least 1"),
        ({"dropout": 1.0}, "dropout is 1.0; it must lie in [0, 1)"),
        (
            {"document_layers": 0},
            "without document layers there is nothing above a block: max_blocks is 48 and combination 'normal'; "
            "set them to 1 and 'normal'",
        ),
    ],
)
def test_sizes_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(EncoderError) as raised:
        replace(SmithConfig(), **changes)
    assert str(raised.value) == message
