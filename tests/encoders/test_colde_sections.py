"""Numbers of sections and chunks, and documents split into sections for training."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.encoders.colde.sections import PlacedChunk, headed_sections, place, split_document, split_tokens
from engine.encoders.encoder import SegmentedDocument
from engine.text.spans import Chunk, Coverage
from tests.fakes import make_document


def segmented(*sections: list[int]) -> SegmentedDocument:
    """A document of these chunk lengths by section; its tokens count up from 0."""
    chunks: list[Chunk] = []
    token_ids: list[tuple[int, ...]] = []
    n_tokens = 0
    for number, lengths in enumerate(sections):
        for length in lengths:
            chunks.append(Chunk(number, n_tokens, n_tokens + length, length))
            token_ids.append(tuple(range(n_tokens, n_tokens + length)))
            n_tokens += length
    return SegmentedDocument(make_document("d", "text"), tuple(chunks), tuple(token_ids), Coverage(n_tokens, n_tokens))


def test_chunks_are_numbered_by_section_and_place() -> None:
    assert place([[(1, 2), (3,)], [(4,)]]) == (
        (PlacedChunk((1, 2), 0, 0), PlacedChunk((3,), 0, 1)),
        (PlacedChunk((4,), 1, 0),),
    )


def test_headed_sections_leave_out_those_without_a_token() -> None:
    assert headed_sections(segmented([2, 1], [], [1])) == (((0, 1), (2,)), ((3,),))


@pytest.mark.parametrize(
    ("sections", "n_sections", "expected"),
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
    sections: list[list[int]], n_sections: int, expected: list[int]
) -> None:
    parts = split_document(segmented(*sections), n_sections, 5)
    assert [sum(len(ids) for ids in part) for part in parts] == expected


def test_a_document_of_fewer_sections_than_parts_is_cut_into_equal_stretches() -> None:
    assert split_document(segmented([5, 2]), 3, 2) == [((0, 1),), ((2, 3),), ((4, 5), (6,))]


def test_a_document_of_fewer_tokens_than_parts_has_fewer_parts() -> None:
    assert split_document(segmented([2]), 5, 10) == [((0,),), ((1,),)]


@given(
    sections=st.lists(st.lists(st.integers(1, 9), max_size=3), min_size=1, max_size=6).filter(any),
    n_sections=st.integers(1, 8),
)
def test_a_split_keeps_every_token_once_and_in_order(sections: list[list[int]], n_sections: int) -> None:
    document = segmented(*sections)
    parts = split_document(document, n_sections, 9)
    tokens = [token for part in parts for ids in part for token in ids]
    assert tokens == list(range(document.coverage.tokens_total))
    assert len(parts) == min(n_sections, len(tokens))
    assert all(1 <= len(ids) <= 9 for part in parts for ids in part)


@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=6).filter(any),
    n_sections=st.integers(1, 8),
)
def test_parts_of_tokens_are_those_of_chunks_cut_full(sizes: list[int], n_sections: int) -> None:
    ends = [sum(sizes[:number]) for number in range(len(sizes) + 1)]
    sections = [list(range(a, b)) for a, b in pairwise(ends)]
    parts = split_tokens(sections, n_sections, 9)
    by_chunks = split_document(segmented(*([1] * size for size in sizes)), n_sections, 9)
    flat = [[[token for ids in part for token in ids] for part in parts] for parts in (parts, by_chunks)]
    assert flat[0] == flat[1]
    assert all(len(ids) == 9 for part in parts for ids in part[:-1])
    assert all(1 <= len(part[-1]) <= 9 for part in parts)
