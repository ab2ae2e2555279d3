"""Numbers of sections and chunks, and documents split into sections for training."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.encoders.colde.sections import PlacedChunk, TokenIds, place, split_sections


def sections_of(*lengths: list[int]) -> list[tuple[TokenIds, ...]]:
    """Sections of chunks of these lengths, whose tokens count up from 0."""
    sections = []
    first = 0
    for section in lengths:
        ends = [first + sum(section[: number + 1]) for number in range(len(section))]
        sections.append(tuple(tuple(range(a, b)) for a, b in zip([first, *ends], ends, strict=False)))
        first += sum(section)
    return sections


def test_chunks_are_numbered_by_section_and_place() -> None:
    assert place([[(1, 2), (3,)], [(4,)]]) == (
        (PlacedChunk((1, 2), 0, 0), PlacedChunk((3,), 0, 1)),
        (PlacedChunk((4,), 1, 0),),
    )


@pytest.mark.parametrize(
    ("sections", "n_parts", "expected"),
    [
        ([[4], [4], [4], [4]], 2, [8, 8]),
        ([[1], [1], [1], [9]], 2, [3, 9]),
        ([[9], [1], [1], [1]], 2, [9, 3]),
        ([[9], [1], [1], [1]], 3, [9, 1, 2]),
        ([[3], [3], [3], [3], [3]], 3, [6, 3, 6]),
        ([[20], [1]], 2, [20, 1]),
        ([[5], [6]], 1, [11]),
    ],
)
def test_neighbouring_sections_make_parts_of_like_size(
    sections: list[list[int]], n_parts: int, expected: list[int]
) -> None:
    parts = split_sections(sections_of(*sections), n_parts, 5, refill=False)
    assert [sum(len(ids) for ids in part) for part in parts] == expected


@pytest.mark.parametrize("refill", [False, True])
def test_few_sections_are_cut_into_equal_stretches_and_few_tokens_into_fewer_parts(refill: bool) -> None:
    assert split_sections(sections_of([5, 2]), 3, 2, refill=refill) == [((0, 1),), ((2, 3),), ((4, 5), (6,))]
    assert split_sections(sections_of([2]), 5, 10, refill=refill) == [((0,),), ((1,),)]


@given(
    lengths=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=3), min_size=1, max_size=6),
    n_parts=st.integers(1, 8),
)
def test_a_split_keeps_every_token_once_and_in_order(lengths: list[list[int]], n_parts: int) -> None:
    by_chunks, refilled = (split_sections(sections_of(*lengths), n_parts, 9, refill=refill) for refill in (False, True))
    flat = [[[token for ids in part for token in ids] for part in parts] for parts in (by_chunks, refilled)]
    assert flat[0] == flat[1]
    assert [token for part in flat[0] for token in part] == list(range(sum(map(sum, lengths))))
    assert len(by_chunks) == min(n_parts, sum(map(sum, lengths)))
    assert all(1 <= len(ids) <= 9 for part in (*by_chunks, *refilled) for ids in part)
    assert all(len(ids) == 9 for part in refilled for ids in part[:-1])
