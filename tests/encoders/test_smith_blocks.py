"""Sentences into blocks, and blocks into windows."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.encoders.encoder import Variant
from engine.encoders.smith.config import Overflow, SmithConfig, match_bert
from engine.encoders.smith.encoder import BlockFilling, document_windows, fill_truncating
from engine.text.segmentation import TokenWindow
from engine.text.spans import Chunk


def spans(windows: list[TokenWindow]) -> list[tuple[int, int]]:
    return [(window.first, window.stop) for window in windows]


def ends(lengths: list[int]) -> list[int]:
    return [sum(lengths[: number + 1]) for number in range(len(lengths))]


def released_by_hand(lengths: list[int], capacity: int) -> list[list[int]]:
    """The released filling, over lists of token numbers: append, and cut when the block is written."""
    blocks: list[list[int]] = []
    block: list[int] = []
    number = 0
    for length in lengths:
        sentence = list(range(number, number + length))
        number += length
        if block and len(block) + length > capacity:
            blocks.append(block[:capacity])
            block = []
        block += sentence
    return [*blocks, block[:capacity]]


@given(st.lists(st.integers(1, 20), min_size=1, max_size=12), st.integers(1, 12))
def test_truncated_filling_equals_that_of_the_released_code(lengths: list[int], capacity: int) -> None:
    windows = fill_truncating(ends(lengths), capacity)
    assert [list(range(window.first, window.stop)) for window in windows] == released_by_hand(lengths, capacity)


def test_an_over_long_sentence_is_alone_and_cut() -> None:
    assert spans(fill_truncating(ends([3, 2, 9, 1]), 5)) == [(0, 5), (5, 10), (14, 15)]


def test_the_paper_variant_stops_at_max_blocks_of_a_document_whatever_its_sections() -> None:
    config = SmithConfig(Variant.PAPER, block_tokens=8, max_blocks=3, overflow=Overflow.TRUNCATE)
    filling = BlockFilling(config)
    assert [spans(filling(ends([5, 5]))), spans(filling(ends([5, 5, 5]))), filling(ends([5]))] == [
        [(0, 5), (5, 10)],
        [(0, 5)],
        [],
    ]


def test_the_fixed_variant_reads_every_block() -> None:
    config = SmithConfig(block_tokens=8, max_blocks=3)
    assert sum(window.stop - window.first for window in BlockFilling(config)(ends([20, 7, 3]))) == 30


def test_matchbert_reads_the_first_tokens_across_sections() -> None:
    filling = BlockFilling(match_bert(Variant.PAPER, block_tokens=12))
    assert [spans(filling(ends([4, 3]))), filling([]), spans(filling(ends([9]))), filling(ends([2]))] == [
        [(0, 7)],
        [],
        [(0, 3)],
        [],
    ]


def blocks(sections: list[int]) -> list[Chunk]:
    return [Chunk(number, 0, 1, 1) for number, count in enumerate(sections) for _ in range(count)]


def test_windows_are_cut_between_sections() -> None:
    assert spans(document_windows(blocks([3, 2, 4, 5]), 6)) == [(0, 5), (5, 9), (9, 14)]


def test_a_section_longer_than_a_window_is_split() -> None:
    assert spans(document_windows(blocks([2, 9, 1]), 4)) == [(0, 2), (2, 6), (6, 10), (10, 12)]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 12))
def test_windows_hold_every_block_once(sections: list[int], most: int) -> None:
    windows = document_windows(blocks(sections), most)
    assert windows[0].first == 0
    assert windows[-1].stop == sum(sections)
    assert all(one.stop == other.first for one, other in pairwise(windows))
    assert all(1 <= window.stop - window.first <= most for window in windows)
